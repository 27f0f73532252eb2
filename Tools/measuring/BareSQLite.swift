import Foundation
import GRDBSQLite

/// A thin wrapper of SQLite's C interface.
package final class BareSQLite {
  package let handle: OpaquePointer

  package init(_ path: String, _ pragmas: [String] = []) throws {
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_CREATE | SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX
    guard sqlite3_open_v2(path, &opened, flags, nil) == SQLITE_OK, let opened else {
      throw BenchError("SQLite cannot open \(path)")
    }
    handle = opened
    for pragma in pragmas { try execute("PRAGMA \(pragma)") }
  }

  deinit { sqlite3_close_v2(handle) }

  package func execute(_ sql: String) throws {
    guard sqlite3_exec(handle, sql, nil, nil, nil) == SQLITE_OK else { throw failure(sql) }
  }

  package func prepare(_ sql: String) throws -> OpaquePointer {
    var statement: OpaquePointer?
    let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
    guard sqlite3_prepare_v3(handle, sql, -1, flags, &statement, nil) == SQLITE_OK, let statement else {
      throw failure(sql)
    }
    return statement
  }

  package func texts(_ sql: String) throws -> [[String]] {
    let statement = try prepare(sql)
    defer { sqlite3_finalize(statement) }
    var rows: [[String]] = []
    while sqlite3_step(statement) == SQLITE_ROW {
      rows.append(
        (0..<sqlite3_column_count(statement)).map { column in
          sqlite3_column_text(statement, column).map { String(cString: $0) } ?? ""
        })
    }
    return rows
  }

  package func failure(_ what: String) -> BenchError {
    BenchError("SQLite: \(String(cString: sqlite3_errmsg(handle))) in \(what)")
  }

  // MARK: The tables of a node

  package struct Table {
    package let name: String
    package let create: String
    package let columns: [String]
    package let key: [String]
  }

  /// The tables of the schema's models, without Stemma's own.
  package func modelTables() throws -> [Table] {
    try texts(
      "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\' ORDER BY name"
    ).map { row in
      let columns = try texts("SELECT name, pk FROM pragma_table_info('\(row[0])')")
      let key = columns.filter { $0[1] != "0" }.sorted { (Int($0[1]) ?? 0) < (Int($1[1]) ?? 0) }
      return Table(name: row[0], create: row[1], columns: columns.map { $0[0] }, key: key.map { $0[0] })
    }
  }

  package func indexStatements() throws -> [String] {
    try texts(
      "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name NOT LIKE '\\_%' ESCAPE '\\' ORDER BY name"
    ).map { $0[0] }
  }

  /// Throws unless the model tables of another file have the same rows. `leavingOut`: columns that
  /// are not compared.
  package func checkSameRows(as other: String, leavingOut: Set<String> = []) throws {
    try execute("ATTACH '\(other)' AS other")
    defer { do { try execute("DETACH other") } catch {} }
    for table in try modelTables() {
      let columns = table.columns.filter { !leavingOut.contains($0) }.map { "\"\($0)\"" }
        .joined(separator: ", ")
      let here = "SELECT \(columns) FROM main.\"\(table.name)\""
      let there = "SELECT \(columns) FROM other.\"\(table.name)\""
      let counts = try texts(
        """
        SELECT (SELECT count(*) FROM main."\(table.name)"), (SELECT count(*) FROM other."\(table.name)"),
          (SELECT count(*) FROM (\(here) EXCEPT \(there)))
        """)[0]
      guard counts[0] == counts[1], counts[2] == "0" else {
        throw BenchError(
          "table \(table.name) differs: \(counts[0]) rows beside \(counts[1]), \(counts[2]) of them not among these"
        )
      }
    }
  }
}
