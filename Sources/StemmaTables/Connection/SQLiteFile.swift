import GRDBSQLite
import StemmaEvents

/// A SQLite file of somebody else, read-only. Its connection is its own, because rows are taken one by one for as
/// long as the file is open, and GRDB lends a connection for one call only.
package final class SQLiteFile {
  package struct Table: Sendable {
    package var name: String
    package var columns: [Column]
    /// In the order of the key; empty: none was declared.
    package var primaryKey: [String]
    package var foreignKeys: [ForeignKey]
  }

  package struct Column: Sendable {
    package var name: String
    /// As it was declared; may be anything.
    package var type: String
    package var isRequired: Bool
  }

  package struct ForeignKey: Sendable {
    package var columns: [String]
    package var table: String
    /// Columns of `table`; empty: its primary key.
    package var targets: [String]
  }

  private let connection: Connection

  /// - Throws: `sqlite` if there is no such file or it is no database.
  package init(_ path: String) throws(TablesError) {
    var handle: OpaquePointer?
    let code = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nil)
    guard let handle else { throw .sqlite(path: path, code: code, message: "out of memory") }
    connection = Connection(handle: handle, path: path)
    guard code == SQLITE_OK else { throw Self.failure(connection.failure(code), path) }
    sqlite3_busy_timeout(handle, 5000)
  }

  deinit { sqlite3_close_v2(connection.handle) }

  /// All tables but those of SQLite itself, by name. Views are not among them.
  package func tables() throws(TablesError) -> [Table] {
    do throws(TablesError) {
      let names = try texts(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
      )
      var tables: [Table] = []
      for name in names { tables.append(try table(name)) }
      return tables
    } catch { throw Self.failure(error, connection.path) }
  }

  private func texts(_ sql: String) throws(TablesError) -> [String] {
    let statement = try connection.prepare(sql)
    var found: [String] = []
    while try statement.step() { found.append(statement.text(0)) }
    return found
  }

  private func table(_ name: String) throws(TablesError) -> Table {
    var table = Table(name: name, columns: [], primaryKey: [], foreignKeys: [])
    let columns = try connection.prepare("SELECT name, type, \"notnull\", pk FROM pragma_table_info(?)")
    columns.bind(1, name)
    var key: [(place: Int64, name: String)] = []
    while try columns.step() {
      let column = Column(name: columns.text(0), type: columns.text(1), isRequired: columns.int(2) != 0)
      if columns.int(3) > 0 { key.append((columns.int(3), column.name)) }
      table.columns.append(column)
    }
    table.primaryKey = key.sorted { $0.place < $1.place }.map(\.name)
    let keys = try connection.prepare(
      "SELECT id, \"table\", \"from\", \"to\" FROM pragma_foreign_key_list(?) ORDER BY id DESC, seq")
    keys.bind(1, name)
    var last: Int64?
    while try keys.step() {
      if keys.int(0) != last {
        table.foreignKeys.append(ForeignKey(columns: [], table: keys.text(1), targets: []))
        last = keys.int(0)
      }
      table.foreignKeys[table.foreignKeys.count - 1].columns.append(keys.text(2))
      if !keys.isNull(3) { table.foreignKeys[table.foreignKeys.count - 1].targets.append(keys.text(3)) }
    }
    return table
  }

  /// The values of some columns of all rows, in the table's own order.
  package func rows(_ table: String, _ columns: [String]) throws(TablesError) -> Rows {
    let list = columns.map(Self.identifier).joined(separator: ", ")
    do throws(TablesError) {
      return Rows(try connection.prepare("SELECT \(list) FROM \(Self.identifier(table))"), self)
    } catch { throw Self.failure(error, connection.path) }
  }

  /// Any name, quotes in it doubled.
  private static func identifier(_ name: String) -> String {
    TableLayout.quoted(name.replacing("\"", with: "\"\""))
  }

  /// Streams rows.
  package struct Rows {
    package enum Cell: Sendable {
      case value(Value)
      case blob
      case notUTF8
    }

    private let statement: Statement
    private let file: SQLiteFile

    init(_ statement: Statement, _ file: SQLiteFile) { (self.statement, self.file) = (statement, file) }

    package mutating func next() throws(TablesError) -> [Cell]? {
      do throws(TablesError) {
        guard try statement.step() else { return nil }
      } catch { throw SQLiteFile.failure(error, file.connection.path) }
      return (0..<statement.columnCount).map { column in
        switch statement.type(column) {
        case SQLiteType.null: .value(.null)
        case SQLiteType.integer: .value(.int(statement.int(column)))
        case SQLiteType.float: .value(.double(statement.double(column)))
        case SQLiteType.blob: .blob
        default:
          String(validating: statement.bytes(column), as: UTF8.self).map { .value(.string($0)) } ?? .notUTF8
        }
      }
    }
  }

  /// Nobody rebuilds such a file: damage is what SQLite says of it.
  private static func failure(_ error: TablesError, _ path: String) -> TablesError {
    guard case .needsRebuild(_, .damaged(let message)) = error else { return error }
    return .sqlite(path: path, code: SQLITE_NOTADB, message: message)
  }
}
