import Foundation
import GRDB
import GRDBSQLite
import StemmaEvents
import StemmaLog
import StemmaSchema

/// The projection of a log into SQLite: one row per record, with merge and replication data.
///
/// The file is a cache in WAL mode with synchronous=NORMAL, so a machine crash may undo the last
/// transactions. A transaction changes rows and log position together, so the tables then catch up
/// from an earlier position. A rebuild repairs every other defect of the file.
///
/// Several processes may have one file open. Writers take turns under the node's writer lock;
/// readers each see one committed state. A rebuild replaces the file. Read-only instances and reads
/// in progress continue on the old one; otherwise `read` and `write` then throw `replaced`.
package final class Tables: Sendable {
  package enum Mode: Sendable {
    case readOnly
    case readWrite
  }

  /// How long to wait for another connection's transaction by default, in seconds.
  package static let busyLimit = Connection.busyLimit

  package let path: String
  package let mode: Mode
  package let tableSet: TableSet
  private let database: any DatabaseWriter
  private let identity: FileIdentity?
  private let prepared = PreparedWriters()

  /// State of the writing connection between transactions: statements, streams, small records.
  /// Unchecked, because only `writeWithoutTransaction`, which runs one block at a time, touches it.
  private final class PreparedWriters: @unchecked Sendable {
    var writers: [RowWriter] = []
    var kept = KeptStatements()
    /// SQLite's schema version at the last successful check of the catalogue.
    var catalogue: Int64?
    /// The last transaction and the file version for which its cached state is valid.
    var last: (transaction: TablesTransaction, version: UInt32)?
  }

  private init(path: String, mode: Mode, tableSet: TableSet, database: any DatabaseWriter) {
    self.path = path
    self.mode = mode
    self.tableSet = tableSet
    self.database = database
    identity = FileIdentity(of: path)
  }

  // MARK: Opening

  /// Opens the tables of a node; `readWrite` creates empty ones at the start of the log if there is
  /// no file. `readWrite` reads every stream.
  ///
  /// - Parameter leavesFiles: SQLite creates none of its sidecars for a reader. No process may
  ///   write during the read. If a write-ahead log exists, the sidecars exist already, and the lock
  ///   file may change.
  /// - Throws: `needsRebuild` if the file is missing (`readOnly`), corrupt, of another format, made
  ///   for another schema, or a past state. For `readWrite`, also if the streams are not those that
  ///   a writer wrote last.
  ///   Corruption outside of the header and Stemma's own tables is found when the rows are read.
  package static func open(
    at path: String, schema: Schema, mode: Mode, wait: TimeInterval = busyLimit, leavesFiles: Bool = false
  ) throws(TablesError) -> Tables {
    for attempt in 1...attempts {
      let identity = FileIdentity(of: path)
      let outcome = Swift.Result { () throws(TablesError) in
        try openOnce(path, schema, mode, wait: wait, leavesFiles: mode == .readOnly && leavesFiles)
      }
      // A reader that opened the file before its replacement, and the index after it, has described
      // the old write-ahead log there. The index is made again when that reader has closed it.
      if case .failure(let error) = outcome, error.isOfAnotherLog, attempt < attempts {
        Thread.sleep(forTimeInterval: pause)
        continue
      }
      // A writer holds the lock under which the file is replaced.
      guard mode == .readOnly else { return try outcome.get() }
      // SQLite finds the write-ahead log by name at the first read, and then keeps that file open.
      if FileIdentity(of: path) == identity { return try outcome.get() }
    }
    throw .replaced(path: path)
  }

  /// How often tables are opened again that another process replaces during the opening.
  private static let attempts = 100
  /// In seconds, before another attempt.
  private static let pause = 0.005

  private static func openOnce(
    _ path: String, _ schema: Schema, _ mode: Mode, wait: TimeInterval, leavesFiles: Bool
  ) throws(TablesError) -> Tables {
    let isNew = !(try FileReplacement.isThere(path))
    if isNew {
      if mode == .readOnly { throw .needsRebuild(path: path, .missing) }
      // SQLite would replay a left-over write-ahead log into the new file.
      FileReplacement.removeSidecars(of: path)
    }
    let tableSet = TableSet(schema)
    let tables = Tables(
      path: path, mode: mode, tableSet: tableSet,
      database: try connect(path, mode, wait: wait, leavesFiles: leavesFiles))
    if isNew {
      try tables.access { connection throws(TablesError) in
        try connection.execute("BEGIN IMMEDIATE")
        defer { connection.rollBack() }
        try tableSet.create(in: connection)
        for statement in tableSet.createIndexes { try connection.execute(statement) }
        try Meta.write(tableSet, to: connection)
        try Meta.write(AppliedPosition(.start), .zero, to: connection)
        try connection.execute("COMMIT")
      }
    } else {
      do throws(TablesError) {
        try tables.read { reader throws(TablesError) in
          try Meta.check(reader.connection, tableSet, isLive: true)
          // Once for all writes of this instance.
          if mode == .readWrite { try HeadChecksum.check(reader.connection) }
        }
      } catch { throw error.ofOwnStatement }
    }
    return tables
  }

  /// Opens any file that `rebuild` made for this schema for reading, even one of a past state.
  package static func openForReading(at path: String, schema: Schema) throws(TablesError) -> Tables {
    guard try FileReplacement.isThere(path) else { throw .needsRebuild(path: path, .missing) }
    let tableSet = TableSet(schema)
    let tables = Tables(
      path: path, mode: .readOnly, tableSet: tableSet, database: try connect(path, .readOnly))
    try tables.read { reader throws(TablesError) in
      try Meta.check(reader.connection, tableSet, isLive: false)
    }
    return tables
  }

  /// Removes tables, so that the next opening finds none. The caller holds the node's writer lock.
  package static func remove(at path: String) throws(TablesError) { try FileReplacement.remove(path) }

  /// The longest path in bytes, with links resolved, at which SQLite opens a file and its sidecars.
  package static let longestPath = 504

  /// Throws `pathTooLong` unless tables can be created at a path. Its directory need not exist.
  package static func checkLength(ofPath path: String) throws(TablesError) {
    let resolved = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    let limit = longestPath - unfinishedSuffix.utf8.count
    if resolved.utf8.count > limit { throw .pathTooLong(path: path, limit: limit) }
  }

  /// The suffix of unfinished tables.
  static let unfinishedSuffix = ".building"

  /// Removes tables that a crashed rebuild left. The caller holds the node's writer lock.
  package static func removeUnfinished(at path: String) {
    // The next rebuild reports a file that cannot be removed.
    unlink(path + unfinishedSuffix)
    FileReplacement.removeSidecars(of: path + unfinishedSuffix)
  }

  /// Empty tables in memory, which exist as long as this object.
  package static func inMemory(schema: Schema) throws(TablesError) -> Tables {
    try open(at: ":memory:", schema: schema, mode: .readWrite)
  }

  private static func connect(
    _ path: String, _ mode: Mode, wait: TimeInterval = busyLimit, leavesFiles: Bool = false
  ) throws(TablesError) -> any DatabaseWriter {
    var configuration = Configuration()
    configuration.busyMode = .timeout(wait)
    configuration.readonly = mode == .readOnly
    configuration.prepareDatabase { database in
      let connection = Connection(handle: try database.sqliteHandle, path: path)
      try connection.execute("PRAGMA synchronous = NORMAL")
      if !database.configuration.readonly { try connection.useCache(Self.ordinaryCache) }
      try Collation.install(on: connection)
      try SQLFunction.install(on: connection)
      // GRDB's authorizer records what each statement touches, for observation of its own
      // statements. Raw statements would fill its list, which GRDB empties only for its own.
      sqlite3_set_authorizer(connection.handle, nil, nil)
    }
    do {
      if path == ":memory:" { return try DatabaseQueue(configuration: configuration) }
      do {
        // A read-only instance needs no writing connection: opening one takes a millisecond.
        guard mode == .readOnly else { return try DatabasePool(path: path, configuration: configuration) }
        let isImmutable = leavesFiles && !FileIdentity.exists(path + "-wal")
        return try DatabaseQueue(
          path: isImmutable ? immutableURI(path) : path, configuration: configuration)
      } catch  where mode == .readOnly && TablesError.from(error, path).isRefusalToOpen {
        // In a directory that is not writable, SQLite reads a WAL file only as immutable. The file
        // is immutable if there is no write-ahead log.
        guard !FileIdentity.exists(path + "-wal") else { throw error }
        return try DatabaseQueue(path: immutableURI(path), configuration: configuration)
      }
    } catch {
      let error = TablesError.from(error, path)
      // A corrupt header may forbid writing although the file is writable.
      if case .sqlite(_, SQLITE_READONLY, let what) = error, mode == .readWrite, FileIdentity.isWritable(path)
      {
        throw .needsRebuild(path: path, .corrupt(what))
      }
      throw error.ofOwnStatement
    }
  }

  /// A URI by which SQLite reads a file without creating sidecars.
  static func immutableURI(_ path: String) -> String {
    URL(fileURLWithPath: path).absoluteString + "?immutable=1"
  }

  /// Ends all statements and connections. Waits for reads in progress.
  package func close() throws(TablesError) {
    try access { _ in
      prepared.last = nil
      prepared.writers = []
      prepared.kept = KeptStatements()
    }
    do { try database.close() } catch { throw .from(error, path) }
  }

  /// Makes all committed transactions durable. Without it, a machine crash may undo some.
  package func sync() throws(TablesError) {
    // Closing this file drops no locks: SQLite's locks are on the index (SQLite's wal.c).
    let log = path + "-wal"
    // The write-ahead log is deleted only after all of it is in the file and synced.
    guard FileIdentity.exists(log) else { return }
    try SyncedFile(log).sync()
    try SyncedFile(FileReplacement.directory(of: path)).sync()
  }

  // MARK: Access

  /// Whether the path names another file.
  package var isReplaced: Bool { path != ":memory:" && FileIdentity(of: path) != identity }

  /// Reads one committed state of the tables.
  package func read<Result>(
    _ body: (TablesReader) throws(TablesError) -> Result
  ) throws(TablesError) -> Result {
    try read({ $0 }, body)
  }

  /// As above, for a body that throws errors of its own; `wrap` converts the tables' errors.
  package func read<Result, Failure: Error>(
    _ wrap: (TablesError) -> Failure, _ body: (TablesReader) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // The reading connections of a writer are opened on demand, by name.
    if mode == .readWrite, isReplaced { throw wrap(.replaced(path: path)) }
    let outcome: Swift.Result<Result, Failure>
    do {
      outcome = try database.read { [path, tableSet] database in
        let connection = Connection(
          handle: try database.sqliteHandle, path: path, kept: KeptStatements())
        let reader = TablesReader(connection: connection, tableSet: tableSet)
        do throws(Failure) { return .success(try body(reader)) } catch { return .failure(error) }
      }
    } catch {
      // A reading connection that opens during a replacement may find no file or the new one.
      throw wrap(mode == .readWrite && isReplaced ? .replaced(path: path) : .from(error, path))
    }
    return try outcome.get()
  }

  /// Runs `body` in one transaction, which commits when it returns and rolls back when it throws.
  /// The caller holds the node's writer lock.
  @discardableResult
  package func write<Result>(
    _ body: (TablesTransaction) throws(TablesError) -> Result
  ) throws(TablesError) -> Result {
    try write({ $0 }, body)
  }

  /// As above, for a body that throws errors of its own.
  @discardableResult
  package func write<Result, Failure: Error>(
    _ wrap: (TablesError) -> Failure, _ body: (TablesTransaction) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    if isReplaced { throw wrap(.replaced(path: path)) }
    let outcome: Swift.Result<Result, Failure>
    do {
      outcome = try database.writeWithoutTransaction { [path, tableSet, prepared] database in
        let connection = Connection(handle: try database.sqliteHandle, path: path, kept: prepared.kept)
        // This runs before BEGIN: if a table is missing, no transaction stays open.
        let writers = try rowWriters(connection)
        let last = prepared.last
        prepared.last = nil
        try connection.prepareOnce("BEGIN IMMEDIATE").run()
        let transaction: TablesTransaction
        if let last, last.version == connection.dataVersion {
          transaction = last.transaction
          transaction.resume()
        } else {
          do throws(TablesError) {
            // The holder of the writer lock calls `holdsBack` first.
            if last?.transaction.isHeldBack == true {
              throw .needsRebuild(path: path, .corrupt("other software has written to the file"))
            }
            try checkCatalogue(connection)
          } catch {
            connection.rollBack()
            throw error
          }
          transaction = TablesTransaction(connection: connection, tableSet: tableSet, writers: writers)
        }
        let outcome: Swift.Result<Result, Failure>
        do throws(Failure) { outcome = .success(try body(transaction)) } catch { outcome = .failure(error) }
        prepared.kept.endQueries()
        do {
          guard case .success = outcome else {
            connection.rollBack()
            return outcome
          }
          assert(holds(transaction.checkInvariants))
          if !transaction.isHeldBack { try transaction.flush() }
          try connection.prepareOnce("COMMIT").run()
          if transaction.isHeldBack || transaction.end() {
            prepared.last = (transaction, connection.dataVersion)
          }
        } catch {
          connection.rollBack()
          throw error
        }
        return outcome
      }
    } catch {
      throw wrap(.from(error, path))
    }
    return try outcome.get()
  }

  /// Sets how many bytes of the file the writing connection caches. With SQLite's default of 2 MB,
  /// a large transaction reads and writes the same pages repeatedly.
  package func useCache(_ bytes: Int = ordinaryCache) throws(TablesError) {
    try access { connection throws(TablesError) in try connection.useCache(bytes) }
  }

  package static let ordinaryCache = 16 << 20

  /// Whether the next transaction continues the changes that the last one has held back. Otherwise
  /// they are discarded, and the file lacks them unless another process has written them.
  ///
  /// - Parameter isOvertaken: whether the log has advanced since; then the changes are discarded.
  package func holdsBack(isOvertaken: Bool) throws(TablesError) -> Bool {
    let isOvertaken = isOvertaken || isReplaced
    return try access { connection throws(TablesError) in
      // A transaction makes changes of other processes visible.
      try connection.execute("BEGIN; SELECT 1 FROM _stemma_meta; COMMIT")
      guard !isOvertaken, let last = prepared.last, last.transaction.isHeldBack,
        last.version == connection.dataVersion
      else {
        prepared.last = nil
        return false
      }
      return true
    }
  }

  /// Throws `needsRebuild` if other software has changed the tables' definitions since the opening,
  /// or has added objects. Call it in a transaction. O(1) unless the catalogue has changed.
  private func checkCatalogue(_ connection: Connection) throws(TablesError) {
    let number = try connection.integer("PRAGMA schema_version")
    if number == prepared.catalogue { return }
    if let change = try Meta.change(of: tableSet, connection) {
      throw .needsRebuild(path: path, .corrupt(change))
    }
    prepared.catalogue = number
  }

  private func rowWriters(_ connection: Connection) throws(TablesError) -> [RowWriter] {
    if prepared.writers.isEmpty {
      do throws(TablesError) {
        var writers: [RowWriter] = []
        for layout in tableSet.layouts { writers.append(try RowWriter(layout, connection, isEmpty: false)) }
        prepared.writers = writers
      } catch { throw error.ofOwnStatement }
    }
    return prepared.writers
  }

  /// Runs `body` on the writing connection, outside of any transaction.
  func access<Result>(_ body: (Connection) throws(TablesError) -> Result) throws(TablesError) -> Result {
    do {
      return try database.writeWithoutTransaction { [path] database in
        try body(Connection(handle: try database.sqliteHandle, path: path))
      }
    } catch {
      throw .from(error, path)
    }
  }

  /// Traps if the writer left something open between two transactions. For tests.
  package func checkInvariants() throws(TablesError) {
    try access { connection in
      precondition(sqlite3_get_autocommit(connection.handle) != 0, "a transaction ends with its block")
      precondition(
        prepared.writers.isEmpty || prepared.writers.count == tableSet.layouts.count, "each model is written")
      for writer in prepared.writers { writer.checkInvariants() }
      prepared.last?.transaction.checkInvariants()
      prepared.kept.checkInvariants()
    }
  }

  /// Copies the write-ahead log into the file, as far as readers allow.
  package func checkpoint() throws(TablesError) {
    try access { connection throws(TablesError) in
      try connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    }
  }
}

extension Database {
  /// The handle for raw statements. GRDB sets it to nil when the connection is closed.
  var sqliteHandle: OpaquePointer {
    get throws {
      guard let handle = sqliteConnection else {
        throw DatabaseError(resultCode: .SQLITE_MISUSE, message: "the connection is closed")
      }
      return handle
    }
  }
}

extension TablesError {
  /// Converts any error that GRDB throws: its own, or one of this module that passed through.
  static func from(_ error: any Error, _ path: String) -> TablesError {
    switch error {
    case let error as TablesError: error
    case let error as DatabaseError:
      .from(
        code: error.extendedResultCode.rawValue, primary: error.resultCode.rawValue, path: path,
        message: error.message ?? "")
    default: .sqlite(path: path, code: -1, message: String(describing: error))
    }
  }
}
