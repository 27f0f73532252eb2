import StemmaTables

extension Query where Output: Table, Columns == Output.Columns {
  /// Pairs of a row and a related one; rows without a related one are left out. A path can have
  /// several steps: `join { $0.team.league }`. A `@HasOne` joins the row that its property returns.
  ///
  /// - Precondition: neither `limit` nor `distinct` was called before; call them afterwards.
  public func join<Target: Table, Value>(
    _ path: (Output.Relationships) -> RelationshipPath<Output, Target, Value>
  ) -> Query<(Output.Columns, JoinedColumns<Target>), (Output, Target)> {
    let (parts, table) = joining(path(Output.relationships).names, Target.self, " JOIN ")
    return paired(parts, JoinedColumns<Target>(table: table, group: Target.columns))
  }

  /// As `join`, but a row without a related one is included once, with nil; on a path of several
  /// steps, so is each row of the step before the last.
  public func leftJoin<Target: Table, Value>(
    _ path: (Output.Relationships) -> RelationshipPath<Output, Target, Value>
  ) -> Query<(Output.Columns, OptionalColumns<Target>), (Output, Target?)> {
    let (parts, table) = joining(path(Output.relationships).names, Target.self, " LEFT JOIN ")
    return paired(parts, OptionalColumns<Target>(table: table, columns: Target.columns))
  }

  /// Pairs of rows for which a condition holds, related or not.
  public func join<Target: Table>(
    _ other: Target.Type, on condition: (Columns, JoinedColumns<Target>) -> some ExpressionProtocol<Bool>
  ) -> Query<(Output.Columns, JoinedColumns<Target>), (Output, Target)> {
    var joined = JoinedTables(parts, Output.description)
    let table = joined.name(Target.description)
    let right = JoinedColumns<Target>(table: table, group: Target.columns)
    joined.add(Target.description, " JOIN ", on: condition(columns, right).text)
    return paired(joined.selecting(Target.description), right)
  }

  /// As `join`, but a row without a match is included once, with nil.
  public func leftJoin<Target: Table>(
    _ other: Target.Type, on condition: (Columns, OptionalColumns<Target>) -> some ExpressionProtocol<Bool>
  ) -> Query<(Output.Columns, OptionalColumns<Target>), (Output, Target?)> {
    var joined = JoinedTables(parts, Output.description)
    let table = joined.name(Target.description)
    let right = OptionalColumns<Target>(table: table, columns: Target.columns)
    joined.add(Target.description, " LEFT JOIN ", on: condition(columns, right).text)
    return paired(joined.selecting(Target.description), right)
  }

  private func joining(
    _ path: [String], _ target: any Table.Type, _ kind: String
  ) -> (QueryParts, String) {
    var joined = JoinedTables(parts, Output.description)
    for name in path { joined.add(name, kind) }
    return (joined.selecting(target.description), joined.last)
  }

  private func paired<Target: Table>(
    _ parts: QueryParts, _ right: JoinedColumns<Target>
  ) -> Query<(Output.Columns, JoinedColumns<Target>), (Output, Target)> {
    Query<_, (Output, Target)>(parts, (columns, right)) { cursor in
      let row = cursor.row(of: Output.self)
      return (try Output(row), try Target(row.row(of: Target.self, from: Output.width)))
    }
  }

  private func paired<Target: Table>(
    _ parts: QueryParts, _ right: OptionalColumns<Target>
  ) -> Query<(Output.Columns, OptionalColumns<Target>), (Output, Target?)> {
    Query<_, (Output, Target?)>(parts, (columns, right)) { cursor in
      let row = cursor.row(of: Output.self)
      let other = row.row(of: Target.self, from: Output.width)
      // A row's key is never null, so a null key means that there is no row.
      return (try Output(row), other.isNull(0) ? nil : try Target(other))
    }
  }
}

extension Table {
  /// The number of columns that a statement selects for one row.
  fileprivate static var width: Int { description.columns.count + 1 }

  /// Pairs of a row and a related one; rows without a related one are left out.
  public static func join<Target: Table, Value>(
    _ path: (Relationships) -> RelationshipPath<Self, Target, Value>
  ) -> Query<(Columns, JoinedColumns<Target>), (Self, Target)> { all.join(path) }

  /// As `join`, but a row without a related one is included once, with nil.
  public static func leftJoin<Target: Table, Value>(
    _ path: (Relationships) -> RelationshipPath<Self, Target, Value>
  ) -> Query<(Columns, OptionalColumns<Target>), (Self, Target?)> { all.leftJoin(path) }

  /// Pairs of rows for which a condition holds, related or not.
  public static func join<Target: Table>(
    _ other: Target.Type, on condition: (Columns, JoinedColumns<Target>) -> some ExpressionProtocol<Bool>
  ) -> Query<(Columns, JoinedColumns<Target>), (Self, Target)> { all.join(other, on: condition) }

  /// As `join`, but a row without a match is included once, with nil.
  public static func leftJoin<Target: Table>(
    _ other: Target.Type, on condition: (Columns, OptionalColumns<Target>) -> some ExpressionProtocol<Bool>
  ) -> Query<(Columns, OptionalColumns<Target>), (Self, Target?)> { all.leftJoin(other, on: condition) }
}

/// Tables that are joined step by step, each to the previous one.
private struct JoinedTables {
  private var parts: QueryParts
  private var names: Set<String>
  /// The statement's alias of the table that was joined last.
  private(set) var last: String
  private var description: ModelDescription

  init(_ parts: QueryParts, _ description: ModelDescription) {
    self.parts = parts
    self.description = description
    last = description.tableName
    names = [last]
    precondition(
      parts.limit == nil && parts.offset == 0 && !parts.isDistinct, "join before limit and distinct")
  }

  /// The alias for a table: its name, with a `+` for each earlier use.
  func name(_ description: ModelDescription) -> String {
    var name = description.tableName
    while names.contains(name) { name += "+" }
    return name
  }

  mutating func add(_ other: ModelDescription, _ kind: String, on condition: StatementText) {
    last = name(other)
    names.insert(last)
    description = other
    parts.source.append(
      "\(kind)\(StatementText.quoted(other.tableName)) AS \(StatementText.quoted(last)) ON ")
    parts.source.append(condition)
  }

  /// Joins the records on the other side of a relationship.
  mutating func add(_ name: String, _ kind: String) {
    let relationship: ModelDescription.Relationship
    let route: Route
    do throws(StoreError) { (relationship, route) = try description.route(name) } catch {
      // Opening a store checks that all relationships fit.
      preconditionFailure("\(error); declare the models so that both sides fit")
    }
    let target = relationship.target().description
    switch route {
    case .parent(let fields): add(target, kind, fields, equal: target.key.map(\.name))
    case .children(let fields):
      let key = description.key.map(\.name)
      guard relationship.kind == .hasOne else { return add(target, kind, key, equal: fields) }
      add(target, kind, on: shown(relationship, target, key, fields))
    case .joined(let join, let near, let far):
      let (owner, related) = (last, self.name(target))
      // IN instead of a join: a join model can have duplicate rows, and rows that lead nowhere.
      let pairs = Self.equal(owner, description.key.map(\.name), join.tableName, near)
      add(
        target, kind,
        on: StatementText(
          "\(Route.row(related, target.key.map(\.name))) IN (SELECT \(Route.list(join.tableName, far)) "
            + "FROM \(StatementText.quoted(join.tableName)) WHERE \(pairs))"))
    }
  }

  private mutating func add(
    _ target: ModelDescription, _ kind: String, _ own: [String], equal others: [String]
  ) {
    add(target, kind, on: StatementText(Self.equal(last, own, name(target), others)))
  }

  /// The condition that no other child of the row joined last outranks this child.
  private func shown(
    _ relationship: ModelDescription.Relationship, _ target: ModelDescription, _ key: [String],
    _ fields: [String]
  ) -> StatementText {
    let child = name(target)
    let sibling = child + "+"
    let childKey = target.key.map(\.name)
    /// Of equal ranks, the lower key wins.
    func rank(_ table: String, _ other: String) -> StatementText {
      let rank = StatementText.call(
        SQLFunction.referenceRank.rawValue, StatementText(Route.column(table, "_state")),
        StatementText(ranking: relationship))
      return .call("", rank, StatementText(Route.list(other, childKey)))
    }
    var text = StatementText(
      "\(Self.equal(last, key, child, fields)) AND NOT EXISTS (SELECT 1 "
        + "FROM \(StatementText.quoted(target.tableName)) AS \(StatementText.quoted(sibling)) "
        + "WHERE \(Self.equal(last, key, sibling, fields)) "
        // Compared before ranks, because nearly every parent has only one child.
        + "AND \(Route.row(sibling, childKey)) <> \(Route.row(child, childKey)) AND ")
    text.append(.combination(rank(sibling, child), " > ", rank(child, sibling)))
    text.append(")")
    return text
  }

  private static func equal(_ left: String, _ own: [String], _ right: String, _ others: [String]) -> String {
    zip(own, others).map { "\(Route.column(left, $0)) = \(Route.column(right, $1))" }
      .joined(separator: " AND ")
  }

  /// The columns of the first table and of the last.
  func selecting(_ other: ModelDescription) -> QueryParts {
    var parts = parts
    let columns = Route.list(last, other.columns.map(\.name) + ["_state"])
    parts.selected.append(SelectedColumn(text: StatementText(columns)))
    parts.key += other.key.map { StatementText(Route.column(last, $0.name)) }
    return parts
  }
}
