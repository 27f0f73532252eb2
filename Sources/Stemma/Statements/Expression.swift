import StemmaEvents
import StemmaSchema
import StemmaTables

/// A column or what is made of columns: something that has a value in each row of a statement.
public protocol ExpressionProtocol<Value>: OrderingTerm, GroupingTerm, SelectionTerm where Output == Value {
  /// The type in Swift; an optional where the value can be null.
  associatedtype Value: ColumnValue
  /// The same, of which only the type of the value is known.
  var expression: ColumnExpression<Value> { get }
}

/// An expression of which only the type of its value is known.
public struct ColumnExpression<Value: ColumnValue>: ExpressionProtocol {
  let text: StatementText

  init(_ text: StatementText) { self.text = text }

  /// As a statement selects it: the value.
  public typealias Output = Value
  /// Itself.
  public var expression: ColumnExpression<Value> { self }
}

/// A column of a table.
public struct TableColumn<Root: Table, Value>: Sendable {
  /// As the table has it: the property's name, unless `@Column` says another.
  public let name: String

  /// `@Table` makes one for each stored property; there is no check that the table has such a column.
  public init(_ name: String) { self.name = name }
}

extension TableColumn: OrderingTerm, GroupingTerm, SelectionTerm, ExpressionProtocol
where Value: ColumnValue {
  /// As a statement selects it: the value.
  public typealias Output = Value
  /// The column of the table itself. One of a joined table comes from the closures of `join`.
  public var expression: ColumnExpression<Value> { expression(of: Root.description.tableName) }

  /// The column in a table that a statement calls so, as rows are read: one that is older than the column shows its
  /// default.
  func expression<Result>(of table: String) -> ColumnExpression<Result> {
    let column = StatementText(Route.column(table, name))
    return ColumnExpression<Result>(
      valueOfOlderRows.map { .call("ifnull", column, StatementText("?", [$0])) } ?? column)
  }

  /// The same where there may be no row: then it is null.
  func optionalExpression<Result>(of table: String) -> ColumnExpression<Result> {
    guard valueOfOlderRows != nil, let key = Root.description.key.first else { return expression(of: table) }
    let isMissing = StatementText("\(Route.column(table, key.name)) IS NULL")
    let shown: ColumnExpression<Result> = expression(of: table)
    return ColumnExpression<Result>(.call("iif", isMissing, StatementText("NULL"), shown.text))
  }

  private var valueOfOlderRows: StemmaEvents.Value? {
    Root.description.columns.first { $0.name == name }?.valueOfOlderRows
  }
}

extension ExpressionProtocol {
  var text: StatementText { expression.text }

  /// The text of which SQLite compares values as Swift does.
  ///
  /// `ComparedForm` is the rule for the types of a schema. Decimal numbers and bytes are text, too, and have orders of
  /// their own.
  var comparedText: StatementText { Self.compared(text) }

  /// The text by which SQLite puts equal values together. A comparison without a truth value is false, as it is where it is
  /// selected.
  var groupedText: StatementText { Value.self == Bool.self ? SelectedColumn(self).text : comparedText }

  static func compared(_ text: StatementText) -> StatementText {
    let type = Value.columnType
    if type.isList { return text }
    if let collation = type.collation { return text.collated(collation) }
    switch ComparedForm(FieldType(.scalar(type.scalar))) {
    case .asStored: return text
    case .function(let function): return .call(function.rawValue, text)
    case .collation(let collation): return text.collated(collation)
    }
  }
}

// MARK: Order

/// What rows can be ordered by: an expression, or one with a direction.
public protocol OrderingTerm: Sendable {
  /// What a statement says behind `ORDER BY`.
  var ordering: Ordering { get }
}

/// An expression with a direction.
public struct Ordering: OrderingTerm {
  let text: StatementText

  /// Itself.
  public var ordering: Ordering { self }
}

/// Where rows come that have no value.
public enum NullPlacement: String, Sendable {
  /// Before all values.
  case first = "FIRST"
  /// Behind all values.
  case last = "LAST"
}

extension ExpressionProtocol {
  /// The lowest first, null before it; `asc()` says the same.
  public var ordering: Ordering { ordering("ASC", nil) }
  /// The lowest first; null is lower than anything, unless `nulls` says otherwise.
  public func asc(nulls: NullPlacement? = nil) -> Ordering { ordering("ASC", nulls) }
  /// The highest first; null comes behind the lowest, unless `nulls` says otherwise.
  public func desc(nulls: NullPlacement? = nil) -> Ordering { ordering("DESC", nulls) }

  private func ordering(_ direction: String, _ nulls: NullPlacement?) -> Ordering {
    var text = comparedText
    text.append(" \(direction)")
    if let nulls { text.append(" NULLS \(nulls.rawValue)") }
    return Ordering(text: text)
  }
}
