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

/// What a statement selects for each property of a `@Selection`, in order of declaration.
public protocol SelectionColumns: Sendable {
  /// The struct that a row becomes.
  associatedtype Output: Selection where Output.Columns == Self
  /// One for each property.
  var selected: [SelectedColumn] { get }
}

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

extension Query {
  /// Several values of each row, as a struct.
  public func select<Selected: SelectionColumns>(
    _ selected: (Columns) -> Selected
  ) -> Query<Columns, Selected.Output> { parts.selecting(selected(columns), in: columns) }
}

extension Groups {
  /// Several values of each group, as a struct.
  public func select<Selected: SelectionColumns>(
    _ selected: (Columns) -> Selected
  ) -> Query<Columns, Selected.Output> { parts.selecting(selected(columns), in: columns) }
}

extension Table {
  /// Several values of each row, as a struct.
  public static func select<Selected: SelectionColumns>(
    _ selected: (Columns) -> Selected
  ) -> Query<Columns, Selected.Output> { all.select(selected) }
}

extension SQL where Output: Selection {
  /// A statement that selects the properties in order of declaration.
  public init(_ text: SQLText, as type: Output.Type = Output.self) {
    self.init(text: text.text) { try Output($0.row(of: nil)) }
  }
}

extension QueryParts {
  fileprivate func selecting<Columns, Selected: SelectionColumns>(
    _ selected: Selected, in columns: Columns
  ) -> Query<Columns, Selected.Output> {
    var copy = self
    copy.select(selected.selected)
    return Query(copy, columns) { try Selected.Output($0.row(of: nil)) }
  }
}
