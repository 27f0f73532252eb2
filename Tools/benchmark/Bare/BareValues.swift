import GRDBSQLite

/// A value as a C program would hold it. Texts are adjacent in one buffer.
enum BareValue {
  case null
  case int(Int64)
  case double(Double)
  case text(start: Int, count: Int)
  case blob(start: Int, count: Int)
}

/// A text buffer whose address is fixed once it is filled.
struct BareTexts {
  private(set) var bytes: [UInt8] = []

  mutating func text(_ text: String) -> BareValue {
    let start = bytes.count
    bytes.append(contentsOf: text.utf8)
    return .text(start: start, count: bytes.count - start)
  }

  mutating func copy(_ start: UnsafeRawPointer?, _ count: Int) -> Int {
    let place = bytes.count
    bytes.append(contentsOf: UnsafeRawBufferPointer(start: start, count: count))
    return place
  }
}

/// Binds a value without a copy: SQLite reads texts from the buffer.
@inline(__always)
func bind(_ value: BareValue, _ statement: OpaquePointer, _ index: Int32, _ texts: UnsafePointer<UInt8>) {
  switch value {
  case .null: sqlite3_bind_null(statement, index)
  case .int(let number): sqlite3_bind_int64(statement, index, number)
  case .double(let number): sqlite3_bind_double(statement, index, number)
  case .text(let start, let count):
    (texts + start).withMemoryRebound(to: CChar.self, capacity: count) {
      _ = sqlite3_bind_text64(statement, index, $0, UInt64(count), nil, UInt8(SQLITE_UTF8))
    }
  case .blob(let start, let count):
    sqlite3_bind_blob64(statement, index, texts + start, UInt64(count), nil)
  }
}
