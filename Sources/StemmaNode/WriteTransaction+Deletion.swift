import StemmaEvents
import StemmaMerge
import StemmaSchema

extension WriteTransaction {
  /// One event of a deletion, in the order in which they are recorded: children first, the record last.
  private enum Step {
    case delete(Model, Key)
    case unlink(Model, Key, Relationship)

    var partition: Partition {
      switch self {
      case .delete(let model, let key), .unlink(let model, let key, _): Partition(model: model, key: key)
      }
    }
  }

  /// A record anywhere, to notice cycles of references.
  private struct RecordName: Hashable {
    var model: String
    var key: Key
  }

  private struct Plan {
    var steps: [Step] = []
    /// Records that are deleted.
    var visited: Set<RecordName> = []
    /// What earlier steps set to null. Relationships may share fields, and each step has to be one event: the
    /// children name the deletion by the number that it will have.
    private var cleared: [RecordName: Set<String>] = [:]

    mutating func unlink(_ model: Model, _ key: Key, _ relationship: Relationship) {
      let name = RecordName(model: model.name, key: key)
      let free = model.freeReferenceFields(of: relationship)
      if cleared[name, default: []].isSuperset(of: free) { return }
      cleared[name, default: []].formUnion(free)
      steps.append(.unlink(model, key, relationship))
    }
  }

  /// Deletes a record, and before it, in the same commit, what cannot be without it: children whose reference
  /// is required are deleted, others are unlinked; `onDelete: RESTRICT` refuses. Children in partitions that
  /// this node does not hold stay.
  ///
  /// What is done is planned first, so that the events of the children can name the deletion as their cause.
  ///
  /// - Parameter seen: the record as whoever deletes it knew it; nil: as it is.
  func delete(
    _ model: Model, _ key: Key, seen: RecordState? = nil, milliseconds: UInt64?
  ) throws(NodeError) {
    _ = try existing(model, key)
    try remove(model, key, seen: seen, milliseconds: milliseconds)
  }

  /// Deletes a record as above, also one that is not shown as existing: whether it exists may be a conflict, and others
  /// refer to it all the same.
  ///
  /// - Parameter decides: whether that is a decision about such a conflict.
  func remove(
    _ model: Model, _ key: Key, seen: RecordState? = nil, decides: Bool = false, milliseconds: UInt64?
  ) throws(NodeError) {
    var deletion = Plan()
    try plan(model, key, &deletion)
    let steps = deletion.steps
    let partition = Partition(model: model, key: key)
    let earlier = UInt64(steps.dropLast().count { $0.partition == partition })
    let cause: EventName
    do {
      let head = try tables.head(partition, origin).sequence
      cause = EventName(partition: partition, dot: Dot(origin, Sequence(head.rawValue + earlier + 1)))
    } catch { throw .tables(error) }
    for (index, step) in steps.enumerated() {
      let isLast = index == steps.count - 1
      try causing(isLast ? nil : cause) { () throws(NodeError) in
        switch step {
        case .delete(let model, let key):
          let current = try state(model, key)
          try record(
            .delete, model, key, state: isLast ? seen ?? current : current,
            assignments: isLast && decides ? [Assignment(Event.existenceField, .bool(false))] : [],
            milliseconds: milliseconds)
        case .unlink(let model, let key, let relationship):
          try clearReference(model, key, relationship, expected: nil, milliseconds)
        }
      }
    }
  }

  private func plan(
    _ model: Model, _ key: Key, _ deletion: inout Plan
  ) throws(NodeError) {
    deletion.visited.insert(RecordName(model: model.name, key: key))
    for inverse in schema.inverseReferences(to: model) {
      let children: [Key]
      do { children = try tables.children(of: key, through: inverse) } catch { throw .tables(error) }
      let present = children.filter {
        !deletion.visited.contains(RecordName(model: inverse.child.name, key: $0))
          && isInScope(Partition(model: inverse.child, key: $0))
      }
      if inverse.rule == .restrict, !present.isEmpty {
        throw .mutation(
          .restricted(
            model: model.name, key: text(key, model), by: inverse.child.name, count: present.count))
      }
      for child in present {
        if !inverse.isRequired {
          deletion.unlink(inverse.child, child, inverse.relationship)
        } else if !deletion.visited.contains(RecordName(model: inverse.child.name, key: child)) {
          try plan(inverse.child, child, &deletion)
        }
      }
    }
    deletion.steps.append(.delete(model, key))
  }
}
