import StemmaEvents
import StemmaNode
import StemmaSchema
import StemmaTables

extension Store.Transaction {
  func relate<Target: Table>(
    _ owner: ModelDescription, _ key: [Value], _ name: String, _ target: Target
  ) throws {
    let (relationship, route) = try owner.route(name)
    guard case .joined(let join, let near, let far) = route, let table = relationship.join?() else {
      return try writing { try $0.link(owner.name, Self.key(of: key), name, Self.key(target.primaryKey)) }
    }
    let pair = try pair(near, key, far, target)
    guard try joinKeys(table, pair).isEmpty else { return }
    let model = try store.model(of: table)
    for (end, values) in [(owner.name, key), (Target.modelName, target.keyValues)] {
      try writing { _ = try $0.demand(end, Self.key(of: values)) }
    }
    var parts: [KeyPart?] = []
    for column in join.key {
      parts.append(pair.first { $0.column == column.name }.flatMap { KeyPart($0.value) })
    }
    let names = Set(join.key.map(\.name))
    var assignments: [Assignment] = []
    for (column, value) in pair where !names.contains(column) {
      guard let field = model.field(named: column) else { continue }
      assignments.append(Assignment(field.storedName, value))
    }
    try writing { try $0.create(model, try $0.key(parts, of: model), assignments) }
  }

  func unrelate<Target: Table>(
    _ owner: ModelDescription, _ key: [Value], _ name: String, _ target: Target
  ) throws {
    let (relationship, route) = try owner.route(name)
    guard case .joined(_, let near, let far) = route, let table = relationship.join?() else {
      return try writing { try $0.unlink(owner.name, Self.key(of: key), name, Self.key(target.primaryKey)) }
    }
    let keys = try joinKeys(table, try pair(near, key, far, target))
    guard !keys.isEmpty else {
      let key = Self.key(of: key)
      let text = KeyWords.text(key, of: try writing { try $0.demand(owner.name, key) })
      throw StoreError(.mutation(.notLinked(model: owner.name, key: text, relationship: name)))
    }
    let model = try store.model(of: table)
    try writing { write in for key in keys { try write.delete(model, key) } }
  }

  // MARK: Parts

  static func key(of values: [Value]) -> Key { Key(values.compactMap { KeyPart($0) }) }

  /// The reference fields of a join row that relates the two, with their values.
  private func pair(
    _ near: [String], _ key: [Value], _ far: [String], _ target: some Table
  ) throws(StoreError) -> [(column: String, value: Value)] {
    var pair: [(column: String, value: Value)] = []
    for (column, value) in zip(near + far, key + target.keyValues) {
      // Both sides can share a field, such as a tenant's id.
      if let known = pair.first(where: { $0.column == column }) {
        guard known.value == value else {
          throw .failed(
            .immutableKey, "the two records differ in \(column), which both have to share to be related")
        }
        continue
      }
      pair.append((column, value))
    }
    return pair
  }

  /// The keys of the rows of a join model that relate two records.
  private func joinKeys(
    _ table: any Table.Type, _ pair: [(column: String, value: Value)]
  ) throws -> [Key] {
    try opened(table, pair)
  }

  private func opened<Join: Table>(
    _ type: Join.Type, _ pair: [(column: String, value: Value)]
  ) throws -> [Key] {
    var select = Join.all
    for (column, value) in pair {
      select.parts.predicates.append(
        StatementText("\(Route.column(Join.description.tableName, column)) = ?", [value]))
    }
    return try select.fetchAll(self).map { Self.key($0.primaryKey) }
  }
}
