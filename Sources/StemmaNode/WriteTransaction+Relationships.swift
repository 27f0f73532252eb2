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
