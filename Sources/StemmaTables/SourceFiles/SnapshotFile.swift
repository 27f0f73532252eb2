import Crypto
import GRDBSQLite
import StemmaEvents

/// The rows of repeatedly imported sources, as the last imports found them: the file
/// `snapshots.sqlite` of a node.
///
///     snapshot       id · name · run                         `run` counts the imports of a name
///     snapshot_row   snapshot · model · key · run · fields
///
/// `run` of a row is the last import that found it. The blob `fields` has a digest of 8 bytes for
/// each field. The digest is the start of the SHA-256 of the field's stored name, a zero, the type
/// of the value, and its text.
///
/// The file is not a projection of the log, and no rebuild restores it. A row is recorded after its
/// events are durable. With `synchronous=NORMAL`, a power failure may undo the last transactions.
/// The file may therefore be behind the log, never ahead of it.
package final class SnapshotFile {
  /// A row of a source.
  package struct Row: Sendable {
    /// The stored name of its model.
    package var model: String
    package var key: Key
    package var fields: [UInt64]

    package init(model: String, key: Key, fields: [UInt64]) {
      self.model = model
      self.key = key
      self.fields = fields
    }
  }

  /// A row as last recorded.
  package struct Recorded: Sendable {
    package var fields: [UInt64]
    /// Whether this import has found it.
    package var isFound: Bool

    package init(fields: [UInt64], isFound: Bool) {
      self.fields = fields
      self.isFound = isFound
    }
  }

  /// The layout above. Another version wrote a file with another number.
  private static let layout: Int64 = 1

  private let connection: Connection
  private let snapshot: Int64
  private let run: Int64

  /// Opens the snapshot of a name, or creates it. The file is locked while this object exists.
  ///
  /// - Parameters:
  ///   - wait: how long to wait for another process's lock, in milliseconds.
  ///   - isCopy: the file is not changed; what is recorded is lost at the end.
  /// - Throws: `busy` if another process has locked the file.
  package init(_ path: String, name: String, wait: UInt32, isCopy: Bool) throws(TablesError) {
    connection =
      try isCopy ? .temporary() : .open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, wait: wait)
    do throws(TablesError) {
      if isCopy, FileIdentity.isTaken(path) {
        let original = try Connection.open(path, SQLITE_OPEN_READONLY, wait: wait)
        defer { sqlite3_close_v2(original.handle) }
        try original.copyAll(to: connection)
      }
      // A file of another version is rejected before any byte of it changes.
      try connection.execute("PRAGMA locking_mode = EXCLUSIVE")
      let found = try connection.integer("PRAGMA user_version") ?? 0
      guard found == 0 || found == Self.layout else {
        throw .sqlite(
          path: path, code: SQLITE_NOTADB,
          message: "it has layout \(found), this version reads \(Self.layout)")
      }
      try connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE")
      try connection.execute(
        """
        PRAGMA user_version = \(Self.layout);
        CREATE TABLE IF NOT EXISTS snapshot (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, run INTEGER NOT NULL);
        CREATE TABLE IF NOT EXISTS snapshot_row (
          snapshot INTEGER NOT NULL, model TEXT NOT NULL, key BLOB NOT NULL, run INTEGER NOT NULL,
          fields BLOB NOT NULL, PRIMARY KEY (snapshot, model, key)) WITHOUT ROWID;
        """)
      let begin = try connection.prepare(
        "INSERT INTO snapshot (name, run) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET run = run + 1 "
          + "RETURNING id, run")
      begin.bind(1, name)
      guard try begin.step() else { throw .sqlite(path: path, code: SQLITE_ERROR, message: "no snapshot") }
      (snapshot, run) = (begin.int(0), begin.int(1))
      begin.reset()
      try connection.execute("COMMIT")
    } catch {
      sqlite3_close_v2(connection.handle)
      throw Self.failure(error, path)
    }
  }

  private init(copying other: SnapshotFile) throws(TablesError) {
    (snapshot, run) = (other.snapshot, other.run)
    connection = try .temporary()
    do throws(TablesError) { try other.connection.copyAll(to: connection) } catch {
      sqlite3_close_v2(connection.handle)
      throw error
    }
  }

  /// A temporary copy of the whole file, for the same import.
  package func copy() throws(TablesError) -> SnapshotFile { try SnapshotFile(copying: self) }

  deinit {
    // At rest it is one file, which a dry run can read. If this fails, the next import retries it.
    sqlite3_exec(connection.handle, "PRAGMA journal_mode = DELETE", nil, nil, nil)
    sqlite3_close_v2(connection.handle)
  }

  /// A rebuild restores the tables, but not this file.
  fileprivate static func failure(_ error: TablesError, _ path: String) -> TablesError {
    guard case .needsRebuild(_, .corrupt(let message)) = error else { return error }
    return .sqlite(path: path, code: SQLITE_NOTADB, message: message)
  }

  private func wrapping<Result>(_ body: () throws(TablesError) -> Result) throws(TablesError) -> Result {
    do throws(TablesError) { return try body() } catch { throw Self.failure(error, connection.path) }
  }

  /// The digest of what a source states about a field.
  package static func digest(of assignment: Assignment) -> UInt64 {
    let (type, text): (UInt8, String) =
      switch assignment.value {
      case .null: (0, "")
      case .bool(let flag): (1, String(flag))
      case .int(let number): (2, String(number))
      case .double(let number): (3, String(number.bitPattern))
      case .string(let text): (4, text)
      case .json(let text): (5, text)
      }
    var hash = SHA256()
    hash.update(data: Array(assignment.field.utf8) + [0, type])
    hash.update(data: Array(text.utf8))
    return number(hash.finalize().prefix(8))
  }

  private static func number(_ bytes: some Sequence<UInt8>) -> UInt64 {
    bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// A row as last recorded; nil if it is not.
  package func recorded(_ model: String, _ key: Key) throws(TablesError) -> Recorded? {
    try wrapping { () throws(TablesError) in
      let statement = try find.get()
      bind(statement, model, key)
      defer { statement.reset() }
      guard try statement.step() else { return nil }
      let bytes = statement.blob(0)
      let fields = stride(from: 0, to: bytes.count - bytes.count % 8, by: 8).map { start in
        Self.number(bytes[start..<start + 8])
      }
      return Recorded(fields: fields, isFound: statement.int(1) == run)
    }
  }

  private lazy var find = Result { () throws(TablesError) in
    try connection.prepare(
      "SELECT fields, run FROM snapshot_row WHERE snapshot = ? AND model = ? AND key = ?")
  }

  private func bind(_ statement: Statement, _ model: String, _ key: Key) {
    statement.bind(1, snapshot)
    statement.bind(2, model)
    statement.bind(3, blob: key.bytes)
  }

  /// Records rows as found by this import.
  package func record(_ rows: [Row]) throws(TablesError) {
    try change("INSERT OR REPLACE INTO snapshot_row VALUES (?, ?, ?, \(run), ?)", rows) { statement, row in
      var bytes: [UInt8] = []
      bytes.reserveCapacity(row.fields.count * 8)
      for digest in row.fields {
        for shift in stride(from: 56, through: 0, by: -8) {
          bytes.append(UInt8(truncatingIfNeeded: digest >> shift))
        }
      }
      statement.bind(4, blob: bytes)
    }
  }

  /// Removes rows that are not in the source.
  package func remove(_ rows: [Row]) throws(TablesError) {
    try change("DELETE FROM snapshot_row WHERE snapshot = ? AND model = ? AND key = ?", rows) { _, _ in }
  }

  private func change(
    _ sql: String, _ rows: [Row], _ bindRest: (Statement, Row) -> Void
  ) throws(TablesError) {
    guard !rows.isEmpty else { return }
    try wrapping { () throws(TablesError) in
      let statement = try connection.prepare(sql)
      try connection.execute("BEGIN")
      do throws(TablesError) {
        for row in rows {
          bind(statement, row.model, row.key)
          bindRest(statement, row)
          try statement.run()
        }
        try connection.execute("COMMIT")
      } catch {
        connection.rollBack()
        throw error
      }
    }
  }

  /// How many recorded rows of a model this import has found and not found. O(rows of the model)
  package func counts(_ model: String) throws(TablesError) -> (found: Int, vanished: Int) {
    try wrapping { () throws(TablesError) in
      let statement = try connection.prepare(
        "SELECT total(run = ?), total(run <> ?) FROM snapshot_row WHERE snapshot = ? AND model = ?")
      statement.bind(1, run)
      statement.bind(2, run)
      statement.bind(3, snapshot)
      statement.bind(4, model)
      defer { statement.reset() }
      guard try statement.step() else { return (0, 0) }
      return (Int(statement.int(0)), Int(statement.int(1)))
    }
  }

  /// The next rows of a model, by key, that this import has not found, without their fields.
  package func vanished(_ model: String, after key: Key?, limit: Int) throws(TablesError) -> [Row] {
    try wrapping { () throws(TablesError) in
      let statement = try connection.prepare(
        "SELECT key FROM snapshot_row WHERE snapshot = ? AND model = ? AND key > ? AND run <> ? ORDER BY key LIMIT ?"
      )
      statement.bind(1, snapshot)
      statement.bind(2, model)
      statement.bind(3, blob: key?.bytes ?? [])
      statement.bind(4, run)
      statement.bind(5, Int64(limit))
      var rows: [Row] = []
      while try statement.step() {
        let key: Key
        do throws(EventsError) { key = try Key(encoded: statement.blob(0)) } catch {
          throw .sqlite(path: connection.path, code: SQLITE_CORRUPT, message: "a key cannot be read")
        }
        rows.append(Row(model: model, key: key, fields: []))
      }
      return rows
    }
  }
}

extension Connection {
  /// Opens a database that only its opener uses and closes.
  ///
  /// - Parameter wait: how long to wait for another process's lock, in milliseconds.
  static func open(
    _ path: String, _ flags: Int32, wait: UInt32
  ) throws(TablesError) -> Connection {
    var handle: OpaquePointer?
    let code = sqlite3_open_v2(path, &handle, flags | SQLITE_OPEN_NOMUTEX, nil)
    guard let handle else { throw .sqlite(path: path, code: code, message: "out of memory") }
    let connection = Connection(handle: handle, path: path)
    guard code == SQLITE_OK else {
      let error = SnapshotFile.failure(connection.failure(code), path)
      sqlite3_close_v2(handle)
      throw error
    }
    sqlite3_busy_timeout(handle, Int32(clamping: wait))
    return connection
  }

  /// Copies all pages to an empty database, in the state that this connection's transaction sees.
  func copyAll(to copy: Connection) throws(TablesError) {
    guard let backup = sqlite3_backup_init(copy.handle, "main", handle, "main") else {
      throw copy.failure(sqlite3_errcode(copy.handle))
    }
    sqlite3_backup_step(backup, -1)
    let code = sqlite3_backup_finish(backup)
    guard code == SQLITE_OK else { throw copy.failure(code) }
  }

  /// A database without a name is a temporary one, which SQLite moves to disk when it is large.
  static func temporary() throws(TablesError) -> Connection {
    try open("", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, wait: 0)
  }
}
