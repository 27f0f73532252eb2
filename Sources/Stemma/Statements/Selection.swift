import StemmaTables

/// A struct of values, made by `@Selection`. One that is nested in a table can be a group of its
/// columns, or its key; each can be the output of a statement:
///
///     @Selection struct Load {
///       var name: String
///       var tasks: Int
///     }
///     Worker.leftJoin { $0.tasks }.group { worker, _ in worker.id }
///       .select { Load.Columns(name: $0.name, tasks: $1.id.count()) }
public protocol Selection: Sendable {
  associatedtype Columns: SelectionColumns where Columns.Output == Self

  /// Reads the properties from the columns of a row, in order of declaration.
  init(_ row: RowReader) throws(StoreError)
}

/// The terms of a statement for the properties of a `@Selection`, in order of declaration.
public protocol SelectionColumns: SelectionTerm where Output: Selection, Output.Columns == Self {}

/// An expression whose value a statement returns.
public struct SelectedColumn: Sendable {
  let text: StatementText
  /// The text for `SELECT DISTINCT`, which is equal for values that are equal in Swift.
  let distinctText: StatementText

  /// A comparison without a truth value, as with null, gives false.
  public init<Column: ExpressionProtocol>(_ column: Column) {
    let isTruth = Column.Value.self == Bool.self
    text = isTruth ? .combination(column.text, " IS ", StatementText("TRUE")) : column.text
    let type = Column.Value.columnType
    if type.isList || isTruth {
      distinctText = text
    } else if type.scalar == .awsDateTime {
      // Text that is not a time stays unchanged.
      distinctText = .call("ifnull", .call(SQLFunction.dateTime.rawValue, column.comparedText), text)
    } else {
      distinctText = column.comparedText
    }
  }

  /// Columns as their tables store them.
  init(text: StatementText) {
    self.text = text
    distinctText = text
  }
}

extension SQL where Output: Selection {
  /// A statement that selects the properties in order of declaration.
  public init(_ text: SQLText, as type: Output.Type = Output.self) {
    self.init(text: text.text) { try Output($0.row(of: nil)) }
  }
}
