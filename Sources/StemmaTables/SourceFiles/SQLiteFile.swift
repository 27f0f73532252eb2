import GRDBSQLite
import StemmaEvents

/// A SQLite file of another program, read-only. It has its own connection, because rows are read
/// one by one while the file is open. GRDB lends a connection for one call only.
package final class SQLiteFile {
  package struct Table: Sendable {
    package var name: String
    package var columns: [Column]
    /// In the order of the key; empty if none is declared.
    package var primaryKey: [String]
    package var foreignKeys: [ForeignKey]
    /// The name of the row number; nil if the table has none, or columns hide all its names.
    package var rowNumber: String?
    /// The columns of each UNIQUE constraint and unique index, without the primary key.
    package var uniques: [[String]]
    package var triggers: [String]
    /// The CREATE TABLE statement.
    package var declaration: String
  }

  /// A view or a virtual table.
  package struct OmittedObject: Sendable {
    package enum Kind: Sendable { case view, virtualTable }
    package var name: String
    package var kind: Kind
  }

  package struct Contents: Sendable {
    /// By name, without SQLite's own tables and the storage of virtual tables.
    package var tables: [Table] = []
    package var omittedObjects: [OmittedObject] = []
  }

  package struct Column: Sendable {
    package var name: String
    /// As declared; may be anything.
    package var type: String
    package var isRequired: Bool
    package var isGenerated: Bool
    /// The expression of its DEFAULT.
    package var defaultValue: String?
  }

  package struct ForeignKey: Sendable {
    package var columns: [String]
    package var table: String
    /// Columns of `table`; empty for its primary key.
    package var targets: [String]
    /// `CASCADE`, `SET NULL` …; nil if none is declared.
    package var onDelete: String?
    package var onUpdate: String?
  }

  private let connection: Connection

  /// - Throws: `sqlite` if the file is missing or not a database.
  package init(_ path: String) throws(TablesError) {
    var handle: OpaquePointer?
    let code = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nil)
    guard let handle else { throw .sqlite(path: path, code: code, message: "out of memory") }
    connection = Connection(handle: handle, path: path)
    guard code == SQLITE_OK else { throw Self.failure(connection.failure(code), path) }
    sqlite3_busy_timeout(handle, 5000)
  }

  deinit { sqlite3_close_v2(connection.handle) }

  /// The tables and views of the file. A file of tables that a node or `rebuild --into` wrote also
  /// has tables, views and two columns per table for the node's own use. The contents omit them.
  ///
  /// Later reads see the same state of the file, even if other processes write to it.
  package func contents() throws(TablesError) -> Contents {
    do throws(TablesError) {
      try connection.execute("BEGIN")
      var contents = Contents()
      let names = try connection.prepare(
        #"""
        SELECT name, type, wr FROM pragma_table_list
        WHERE schema = 'main' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name
        """#)
      var tables: [(name: String, hasRowNumber: Bool)] = []
      while try names.step() {
        switch names.text(1) {
        case "table": tables.append((names.text(0), names.int(2) == 0))
        case "view": contents.omittedObjects.append(OmittedObject(name: names.text(0), kind: .view))
        case "virtual":
          contents.omittedObjects.append(OmittedObject(name: names.text(0), kind: .virtualTable))
        default: break
        }
      }
      let isOurs = tables.contains { $0.name == "_stemma_meta" }
      func isInternal(_ name: String) -> Bool { isOurs && name.hasPrefix("_stemma_") }
      contents.omittedObjects.removeAll { isInternal($0.name) }
      for (name, hasRowNumber) in tables where !isInternal(name) {
        var table = try table(name, hasRowNumber: hasRowNumber)
        if isOurs { table.columns.removeAll { ["_version", "_state"].contains($0.name) } }
        contents.tables.append(table)
      }
      return contents
    } catch { throw Self.failure(error, connection.path) }
  }

  private func texts(_ sql: String, _ parameter: String) throws(TablesError) -> [String] {
    let statement = try connection.prepare(sql)
    statement.bind(1, parameter)
    var found: [String] = []
    while try statement.step() { found.append(statement.text(0)) }
    return found
  }

  private func table(_ name: String, hasRowNumber: Bool) throws(TablesError) -> Table {
    var table = Table(
      name: name, columns: [], primaryKey: [], foreignKeys: [], rowNumber: nil, uniques: [],
      triggers: try texts(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? COLLATE NOCASE ORDER BY name",
        name),
      declaration: try texts("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", name).first
        ?? "")
    let columns = try connection.prepare(
      "SELECT name, type, \"notnull\", pk, hidden, dflt_value FROM pragma_table_xinfo(?)")
    columns.bind(1, name)
    var key: [(place: Int64, name: String)] = []
    while try columns.step() {
      let column = Column(
        name: columns.text(0), type: columns.text(1), isRequired: columns.int(2) != 0,
        isGenerated: columns.int(4) > 1, defaultValue: columns.isNull(5) ? nil : columns.text(5))
      if columns.int(3) > 0 { key.append((columns.int(3), column.name)) }
      table.columns.append(column)
    }
    table.primaryKey = key.sorted { $0.place < $1.place }.map(\.name)
    if hasRowNumber {
      table.rowNumber = ["rowid", "_rowid_", "oid"].first { name in
        !table.columns.contains { $0.name.lowercased() == name }
      }
    }
    let indexes = try texts(
      "SELECT name FROM pragma_index_list(?) WHERE \"unique\" AND origin <> 'pk' ORDER BY seq DESC", name)
    for index in indexes {
      table.uniques.append(
        try texts("SELECT coalesce(name, 'an expression') FROM pragma_index_info(?) ORDER BY seqno", index))
    }
    table.foreignKeys = try foreignKeys(of: name)
    return table
  }

  private func foreignKeys(of table: String) throws(TablesError) -> [ForeignKey] {
    let keys = try connection.prepare(
      """
      SELECT id, "table", "from", "to", on_delete, on_update FROM pragma_foreign_key_list(?) ORDER BY id DESC, seq
      """)
    keys.bind(1, table)
    var found: [ForeignKey] = []
    var last: Int64?
    while try keys.step() {
      if keys.int(0) != last {
        let actions = [keys.text(4), keys.text(5)].map { $0 == "NO ACTION" ? nil : $0 }
        found.append(
          ForeignKey(
            columns: [], table: keys.text(1), targets: [], onDelete: actions[0], onUpdate: actions[1]))
        last = keys.int(0)
      }
      found[found.count - 1].columns.append(keys.text(2))
      if !keys.isNull(3) { found[found.count - 1].targets.append(keys.text(3)) }
    }
    return found
  }

  /// The values of some columns of all rows, in table order.
  package func rows(_ table: String, _ columns: [String]) throws(TablesError) -> Rows {
    let list = columns.map(Self.identifier).joined(separator: ", ")
    do throws(TablesError) {
      return Rows(try connection.prepare("SELECT \(list) FROM \(Self.identifier(table))"), self)
    } catch { throw Self.failure(error, connection.path) }
  }

  /// Any name, quotes in it duplicate.
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
          String(validating: statement.utf8(column), as: UTF8.self).map { .value(.string($0)) } ?? .notUTF8
        }
      }
    }
  }

  /// No rebuild repairs this file, so corruption is reported as an SQLite error.
  private static func failure(_ error: TablesError, _ path: String) -> TablesError {
    guard case .needsRebuild(_, .corrupt(let message)) = error else { return error }
    return .sqlite(path: path, code: SQLITE_NOTADB, message: message)
  }
}
