import GRDBSQLite
import StemmaLog

/// A read-only connection outside of GRDB. It prepares each statement once, so a read is only a
/// step. Used by one thread at a time.
///
/// Each statement by itself sees one committed state; `snapshot` makes several see the same.
/// Beginning and ending a read costs SQLite as much as finding a row. A connection that has called
/// `holdState` therefore keeps its state until the log's index shows a commit.
package final class ReadConnection {
  package let path: String
  let connection: Connection
  private let identity: FileIdentity?
  private var statements: [String: Statement] = [:]
  /// Statements that are found by a key shorter than their text.
  private var marked: [ObjectIdentifier: Statement] = [:]
  /// The header of the log's index from before the held state was read; nil if no state is held.
  private var held: LogIndex.Header?
  /// The log's index; nil until first used.
  private var logIndex: LogIndex?

  /// How much of the file is memory-mapped.
  private static let mappedBytes = 256 << 20

  /// How often `init` looks for a missing file, a millisecond apart.
  private static let looks = 100

  /// Opens the existing tables of a node. Waits while another process replaces them.
  package init(_ path: String) throws(TablesError) {
    self.path = path
    var identity = FileIdentity(of: path)
    for _ in 0..<Self.looks where identity == nil {
      System.sleep(milliseconds: 1)
      identity = FileIdentity(of: path)
    }
    self.identity = identity
    var handle: OpaquePointer?
    let code = sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nil)
    guard let handle, code == SQLITE_OK else {
      // SQLite returns a handle for a failure too, to report it, unless memory is exhausted.
      let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? ""
      sqlite3_close_v2(handle)
      throw .from(code: code, primary: code, path: path, message: message)
    }
    sqlite3_busy_timeout(handle, Int32(Connection.busyLimit * 1000))
    connection = Connection(handle: handle, path: path)
    // A look-up then copies no page. No process truncates the file: rebuilds rename another one.
    try Collation.install(on: connection)
    try SQLFunction.install(on: connection)
    try connection.execute("PRAGMA mmap_size = \(Self.mappedBytes)")
  }

  deinit {
    statements = [:]
    marked = [:]
    // The close takes effect when the last statement is finalized. It cannot fail.
    sqlite3_close_v2(connection.handle)
  }

  /// Whether the path names another file, as after a rebuild. Then open a new connection.
  package var isReplaced: Bool { FileIdentity(of: path) != identity }

  /// Differs from its last value if another connection has committed since.
  package func changeCounter() throws(TablesError) -> Int64 {
    try connection.integer("PRAGMA data_version") ?? 0
  }

  /// A prepared statement, reset, with its parameters cleared.
  ///
  /// - Throws: `notAQuery` for a statement that writes.
  package func statement(_ sql: String) throws(TablesError) -> Statement {
    if let known = statements[sql] {
      known.clear()
      return known
    }
    let statement = try connection.prepareQuery(sql, isKept: true)
    if statements.count >= KeptStatements.limit { statements = [:] }
    statements[sql] = statement
    return statement
  }

  /// The prepared statement of `mark`, reset. Bind all parameters: it keeps those of its last use.
  package func statement(of mark: ObjectIdentifier, _ sql: @autoclosure () -> String) throws(TablesError)
    -> Statement
  {
    if let known = marked[mark] { return known }
    let statement = try connection.prepareQuery(sql(), isKept: true)
    marked[mark] = statement
    return statement
  }

  /// The tables that a statement reads, in lowercase, because SQLite reports some as the statement
  /// spells them. Nil if it reads Stemma's own tables, which any commit may change.
  /// SQLite reports the tables to an authorizer (sqlite.org/c3ref/set_authorizer.html), and then
  /// prepares all other statements again.
  package func modelTables(readBy sql: String) throws(TablesError) -> Set<String>? {
    final class Names { var names: Set<String> = [] }
    let found = Names()
    sqlite3_set_authorizer(
      connection.handle,
      { found, action, table, _, _, _ in
        if let found, let table, action == SQLITE_READ {
          let found = Unmanaged<Names>.fromOpaque(found).takeUnretainedValue()
          found.names.insert(String(cString: table).lowercased())
        }
        return SQLITE_OK
      }, Unmanaged.passUnretained(found).toOpaque())
    defer { sqlite3_set_authorizer(connection.handle, nil, nil) }
    _ = try connection.prepareQuery(sql, isKept: false)
    return withExtendedLifetime(found) {
      found.names.contains { $0.hasPrefix("_stemma_") } ? nil : found.names
    }
  }

  /// Traps if the connection contradicts itself. For tests, between two reads.
  ///
  /// - No statement is in the middle of its rows, and none has written.
  /// - A transaction is open only for a held state, which can be compared with the log's index.
  package func checkInvariants() {
    for statement in Array(statements.values) + Array(marked.values) { statement.checkIsAtRest() }
    precondition(statements.count <= KeptStatements.limit, "memory is bounded")
    precondition(sqlite3_total_changes64(connection.handle) == 0, "it only reads")
    precondition(held != nil || !isInTransaction, "a transaction is open only for a held state")
    precondition(held == nil || logIndex != nil, "a state that is held can be compared")
  }

  // MARK: States

  /// Makes the next reads see the last returned commit of any process, and holds that state.
  ///
  /// A held state prevents truncation of SQLite's log: release it within a few milliseconds. If the
  /// log is long or its index cannot be read, no state is held, and each statement asks SQLite.
  package func holdState() throws(TablesError) {
    let now = try seenLogIndex().header
    if let held, let now, held == now, isInTransaction { return }
    releaseState()
    guard let now, !now.isLogLong else { return }
    try connection.execute("BEGIN")
    held = now
  }

  /// Releases the held state, if there is one.
  package func releaseState() {
    guard held != nil else { return }
    held = nil
    connection.rollBack()
  }

  /// SQLite ends a transaction by itself on some errors.
  private var isInTransaction: Bool { sqlite3_get_autocommit(connection.handle) == 0 }

  private func seenLogIndex() throws(TablesError) -> LogIndex {
    if let logIndex { return logIndex }
    // The log is open only after a read.
    _ = try changeCounter()
    let index = LogIndex(connection.handle)
    logIndex = index
    return index
  }

  /// Runs `body`. After its task is cancelled, SQLite ends a statement within a few microseconds.
  /// It checks every few instructions, also within a row (sqlite.org/c3ref/progress_handler.html).
  ///
  /// - Throws: `CancellationError` instead of any error of a cancelled task.
  package func endingWhenCancelled<Result>(_ body: () throws -> Result) throws -> Result {
    try Task.checkCancellation()
    sqlite3_progress_handler(
      connection.handle, Self.stepsBetweenLooks, { _ in Task.isCancelled ? 1 : 0 }, nil)
    defer { sqlite3_progress_handler(connection.handle, 0, nil, nil) }
    do { return try body() } catch {
      try Task.checkCancellation()
      throw error
    }
  }

  /// How many instructions SQLite runs between checks for cancellation.
  private static let stepsBetweenLooks: Int32 = 1000

  /// Runs `body` on one committed state.
  package func snapshot<Result>(_ body: () throws -> Result) throws -> Result {
    if held != nil, isInTransaction { return try body() }
    releaseState()
    try connection.execute("BEGIN")
    defer { connection.rollBack() }
    return try body()
  }
}
