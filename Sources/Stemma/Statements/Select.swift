import StemmaEvents

/// Which rows of a table to read, change or delete. A value; nothing happens until a store runs it.
public typealias Select<Row: Table> = Query<Row.Columns, Row>

extension Query where Output: Table, Columns == Output.Columns {
  /// Changes each of the rows; what differs afterwards is recorded, one event for each record.
  public func update(_ change: @escaping @Sendable (inout Output) throws -> Void) -> Update<Output> {
    Update(rows: self, change: change)
  }

  /// Deletes each of the rows, one event for each record.
  public func delete() -> Delete<Output> { Delete(rows: self) }
}

extension Table {
  /// All rows.
  @inlinable
  public static var all: Select<Self> {
    Query(QueryParts(Self.self), columns) { try Self($0.row(of: Self.self)) }
  }

  /// The rows for which a condition holds; those for which it has no truth value, because of null, are left
  /// out.
  public static func `where`(_ predicate: (Columns) -> some ExpressionProtocol<Bool>) -> Select<Self> {
    all.where(predicate)
  }

  /// All rows, ordered; equal ones in key order.
  public static func order(_ term: (Columns) -> some OrderingTerm) -> Select<Self> { all.order(term) }
  /// All rows, ordered by several terms, the most significant first; equal ones in key order.
  public static func order<each Term: OrderingTerm>(
    _ terms: (Columns) -> (repeat each Term)
  ) -> Select<Self> { all.order(terms) }

  /// The first rows in key order, behind `offset` of them.
  public static func limit(_ count: Int, offset: Int = 0) -> Select<Self> {
    all.limit(count, offset: offset)
  }

  /// One value of each row, in key order; an aggregate such as `max()` gives one for all rows.
  public static func select<Value: ColumnValue>(
    _ column: (Columns) -> some ExpressionProtocol<Value>
  ) -> Query<Columns, Value> { all.select(column) }

  /// Several values of each row, in key order; aggregates give one row for all.
  public static func select<each Column: ExpressionProtocol>(
    _ selected: (Columns) -> (repeat each Column)
  ) -> Query<Columns, (repeat (each Column).Value)> { all.select(selected) }

  /// One row for all that have the same value, in its order; null is a value here.
  public static func group<Key: ColumnValue>(
    _ key: (Columns) -> some ExpressionProtocol<Key>
  ) -> Groups<Columns> { all.group(key) }

  /// How many rows there are.
  public static func count() -> Query<Columns, Int> { all.count() }

  /// The row with a key.
  public static func find(_ key: PrimaryKey) -> Select<Self> {
    var record = RecordWriter()
    key.write(to: &record)
    var select = all
    for (column, part) in zip(description.keyColumns, record.key) {
      select.parts.predicates.append(StatementText("\(column) = ?", [part?.value ?? .null]))
    }
    return select
  }

  /// Refuses a text as a key of another type: the compiler would take it for a list of characters.
  @available(*, unavailable, message: "the key of this model is no String; give a value of the key's type")
  @_disfavoredOverload
  public static func find(_ key: String) -> Select<Self> { preconditionFailure("cannot be called") }

  /// The rows with these keys, in key order; a key that no row has is passed over.
  public static func find(_ keys: some Swift.Sequence<PrimaryKey>) -> Select<Self> {
    let keys = keys.map { key in
      var record = RecordWriter()
      key.write(to: &record)
      return record.key.map { $0?.value ?? .null }
    }
    let columns = description.keyColumns
    let list = ValueList(keys)
    var select = all
    select.parts.predicates.append(
      StatementText(
        "(\(columns.joined(separator: ", "))) IN \(list.sql(parts: columns.count))", [list.parameter]))
    return select
  }
}
