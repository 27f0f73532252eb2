import StemmaEvents

/// Streams the rows of a SQL query.
package struct QueryCursor {
  package let columns: [String]
  private let statement: Statement

  init(_ statement: Statement) {
    self.statement = statement
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
  /// - Throws: `notAQuery` for a statement that writes, and for more than one statement.
  package func query(_ sql: String) throws(TablesError) -> QueryCursor {
    QueryCursor(try connection.prepareQuery(sql, isKept: false))
  }
}
