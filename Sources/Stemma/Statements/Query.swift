import StemmaEvents

/// Which rows to read, and what of them. A value; nothing happens until a store runs it.
///
/// `Columns` is what its closures get, `Output` what each row gives.
///
/// A closure that names several terms names two at least: Swift takes any closure of one expression for one that
/// returns an empty pack.
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

  /// The statement as SQL with its parameters. Rows come in key order where no order is said, so that every
  /// run gives the same; not those of `distinct`.
  public var text: StatementText { parts.text }

  /// - Throws: `unreadable` if a stored value does not fit its Swift type, and what the closure of `map`
  ///   throws.
  @inlinable
  public func read(_ row: RowCursor) throws -> Output { try output(row) }

  private func with(_ change: (inout QueryParts) -> Void) -> Query {
    var copy = self
    change(&copy.parts)
    return copy
  }

  /// Only rows for which this holds too.
  public func `where`(_ predicate: (Columns) -> some ExpressionProtocol<Bool>) -> Query {
    with { $0.predicates.append(predicate(columns).text) }
  }

  /// Rows that are equal here come in the order of terms that follow, then in key order.
  public func order(_ term: (Columns) -> some OrderingTerm) -> Query {
    with { $0.ordering.append(term(columns).ordering.text) }
  }

  /// Several terms at once, the most significant first.
  public func order<First: OrderingTerm, Second: OrderingTerm, each Other: OrderingTerm>(
    _ terms: (Columns) -> (First, Second, repeat each Other)
  ) -> Query {
    with { $0.order(by: terms, columns) }
  }

  /// The first rows of the order, wherever in the chain it stands; a limit that is said later takes its
  /// place. An aggregate that is selected behind it, such as `count()`, is of these rows.
  ///
  /// - Parameters:
  ///   - count: at most so many; less than 0: all.
  ///   - offset: how many are left out before them.
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

  /// One value of each row: that of an expression, of a key or a group of columns, or a `@Selection` struct.
  public func select<Term: SelectionTerm>(_ term: (Columns) -> Term) -> Query<Columns, Term.Output> {
    parts.selecting(term(columns), columns)
  }

  /// Several values of each row.
  public func select<First: SelectionTerm, Second: SelectionTerm, each Other: SelectionTerm>(
    _ terms: (Columns) -> (First, Second, repeat each Other)
  ) -> Query<Columns, (First.Output, Second.Output, repeat (each Other).Output)> {
    parts.selecting(all: terms, columns)
  }

  /// Leaves out rows that were there already. Points in time come in UTC, with milliseconds.
  public func distinct() -> Query { with { $0.isDistinct = true } }

  /// How many rows there are.
  public func count() -> Query<Columns, Int> {
    select { _ in ColumnExpression<Int>(.call("count", StatementText("*"), isAggregate: true)) }
  }

  // MARK: Groups

  /// One row for all that have the same value, however it is spelled: times of one point in time, equal decimal numbers.
  public func group(_ term: (Columns) -> some GroupingTerm) -> Groups<Columns> {
    Groups(parts, columns).by(term(columns).grouping)
  }

  /// One row for all that have the same values.
  public func group<First: GroupingTerm, Second: GroupingTerm, each Other: GroupingTerm>(
    _ terms: (Columns) -> (First, Second, repeat each Other)
  ) -> Groups<Columns> {
    Groups(parts, columns).by(all: terms)
  }
}

/// Rows that were put together: `group { … }.select { … }`.
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

  /// Only groups for which this holds.
  public func having(_ predicate: (Columns) -> some ExpressionProtocol<Bool>) -> Groups {
    var copy = self
    copy.parts.having.append(predicate(columns).text)
    return copy
  }

  /// Groups come in the order of their keys, unless this says otherwise.
  public func order(_ term: (Columns) -> some OrderingTerm) -> Groups {
    var copy = self
    copy.parts.ordering.append(term(columns).ordering.text)
    return copy
  }

  /// One value of each group: of its key, or an aggregate such as `count()` of its rows.
  public func select<Term: SelectionTerm>(_ term: (Columns) -> Term) -> Query<Columns, Term.Output> {
    parts.selecting(term(columns), columns)
  }

  /// Several values of each group, each of its key or an aggregate of its rows.
  public func select<First: SelectionTerm, Second: SelectionTerm, each Other: SelectionTerm>(
    _ terms: (Columns) -> (First, Second, repeat each Other)
  ) -> Query<Columns, (First.Output, Second.Output, repeat (each Other).Output)> {
    parts.selecting(all: terms, columns)
  }
}
