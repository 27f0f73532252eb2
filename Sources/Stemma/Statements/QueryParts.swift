import StemmaEvents

/// The clauses of a query.
@usableFromInline
struct QueryParts: Sendable {
  var selected: [SelectedColumn]
  /// What follows FROM.
  var source: StatementText
  /// The columns that make every order of rows a total one.
  var key: [StatementText]
  var isDistinct = false
  var predicates: [StatementText] = []
  var grouping: [StatementText] = []
  var having: [StatementText] = []
  var ordering: [StatementText] = []
  var limit: Int?
  var offset = 0
  /// Whether a closure of `map` makes something else of each row.
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

  /// What decides where the order leaves a choice.
  private var lastOrdering: [StatementText] {
    if !grouping.isEmpty { return grouping }
    if isDistinct || selected.contains(where: \.text.isAggregate) { return [] }
    return key
  }

  // MARK: Selecting

  /// The statement with nothing but the keys of its rows, which tell them apart.
  var keysAlone: StatementText {
    var parts = self
    parts.isDistinct = false
    parts.selected = key.map { SelectedColumn(text: $0) }
    return parts.text
  }

  /// Selects something else of the same rows. Of rows that were limited before, an aggregate takes in no others: they
  /// are found by their keys, quoted, as a key that an outer join left empty is equal to nothing.
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

  /// Text by its bytes: SQLite quotes it as far as to U+0000.
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
