import GRDBSQLite
import StemmaEvents

/// References whose target did not exist when they were written, kept until all sources of an
/// import are read. They are in a temporary database, which SQLite moves to disk when it grows.
package final class PendingReferences {
  package struct Reference: Sendable {
    /// The index of its source among those of the import.
    package fileprivate(set) var source = 0
    package var line: Int
    /// The stored name of the referring record's model.
    package var model: String
    package var key: Key
    /// The index of the reference among those of its model.
    package var place: Int
    package var target: Key

    package init(line: Int, model: String, key: Key, place: Int, target: Key) {
      (self.line, self.model, self.key, self.place, self.target) = (line, model, key, place, target)
    }
  }

  private let connection: Connection
  /// The number of the last row that `next` returned.
  private var last: Int64 = 0

  package init() throws(TablesError) {
    connection = try Connection.temporary()
    do throws(TablesError) {
      try connection.execute(
        "CREATE TABLE reference (number INTEGER PRIMARY KEY, source INTEGER, line INTEGER, model TEXT, key BLOB, "
          + "place INTEGER, target BLOB)")
    } catch {
      sqlite3_close_v2(connection.handle)
      throw error
    }
  }

  deinit { sqlite3_close_v2(connection.handle) }

  package func add(_ references: [Reference], source: Int) throws(TablesError) {
    guard !references.isEmpty else { return }
    let statement = try connection.prepare(
      "INSERT INTO reference (source, line, model, key, place, target) VALUES (?, ?, ?, ?, ?, ?)")
    try connection.execute("BEGIN")
    do throws(TablesError) {
      for reference in references {
        statement.bind(1, Int64(source))
        statement.bind(2, Int64(reference.line))
        statement.bind(3, reference.model)
        statement.bind(4, blob: reference.key.bytes)
        statement.bind(5, Int64(reference.place))
        statement.bind(6, blob: reference.target.bytes)
        try statement.run()
      }
      try connection.execute("COMMIT")
    } catch {
      connection.rollBack()
      throw error
    }
  }

  /// The next reference, in insertion order; nil at the end.
  package func next() throws(TablesError) -> Reference? {
    let statement = try find.get()
    statement.bind(1, last)
    defer { statement.reset() }
    guard try statement.step() else { return nil }
    last = statement.int(0)
    do throws(EventsError) {
      var reference = Reference(
        line: Int(statement.int(2)), model: statement.text(3), key: try Key(encoded: statement.blob(4)),
        place: Int(statement.int(5)), target: try Key(encoded: statement.blob(6)))
      reference.source = Int(statement.int(1))
      return reference
    } catch { throw .sqlite(path: connection.path, code: SQLITE_CORRUPT, message: "a key cannot be read") }
  }

  private lazy var find = Result { () throws(TablesError) in
    try connection.prepare("SELECT * FROM reference WHERE number > ? ORDER BY number LIMIT 1")
  }
}
