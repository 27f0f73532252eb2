import StemmaEvents
import StemmaMerge
import StemmaSchema

extension WriteTransaction {
  // MARK: Link

  func link(_ model: Model, _ key: Key, _ mutation: Mutation) throws(NodeError) {
    if model.isJoinModel, try linksWholeKey(model, key, mutation) {
      if try exists(model, key) { return }
      var plain = mutation
      plain.operation = .create
      plain.key = schema.json(of: key, model: model)
      plain.fields = []
      try perform(plain)
      return
    }
    for (name, json) in mutation.fields {
      let relationship = try relationship(model, name)
      let target = try self.model(relationship.target)
      let targetKey = try self.key(json, of: target)
      switch relationship.kind {
      case .manyToMany: try linkThroughJoin(model, key, relationship, target, targetKey, mutation)
      case _ where relationship.storesReference:
        try setReference(model, key, relationship, targetKey, mutation.milliseconds)
      case .hasMany, .hasOne, .belongsTo:
        // The child stores the link.
        try setReference(
          target, targetKey, try childReference(relationship, of: model), key, mutation.milliseconds)
      }
    }
  }

  func unlink(_ model: Model, _ key: Key, _ mutation: Mutation) throws(NodeError) {
    if model.isJoinModel, try linksWholeKey(model, key, mutation) || mutation.fields.isEmpty {
      try delete(model, key, milliseconds: mutation.milliseconds)
      return
    }
    for (name, json) in mutation.fields {
      let relationship = try relationship(model, name)
      let target = try self.model(relationship.target)
      let targetKey = json.isNull ? nil : try self.key(json, of: target)
      switch (relationship.kind, targetKey) {
      case (.manyToMany, let targetKey?):
        let (join, joinKey) = try joinRow(model, key, relationship, target, targetKey)
        try delete(join, joinKey, milliseconds: mutation.milliseconds)
      case _ where relationship.storesReference:
        try clearReference(model, key, relationship, expected: targetKey, mutation.milliseconds)
      case (_, let targetKey?):
        try clearReference(
          target, targetKey, try childReference(relationship, of: model), expected: key,
          mutation.milliseconds)
      case (_, .none):
        throw .mutation(
          .wrongShape("unlink of `\(name)` needs the key of the record on the other side"))
      }
    }
  }

  private func relationship(_ model: Model, _ name: String) throws(NodeError) -> Relationship {
    guard let relationship = model.relationship(named: name) else {
      throw .mutation(
        .unknownRelationship(model: model.name, name: name, known: model.relationships.map(\.name)))
    }
    return relationship
  }

  /// A parent's hasMany or hasOne as its child stores it; synthesized if the child declares none.
  private func childReference(_ relationship: Relationship, of model: Model) throws(NodeError) -> Relationship
  {
    let child = try self.model(relationship.target)
    return child.relationships.first {
      $0.storesReference && $0.target == model.name && $0.referenceFields == relationship.referenceFields
    }
      ?? Relationship(
        name: relationship.name, kind: .belongsTo, target: model.name, storesReference: true,
        referenceFields: relationship.referenceFields)
  }

  private func setReference(
    _ model: Model, _ key: Key, _ relationship: Relationship, _ target: Key, _ milliseconds: UInt64?
  ) throws(NodeError) {
    let state = try existing(model, key)
    let rules = self.rules(model)
    let values = try reference(model, key, relationship, target)
    try checkReferences(model, key, values)
    guard values.contains(where: { isChanged(state, by: $0, rules) }) else { return }
    try recordReference(.link, model, key, state, relationship, values, milliseconds)
  }

  func clearReference(
    _ model: Model, _ key: Key, _ relationship: Relationship, expected: Key?, _ milliseconds: UInt64?
  ) throws(NodeError) {
    let state = try existing(model, key)
    let rules = self.rules(model)
    let values = try reference(model, key, relationship, nil)
    if let expected {
      let wanted = try reference(model, key, relationship, expected)
      guard wanted.allSatisfy({ state.value(of: $0.field, rules) == $0.value }) else {
        throw .mutation(
          .notLinked(model: model.name, key: text(key, model), relationship: relationship.name))
      }
    }
    guard values.contains(where: { isChanged(state, by: $0, rules) }) else { return }
    try recordReference(.unlink, model, key, state, relationship, values, milliseconds)
  }

  private func recordReference(
    _ operation: EventOperation, _ model: Model, _ key: Key, _ state: RecordState,
    _ relationship: Relationship,
    _ values: [Assignment], _ milliseconds: UInt64?
  ) throws(NodeError) {
    try record(
      operation, model, key, state: state, relationship: relationship.name,
      assignments: state.completed(values, rules(model)), milliseconds: milliseconds)
  }

  // MARK: Join models

  /// Whether the named relationships cover the whole key and agree with it.
  private func linksWholeKey(_ model: Model, _ key: Key, _ mutation: Mutation) throws(NodeError) -> Bool {
    guard !mutation.fields.isEmpty else { return false }
    var covered: Set<String> = []
    for (name, json) in mutation.fields {
      let relationship = try relationship(model, name)
      guard relationship.storesReference else { return false }
      if !json.isNull {
        // Checks that the target agrees with the key.
        _ = try reference(
          model, key, relationship, try self.key(json, of: try self.model(relationship.target)))
      }
      covered.formUnion(relationship.referenceFields)
    }
    return model.keyFields.allSatisfy { covered.contains(model.fields[$0].name) }
  }

  /// The row of the join model for two records.
  private func joinRow(
    _ model: Model, _ key: Key, _ relationship: Relationship, _ target: Model, _ targetKey: Key
  ) throws(NodeError) -> (Model, Key) {
    let join = try self.model(relationship.joinModel ?? "")
    var parts: [String: KeyPart] = [:]
    for (name, part) in zip(relationship.referenceFields, key.parts) { parts[name] = part }
    // A relationship within one model has both sides in one list.
    let facing = target.relationships.first {
      $0.joinModel == join.name && !($0.name == relationship.name && target.name == model.name)
    }
    for (name, part) in zip(facing?.referenceFields ?? [], targetKey.parts) { parts[name] = part }
    return (join, Key(join.keyFields.compactMap { parts[join.fields[$0].name] }))
  }

  private func linkThroughJoin(
    _ model: Model, _ key: Key, _ relationship: Relationship, _ target: Model, _ targetKey: Key,
    _ mutation: Mutation
  ) throws(NodeError) {
    let (join, joinKey) = try joinRow(model, key, relationship, target, targetKey)
    // An existing link is not written again.
    if try exists(join, joinKey) { return }
    try perform(
      Mutation(
        .create, model: join.name, key: schema.json(of: joinKey, model: join),
        milliseconds: mutation.milliseconds))
  }
}

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
