import GRDBSQLite
import StemmaEvents

/// Streams the rows of a SQL query.
package struct QueryCursor {
  package let columns: [String]
  private let statement: Statement

  init(_ statement: Statement) {
    self.statement = statement
    columns = (0..<statement.columnCount).map(statement.columnName)
  }

  /// A value for each column. Blobs are given as lowercase hexadecimal text.
  package mutating func next() throws(TablesError) -> [Value]? {
    guard try statement.step() else { return nil }
    return (0..<Int32(columns.count)).map { column in
      switch statement.type(column) {
      case SQLiteType.null: .null
      case SQLiteType.integer: .int(statement.int(column))
      case SQLiteType.float: .double(statement.double(column))
      case SQLiteType.blob: .string(Hexadecimal.text(statement.bytes(column)))
      default: .string(statement.text(column))
      }
    }
  }
}

extension TablesReader {
  /// Any one statement of SQL that changes nothing. The tables are those of the schema; Stemma's own, which
  /// begin with `_stemma_`, can be read too, but may change from version to version.
  ///
  /// - Throws: `notAQuery` for anything that would write, and for more than one statement.
  package func query(_ sql: String) throws(TablesError) -> QueryCursor {
    var text = sql
    var handle: OpaquePointer?
    let (code, rest) = text.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { bytes in
        var tail: UnsafePointer<CChar>?
        let code = sqlite3_prepare_v3(
          connection.handle, bytes.baseAddress, Int32(clamping: bytes.count), 0, &handle, &tail)
        guard let tail, let start = bytes.baseAddress else { return (code, "") }
        let rest = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[(tail - start)...])
        return (code, String(decoding: rest, as: UTF8.self))
      }
    }
    guard code == SQLITE_OK else { throw connection.failure(code) }
    guard let handle else { throw .notAQuery(sql) }
    let statement = Statement(adopting: handle, connection)
    // ATTACH counts as reading, but has no columns; the rest may hold comments.
    guard sqlite3_stmt_readonly(handle) != 0, sqlite3_column_count(handle) > 0, isEmpty(rest)
    else { throw .notAQuery(sql) }
    return QueryCursor(statement)
  }

  private func isEmpty(_ sql: String) -> Bool {
    var handle: OpaquePointer?
    defer { sqlite3_finalize(handle) }
    return sqlite3_prepare_v3(connection.handle, sql, -1, 0, &handle, nil) == SQLITE_OK && handle == nil
  }
}
