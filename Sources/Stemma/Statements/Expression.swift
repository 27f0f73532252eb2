import StemmaEvents
import StemmaSchema
import StemmaTables

/// A column, or an expression of columns, that has a value in each row of a statement.
public protocol ExpressionProtocol<Value>: OrderingTerm, GroupingTerm, SelectionTerm where Output == Value {
  /// The type in Swift; an optional where the value can be null.
  associatedtype Value: ColumnValue
  /// The same expression, with all but its value type erased.
  var expression: ColumnExpression<Value> { get }
}

/// An expression with all but its value type erased.
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
  /// The name in the table: the property's, unless `@Column` gives another.
  public let name: String

  /// `@Table` creates one for each stored property; the table's columns are not checked.
  public init(_ name: String) { self.name = name }
}

extension TableColumn: OrderingTerm, GroupingTerm, SelectionTerm, ExpressionProtocol
where Value: ColumnValue {
  /// As a statement selects it: the value.
  public typealias Output = Value
  /// The column of the table itself. One of a joined table comes from the closures of `join`.
  public var expression: ColumnExpression<Value> { expression(of: Root.description.tableName) }

  /// The column of a table with this alias, as reads show it: rows older than the column have its
  /// default.
  func expression<Result>(of table: String) -> ColumnExpression<Result> {
    let column = StatementText(Route.column(table, name))
    return ColumnExpression<Result>(
      valueOfOlderRows.map { .call("ifnull", column, StatementText("?", [$0])) } ?? column)
  }

  /// The same for an outer join: null where there is no row.
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

  /// The text whose order in SQLite is Swift's order of the values.
  ///
  /// The rule for schema types is `ComparedForm`. Decimal numbers and bytes are stored as text, and
  /// have collations of their own.
  var comparedText: StatementText { Self.compared(text) }

  /// The text by which SQLite groups equal values. A comparison with null is false here, as it is
  /// where it is selected.
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

/// A term that orders rows: an expression, or one with a direction.
public protocol OrderingTerm: Sendable {
  /// The term as it follows `ORDER BY`.
  var ordering: Ordering { get }
}

/// An expression with a direction.
public struct Ordering: OrderingTerm {
  let text: StatementText

  /// Itself.
  public var ordering: Ordering { self }
}

/// The place of null in an order.
public enum NullPlacement: String, Sendable {
  /// Before all values.
  case first = "FIRST"
  /// Behind all values.
  case last = "LAST"
}

extension ExpressionProtocol {
  /// The lowest first, null before it, as with `asc()`.
  public var ordering: Ordering { ordering("ASC", nil) }
  /// The lowest first; null is lowest, unless `nulls` places it.
  public func asc(nulls: NullPlacement? = nil) -> Ordering { ordering("ASC", nulls) }
  /// The highest first; null comes last, unless `nulls` places it.
  public func desc(nulls: NullPlacement? = nil) -> Ordering { ordering("DESC", nulls) }

  private func ordering(_ direction: String, _ nulls: NullPlacement?) -> Ordering {
    var text = comparedText
    text.append(" \(direction)")
    if let nulls { text.append(" NULLS \(nulls.rawValue)") }
    return Ordering(text: text)
  }
}
