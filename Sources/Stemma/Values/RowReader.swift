import GRDBSQLite
import StemmaEvents
import StemmaMerge
import StemmaNode
import StemmaSchema
import StemmaTables

/// The current row of a read, for the initializers that `@Table` writes: columns by number, in the
/// order of the table's description. Not to be kept.
public struct RowReader {
  /// Not counted, as `handle` is not: the owner of a reader keeps the source until the row is read.
  /// Counting costs an eighth of the time to read a row.
  private unowned(unsafe) let source: RowSource
  /// The statement, if the source is one.
  private let handle: OpaquePointer?
  /// The source's column where this row begins.
  private let first: Int
  /// The table whose columns these are; nil for those of an expression.
  private let table: (any Table.Type)?

  init(_ source: RowSource, _ table: (any Table.Type)?, first: Int = 0) {
    self.source = source
    handle = source.handle
    self.table = table
    self.first = first
  }

  /// The columns from `column` on, as those of a table or of expressions.
  func row(of table: (any Table.Type)?, from column: Int) -> RowReader {
    RowReader(source, table, first: first + column)
  }

  private func place(_ column: Int) -> Int32 { Int32(truncatingIfNeeded: first + column) }

  /// Whether the column holds SQL's NULL.
  public func isNull(_ column: Int) -> Bool {
    guard let handle else { return source.values[first + column].isNull }
    return sqlite3_column_type(handle, place(column)) == SQLITE_NULL
  }

  /// Nil for null and anything else but an integer. A Boolean is 0 or 1.
  public func integer(_ column: Int) -> Int64? {
    guard let handle else {
      switch source.values[first + column] {
      case .int(let number): return number
      case .bool(let flag): return flag ? 1 : 0
      default: return nil
      }
    }
    guard sqlite3_column_type(handle, place(column)) == SQLITE_INTEGER else { return nil }
    return sqlite3_column_int64(handle, place(column))
  }

  /// Nil for null and anything else but a number.
  public func real(_ column: Int) -> Double? {
    guard let handle else {
      switch source.values[first + column] {
      case .int(let number): return Double(number)
      case .double(let number): return number
      default: return nil
      }
    }
    let type = sqlite3_column_type(handle, place(column))
    guard type == SQLITE_FLOAT || type == SQLITE_INTEGER else { return nil }
    return sqlite3_column_double(handle, place(column))
  }

  /// Nil for null and anything else but text.
  public func text(_ column: Int) -> String? {
    withText(column) { String(decoding: $0, as: UTF8.self) }
  }

  /// The UTF-8 of a text column, valid inside of `body`.
  func withText<Result>(_ column: Int, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result? {
    guard let handle else {
      switch source.values[first + column] {
      case .string(var text), .json(var text): return text.withUTF8(body)
      default: return nil
      }
    }
    guard let start = sqlite3_column_text(handle, place(column)) else { return nil }
    let count = Int(sqlite3_column_bytes(handle, place(column)))
    return body(UnsafeBufferPointer(start: start, count: count))
  }

  /// The value of a column of a schema type, without conversion to a Swift type.
  public func datum(_ column: Int, _ type: ColumnType) -> Datum {
    guard let handle else { return Datum(source.values[first + column]) }
    switch sqlite3_column_type(handle, place(column)) {
    case SQLITE_NULL: return .null
    case SQLITE_INTEGER:
      let number = sqlite3_column_int64(handle, place(column))
      if type.isList { return .integer(number) }
      switch type.scalar {
      case .boolean where number == 0 || number == 1: return .boolean(number == 1)
      case .float: return .real(Double(number))
      default: return .integer(number)
      }
    case SQLITE_FLOAT: return .real(sqlite3_column_double(handle, place(column)))
    default:
      let text = text(column) ?? ""
      return type.isList ? Datum(.json(text)) : .text(text)
    }
  }

  /// The value of a column.
  ///
  /// - Throws: `unreadable` if it does not fit the type.
  @inlinable
  public func value<Content: ColumnValue>(_ column: Int, as type: Content.Type) throws(StoreError) -> Content
  {
    try Content.read(self, column)
  }

  /// The value of a column that is a key or a key part, of this record or another one.
  ///
  /// - Throws: `unreadable` also if the type cannot hold the exact value, as a `Date` cannot hold a
  ///   fraction of a millisecond: the result would be another key.
  public func exactly<Content: ColumnValue>(
    _ column: Int, as type: Content.Type
  ) throws(StoreError) -> Content {
    let value = try Content.read(self, column)
    guard value.datum == datum(column, Content.columnType) else { throw unreadable(column) }
    return value
  }

  /// The value of a column that is stored as a representation of it.
  public func represented<Representation: ColumnRepresentation>(
    _ column: Int, as type: Representation.Type
  ) throws(StoreError) -> Representation.Represented {
    try Representation.read(self, column).represented
  }

  /// As above. `own` returns the property and is never called: with it, the compiler finds the
  /// overload for a representation that is refused at the property.
  public func represented<Row, Representation: ColumnRepresentation>(
    _ column: Int, as type: Representation.Type, _ own: (Row) -> Representation.Represented
  ) throws(StoreError) -> Representation.Represented { try represented(column, as: type) }

  /// Ties the record to its store. `column` is the number of `_state`.
  public func record(_ column: Int) throws(StoreError) -> RecordHandle {
    do throws(MergeError) { return try source.record(place(column)) } catch {
      throw unreadable(column)
    }
  }

  /// The error for a column that does not fit its Swift type.
  public func unreadable(_ column: Int) -> StoreError {
    .unreadable(
      table: table?.description.tableName ?? StoreError.noTable, column: name(column),
      value: datum(column, .text).value.json.text)
  }

  private func name(_ column: Int) -> String {
    if let columns = table?.description.columns {
      return column < columns.count ? columns[column].name : "_state"
    }
    guard let handle, let name = sqlite3_column_name(handle, place(column)) else { return "" }
    return String(cString: name)
  }
}

/// The source of rows: a prepared statement, or, in a write, the state of a record in memory.
final class RowSource {
  let handle: OpaquePointer?
  private(set) var values: [Value] = []
  private var context = Context.empty
  /// Nil: records are tied to no store.
  private let store: Store?
  private let isPast: Bool
  /// The commit inside which rows are read.
  var commit: RecordedSettings?
  /// Whether the statement was found to begin with the columns of a record.
  var hasRecordColumns = false
  private var group: LoadedRecords?
  /// The place in the group of the last record.
  private var place: Int32 = 0

  init(_ handle: OpaquePointer, _ store: Store?, _ commit: RecordedSettings?, isPast: Bool) {
    self.handle = handle
    self.store = store
    self.commit = commit
    self.isPast = isPast
  }

  /// A source of records in memory, one after the other.
  init(_ store: Store?) {
    handle = nil
    isPast = false
    self.store = store
  }

  func show(_ values: [Value], _ context: Context) {
    self.values = values
    self.context = context
  }

  // These run for every row, so they are inlined into one function.

  /// `column`: the number of `_state`.
  @inline(__always)
  func record(_ column: Int32) throws(MergeError) -> RecordHandle {
    guard let group = groupWithRoom() else { return RecordHandle() }
    if let entry = try singleEntry(column) {
      return RecordHandle(LoadedRecord(group, place, entry))
    }
    group.setContext(try wholeContext(column), at: place)
    return RecordHandle(
      LoadedRecord(group, place, Context.Entry(origin: Origin(0), sequence: SequenceNumber(0))))
  }

  /// The group, with the next place taken. Nil if records are tied to no store.
  @inline(__always)
  private func groupWithRoom() -> LoadedRecords? {
    assert(holds(checkInvariants))
    if let group, place + 1 < LoadedRecords.limit, group.commit === commit {
      place += 1
      return group
    }
    guard let store else { return nil }
    let group = LoadedRecords(store, commit, isPast: isPast)
    self.group = group
    place = 0
    return group
  }

  /// Traps if a record has no place in its group. In debug builds at each record.
  func checkInvariants() {
    precondition((0..<LoadedRecords.limit).contains(place), "a group has few places")
    precondition(group != nil || place == 0, "a place is one of a group")
    precondition(handle == nil || values.isEmpty, "rows come from a statement, or from memory")
  }

  @inline(__always)
  private func singleEntry(_ column: Int32) throws(MergeError) -> Context.Entry? {
    guard let handle else { return context.entries.count == 1 ? context.entries[0] : nil }
    return try RecordState.readSingleContext(of: Self.blob(handle, column))
  }

  private func wholeContext(_ column: Int32) throws(MergeError) -> Context {
    guard let handle else { return context }
    var entries: [Context.Entry] = []
    try RecordState.readContext(of: Self.blob(handle, column), into: &entries)
    return Context(trusted: entries)
  }

  /// Valid until the next row.
  @inline(__always)
  private static func blob(_ handle: OpaquePointer, _ column: Int32) -> UnsafeRawBufferPointer {
    let start = sqlite3_column_blob(handle, column)
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, column)))
  }
}

/// The rows of a read, one by one. Not to be kept.
public struct RowCursor {
  private let statement: Statement
  private let source: RowSource

  /// `commit`: the commit inside which the rows are read, if it has events. `isPast`: whether the
  /// tables are those of an earlier time.
  init(_ statement: Statement, _ store: Store?, _ commit: RecordedSettings? = nil, isPast: Bool = false) {
    self.statement = statement
    source = RowSource(statement.handle, store, commit, isPast: isPast)
  }

  /// The statement with the current row.
  var handle: OpaquePointer { statement.handle }

  /// The current row, valid while the cursor is kept. It begins with the columns of `table`.
  public func row(of table: (any Table.Type)?) -> RowReader { RowReader(source, table) }

  /// - Throws: `failed` if the statement does not begin with the columns of a record.
  func checkColumns(of table: any Table.Type) throws(StoreError) {
    // The columns are the same in each row.
    if source.hasRecordColumns { return }
    let names = table.description.columns.map(\.name) + ["_state"]
    let found = (0..<sqlite3_column_count(handle)).map { column in
      sqlite3_column_name(handle, column).map { String(cString: $0) } ?? ""
    }
    guard found.starts(with: names) else {
      throw .failed(
        .invalidQuery,
        "SQL<\(table)>: the statement selects \(found.joined(separator: ", ")), but a record is read from "
          + "\(names.joined(separator: ", ")). Begin it with `SELECT \\(columns: \(table).self)`.")
    }
    source.hasRecordColumns = true
  }

  /// False after the last row.
  public func next() throws(StoreError) -> Bool {
    do throws(TablesError) { return try statement.step() } catch { throw StoreError(error) }
  }
}
