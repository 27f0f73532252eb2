/// SQL of your own, with values that are bound and never become a part of it:
///
///     SQL<Int>("SELECT count(*) FROM \(Reminder.self) WHERE \(Reminder.columns.title) LIKE \(pattern)")
///
/// As an expression in the closures of statements, or as a whole statement that reads. `Value` is what a row gives: a
/// value, or a record, for which the statement selects `\(columns: Reminder.self)` first.
public struct SQL<Output: Sendable>: ReadStatement {
  /// As it was written, with the parameters of its interpolations.
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
  /// The text in brackets, so that it can stand inside of others.
  public var expression: ColumnExpression<Output> {
    var whole = StatementText("(")
    whole.append(text)
    whole.append(")")
    return ColumnExpression(whole)
  }
}

extension SQL where Output: Table {
  /// A statement of records, which selects `\(columns: Output.self)` first. Further columns are not
  /// read. Running one that begins with other columns, as `SELECT *`, throws `failed`.
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

/// A literal of SQL. Tables and columns are named by their types; everything else becomes a parameter.
public struct SQLText: ExpressibleByStringInterpolation, Sendable {
  let text: StatementText

  /// The text as it is: SQL, without parameters.
  public init(stringLiteral sql: String) { text = StatementText(sql) }
  /// The literal's parts as they are, its interpolations by their kinds.
  public init(stringInterpolation interpolation: StringInterpolation) { text = interpolation.text }

  /// Puts a literal together: values become parameters, columns and tables names.
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

    /// All columns of a table, in the order that reading a record of it needs.
    public mutating func appendInterpolation<Row: Table>(columns table: Row.Type) {
      text.append(Row.description.selectedColumns)
    }

    /// Text that is SQL itself. It is not checked; never put there what somebody has typed.
    public mutating func appendInterpolation(raw sql: String) { text.append(sql) }
  }
}
