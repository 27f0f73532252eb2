/// Columns of a table that belong together: what `@Table` makes of a nested `@Selection`, a group of columns or a key.
public protocol ColumnGroup: Sendable {}

/// The columns of a table that a statement joins to another.
@dynamicMemberLookup
public struct JoinedColumns<Root: Table>: Sendable {
  /// As the statement calls the table.
  let table: String

  /// A column of the joined table.
  public subscript<Value: ColumnValue>(
    dynamicMember member: KeyPath<Root.Columns, TableColumn<Root, Value>>
  ) -> Expression<Value> { Root.columns[keyPath: member].expression(of: table) }

  /// A group of columns of the joined table, or its key: `$1.address.city`.
  public subscript<Group: ColumnGroup>(
    dynamicMember member: KeyPath<Root.Columns, Group>
  ) -> JoinedGroup<Root, Group> { JoinedGroup(table: table, columns: Root.columns[keyPath: member]) }
}

/// A group of columns of a table that a statement joins to another.
@dynamicMemberLookup
public struct JoinedGroup<Root: Table, Group: ColumnGroup>: Sendable {
  fileprivate let table: String
  fileprivate let columns: Group

  /// A column of the group.
  public subscript<Value: ColumnValue>(
    dynamicMember member: KeyPath<Group, TableColumn<Root, Value>>
  ) -> Expression<Value> { columns[keyPath: member].expression(of: table) }
}

/// The columns of a joined table of which there may be no row: then all of them are null.
@dynamicMemberLookup
public struct OptionalColumns<Root: Table>: Sendable {
  let table: String

  /// A column of the joined table; null where there is no row, even if it never is in the table itself.
  @_disfavoredOverload
  public subscript<Value: ColumnValue>(
    dynamicMember member: KeyPath<Root.Columns, TableColumn<Root, Value>>
  ) -> Expression<Value?> { Root.columns[keyPath: member].optionalExpression(of: table) }

  /// A column of the joined table; null where it is null, and where there is no row.
  public subscript<Value: ColumnValue>(
    dynamicMember member: KeyPath<Root.Columns, TableColumn<Root, Value?>>
  ) -> Expression<Value?> { Root.columns[keyPath: member].optionalExpression(of: table) }

  /// A group of columns of the joined table, or its key.
  public subscript<Group: ColumnGroup>(
    dynamicMember member: KeyPath<Root.Columns, Group>
  ) -> OptionalGroup<Root, Group> { OptionalGroup(table: table, columns: Root.columns[keyPath: member]) }
}

/// A group of columns of a joined table of which there may be no row: then all of them are null.
@dynamicMemberLookup
public struct OptionalGroup<Root: Table, Group: ColumnGroup>: Sendable {
  fileprivate let table: String
  fileprivate let columns: Group

  /// A column of the group; null where there is no row, even if it never is in the table itself.
  @_disfavoredOverload
  public subscript<Value: ColumnValue>(
    dynamicMember member: KeyPath<Group, TableColumn<Root, Value>>
  ) -> Expression<Value?> { columns[keyPath: member].optionalExpression(of: table) }

  /// A column of the group; null where it is null, and where there is no row.
  public subscript<Value: ColumnValue>(
    dynamicMember member: KeyPath<Group, TableColumn<Root, Value?>>
  ) -> Expression<Value?> { columns[keyPath: member].optionalExpression(of: table) }
}
