import StemmaTables

/// Values that belong together: what `@Selection` makes of a struct. One that is nested in a table can be a group of
/// its columns, or its key; each can be what a statement selects:
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

/// The terms that a statement selects for the properties of a `@Selection`, in order of declaration.
public protocol SelectionColumns: SelectionTerm where Output: Selection, Output.Columns == Self {}

/// An expression of which a statement gives the value.
public struct SelectedColumn: Sendable {
  let text: StatementText
  /// The same in a statement that leaves out equal rows: of equal values, SQLite sees that they are.
  let distinctText: StatementText

  /// A comparison that has no truth value, as with null, is false.
  public init<Column: ExpressionProtocol>(_ column: Column) {
    // A comparison with null has no truth value; in Swift it is false.
    let isTruth = Column.Value.self == Bool.self
    text = isTruth ? .combination(column.text, " IS ", StatementText("TRUE")) : column.text
    let type = Column.Value.columnType
    if type.isList || isTruth {
      distinctText = text
    } else if type.scalar == .awsDateTime {
      // What is no time stays as it is.
      distinctText = .call("ifnull", .call(SQLFunction.dateTime.rawValue, column.comparedText), text)
    } else {
      distinctText = column.comparedText
    }
  }

  /// Columns as they stand in their tables.
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
