import StemmaEvents
import StemmaMerge
import StemmaReplication
import StemmaSchema
import StemmaTables

/// What going back would change, with what is needed to find out whether that has become another matter since.
package struct Reversal {
  /// All of it: also what becomes of the children of records that are deleted.
  package let changes: [RecordDifference]
  /// The end of the log that it was worked out from.
  let end: Position
  let workOut: (PresentRecords) throws(NodeError) -> [RecordDifference]

  init(
    _ node: Node, _ workOut: @escaping (PresentRecords) throws(NodeError) -> [RecordDifference]
  ) throws(NodeError) {
    end = node.log.end
    changes = try workOut(node.presentRecords)
    self.workOut = workOut
  }
}

/// The records as they are: as the tables show them, or as a commit has found them that is being made.
struct PresentRecords {
  var children: (Key, InverseReference) throws(NodeError) -> [Key]
  var state: (Model, Key) throws(NodeError) -> RecordState
}

extension Node {
  var presentRecords: PresentRecords {
    PresentRecords(
      children: { key, inverse throws(NodeError) in
        try self.reading { try $0.children(of: key, through: inverse) }
      },
      state: { model, key throws(NodeError) in
        try self.reading { try $0.state(of: key, in: model) } ?? RecordState()
      })
  }
}

extension WriteTransaction {
  var presentRecords: PresentRecords {
    PresentRecords(
      children: { key, inverse throws(NodeError) in
        do throws(TablesError) { return try self.tables.children(of: key, through: inverse) } catch {
          throw .tables(error)
        }
      },
      state: { model, key throws(NodeError) in try self.state(model, key) })
  }
}

/// The changes that going back makes, while those are added to them that follow: a record that is deleted takes its
/// children along whose reference is required, and the others lose the reference, as with any deletion. That is
/// worked out here, and not left to the deletions, because what goes back is shown before it is written.
struct Consequences {
  private let schema: Schema
  private let present: PresentRecords
  private let scope: Scope
  private(set) var changes: [RecordDifference]
  /// How many of them were there from the start.
  let planned: Int
  private var places: [RecordName: Int] = [:]

  private struct RecordName: Hashable {
    var model: String
    var key: Key
  }

  init(
    of changes: [RecordDifference], _ schema: Schema, _ present: PresentRecords, in scope: Scope
  ) throws(NodeError) {
    self.schema = schema
    self.present = present
    self.scope = scope
    self.changes = changes
    planned = changes.count
    for (place, change) in changes.enumerated() {
      places[RecordName(model: change.model.name, key: change.key)] = place
    }
    var waiting = changes.indices.filter { changes[$0].kind == .removed }
    while let place = waiting.popLast() {
      let parent = self.changes[place]
      for inverse in schema.inverseReferences(to: parent.model) {
        for child in try present.children(parent.key, inverse) {
          if let removed = try follow(inverse, child, of: parent) { waiting.append(removed) }
        }
      }
    }
  }

  /// Whether somebody must be told of more than what was asked for: a record changes that nobody named, or one that
  /// was to be changed goes.
  var goBeyond: Bool { changes.count > planned || changesBecameRemovals }
  private var changesBecameRemovals = false

  /// Adds what becomes of a child. Gives its place if it is deleted.
  private mutating func follow(
    _ inverse: InverseReference, _ key: Key, of parent: RecordDifference
  ) throws(NodeError) -> Int? {
    let child = inverse.child
    guard scope.contains(Partition(model: child, key: key)) else { return nil }
    let free = Set(
      child.freeReferenceFields(of: inverse.relationship).compactMap { child.field(named: $0)?.storedName })
    let place = places[RecordName(model: child.name, key: key)]
    if let place {
      // It goes anyway, or comes to refer to another record.
      if changes[place].kind == .removed { return nil }
      if changes[place].changes.contains(where: { free.contains($0.field) }) { return nil }
    }
    if inverse.rule == .restrict {
      throw .mutation(
        .restricted(
          model: parent.model.name, key: KeyWords.text(parent.key, of: parent.model), by: child.name, count: 1
        ))
    }
    let state = try present.state(child, key)
    guard var gone = RecordDifference(child, key, from: state, to: RecordState(), MergeRules(child)) else {
      return nil
    }
    if !inverse.isRequired {
      gone.kind = .changed
      gone.changes.removeAll { !free.contains($0.field) }
      if let place {
        changes[place].changes += gone.changes
        return nil
      }
    } else if let place {
      changes[place] = gone
      changesBecameRemovals = true
      return place
    }
    places[RecordName(model: child.name, key: key)] = changes.count
    changes.append(gone)
    return inverse.isRequired ? changes.count - 1 : nil
  }
}
