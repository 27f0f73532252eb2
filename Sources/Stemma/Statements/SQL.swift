/// SQL of your own, with values that are bound as parameters and never become a part of it:
///
///     SQL<Int>("SELECT count(*) FROM \(Reminder.self) WHERE \(Reminder.columns.title) LIKE \(pattern)")
///
/// An expression in the closures of statements, or a whole statement that reads. A row gives an
/// `Output`: a value, or a record, if the statement selects `\(columns: Reminder.self)` first.
public struct SQL<Output: Sendable>: ReadStatement {
  /// The SQL as written, with the parameters of its interpolations.
  public let text: StatementText
  private let output: @Sendable (RowCursor) throws -> Output

  init(text: StatementText, _ output: @escaping @Sendable (RowCursor) throws -> Output) {
    self.text = text
    self.output = output
  }

  /// - Throws: `unreadable` if a value does not fit `Output`.
  public func read(_ row: RowCursor) throws -> Output { try output(row) }
}

extension SQL where Output: ColumnValue {
  /// One value: as an expression, or as a statement whose first column is read.
  public init(_ text: SQLText, as type: Output.Type = Output.self) {
    self.text = text.text
    output = { try Output.read($0.row(of: nil), 0) }
  }
}

extension SQL: OrderingTerm, GroupingTerm, SelectionTerm where Output: ColumnValue {
  /// In ascending order, null first.
  public var ordering: Ordering { expression.ordering }
}

extension SQL: ExpressionProtocol where Output: ColumnValue {
  /// The text in parentheses, for use inside of other expressions.
  public var expression: ColumnExpression<Output> {
    var whole = StatementText("(")
    whole.append(text)
    whole.append(")")
    return ColumnExpression(whole)
  }
}

extension SQL where Output: Table {
  /// A statement of records, which selects `\(columns: Output.self)` first. Further columns are
  /// ignored. Running one that begins with other columns, such as `SELECT *`, throws `failed`.
  public init(_ text: SQLText, as type: Output.Type = Output.self) {
    self.text = text.text
    output = { cursor in
      try cursor.checkColumns(of: Output.self)
      return try Output(cursor.row(of: Output.self))
    }
  }
}

extension SQL {
  /// A statement of several values: `as: (Int, String).self`.
  @_disfavoredOverload
  public init<each Value: ColumnValue>(
    _ text: SQLText, as types: (repeat each Value).Type
  ) where Output == (repeat each Value) {
    self.text = text.text
    output = { cursor in
      let row = cursor.row(of: nil)
      var column = -1
      func next<Next: ColumnValue>(_ type: Next.Type) throws -> Next {
        column += 1
        return try Next.read(row, column)
      }
      return (repeat try next((each Value).self))
    }
  }
}

/// A literal of SQL. Types give the names of tables and columns; other values are parameters.
public struct SQLText: ExpressibleByStringInterpolation, Sendable {
  let text: StatementText

  /// The text as it is: SQL, without parameters.
  public init(stringLiteral sql: String) { text = StatementText(sql) }
  /// The literal's parts unchanged, its interpolations by their kinds.
  public init(stringInterpolation interpolation: StringInterpolation) { text = interpolation.text }

  /// Builds a literal: values become parameters; columns and tables become names.
  public struct StringInterpolation: StringInterpolationProtocol {
    var text = StatementText("")

    /// Empty.
    public init(literalCapacity: Int, interpolationCount: Int) {}

    /// Text of the literal itself, which is SQL.
    public mutating func appendLiteral(_ sql: String) { text.append(sql) }

    /// A value, bound to a parameter.
    public mutating func appendInterpolation(_ value: some ColumnValue) {
      text.append(StatementText(value: value))
    }

    /// A column, or an expression of columns.
    public mutating func appendInterpolation(_ expression: some ExpressionProtocol) {
      text.append(expression.text)
    }

    /// A table's name.
    public mutating func appendInterpolation<Row: Table>(_ table: Row.Type) {
      text.append(StatementText(name: Row.description.tableName))
    }

    /// All columns of a table, in the order that a record is read.
    public mutating func appendInterpolation<Row: Table>(columns table: Row.Type) {
      text.append(Row.description.selectedColumns)
    }

    /// Raw SQL. It is not checked: never pass user input.
    public mutating func appendInterpolation(raw sql: String) { text.append(sql) }
  }
}
