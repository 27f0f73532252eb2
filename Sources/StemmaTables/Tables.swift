import Foundation
import GRDB
import GRDBSQLite
import StemmaEvents
import StemmaLog
import StemmaSchema

/// The projection of a log into SQLite: one row per record, next to what merging and replication need.
///
/// The file is a cache. It is in WAL mode with synchronous=NORMAL, so a crash of the machine may undo the last
/// transactions; as the position in the log and the rows change in one transaction, the tables then are those of
/// an earlier position and catch up from the log. Whatever else is wrong with the file, a rebuild mends it.
///
/// Several processes may have one file open. Writers take turns under the node's writer lock; readers each see
/// one committed state. A rebuild puts a new file in the place of the old one: who opened it only to read goes on with the
/// old one, as does a read under way; to others `read` and `write` then throw `replaced`.
package final class Tables: Sendable {
  package enum Mode: Sendable {
    case readOnly
    case readWrite
  }

  /// How long to wait for another connection's transaction, in seconds, unless somebody says otherwise.
  package static let busyLimit: TimeInterval = 5

  package let path: String
  package let mode: Mode
  package let tableSet: TableSet
  private let database: any DatabaseWriter
  private let identity: FileIdentity?
  private let prepared = PreparedWriters()

  /// What the writing connection keeps from one transaction to the next: its statements, the streams, and small records.
  /// Unchecked, because it is only touched inside of `writeWithoutTransaction`, which runs one block at a time.
  private final class PreparedWriters: @unchecked Sendable {
    var writers: [RowWriter] = []
    var kept = KeptStatements()
    /// SQLite's number of the catalogue when it was last found to be as it was made.
    var catalogue: Int64?
    /// The last transaction, if what it knows holds as long as the file has this version.
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

  /// Opens the tables of a node; `readWrite` makes empty ones if there is no file (position: the start of
  /// the log).
  ///
  /// Costs a look at each stream for `readWrite`.
  /// `leavesFiles`: no file appears beside that of a reader, as SQLite makes them to keep writers apart; nobody must
  /// write meanwhile. Where there is a log of transactions they are there already, and the one of locks may change.
  ///
  /// - Throws: `needsRebuild` if the file is missing (`readOnly`), damaged, of another format, made for another
  ///   schema, or a state of the past; for `readWrite`, if it does not know of all streams what a writer knew last.
  ///   Damage that the header and Stemma's own tables do not show is found when the rows are read.
  package static func open(
    at path: String, schema: Schema, mode: Mode, wait: TimeInterval = busyLimit, leavesFiles: Bool = false
  ) throws(TablesError) -> Tables {
    guard mode == .readOnly else { return try openOnce(path, schema, mode, wait: wait, leavesFiles: false) }
    for _ in 0..<attempts {
      let identity = FileIdentity(of: path)
      let outcome = Swift.Result { () throws(TablesError) in
        try openOnce(path, schema, mode, wait: wait, leavesFiles: leavesFiles)
      }
      // SQLite finds the log of transactions by name at the first read, and from then on goes on with what it has open.
      if FileIdentity(of: path) == identity { return try outcome.get() }
    }
    throw .replaced(path: path)
  }

  /// How often a reader opens tables anew that another process replaces while he opens them.
  private static let attempts = 100

  private static func openOnce(
    _ path: String, _ schema: Schema, _ mode: Mode, wait: TimeInterval, leavesFiles: Bool
  ) throws(TablesError) -> Tables {
    let isNew = !(try FileReplacement.isThere(path))
    if isNew {
      if mode == .readOnly { throw .needsRebuild(path: path, .missing) }
      // A log of transactions that outlived its file would be replayed into the new one.
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
        try Meta.write(LogToken.start, .zero, to: connection)
        try connection.execute("COMMIT")
      }
    } else {
      do throws(TablesError) {
        try tables.read { reader throws(TablesError) in
          try Meta.check(reader.connection, tableSet, isLive: true)
          // Once for all that this instance will write.
          if mode == .readWrite { try HeadSum.check(reader.connection) }
        }
      } catch { throw error.ofOwnStatement }
    }
    return tables
  }

  /// Opens any file that `rebuild` made for this schema, also one that shows the past, for reading.
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

  /// Takes tables away, so that the next one to open them finds none. The node's writer lock must be held.
  package static func remove(at path: String) throws(TablesError) { try FileReplacement.remove(path) }

  /// The most bytes of a path, links followed, at which SQLite opens a file and those that it needs beside it.
  package static let longestPath = 504

  /// Throws `pathTooLong` unless tables can be made at a path, in whose directory nothing needs to be there yet.
  package static func checkLength(ofPath path: String) throws(TablesError) {
    let resolved = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    let limit = longestPath - unfinishedSuffix.utf8.count
    if resolved.utf8.count > limit { throw .pathTooLong(path: path, limit: limit) }
  }

  /// What is added to the name of tables that are being made.
  static let unfinishedSuffix = ".building"

  /// Takes away what a process left that died while it made tables anew. The node's writer lock must be held.
  package static func removeUnfinished(at path: String) {
    // What cannot be removed is told by the next rebuild.
    unlink(path + unfinishedSuffix)
    FileReplacement.removeSidecars(of: path + unfinishedSuffix)
  }

  /// Empty tables in memory that are gone when they are released.
  package static func inMemory(schema: Schema) throws(TablesError) -> Tables {
    try open(at: ":memory:", schema: schema, mode: .readWrite)
  }

  private static func connect(
    _ path: String, _ mode: Mode, wait: TimeInterval = busyLimit, leavesFiles: Bool = false
  ) throws(TablesError) -> any DatabaseWriter {
    var configuration = Configuration.keepingQueue()
    configuration.busyMode = .timeout(wait)
    configuration.readonly = mode == .readOnly
    configuration.prepareDatabase { database in
      let connection = Connection(handle: try database.sqliteHandle, path: path)
      try connection.execute("PRAGMA synchronous = NORMAL")
      try Collation.install(on: connection)
      try SQLFunction.install(on: connection)
      // GRDB's authorizer notes what each statement touches, for observation of its own statements. Ours are
      // prepared beside it, so nothing would ever empty its list.
      sqlite3_set_authorizer(connection.handle, nil, nil)
    }
    do {
      if path == ":memory:" { return try DatabaseQueue(configuration: configuration) }
      do {
        // Who only reads needs no connection beside it for a writer: opening it takes a millisecond.
        guard mode == .readOnly else { return try DatabasePool(path: path, configuration: configuration) }
        let isImmutable = leavesFiles && !FileIdentity.exists(path + "-wal")
        return try DatabaseQueue(
          path: isImmutable ? immutableURI(path) : path, configuration: configuration)
      } catch  where mode == .readOnly && TablesError.from(error, path).isRefusalToOpen {
        // In a directory that cannot be written, SQLite reads a WAL file only if it is told that nobody
        // changes it; which holds if there is no log of transactions.
        guard !FileIdentity.exists(path + "-wal") else { throw error }
        return try DatabaseQueue(path: immutableURI(path), configuration: configuration)
      }
    } catch {
      let error = TablesError.from(error, path)
      // The header may forbid to write what could be written.
      if case .sqlite(_, SQLITE_READONLY, let what) = error, mode == .readWrite, FileIdentity.isWritable(path)
      {
        throw .needsRebuild(path: path, .damaged(what))
      }
      throw error.ofOwnStatement
    }
  }

  /// A name by which SQLite reads a file, and makes none beside it.
  static func immutableURI(_ path: String) -> String {
    URL(fileURLWithPath: path).absoluteString + "?immutable=1"
  }

  /// Ends all statements and connections. Waits for reads that are under way.
  package func close() throws(TablesError) {
    try access { _ in
      prepared.last = nil
      prepared.writers = []
      prepared.kept = KeptStatements()
    }
    do { try database.close() } catch { throw .from(error, path) }
  }

  /// Makes durable what was committed until now. Without it, a crash of the machine may take transactions back.
  package func sync() throws(TablesError) {
    // Nobody has locks on that file, which closing it could take away (SQLite's wal.c: they are on the index).
    let log = path + "-wal"
    // It goes only when all of it is in the file, and synced.
    guard FileIdentity.exists(log) else { return }
    try SyncedFile(log).sync()
    try SyncedFile(FileReplacement.directory(of: path)).sync()
  }

  // MARK: Access

  /// Whether another file stands in the place of this one.
  package var isReplaced: Bool { path != ":memory:" && FileIdentity(of: path) != identity }

  /// Reads one committed state of the tables.
  package func read<Result>(
    _ body: (TablesReader) throws(TablesError) -> Result
  ) throws(TablesError) -> Result {
    try read({ $0 }, body)
  }

  /// As above, for a body that throws errors of its own; `wrap` makes one of them from the tables' errors.
  package func read<Result, Failure: Error>(
    _ wrap: (TablesError) -> Failure, _ body: (TablesReader) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // A writer's connections for reading are opened when they are needed, by name.
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
      // A connection for reading that is opened meanwhile may find no file, or the next one.
      throw wrap(mode == .readWrite && isReplaced ? .replaced(path: path) : .from(error, path))
    }
    return try outcome.get()
  }

  /// Runs `body` inside one transaction, which is committed when it returns and rolled back when it throws.
  /// The node's writer lock must be held.
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
        // Before the transaction: where a table is missing, none is left open.
        let writers = try rowWriters(connection)
        let last = prepared.last
        prepared.last = nil
        try connection.prepareOnce("BEGIN IMMEDIATE").run()
        let transaction: TablesTransaction
        if let last, last.version == connection.dataVersion {
          transaction = last.transaction
        } else {
          do throws(TablesError) { try checkCatalogue(connection) } catch {
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
          try transaction.flush()
          try connection.prepareOnce("COMMIT").run()
          if transaction.end() { prepared.last = (transaction, connection.dataVersion) }
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

  /// Throws `needsRebuild` if other software has changed the tables' definitions since they were opened, or has added
  /// objects of its own. Inside of a transaction. O(1) unless the catalogue has changed.
  private func checkCatalogue(_ connection: Connection) throws(TablesError) {
    let number = try connection.integer("PRAGMA schema_version")
    if number == prepared.catalogue { return }
    if let change = try Meta.change(of: tableSet, connection) {
      throw .needsRebuild(path: path, .damaged(change))
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

  /// Traps if something is left open between two transactions of the writer. For tests.
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

  /// Moves the log of transactions into the file, as far as readers allow.
  package func checkpoint() throws(TablesError) {
    try access { connection throws(TablesError) in
      try connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    }
  }
}

extension Database {
  /// The handle that raw statements run on. GRDB makes it nil when the connection is closed.
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
  /// Any error that comes out of GRDB: one of its own, or ours passing through.
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
