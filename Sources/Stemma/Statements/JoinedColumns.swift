/// The columns of a table that a statement joins to another.
public typealias JoinedColumns<Root: Table> = JoinedGroup<Root, Root.Columns>

/// Columns of a table that a statement joins to another: all of them, or a group.
@dynamicMemberLookup
public struct JoinedGroup<Root: Table, Group: Sendable>: Sendable {
  /// The statement's alias of the table.
  let table: String
  let group: Group

  /// A column of the joined table.
  public subscript<Value: ColumnValue>(
    dynamicMember member: KeyPath<Group, TableColumn<Root, Value>>
  ) -> ColumnExpression<Value> { group[keyPath: member].expression(of: table) }

  /// A group of columns of the joined table, or its key: `$1.address.city`.
  public subscript<Inner: ColumnGroup>(
    dynamicMember member: KeyPath<Group, Inner>
  ) -> JoinedGroup<Root, Inner> { JoinedGroup<Root, Inner>(table: table, group: group[keyPath: member]) }
}

extension JoinedGroup: OrderingTerm, GroupingTerm, SelectionTerm, ColumnGroup where Group: ColumnGroup {
  /// The struct that the columns are read as.
  public typealias Output = Group.Output
  /// The group's columns, of the joined table.
  public var _columns: [GroupColumn] { group._columns.map { $0.joined(as: table) } }
}

/// The columns of an outer-joined table; all are null where there is no row.
public typealias OptionalColumns<Root: Table> = OptionalGroup<Root, Root.Columns>

/// Columns of an outer-joined table, all or a group; all are null where there is no row.
@dynamicMemberLookup
public struct OptionalGroup<Root: Table, Group: Sendable>: Sendable {
  /// The statement's alias of the table.
  let table: String
  let columns: Group

  /// A column of the joined table; null where there is no row, even if it is never null otherwise.
  @_disfavoredOverload
  public subscript<Value: ColumnValue>(
    dynamicMember member: KeyPath<Group, TableColumn<Root, Value>>
  ) -> ColumnExpression<Value?> { columns[keyPath: member].optionalExpression(of: table) }

  /// A column of the joined table; null where it is null, and where there is no row.
  public subscript<Value: ColumnValue>(
    dynamicMember member: KeyPath<Group, TableColumn<Root, Value?>>
  ) -> ColumnExpression<Value?> { columns[keyPath: member].optionalExpression(of: table) }

  /// A group of columns of the joined table, or its key.
  public subscript<Inner: ColumnGroup>(
    dynamicMember member: KeyPath<Group, Inner>
  ) -> OptionalGroup<Root, Inner> {
    OptionalGroup<Root, Inner>(table: table, columns: columns[keyPath: member])
  }
}
