import GRDBSQLite
import StemmaLog

/// A connection that only reads, outside of GRDB: its statements are prepared once and kept, and a read is
/// nothing but a step. Used by one thread at a time.
///
/// Each statement by itself sees one committed state; `snapshot` makes several see the same. To begin and end such a read
/// costs SQLite as much as finding a row does, so a connection that has called `holdState` keeps its state, as long as
/// the log's index says that nothing was committed since.
package final class ReadConnection {
  package let path: String
  let connection: Connection
  private let identity: FileIdentity?
  private var statements: [String: Statement] = [:]
  /// Those that are found by something shorter than their text.
  private var marked: [ObjectIdentifier: Statement] = [:]
  /// What the log's index said before the state that is held was taken; nil if none is.
  private var held: LogIndex.Header?
  /// Where the log's index is; nil until it was looked for.
  private var logIndex: LogIndex?

  /// How much of the file is read through the address space.
  private static let mappedBytes = 256 << 20

  /// How often one looks for a file that is missing, a millisecond apart.
  private static let looks = 100

  /// Opens the tables of a node that exist. While they are replaced there are none for a moment, which is waited for.
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
      // SQLite gives a handle even then, to ask it why, unless there is no memory.
      let message = handle.map { String(cString: sqlite3_errmsg($0)) } ?? ""
      sqlite3_close_v2(handle)
      throw .from(code: code, primary: code, path: path, message: message)
    }
    sqlite3_busy_timeout(handle, Int32(Tables.busyLimit * 1000))
    connection = Connection(handle: handle, path: path)
    // A look-up then copies no page. Nobody cuts the file short under a reader: tables are replaced by renaming.
    try Collation.install(on: connection)
    try SQLFunction.install(on: connection)
    try connection.execute("PRAGMA mmap_size = \(Self.mappedBytes)")
  }

  deinit {
    statements = [:]
    marked = [:]
    // Waits for statements that somebody still holds; it cannot fail.
    sqlite3_close_v2(connection.handle)
  }

  /// Whether another file stands in the place of this one, as after a rebuild: then open a new connection.
  package var isReplaced: Bool { FileIdentity(of: path) != identity }

  /// Differs from its last value if another connection has committed since.
  package func changeCounter() throws(TablesError) -> Int64 {
    try connection.integer("PRAGMA data_version") ?? 0
  }

  /// A prepared statement, reset and without the parameters of its last use.
  ///
  /// - Throws: `notAQuery` for one that would change something.
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

  /// A prepared statement that a mark stands for, reset. Its parameters are those of its last use; bind all of them.
  package func statement(of mark: ObjectIdentifier, _ sql: @autoclosure () -> String) throws(TablesError)
    -> Statement
  {
    if let known = marked[mark] { return known }
    let statement = try connection.prepareQuery(sql(), isKept: true)
    marked[mark] = statement
    return statement
  }

  /// The tables that a statement reads, in lowercase: SQLite gives some as the statement spells them. Nil if Stemma's own are among them, which any commit may change.
  ///
  /// SQLite tells them to whoever authorizes the statement (sqlite.org/c3ref/set_authorizer.html), and prepares all others
  /// again afterwards.
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
  /// - No statement is left in the middle of its rows, and none has changed anything.
  /// - A transaction is open only for a state that is held, and such a state can be compared with the log's index.
  package func checkInvariants() {
    for statement in Array(statements.values) + Array(marked.values) { statement.checkIsAtRest() }
    precondition(statements.count <= KeptStatements.limit, "memory is bounded")
    precondition(sqlite3_total_changes64(connection.handle) == 0, "it only reads")
    precondition(held != nil || !isInTransaction, "whoever begins a transaction ends it")
    precondition(held == nil || logIndex != nil, "a state that is held can be compared")
  }

  // MARK: States

  /// Makes what is read next the state after the last commit that has returned, of whatever process, and holds it.
  ///
  /// Held, it keeps SQLite's log from being cut short: let go of it within a few milliseconds. Where the log has grown, or
  /// its index cannot be seen, nothing is held, and each statement asks SQLite.
  package func holdState() throws(TablesError) {
    let now = try seenLogIndex().header
    if let held, let now, held == now, isInTransaction { return }
    letGoOfState()
    guard let now, !now.isLogLong else { return }
    try connection.execute("BEGIN")
    held = now
  }

  /// Lets go of the state that is held, if one is.
  package func letGoOfState() {
    guard held != nil else { return }
    held = nil
    connection.rollBack()
  }

  /// SQLite ends one by itself on some errors.
  private var isInTransaction: Bool { sqlite3_get_autocommit(connection.handle) == 0 }

  private func seenLogIndex() throws(TablesError) -> LogIndex {
    if let logIndex { return logIndex }
    // The log is open once something was read.
    _ = try changeCounter()
    let index = LogIndex(connection.handle)
    logIndex = index
    return index
  }

  /// Runs `body`. Once its task is cancelled, SQLite ends a statement of it within a few microseconds. It asks after so
  /// many steps of its machine, also inside of one row (sqlite.org/c3ref/progress_handler.html).
  ///
  /// - Throws: `CancellationError` in the place of any error of a cancelled task.
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

  /// How many instructions SQLite runs before it asks whether the task is cancelled.
  private static let stepsBetweenLooks: Int32 = 1000

  /// Runs `body` on one committed state.
  package func snapshot<Result>(_ body: () throws -> Result) throws -> Result {
    if held != nil, isInTransaction { return try body() }
    letGoOfState()
    try connection.execute("BEGIN")
    defer { connection.rollBack() }
    return try body()
  }
}
