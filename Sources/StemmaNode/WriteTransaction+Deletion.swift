import StemmaEvents
import StemmaMerge
import StemmaSchema

extension WriteTransaction {
  /// One event of a deletion. Children come first, the record last.
  private enum Step {
    case delete(Model, Key)
    case unlink(Model, Key, Relationship)

    var partition: Partition {
      switch self {
      case .delete(let model, let key), .unlink(let model, let key, _): Partition(model: model, key: key)
      }
    }
  }

  /// The name of a record, to detect cycles of references.
  private struct RecordName: Hashable {
    var model: String
    var key: Key
  }

  /// A record to delete after its children.
  private struct Visit {
    let model: Model
    let key: Key
    let references: [InverseReference]
    /// The number of examined `references`.
    var done = 0
    /// Children through the last of these that must be deleted and are not yet visited.
    var children: ArraySlice<Key> = []
  }

  private struct Plan {
    var steps: [Step] = []
    /// Deleted records.
    private var visited: Set<RecordName> = []
    /// The references to each model.
    private var references: [String: [InverseReference]] = [:]
    /// Fields that earlier steps set to null. Relationships may share fields, but each step must be
    /// one event, because children name the deletion by its future sequence.
    private var cleared: [RecordName: Set<String>] = [:]

    func deletes(_ model: Model, _ key: Key) -> Bool {
      visited.contains(RecordName(model: model.name, key: key))
    }

    /// Nil if the record was visited already.
    mutating func visit(_ model: Model, _ key: Key, _ schema: Schema) -> Visit? {
      guard visited.insert(RecordName(model: model.name, key: key)).inserted else { return nil }
      let known = references[model.name] ?? schema.inverseReferences(to: model)
      references[model.name] = known
      return Visit(model: model, key: key, references: known)
    }

    mutating func unlink(_ model: Model, _ key: Key, _ relationship: Relationship) {
      let name = RecordName(model: model.name, key: key)
      let free = model.freeReferenceFields(of: relationship)
      if cleared[name, default: []].isSuperset(of: free) { return }
      cleared[name, default: []].formUnion(free)
      steps.append(.unlink(model, key, relationship))
    }
  }

  /// Deletes a record. First, in the same commit, deletes children with a required reference and
  /// unlinks the others; `onDelete: RESTRICT` refuses. Children outside of the scope stay.
  ///
  /// All steps are planned first, so that the events of children can name the deletion as their
  /// cause.
  ///
  /// - Parameter seen: the record as the caller read it; nil: the present state.
  func delete(
    _ model: Model, _ key: Key, seen: RecordState? = nil, milliseconds: UInt64?
  ) throws(NodeError) {
    _ = try existing(model, key)
    try remove(model, key, seen: seen, milliseconds: milliseconds)
  }

  /// Deletes a record as above, even if it is shown as deleted: its existence may be in conflict,
  /// and other records may refer to it.
  ///
  /// - Parameter decides: whether this resolves such a conflict.
  func remove(
    _ model: Model, _ key: Key, seen: RecordState? = nil, decides: Bool = false, milliseconds: UInt64?
  ) throws(NodeError) {
    var deletion = Plan()
    try plan(model, key, &deletion)
    let steps = deletion.steps
    let partition = Partition(model: model, key: key)
    let earlier = UInt64(steps.dropLast().count { $0.partition == partition })
    let cause: QualifiedEventID
    do {
      let head = try tables.head(partition, origin).sequence
      cause = QualifiedEventID(
        partition: partition, id: EventID(origin, SequenceNumber(head.rawValue + earlier + 1)))
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

  /// Uses an explicit stack, because chains of references can exceed a thread's stack.
  private func plan(
    _ model: Model, _ key: Key, _ deletion: inout Plan
  ) throws(NodeError) {
    guard let first = deletion.visit(model, key, schema) else { return }
    var visits = [first]
    while var visit = visits.popLast() {
      if let child = visit.children.popFirst() {
        let model = visit.references[visit.done - 1].child
        visits.append(visit)
        if let next = deletion.visit(model, child, schema) { visits.append(next) }
      } else if visit.done < visit.references.count {
        let inverse = visit.references[visit.done]
        visit.done += 1
        let children = try children(of: visit, through: inverse, deletion)
        if inverse.isRequired || inverse.rule == .cascade {
          visit.children = children[...]
        } else {
          for child in children { deletion.unlink(inverse.child, child, inverse.relationship) }
        }
        visits.append(visit)
      } else {
        deletion.steps.append(.delete(visit.model, visit.key))
      }
    }
  }

  /// The children that are in scope and not deleted yet.
  ///
  /// - Throws: `restricted` if there are any and the reference restricts deletion.
  private func children(
    of visit: Visit, through inverse: InverseReference, _ deletion: Plan
  ) throws(NodeError) -> [Key] {
    let all: [Key]
    do { all = try tables.children(of: visit.key, through: inverse) } catch { throw .tables(error) }
    let present = all.filter {
      !deletion.deletes(inverse.child, $0) && isInScope(Partition(model: inverse.child, key: $0))
    }
    if inverse.rule == .restrict, !present.isEmpty {
      throw .mutation(
        .restricted(
          model: visit.model.name, key: text(visit.key, visit.model), by: inverse.child.name,
          count: present.count))
    }
    return present
  }
}
