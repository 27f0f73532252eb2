import StemmaEvents

/// The rows to read, and the output of each. A value; nothing happens until a store runs it.
///
/// Closures get `Columns`; each row gives an `Output`.
///
/// A closure that returns several terms returns at least two, because Swift takes any closure of
/// one expression for one that returns an empty pack.
public struct Query<Columns: Sendable, Output: Sendable>: ReadStatement {
  var parts: QueryParts
  let columns: Columns
  @usableFromInline let output: @Sendable (RowCursor) throws -> Output

  @usableFromInline
  init(_ parts: QueryParts, _ columns: Columns, _ output: @escaping @Sendable (RowCursor) throws -> Output) {
    self.parts = parts
    self.columns = columns
    self.output = output
  }

  /// The SQL with its parameters. Without an order, rows come in key order, so that every run gives
  /// the same; rows of `distinct` have no default order.
  public var text: StatementText { parts.text }

  /// - Throws: `unreadable` if a stored value does not fit its Swift type, and errors of `map`'s
  ///   closure.
  @inlinable
  public func read(_ row: RowCursor) throws -> Output { try output(row) }

  private func with(_ change: (inout QueryParts) -> Void) -> Query {
    var copy = self
    change(&copy.parts)
    return copy
  }

  /// Keeps only rows for which this holds too.
  public func `where`(_ predicate: (Columns) -> some ExpressionProtocol<Bool>) -> Query {
    with { $0.predicates.append(predicate(columns).text) }
  }

  /// Rows that are equal here are ordered by later terms, then by key.
  public func order(_ term: (Columns) -> some OrderingTerm) -> Query {
    with { $0.ordering.append(term(columns).ordering.text) }
  }

  /// Several terms at once, the most significant first.
  public func order<First: OrderingTerm, Second: OrderingTerm, each Other: OrderingTerm>(
    _ terms: (Columns) -> (First, Second, repeat each Other)
  ) -> Query {
    with { $0.order(by: terms, columns) }
  }

  /// Keeps the first rows of the order, wherever it is in the chain; a later limit replaces it. An
  /// aggregate selected after it, such as `count()`, covers these rows only.
  ///
  /// - Parameters:
  ///   - count: the maximum number of rows; less than 0: all.
  ///   - offset: the number of rows to skip first.
  public func limit(_ count: Int, offset: Int = 0) -> Query {
    with {
      $0.limit = count
      $0.offset = offset
    }
  }

  /// The result of `change` for each row's output.
  public func map<Result: Sendable>(
    _ change: @escaping @Sendable (Output) throws -> Result
  ) -> Query<Columns, Result> {
    var parts = parts
    parts.isMapped = true
    return Query<Columns, Result>(parts, columns) { [output] in try change(try output($0)) }
  }

  // MARK: Columns

  /// One value of each row: of an expression, a key, a group of columns or a `@Selection` struct.
  public func select<Term: SelectionTerm>(_ term: (Columns) -> Term) -> Query<Columns, Term.Output> {
    parts.selecting(term(columns), columns)
  }

  /// Several values of each row.
  public func select<First: SelectionTerm, Second: SelectionTerm, each Other: SelectionTerm>(
    _ terms: (Columns) -> (First, Second, repeat each Other)
  ) -> Query<Columns, (First.Output, Second.Output, repeat (each Other).Output)> {
    parts.selecting(all: terms, columns)
  }

  /// Removes duplicate rows. Points in time come in UTC, with milliseconds.
  public func distinct() -> Query { with { $0.isDistinct = true } }

  /// The number of rows.
  public func count() -> Query<Columns, Int> {
    select { _ in ColumnExpression<Int>(.call("count", StatementText("*"), isAggregate: true)) }
  }

  // MARK: Groups

  /// Groups rows by a value. Different spellings of one time or decimal number are equal.
  public func group(_ term: (Columns) -> some GroupingTerm) -> Groups<Columns> {
    Groups(parts, columns).by(term(columns).grouping)
  }

  /// Groups rows by several values.
  public func group<First: GroupingTerm, Second: GroupingTerm, each Other: GroupingTerm>(
    _ terms: (Columns) -> (First, Second, repeat each Other)
  ) -> Groups<Columns> {
    Groups(parts, columns).by(all: terms)
  }
}

/// Grouped rows: `group { … }.select { … }`.
public struct Groups<Columns: Sendable>: Sendable {
  private(set) var parts: QueryParts
  let columns: Columns

  init(_ parts: QueryParts, _ columns: Columns) {
    self.parts = parts
    self.columns = columns
  }

  fileprivate func by(_ grouping: Grouping) -> Groups {
    var copy = self
    copy.parts.grouping.append(grouping.text)
    return copy
  }

  fileprivate func by<each Term: GroupingTerm>(all terms: (Columns) -> (repeat each Term)) -> Groups {
    var groups = self
    for term in repeat each terms(columns) { groups = groups.by(term.grouping) }
    return groups
  }

  /// Keeps only groups for which this holds.
  public func having(_ predicate: (Columns) -> some ExpressionProtocol<Bool>) -> Groups {
    var copy = self
    copy.parts.having.append(predicate(columns).text)
    return copy
  }

  /// Orders the groups; without it, they come in the order of their keys.
  public func order(_ term: (Columns) -> some OrderingTerm) -> Groups {
    var copy = self
    copy.parts.ordering.append(term(columns).ordering.text)
    return copy
  }

  /// One value of each group: from its key, or an aggregate of its rows, such as `count()`.
  public func select<Term: SelectionTerm>(_ term: (Columns) -> Term) -> Query<Columns, Term.Output> {
    parts.selecting(term(columns), columns)
  }

  /// Several values of each group: from its key, or aggregates of its rows.
  public func select<First: SelectionTerm, Second: SelectionTerm, each Other: SelectionTerm>(
    _ terms: (Columns) -> (First, Second, repeat each Other)
  ) -> Query<Columns, (First.Output, Second.Output, repeat (each Other).Output)> {
    parts.selecting(all: terms, columns)
  }
}
