import StemmaEvents

/// How the tables lead from records of one model to related ones.
///
/// Every read of a relationship, for one record or many, uses one of these three.
enum Route {
  /// These columns of the record hold the key of the target.
  case parent(fields: [String])
  /// These columns of the target hold the record's key.
  case children(fields: [String])
  /// Rows of a join model hold the record's key in `near` and the target's in `far`.
  case joined(ModelDescription, near: [String], far: [String])
}

extension ModelDescription {
  /// - Throws: `models` for an unknown relationship, or a join model that lacks a side.
  func route(_ name: String) throws(StoreError) -> (relationship: Relationship, route: Route) {
    guard let relationship = relationship(named: name) else {
      throw .models("\(self.name) has no relationship \(name)")
    }
    switch relationship.kind {
    case .belongsTo: return (relationship, .parent(fields: relationship.fields))
    case .hasMany, .hasOne: return (relationship, .children(fields: relationship.fields))
    case .manyToMany: return (relationship, try joined(relationship))
    }
  }

  /// - Throws: `models` if a join model does not belong to both sides.
  func checkJoins() throws(StoreError) {
    for relationship in relationships where relationship.kind == .manyToMany { _ = try joined(relationship) }
  }

  private func joined(_ relationship: Relationship) throws(StoreError) -> Route {
    guard let join = relationship.join?().description else {
      throw .models("\(name).\(relationship.name) names no join model")
    }
    let parents = join.relationships.filter { $0.kind == .belongsTo }
    let target = relationship.target().modelName
    let near = parents.first {
      $0.target().modelName == name && (relationship.joinRelationship ?? $0.name) == $0.name
    }
    let far = parents.first { $0.target().modelName == target && $0.name != near?.name }
    guard let near, let far else {
      throw .models(
        "\(name).\(relationship.name) leads through \(join.name), which does not belong to both \(name) and \(target)"
          + (relationship.joinRelationship.map { ", to \(name) by `\($0)`" } ?? "")
      )
    }
    return .joined(join, near: near.fields, far: far.fields)
  }
}

extension Route {
  /// Selects `target`'s rows that belong to the record with a key; for a parent, its own key.
  func predicate(_ target: ModelDescription, _ key: [Value]) -> StatementText {
    switch self {
    case .parent: return StatementText(Self.matches(target.tableName, target.key.map(\.name)), key)
    case .children(let fields): return StatementText(Self.matches(target.tableName, fields), key)
    case .joined(let join, let near, let far):
      let pairs =
        "SELECT \(Self.list(join.tableName, far)) FROM \(StatementText.quoted(join.tableName)) "
        + "WHERE \(Self.matches(join.tableName, near))"
      return StatementText("\(Self.row(target.tableName, target.key.map(\.name))) IN (\(pairs))", key)
    }
  }

  private static func matches(_ table: String, _ columns: [String]) -> String {
    columns.map { "\(column(table, $0)) = ?" }.joined(separator: " AND ")
  }

  static func column(_ table: String, _ column: String) -> String {
    "\(StatementText.quoted(table)).\(StatementText.quoted(column))"
  }

  static func list(_ table: String, _ columns: [String]) -> String {
    columns.map { column(table, $0) }.joined(separator: ", ")
  }

  /// One value, or several as one, for `IN`.
  static func row(_ table: String, _ columns: [String]) -> String {
    columns.count == 1 ? list(table, columns) : "(\(list(table, columns)))"
  }
}
