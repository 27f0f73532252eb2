import GRDBSQLite
import StemmaEvents

/// Streams the rows of a SQL query.
package struct QueryCursor {
  package let columns: [String]
  private let statement: Statement
  private let deadline: QueryDeadline?

  init(_ statement: Statement, _ deadline: QueryDeadline?) {
    self.statement = statement
    self.deadline = deadline
    columns = (0..<statement.columnCount).map(statement.columnName)
  }

  /// A value for each column. Blobs become lowercase hexadecimal text.
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
  /// Runs one SQL statement that writes nothing. The tables are those of the schema. Stemma's own
  /// tables, which begin with `_stemma_`, are readable too, but may change between versions.
  ///
  /// - Parameter time: how long it may run; nil: as long as it takes.
  /// - Throws: `notAQuery` for a statement that writes, and for more than one statement; `.sqlite`
  ///   with the code SQLITE_INTERRUPT after `time`.
  package func query(_ sql: String, within time: Duration? = nil) throws(TablesError) -> QueryCursor {
    let statement = try connection.prepareQuery(sql, isKept: false)
    return QueryCursor(statement, time.map { QueryDeadline(connection, after: $0) })
  }
}

/// Ends the statements of a connection after a time (sqlite.org/c3ref/progress_handler.html).
final class QueryDeadline {
  private let connection: Connection
  fileprivate let end: ContinuousClock.Instant
  /// Steps of SQLite's virtual machine between two looks at the clock: about a millisecond.
  private static let steps: Int32 = 100_000

  init(_ connection: Connection, after time: Duration) {
    self.connection = connection
    end = .now + time
    // The handler is removed before this object ends.
    sqlite3_progress_handler(
      connection.handle, Self.steps,
      { deadline in
        guard let deadline else { return 0 }
        let end = Unmanaged<QueryDeadline>.fromOpaque(deadline).takeUnretainedValue().end
        return ContinuousClock.now < end ? 0 : 1
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  deinit { sqlite3_progress_handler(connection.handle, 0, nil, nil) }
}
