import Foundation
import GRDBSQLite
import StemmaEvents

/// An open SQLite connection for the raw statements of this module. GRDB opens and closes it. This
/// value must not outlive the access in which GRDB lent it.
package struct Connection {
  /// How long to wait for the transaction of another connection, in seconds.
  static let busyLimit: TimeInterval = 5

  package let handle: OpaquePointer
  package let path: String
  /// The prepared statements: kept by the writing connection while it is open, by others during one
  /// read; nil where none are kept.
  let kept: KeptStatements?

  init(handle: OpaquePointer, path: String, kept: KeptStatements? = nil) {
    self.handle = handle
    self.path = path
    self.kept = kept
  }

  /// A statement that every transaction needs. Run it to its end, or reset it, before reuse.
  func prepareOnce(_ sql: StaticString) throws(TablesError) -> Statement {
    if let statement = kept?.fixed(sql) { return statement }
    // The statement must not retain `kept`: the cycle would keep the connection open.
    let statement = try Connection(handle: handle, path: path).prepare(sql.description)
    kept?.fixed.append((sql.utf8Start, statement))
    return statement
  }

  /// As above, for a statement whose text depends on the schema.
  func prepareOnce(text sql: String) throws(TablesError) -> Statement {
    if let statement = kept?.statements[sql] { return statement }
    let statement = try Connection(handle: handle, path: path).prepare(sql)
    kept?.statements[sql] = statement
    return statement
  }

  /// A read-only statement, kept as above if statements are, with its parameters cleared.
  ///
  /// - Throws: `notAQuery` for a statement that writes.
  func queryOnce(_ sql: String) throws(TablesError) -> Statement {
    if let statement = kept?.lend(sql) { return statement }
    let statement = try Connection(handle: handle, path: path).prepareQuery(sql, isKept: kept != nil)
    kept?.keep(statement, for: sql)
    return statement
  }

  package func prepare(_ sql: String) throws(TablesError) -> Statement { try Statement(self, sql) }

  /// How many rows the last writing statement has changed.
  var changedRows: Int64 { sqlite3_changes64(handle) }

  func useCache(_ bytes: Int) throws(TablesError) {
    try execute("PRAGMA cache_size = -\(bytes >> 10)")
  }

  /// How many rows all statements of the connection have changed.
  var changedRowsOfAll: Int64 { sqlite3_total_changes64(handle) }

  package func execute(_ sql: String) throws(TablesError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw failure(code) }
  }

  /// Changes with every change of the file. Changes of other connections appear at BEGIN
  /// (sqlite.org/c3ref/c_fcntl_begin_atomic_write.html, SQLITE_FCNTL_DATA_VERSION).
  var dataVersion: UInt32 {
    var version: UInt32 = 0
    sqlite3_file_control(handle, "main", SQLITE_FCNTL_DATA_VERSION, &version)
    return version
  }

  /// Writes the changed pages of the open transaction to the write-ahead log, where readers ignore
  /// them until the commit (sqlite.org/c3ref/db_cacheflush.html).
  func writePages() throws(TablesError) {
    let code = sqlite3_db_cacheflush(handle)
    guard code == SQLITE_OK else { throw failure(code) }
  }

  /// Ends the transaction, if one is open: SQLite rolls back by itself on some errors. A failed
  /// ROLLBACK cannot leave the transaction open.
  func rollBack() {
    if sqlite3_get_autocommit(handle) == 0 { sqlite3_exec(handle, "ROLLBACK", nil, nil, nil) }
  }

  /// The first column of the first row, or nil if there is none or it is NULL.
  func integer(_ sql: String) throws(TablesError) -> Int64? {
    let statement = try prepare(sql)
    guard try statement.step(), !statement.isNull(0) else { return nil }
    return statement.int(0)
  }

  /// The error for a result code other than OK, ROW and DONE.
  func failure(_ code: Int32) -> TablesError {
    .from(
      code: sqlite3_extended_errcode(handle), primary: code, path: path,
      message: String(cString: sqlite3_errmsg(handle)))
  }
}

extension TablesError {
  static func from(code: Int32, primary: Int32, path: String, message: String) -> TablesError {
    switch primary & 0xFF {
    case SQLITE_CORRUPT, SQLITE_NOTADB: .needsRebuild(path: path, .corrupt(message))
    case SQLITE_BUSY: .busy(path: path)
    default: .sqlite(path: path, code: code, message: message)
    }
  }
}

/// Statements by their text. Preparing one costs several times as much as running it on one row.
final class KeptStatements {
  /// This module's few fixed statements, by the addresses of their texts. A commit looks up ten of
  /// them, and hashing a text takes longer than binding it.
  fileprivate var fixed: [(text: UnsafePointer<UInt8>, statement: Statement)] = []
  /// This module's statements that depend on the schema.
  fileprivate var statements: [String: Statement] = [:]
  /// Read-only statements of any caller.
  private var queries: [String: Statement] = [:]
  private var lent: [Statement] = []

  /// How many queries are kept; beyond it, all are dropped.
  static let limit = 512

  fileprivate func fixed(_ sql: StaticString) -> Statement? {
    let text = sql.utf8Start
    for place in fixed.indices where fixed[place].text == text { return fixed[place].statement }
    return nil
  }

  fileprivate func keep(_ query: Statement, for sql: String) {
    if queries.count >= Self.limit { queries = [:] }
    queries[sql] = query
    lent.append(query)
  }

  fileprivate func lend(_ sql: String) -> Statement? {
    guard let query = queries[sql] else { return nil }
    query.reset()
    query.clear()
    lent.append(query)
    return query
  }

  /// Ends queries that their callers left unfinished, as they would keep a read open.
  func endQueries() {
    for query in lent { query.reset() }
    lent.removeAll(keepingCapacity: true)
  }

  /// Traps if a statement is in the middle of its rows. For tests, when no transaction is open.
  func checkInvariants() {
    precondition(lent.isEmpty, "queries end with their transaction")
    precondition(queries.count <= Self.limit, "memory is bounded")
    let all = fixed.map(\.statement) + Array(statements.values) + Array(queries.values)
    for statement in all { statement.checkIsAtRest() }
  }
}

/// A prepared statement. It uses the C API through GRDB's module, because GRDB's cached statements
/// cost two to three times as much per row.
package final class Statement {
  package let handle: OpaquePointer
  let connection: Connection
  /// The corruption that this statement met since its last `clear`, for a more precise report.
  package private(set) var corruption: TablesError?

  init(_ connection: Connection, _ sql: String) throws(TablesError) {
    var handle: OpaquePointer?
    let code = sqlite3_prepare_v3(connection.handle, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &handle, nil)
    guard code == SQLITE_OK else { throw connection.failure(code) }
    guard let handle else { throw .notAQuery(sql) }
    self.handle = handle
    self.connection = connection
  }

  /// Adopts a statement that was prepared elsewhere.
  init(adopting handle: OpaquePointer, _ connection: Connection) {
    self.handle = handle
    self.connection = connection
  }

  deinit { sqlite3_finalize(handle) }

  /// True if there is a row. Resets the statement when it ends or fails, so that it holds no lock.
  package func step() throws(TablesError) -> Bool {
    let code = sqlite3_step(handle)
    if code == SQLITE_ROW { return true }
    if code == SQLITE_DONE {
      sqlite3_reset(handle)
      return false
    }
    let failure = connection.failure(code)
    if case .needsRebuild = failure { corruption = failure }
    sqlite3_reset(handle)
    throw failure
  }

  /// Runs a statement that gives no rows.
  func run() throws(TablesError) { while try step() {} }

  package func reset() { sqlite3_reset(handle) }

  /// Traps if the statement was neither run to its end nor reset, and so keeps a read open.
  func checkIsAtRest() {
    precondition(sqlite3_stmt_busy(handle) == 0, "a statement is run to its end, or reset")
  }

  /// Clears the parameters and the corruption of its last use.
  func clear() {
    sqlite3_clear_bindings(handle)
    corruption = nil
  }

  // MARK: Parameters, counted from 1

  /// SQLITE_TRANSIENT: the bytes are copied during the call. The macro's cast is not imported.
  static var copied: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

  func bind(_ index: Int32, null: Void) { sqlite3_bind_null(handle, index) }
  func bind(_ index: Int32, _ number: Int64) { sqlite3_bind_int64(handle, index, number) }
  func bind(_ index: Int32, _ number: Double) { sqlite3_bind_double(handle, index, number) }

  /// Copies the text.
  func bind(_ index: Int32, _ text: String) {
    var text = text
    text.withUTF8 { bytes in
      _ = sqlite3_bind_text64(
        handle, index, Self.start(bytes), UInt64(bytes.count), Self.copied, UInt8(SQLITE_UTF8))
    }
  }

  /// Copies bytes that are UTF-8.
  func bind(_ index: Int32, text: [UInt8]) {
    text.withUnsafeBufferPointer { bytes in
      _ = sqlite3_bind_text64(
        handle, index, Self.start(bytes), UInt64(bytes.count), Self.copied, UInt8(SQLITE_UTF8))
    }
  }

  /// Copies the bytes.
  func bind(_ index: Int32, blob: [UInt8]) {
    blob.withUnsafeBytes { bytes in
      // A null pointer would bind NULL, which no blob column of these tables may hold.
      let start = bytes.baseAddress ?? UnsafeRawPointer(Self.emptyText)
      _ = sqlite3_bind_blob64(handle, index, start, UInt64(bytes.count), Self.copied)
    }
  }

  package func bind(_ index: Int32, _ value: Value) {
    switch value {
    case .null: bind(index, null: ())
    case .bool(let flag): bind(index, Int64(flag ? 1 : 0))
    case .int(let number): bind(index, number)
    case .double(let number): bind(index, number)
    case .string(let text), .json(let text): bind(index, text)
    }
  }

  /// Binds UTF-8 in place. The bytes must stay unchanged until the statement was stepped and reset.
  func bind(_ index: Int32, inPlace text: UnsafeRawBufferPointer) {
    let start = text.baseAddress?.assumingMemoryBound(to: CChar.self) ?? Self.emptyText
    sqlite3_bind_text64(handle, index, start, UInt64(text.count), nil, UInt8(SQLITE_UTF8))
  }

  /// As above, for a blob.
  func bind(_ index: Int32, blobInPlace bytes: UnsafeRawBufferPointer) {
    sqlite3_bind_blob64(
      handle, index, bytes.baseAddress ?? UnsafeRawPointer(Self.emptyText), UInt64(bytes.count), nil)
  }

  /// A null pointer would bind NULL, so empty text needs an address. Allocated once per process.
  nonisolated(unsafe) private static let emptyText: UnsafePointer<CChar> = {
    let byte = UnsafeMutablePointer<CChar>.allocate(capacity: 1)
    byte.initialize(to: 0)
    return UnsafePointer(byte)
  }()

  private static func start(_ bytes: UnsafeBufferPointer<UInt8>) -> UnsafePointer<CChar> {
    guard let start = bytes.baseAddress else { return emptyText }
    return UnsafeRawPointer(start).assumingMemoryBound(to: CChar.self)
  }

  // MARK: Columns of the current row, counted from 0

  var columnCount: Int32 { sqlite3_column_count(handle) }
  func columnName(_ index: Int32) -> String {
    sqlite3_column_name(handle, index).map { String(cString: $0) } ?? ""
  }
  func type(_ index: Int32) -> Int32 { sqlite3_column_type(handle, index) }
  func isNull(_ index: Int32) -> Bool { type(index) == SQLITE_NULL }
  func int(_ index: Int32) -> Int64 { sqlite3_column_int64(handle, index) }
  func double(_ index: Int32) -> Double { sqlite3_column_double(handle, index) }

  /// The bytes of text or a blob, valid until the next step.
  func bytes(_ index: Int32) -> UnsafeRawBufferPointer {
    // The pointer comes first: sqlite3_column_bytes may otherwise convert the value under it.
    let start = sqlite3_column_blob(handle, index)
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, index)))
  }

  /// A text in UTF-8, whatever the encoding of the database is.
  func utf8(_ index: Int32) -> UnsafeRawBufferPointer {
    // The pointer comes first, as above: this call converts the value.
    let start = sqlite3_column_text(handle, index)
    return UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(handle, index)))
  }

  func text(_ index: Int32) -> String { String(decoding: utf8(index), as: UTF8.self) }
  func blob(_ index: Int32) -> [UInt8] { Array(bytes(index)) }
}
