import StemmaEvents

/// The rows of a table to read, change or delete. A value; nothing happens until a store runs it.
public typealias Select<Row: Table> = Query<Row.Columns, Row>

extension Query where Output: Table, Columns == Output.Columns {
  /// Changes each of the rows; differences are recorded, in one event for each record.
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

  /// The rows for which a condition holds. A condition without a truth value, because of null, does
  /// not hold.
  public static func `where`(_ predicate: (Columns) -> some ExpressionProtocol<Bool>) -> Select<Self> {
    all.where(predicate)
  }

  /// All rows, in order; equal ones in key order.
  public static func order(_ term: (Columns) -> some OrderingTerm) -> Select<Self> { all.order(term) }
  /// All rows, ordered by several terms, the most significant first; equal ones in key order.
  public static func order<First: OrderingTerm, Second: OrderingTerm, each Other: OrderingTerm>(
    _ terms: (Columns) -> (First, Second, repeat each Other)
  ) -> Select<Self> { all.order(terms) }

  /// The first rows in key order, after skipping `offset`.
  public static func limit(_ count: Int, offset: Int = 0) -> Select<Self> {
    all.limit(count, offset: offset)
  }

  /// One value of each row, in key order; an aggregate such as `max()` gives one for all rows.
  public static func select<Term: SelectionTerm>(
    _ term: (Columns) -> Term
  ) -> Query<Columns, Term.Output> { all.select(term) }

  /// Several values of each row, in key order; aggregates give one row for all.
  public static func select<First: SelectionTerm, Second: SelectionTerm, each Other: SelectionTerm>(
    _ terms: (Columns) -> (First, Second, repeat each Other)
  ) -> Query<Columns, (First.Output, Second.Output, repeat (each Other).Output)> { all.select(terms) }

  /// Groups rows by a value, in its order; null is a value here.
  public static func group(_ term: (Columns) -> some GroupingTerm) -> Groups<Columns> { all.group(term) }

  /// The number of rows.
  public static func count() -> Query<Columns, Int> { all.count() }

  /// The row with a key.
  public static func find(_ key: PrimaryKey) -> Select<Self> {
    var select = all
    select.parts.predicates += key.conditions(on: select.parts.key)
    return select
  }

  /// Refuses text as a key of another type: the compiler would take it for a list of characters.
  @available(*, unavailable, message: "the key of this model is no String; give a value of the key's type")
  @_disfavoredOverload
  public static func find(_ key: String) -> Select<Self> { preconditionFailure("cannot be called") }

  /// The rows with these keys, in key order; keys without a row are ignored.
  public static func find(_ keys: some Sequence<PrimaryKey>) -> Select<Self> {
    var select = all
    select.parts.predicates.append(PrimaryKey.among(keys, select.parts.key))
    return select
  }
}
