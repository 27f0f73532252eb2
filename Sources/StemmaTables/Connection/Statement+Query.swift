import GRDBSQLite

extension Connection {
  /// Prepares one SQL statement that writes nothing.
  ///
  /// - Parameter isKept: whether the statement will be reused.
  /// - Throws: `notAQuery` for a statement that writes, and for more than one statement.
  func prepareQuery(_ sql: String, isKept: Bool) throws(TablesError) -> Statement {
    var text = sql
    var statement: OpaquePointer?
    let flags = isKept ? UInt32(SQLITE_PREPARE_PERSISTENT) : 0
    let (code, rest) = text.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { bytes in
        var tail: UnsafePointer<CChar>?
        let code = sqlite3_prepare_v3(
          handle, bytes.baseAddress, Int32(clamping: bytes.count), flags, &statement, &tail)
        guard let tail, let start = bytes.baseAddress else { return (code, "") }
        let rest = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(bytes)[(tail - start)...])
        return (code, String(decoding: rest, as: UTF8.self))
      }
    }
    guard code == SQLITE_OK else { throw failure(code) }
    guard let statement else { throw .notAQuery(sql) }
    let query = Statement(adopting: statement, self)
    // ATTACH and BEGIN count as reading, but have no columns; the rest may hold comments.
    guard sqlite3_stmt_readonly(statement) != 0, query.columnCount > 0, isEmpty(rest) else {
      throw .notAQuery(sql)
    }
    return query
  }

  private func isEmpty(_ sql: String) -> Bool {
    if sql.isEmpty { return true }
    var statement: OpaquePointer?
    defer { sqlite3_finalize(statement) }
    return sqlite3_prepare_v3(handle, sql, -1, 0, &statement, nil) == SQLITE_OK && statement == nil
  }
}
