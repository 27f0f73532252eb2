import StemmaEvents

/// The clauses of a query.
@usableFromInline
struct QueryParts: Sendable {
  var selected: [SelectedColumn]
  /// The text after `FROM`.
  var source: StatementText
  /// The columns that make any order of rows total.
  var key: [StatementText]
  var isDistinct = false
  var predicates: [StatementText] = []
  var grouping: [StatementText] = []
  var having: [StatementText] = []
  var ordering: [StatementText] = []
  var limit: Int?
  var offset = 0
  /// Whether a closure of `map` transforms the rows.
  var isMapped = false

  init(_ selected: [SelectedColumn], from source: StatementText, key: [StatementText]) {
    self.selected = selected
    self.source = source
    self.key = key
  }

  /// All rows of a table.
  @usableFromInline
  init(_ table: any Table.Type) {
    let description = table.description
    let columns = SelectedColumn(text: StatementText(description.selectedColumns))
    self.init(
      [columns], from: StatementText(name: description.tableName),
      key: description.keyColumns.map { StatementText($0) })
  }

  var text: StatementText {
    var text = StatementText(isDistinct ? "SELECT DISTINCT " : "SELECT ")
    text.append(selected.map(isDistinct ? \.distinctText : \.text), "", separator: ", ")
    text.append(" FROM ")
    text.append(source)
    text.append(predicates, " WHERE ", separator: " AND ")
    text.append(grouping, " GROUP BY ", separator: ", ")
    text.append(having, " HAVING ", separator: " AND ")
    text.append(ordering + lastOrdering, " ORDER BY ", separator: ", ")
    if limit != nil || offset > 0 {
      text.append(
        StatementText(" LIMIT ? OFFSET ?", [.int(Int64(limit ?? -1)), .int(Int64(offset))]))
    }
    return text
  }

  /// The terms that break ties of the order.
  private var lastOrdering: [StatementText] {
    if !grouping.isEmpty { return grouping }
    if isDistinct || selected.contains(where: \.text.isAggregate) { return [] }
    return key
  }

  // MARK: Selecting

  /// The statement reduced to the keys that identify its rows.
  var keysAlone: StatementText {
    var parts = self
    parts.isDistinct = false
    parts.selected = key.map { SelectedColumn(text: $0) }
    return parts.text
  }

  /// Replaces the selection. An aggregate after a limit covers the limited rows only. Their keys
  /// are matched in quoted form, because a null key of an outer join equals nothing.
  mutating func select(_ selected: [SelectedColumn]) {
    if limit != nil || offset > 0, grouping.isEmpty, selected.contains(where: \.text.isAggregate) {
      var rows = self
      let keys = key.map(Self.quoted)
      rows.selected = keys.map { SelectedColumn(text: $0) }
      rows.isDistinct = false
      var predicate = StatementText("")
      predicate.append(keys, "(", separator: ", ")
      predicate.append(") IN (")
      predicate.append(rows.text)
      predicate.append(")")
      self = QueryParts(selected, from: source, key: key)
      predicates = [predicate]
    } else {
      self.selected = selected
    }
  }

  /// Text as hexadecimal bytes, because SQLite's `quote` stops at U+0000.
  private static func quoted(_ part: StatementText) -> StatementText {
    let isText = StatementText.combination(.call("typeof", part), " = ", StatementText("'text'"))
    return .call("iif", isText, .call("hex", part), .call("quote", part))
  }

  mutating func order<Columns, each Term: OrderingTerm>(
    by terms: (Columns) -> (repeat each Term), _ columns: Columns
  ) {
    for term in repeat each terms(columns) { ordering.append(term.ordering.text) }
  }

  func selecting<Columns, Term: SelectionTerm>(
    _ term: Term, _ columns: Columns
  ) -> Query<Columns, Term.Output> {
    var copy = self
    copy.select(term.selected)
    return Query(copy, columns) { try Term.read($0.row(of: nil), from: 0) }
  }

  func selecting<Columns, each Term: SelectionTerm>(
    all terms: (Columns) -> (repeat each Term), _ columns: Columns
  ) -> Query<Columns, (repeat (each Term).Output)> {
    var copy = self
    var selected: [SelectedColumn] = []
    /// The first column of each term.
    var places: [Int] = []
    for term in repeat each terms(columns) {
      places.append(selected.count)
      selected += term.selected
    }
    copy.select(selected)
    return Query(copy, columns) { [places] cursor in
      let row = cursor.row(of: nil)
      var index = -1
      func next<Next: SelectionTerm>(_ type: Next.Type) throws -> Next.Output {
        index += 1
        return try Next.read(row, from: places[index])
      }
      return (repeat try next((each Term).self))
    }
  }
}
