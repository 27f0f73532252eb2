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

  func selecting<Columns, Column: ExpressionProtocol>(
    _ column: Column, _ columns: Columns
  ) -> Query<Columns, Column.Value> {
    var copy = self
    copy.select([SelectedColumn(column)])
    return Query(copy, columns) { try Column.Value.read($0.row(of: nil), 0) }
  }

  /// Traps if a closure gives no columns. Swift takes one whose only expression is none for one of several columns that gives
  /// nothing, with a warning at most, and what was to be ordered, grouped or selected would be something else.
  static func demandColumns(_ count: Int) {
    precondition(
      count > 0,
      "the closure names no column: of a group of columns, or a key of several parts, name each of them")
  }

  func selecting<Columns, each Column: ExpressionProtocol>(
    _ selected: repeat each Column, in columns: Columns
  ) -> Query<Columns, (repeat (each Column).Value)> {
    var copy = self
    var all: [SelectedColumn] = []
    repeat all.append(SelectedColumn(each selected))
    Self.demandColumns(all.count)
    copy.select(all)
    return Query(copy, columns) { cursor in
      let row = cursor.row(of: nil)
      var column = -1
      func next<Value: ColumnValue>(_ type: Value.Type) throws -> Value {
        column += 1
        return try Value.read(row, column)
      }
      return (repeat try next((each Column).Value.self))
    }
  }
}
