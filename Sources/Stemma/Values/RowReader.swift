import GRDBSQLite
import StemmaEvents
import StemmaMerge
import StemmaSchema

/// The current row of a read, as the initialisers that `@Table` writes see it: columns by number, in the order of
/// the table's description. Not to be kept.
public struct RowReader {
  /// Where the columns come from: a prepared statement, or, in a write, the record's state in memory.
  private let handle: OpaquePointer?
  private let values: [Value]
  private let context: Context
  private let store: Store?
  private let description: ModelDescription
  /// The statement's column where this row begins.
  private let first: Int

  init(_ handle: OpaquePointer, _ description: ModelDescription, store: Store?, first: Int = 0) {
    self.handle = handle
    values = []
    context = .empty
    self.description = description
    self.store = store
    self.first = first
  }

  init(_ values: [Value], context: Context, _ description: ModelDescription, store: Store?) {
    handle = nil
    self.values = values
    self.context = context
    self.description = description
    self.store = store
    first = 0
  }

  private func place(_ column: Int) -> Int32 { Int32(truncatingIfNeeded: first + column) }

  public func isNull(_ column: Int) -> Bool {
    guard let handle else { return values[column].isNull }
    return sqlite3_column_type(handle, place(column)) == SQLITE_NULL
  }

  /// Nil for null, and for what is no whole number. A Boolean is 0 or 1.
  public func integer(_ column: Int) -> Int64? {
    guard let handle else {
      switch values[column] {
      case .int(let number): return number
      case .bool(let flag): return flag ? 1 : 0
      default: return nil
      }
    }
    guard sqlite3_column_type(handle, place(column)) == SQLITE_INTEGER else { return nil }
    return sqlite3_column_int64(handle, place(column))
  }

  /// Nil for null, and for what is no number.
  public func real(_ column: Int) -> Double? {
    guard let handle else {
      switch values[column] {
      case .int(let number): return Double(number)
      case .double(let number): return number
      default: return nil
      }
    }
    let type = sqlite3_column_type(handle, place(column))
    guard type == SQLITE_FLOAT || type == SQLITE_INTEGER else { return nil }
    return sqlite3_column_double(handle, place(column))
  }

  /// Nil for null, and for what is no text.
  public func text(_ column: Int) -> String? {
    withText(column) { String(decoding: $0, as: UTF8.self) }
  }

  /// The UTF-8 of a text column, valid inside of `body`.
  func withText<Result>(_ column: Int, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result? {
    guard let handle else {
      switch values[column] {
      case .string(var text), .json(var text): return text.withUTF8(body)
      default: return nil
      }
    }
    guard let start = sqlite3_column_text(handle, place(column)) else { return nil }
    let count = Int(sqlite3_column_bytes(handle, place(column)))
    return body(UnsafeBufferPointer(start: start, count: count))
  }

  /// The value of a column of a type, without looking for a Swift value.
  public func datum(_ column: Int, _ type: ColumnType) -> Datum {
    guard let handle else { return Datum(values[column]) }
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

  /// Ties the record to the store that it is read from. `column` is that of `_state`.
  public func record(_ column: Int) throws(StoreError) -> RecordHandle {
    guard let store else { return RecordHandle() }
    guard let handle else { return RecordHandle(LoadedRecord(store, context)) }
    let start = sqlite3_column_blob(handle, place(column))
    let bytes = UnsafeRawBufferPointer(
      start: start, count: Int(sqlite3_column_bytes(handle, place(column))))
    do throws(MergeError) {
      return RecordHandle(LoadedRecord(store, try RecordState.context(decoding: bytes)))
    } catch { throw unreadable(column) }
  }

  /// The error for a column that does not fit its Swift type.
  public func unreadable(_ column: Int) -> StoreError {
    let names = description.columns.map(\.name) + ["_state"]
    return .unreadable(
      table: description.tableName, column: column < names.count ? names[column] : "\(column)",
      value: datum(column, .text).value.json.text)
  }
}
