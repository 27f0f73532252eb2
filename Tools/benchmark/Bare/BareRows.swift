import Foundation
import GRDBSQLite
import Measuring

/// All rows of a node's tables in memory, for a second insertion by bare SQLite in key order.
struct BareRows {
  private struct Table {
    var layout: BareSQLite.Table
    var values: [BareValue] = []
  }

  private var tables: [Table] = []
  private var indexes: [String] = []
  private var texts = BareTexts()
  private(set) var count = 0

  init(of path: String) throws {
    let database = try BareSQLite(path)
    indexes = try database.indexStatements()
    for layout in try database.modelTables() {
      var table = Table(layout: layout)
      let key = layout.key.map { "\"\($0)\"" }.joined(separator: ", ")
      let statement = try database.prepare("SELECT * FROM \"\(layout.name)\" ORDER BY \(key)")
      defer { sqlite3_finalize(statement) }
      while sqlite3_step(statement) == SQLITE_ROW {
        count += 1
        for column in 0..<Int32(layout.columns.count) { table.values.append(value(statement, column)) }
      }
      tables.append(table)
    }
  }

  private mutating func value(_ statement: OpaquePointer, _ column: Int32) -> BareValue {
    switch sqlite3_column_type(statement, column) {
    case SQLITE_NULL: return .null
    case SQLITE_INTEGER: return .int(sqlite3_column_int64(statement, column))
    case SQLITE_FLOAT: return .double(sqlite3_column_double(statement, column))
    case SQLITE_BLOB:
      let start = sqlite3_column_blob(statement, column)
      let count = Int(sqlite3_column_bytes(statement, column))
      return .blob(start: texts.copy(start, count), count: count)
    default:
      let start = sqlite3_column_text(statement, column)
      let count = Int(sqlite3_column_bytes(statement, column))
      return .text(start: texts.copy(start, count), count: count)
    }
  }

  /// Inserts into a new file in one transaction, then syncs: the same tables, rows in key order,
  /// indexes last. SQLite sorts index rows on two threads, in runs that fit into the processor's
  /// caches, as a rebuild does.
  func insert(into path: String) throws {
    do {
      let database = try BareSQLite(
        path, ["journal_mode = OFF", "synchronous = OFF", "cache_size = -4096", "threads = 2"])
      try database.execute("BEGIN EXCLUSIVE")
      for table in tables {
        try database.execute(table.layout.create)
        try insert(table, database)
      }
      for index in indexes { try database.execute(index) }
      try database.execute("COMMIT")
    }
    try BareFiles.sync(path)
  }

  private func insert(_ table: Table, _ database: BareSQLite) throws {
    let width = table.layout.columns.count
    let places = Array(repeating: "?", count: width).joined(separator: ", ")
    let statement = try database.prepare("INSERT INTO \"\(table.layout.name)\" VALUES (\(places))")
    defer { sqlite3_finalize(statement) }
    let isDone = texts.bytes.withUnsafeBufferPointer { texts -> Bool in
      guard let base = texts.baseAddress else { return table.values.isEmpty }
      return table.values.withUnsafeBufferPointer { values in
        var place = 0
        while place < values.count {
          for column in 0..<width { bind(values[place + column], statement, Int32(column + 1), base) }
          guard sqlite3_step(statement) == SQLITE_DONE else { return false }
          sqlite3_reset(statement)
          place += width
        }
        return true
      }
    }
    if !isDone { throw database.failure(table.layout.name) }
  }
}
