import StemmaEvents

// The terms of statements' closures: expressions and groups of columns. `OrderingTerm` is in
// `Expression.swift`.

/// A term that a statement can select: an expression, a key or a group of columns, or a
/// `@Selection` struct of expressions.
public protocol SelectionTerm: Sendable {
  /// The output for each row.
  associatedtype Output: Sendable
  /// The columns of the statement from which the output is read.
  var selected: [SelectedColumn] { get }
  /// Reads the output from the columns of a row that begin at `column`.
  static func read(_ row: RowReader, from column: Int) throws(StoreError) -> Output
}

extension SelectionTerm where Output: Selection {
  /// Reads the properties in order of declaration.
  public static func read(_ row: RowReader, from column: Int) throws(StoreError) -> Output {
    try Output(row.row(of: nil, from: column))
  }
}

extension ExpressionProtocol {
  /// The one column.
  public var selected: [SelectedColumn] { [SelectedColumn(self)] }
  /// Reads the value.
  public static func read(_ row: RowReader, from column: Int) throws(StoreError) -> Value {
    try Value.read(row, column)
  }
}

/// A term by which rows can be grouped: an expression, a key or a group of columns.
public protocol GroupingTerm: Sendable {
  /// The text after `GROUP BY`.
  var grouping: Grouping { get }
}

/// The text after `GROUP BY`.
public struct Grouping: Sendable {
  let text: StatementText
}

extension ExpressionProtocol {
  /// By its value.
  public var grouping: Grouping { Grouping(text: groupedText) }
}

// MARK: Columns that belong together

/// A group of columns or a key of a table, which `@Table` makes of a nested `@Selection`.
///
/// A statement selects, orders and groups by it as by a column: `Enrollment.select { $0.id }`.
public protocol ColumnGroup: OrderingTerm, GroupingTerm, SelectionTerm where Output: Selection {
  /// One for each property, in order of declaration.
  var _columns: [GroupColumn] { get }
}

/// A column of a group, with its type erased.
public struct GroupColumn: Sendable {
  /// The column of a table, by the statement's alias of the table.
  private let expression: @Sendable (_ table: String) -> any ExpressionProtocol
  private let table: String

  private init(_ table: String, _ expression: @escaping @Sendable (String) -> any ExpressionProtocol) {
    self.table = table
    self.expression = expression
  }

  /// A column of its own table.
  public init<Root: Table, Value: ColumnValue>(_ column: TableColumn<Root, Value>) {
    self.init(Root.description.tableName) { column.expression(of: $0) as ColumnExpression<Value> }
  }

  /// For a type that no column can have; the compiler reports this at the property.
  @_disfavoredOverload
  public init<Root, Value>(_ column: TableColumn<Root, Value>) { preconditionFailure("cannot be called") }

  func joined(as name: String) -> GroupColumn { GroupColumn(name, expression) }

  var term: any ExpressionProtocol { expression(table) }
}

extension ColumnGroup {
  /// The columns.
  public var selected: [SelectedColumn] { _columns.flatMap(\.term.selected) }
  /// By its columns, the first is the most significant.
  public var grouping: Grouping { Grouping(text: list { $0.groupedText }) }
  /// The lowest first, by its columns, as with `asc()`.
  public var ordering: Ordering { asc() }
  /// The lowest first, by its columns; the first is the most significant.
  public func asc() -> Ordering { Ordering(text: list { $0.asc().text }) }
  /// The highest first, by its columns; the first is the most significant.
  public func desc() -> Ordering { Ordering(text: list { $0.desc().text }) }

  private func list(_ part: (any ExpressionProtocol) -> StatementText) -> StatementText {
    var text = StatementText("")
    text.append(_columns.map { part($0.term) }, "", separator: ", ")
    return text
  }
}

// MARK: Keys of several parts

/// Whether the key is this one.
public func == <Key: ColumnGroup>(a: Key, b: Key.Output) -> ColumnExpression<Bool>
where Key.Output: TableKey {
  var text = StatementText("")
  text.append(b.conditions(on: a._columns.map(\.term.text)), "(", separator: " AND ")
  text.append(")")
  return ColumnExpression(text)
}

/// Whether the key is another one.
public func != <Key: ColumnGroup>(a: Key, b: Key.Output) -> ColumnExpression<Bool>
where Key.Output: TableKey {
  !(a == b)
}

extension ColumnGroup where Output: TableKey {
  /// Whether the key is among these. Always one statement.
  public func `in`(_ keys: some Sequence<Output>) -> ColumnExpression<Bool> {
    ColumnExpression(.combination(Output.among(keys, _columns.map(\.term.text)), "", StatementText("")))
  }
}

extension Sequence where Element: TableKey {
  /// Whether a key is among these.
  public func contains<Key: ColumnGroup>(_ key: Key) -> ColumnExpression<Bool> where Key.Output == Element {
    key.in(self)
  }
}

extension TableKey {
  /// The conditions under which the columns of a key hold this one.
  func conditions(on columns: [StatementText]) -> [StatementText] {
    zip(columns, keyValues).map { column, value in
      var condition = column
      condition.append(StatementText(" = ?", [value]))
      return condition
    }
  }

  /// Whether the columns of a key hold one of these.
  static func among(_ keys: some Sequence<Self>, _ columns: [StatementText]) -> StatementText {
    let list = ValueList(keys.map(\.keyValues))
    var text = StatementText("")
    text.append(columns, "(", separator: ", ")
    text.append(StatementText(") IN \(list.sql(parts: columns.count))", [list.parameter]))
    return text
  }

  /// The parts as columns hold them.
  var keyValues: [Value] {
    var record = RecordWriter()
    write(to: &record)
    return record.key.map { $0?.value ?? .null }
  }
}
