import Foundation
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaReplication
import StemmaSchema
import StemmaTables

/// A directory with a log, a schema and tables; combines the modules below.
///
/// `write` takes the writer lock for one group of commits and refreshes log and tables. The bodies
/// make their changes inside one SQLite transaction; their events are appended to the log and
/// synced, and then the transaction commits. Tables are ahead of the durable log only after relaxed
/// commits. After a crash they catch up from the log.
///
/// One thread at a time uses an instance. Several instances and processes may share the directory.
package final class Node {
  package enum Mode: Sendable {
    /// Changes nothing, except that it brings a node up to date as a writer does on opening, and
    /// records corruption. Both require a writable directory, and take the lock.
    case read
    case write
  }

  static let schemaFileName = "schema.graphql"
  static let lockFileName = "lock"
  static let tablesFileName = "tables.sqlite"
  package static let snapshotsFileName = "snapshots.sqlite"
  static let logDirectoryName = "log"
  /// The size limit in bytes for reading `stemma.json` and `schema.graphql`.
  static let metadataLimit = 64 << 20

  package let directory: String
  package internal(set) var metadata: NodeMetadata
  package internal(set) var schema: Schema
  package internal(set) var schemaWarnings: [Diagnostic] = []
  /// Warnings for people about the opening and later operations; one sentence each.
  package internal(set) var notices: [Notice] = []

  package let options: OpeningOptions
  package let log: Log
  var tables: Tables
  var tablesState = TablesState()
  var writer = WriterState()
  var seriesState = SeriesState()
  var sealing = SealingState()
  var checks = LogChecks()
  private var ownFiles = OwnFiles()
  private(set) var lockState = LockState()
  /// The partitions that commits may change: the rights of the caller.
  package var writable = Scope.everything

  init(
    directory: String, metadata: NodeMetadata, schema: Schema, options: OpeningOptions, log: Log,
    tables: Tables
  ) {
    self.directory = directory
    self.metadata = metadata
    self.schema = schema
    self.options = options
    self.log = log
    self.tables = tables
  }

  /// Incremented when another process has changed the schema.
  package var schemaChanges: Int { ownFiles.schemaChanges }
  /// Whether all writes of this instance are synced, and the tables show that.
  package var isSynced: Bool { tablesState.isSynced }
  /// Called on another thread when the segment is built. A process that may not commit again soon
  /// then calls `sealOrNote`, because no other process can seal before.
  package var segmentIsMade: @Sendable () -> Void {
    get { sealing.isMade }
    set { sealing.isMade = newValue }
  }

  /// This node with other tables.
  package func withTables(at path: String) throws(TablesError) -> Node {
    Node(
      directory: directory, metadata: metadata, schema: schema, options: options, log: log,
      tables: try Tables.openForReading(at: path, schema: schema))
  }

  package var ports: Ports { options.ports }
  package static func path(_ directory: String, _ name: String) -> String { directory + "/" + name }
  /// The path of a node's tables.
  package static func tablesPath(in directory: String) -> String { path(directory, tablesFileName) }
  var tablesPath: String { Self.tablesPath(in: directory) }
  /// The file of the tables in use; inside `withTables(asOf:)`, those of the past.
  package var tablesFile: String { tables.path }

  package var description: EventDescription { EventDescription(schema: schema, metadata: metadata) }

  /// Converts errors of the modules below to errors of the node.
  package static func wrapping<Result>(_ body: () throws -> Result) throws(NodeError) -> Result {
    do { return try body() } catch let error as NodeError { throw error } catch let error as LogError {
      throw .log(error)
    } catch let error as TablesError { throw .tables(error) } catch let error as ReplicationError {
      throw .replication(error)
    } catch let error as MutationError { throw .mutation(error) } catch let error as InspectionError {
      throw .inspection(error)
    } catch let error as CocoaError {
      let code = (error.underlying as? POSIXError)?.code.rawValue ?? EIO
      throw .log(.system(path: error.filePath ?? "", operation: "access", errno: code))
    } catch { throw .unforeseen("\(error)") }
  }

  // MARK: The metadata

  /// The small files that a node is described by, in its directory.
  package static let ownFileNames = [NodeMetadata.fileName, schemaFileName]

  func saveMetadata() throws(NodeError) { try Self.save(metadata, in: directory, ports) }

  static func save(_ metadata: NodeMetadata, in directory: String, _ ports: Ports) throws(NodeError) {
    let bytes = try metadata.encoded
    do throws(LogError) {
      // The metadata comes last: without it, there is no node.
      for name in [NodeMetadata.copyName, NodeMetadata.fileName] {
        try ports.replace(path(directory, name), with: bytes, in: directory)
      }
    } catch { throw .log(error) }
  }

  /// Runs `body` with the writer lock, after it applies changes of other processes.
  func locked<Result>(_ body: () throws(NodeError) -> Result) throws(NodeError) -> Result {
    try locked(readingAlways: true) { _ throws(NodeError) in try body() }
  }

  /// As `locked`, but reads log, metadata and schema only if another process has held the lock
  /// since. `body` receives whether it has. For transfers, which refresh the tables at their end.
  func lockedForAdoption<Result>(_ body: (Bool) throws(NodeError) -> Result) throws(NodeError) -> Result {
    try locked(readingAlways: false, body)
  }

  /// With `syncing`, first syncs relaxed commits, as all operations except commits require.
  private func locked<Result>(
    readingAlways: Bool, syncing: Bool = true, _ body: (Bool) throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    let lock = try takeLock()
    lockState.isHeld = true
    defer {
      lockState.isHeld = false
      lock.release()
    }
    do throws(NodeError) {
      let isShared = !ownFiles.areCurrent
      if isShared {
        try adoptChanges()
        // Before any access to them.
        if tables.isReplaced { try reopenTables() }
      }
      if isShared || readingAlways {
        // Finish operations that a crashed process left pending.
        try finishFork(options.progress)
        try catchUp()
        try finishScopeChange()
      }
      if syncing { try sync() }
      return try body(isShared)
    } catch {
      // Changes in memory may not have reached the files.
      ownFiles.areCurrent = false
      ownFiles.metadata = nil
      throw recovered(error)
    }
  }

  /// As `locked`, for operations that create events. With a duplicate event id in the log, it would
  /// be unknown which of the two events a new one has seen.
  func lockedForEvents<Result>(
    syncing: Bool = true, _ body: () throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    try locked(readingAlways: true, syncing: syncing) { _ throws(NodeError) in
      if !checks.hasUniqueIDs { try checkNames() }
      checks.hasUniqueIDs = true
      return try body()
    }
  }

  /// Syncs relaxed commits. The caller holds the writer lock.
  private func syncLog() throws(NodeError) {
    if tablesState.isSynced { return }
    do throws(LogError) { try log.sync() } catch { throw .log(error) }
  }

  /// As `syncLog`, and records the synced position in the tables.
  private func sync() throws(NodeError) {
    if tablesState.isSynced { return }
    try syncLog()
    let token = log.token
    // Tables that are behind record it when they follow.
    if tablesState.applied == token {
      try tables.write(NodeError.tables) { transaction throws(NodeError) in transaction.advance(to: token) }
    }
    tablesState.isSynced = true
  }

  /// Takes the writer lock without reading anything.
  func takeLock() throws(NodeError) -> WriterLock {
    do throws(LogError) {
      let lock = try WriterLock(
        Self.path(directory, Self.lockFileName), fileSystem: ports.fileSystem, wait: options.waitMilliseconds,
        holder: lockState.holder)
      if !lock.isReturning { ownFiles.areCurrent = false }
      return lock
    } catch { throw .log(error) }
  }

  /// Reads the node's own files if they changed. The caller holds the writer lock. Both are small
  /// and seldom change, so comparing bytes is far cheaper than parsing.
  private func adoptChanges() throws(NodeError) {
    let metadataBytes = try Self.bytes(of: NodeMetadata.fileName, in: directory, ports)
    if metadataBytes != ownFiles.metadata {
      metadata = try Self.metadata(metadataBytes, directory, ports)
      // Another process may have begun a new origin.
      if log.recovery.watermarkIdentity == metadata.watermark { writer.dueOrigin = nil }
    }
    let schemaBytes = try Self.bytes(of: Self.schemaFileName, in: directory, ports)
    if let before = ownFiles.schema, schemaBytes != before {
      schema = try Self.readSchema(directory, ports)
      ownFiles.schemaChanges += 1
      try reopenTables()
    }
    (ownFiles.metadata, ownFiles.schema) = (metadataBytes, schemaBytes)
    ownFiles.areCurrent = true
  }

  static func bytes(of name: String, in directory: String, _ ports: Ports) throws(NodeError) -> [UInt8] {
    do { return try ports.contents(of: path(directory, name), limit: metadataLimit) } catch {
      guard error.isNotFound else { throw .log(error) }
      switch name {
      case NodeMetadata.fileName: throw try lostMetadata(in: directory, ports) ?? .noNode(path: directory)
      case schemaFileName: throw .noSchema(path: path(directory, name))
      default: throw .log(error)
      }
    }
  }

  /// Begins a new origin, durable before its first event.
  func beginOrigin(because reason: String, _ origin: Origin? = nil) throws(NodeError) {
    try begin(origin ?? Origin(ports.newID()))
    notices.append("\(reason): this node now writes as a new origin, \(metadata.origin)")
  }

  /// Begins the due origin, if any. The caller holds the writer lock.
  func beginDueOrigin() throws(NodeError) { if let origin = writer.dueOrigin { try begin(origin) } }

  private func begin(_ origin: Origin) throws(NodeError) {
    metadata.origins.append(origin)
    if let identity = log.recovery.watermarkIdentity { metadata.watermark = identity }
    metadata.cutCount = log.recovery.cutCount
    try saveMetadata()
    writer.dueOrigin = nil
  }

  // MARK: Tables

  func reopenTables() throws(NodeError) {
    tablesState.applied = nil
    tables = try Self.openTables(directory, schema, log, metadata, options).tables
  }

  /// The result of opening the tables.
  enum TablesOpening { case asTheyWere, rebuilt(RebuildReason), rebuiltAround(Corruption) }

  /// Opens the tables of a node; rebuilds unusable ones. The caller holds the writer lock.
  static func openTables(
    _ directory: String, _ schema: Schema, _ log: Log, _ metadata: NodeMetadata, _ options: OpeningOptions
  ) throws(NodeError) -> (tables: Tables, how: TablesOpening) {
    let path = path(directory, tablesFileName)
    Tables.removeUnfinished(at: path)
    return try wrapping {
      do {
        let isSmall = !log.hasSegments && log.recovery.corruption.isEmpty
        guard isSmall || FileManager.default.fileExists(atPath: path) else {
          throw TablesError.needsRebuild(path: path, .missing)
        }
        let wait = max(options.wait, Tables.busyLimit)
        return (try Tables.open(at: path, schema: schema, mode: .readWrite, wait: wait), .asTheyWere)
      } catch TablesError.needsRebuild(_, let reason) {
        var how = TablesOpening.rebuilt(reason)
        do throws(NodeError) {
          _ = try rebuild(
            path, schema: schema, log: log, ownOrigins: metadata.origins, progress: options.progress)
        } catch {
          guard let corruption = error.logCorruption else { throw error }
          how = .rebuiltAround(corruption)
          _ = try rebuildAroundCorruption(
            path, schema: schema, log: log, ownOrigins: metadata.origins, progress: options.progress)
        }
        let wait = max(options.wait, Tables.busyLimit)
        return (try Tables.open(at: path, schema: schema, mode: .readWrite, wait: wait), how)
      }
    }
  }

  /// Refreshes the tables to the end of the log. The caller holds the writer lock.
  ///
  /// Records corruption that it meets and continues around it: partitions that lost events stay as
  /// they are and lose no rows.
  func catchUp() throws(NodeError) {
    let isRefreshed: Bool
    do { isRefreshed = try log.refresh() } catch { throw .log(error) }
    if seriesState.heldBack != nil {
      let isKept: Bool
      do { isKept = try tables.holdsBack(isOvertaken: isRefreshed) } catch { throw .tables(error) }
      if isKept { return }
      // Another process has refreshed the tables before its write, or they are refreshed below.
      seriesState.heldBack = nil
      tablesState.applied = nil
    }
    let isReplaced = tables.isReplaced
    if !isRefreshed, !isReplaced, tablesState.applied == log.token { return }
    if isReplaced { try reopenTables() }
    // Tables are built from the durable log.
    try syncLog()
    try recordCorruption(log.recovery.corruption)
    if metadata.corruption == nil {
      do throws(NodeError) {
        return try Self.wrapping { try follow() }
      } catch {
        guard let corruption = error.logCorruption else { throw error }
        try recordCorruption([corruption])
      }
    }
    try Self.wrapping { try followAroundCorruption() }
  }

  /// Refreshes the tables, and rebuilds corrupt ones.
  private func follow() throws {
    do { try followByEvents() } catch TablesError.needsRebuild(_, let reason) {
      try remakeTables()
      noteRebuild(because: reason)
      try finishFollowing(log.token)
    }
  }

  private func followByEvents() throws {
    let applied = try tables.read { reader throws(TablesError) in try reader.applied() }
    let token = applied.token
    let end = log.token
    if token == end {
      if applied.synced != end { try tables.write { $0.advance(to: end) } }
    } else {
      let isFar = try isFarBehind(token)
      let fits = try log.matches(token)
      if isFar || !fits {
        if !fits { try noteSetBackLog(applied) }
        try remakeTables()
      } else {
        var reader = log.events(from: token.position)
        do { try apply(upTo: end) { try reader.next() } } catch let error as TablesError
          where error.isDisagreement
        {
          try remakeTables()
        }
      }
    }
    try finishFollowing(end)
  }

  /// Whether a rebuild is cheaper than applying the missing events.
  private func isFarBehind(_ token: LogToken) throws(LogError) -> Bool {
    let files = try log.files()
    if token == .start, files.contains(where: { $0.kind == .segment }) { return true }
    var (all, missing): (UInt64, UInt64) = (0, 0)
    for file in files {
      all += file.events
      if file.positions.upperBound > token.position {
        missing += file.events - min(file.events, token.position.distance(from: file.positions.lowerBound))
      }
    }
    return missing > Self.fewEvents && missing * Self.costOfApplying > all
  }

  /// The number of events that are always applied, and the cost of one relative to a rebuild.
  private static let (fewEvents, costOfApplying): (UInt64, UInt64) = (4096, 4)

  /// Reports events that the tables applied and the log lacks: it is an older copy, or its end was
  /// lost. Peers may have such events of this node, so it begins a new origin to avoid duplicate
  /// ids. A crash that took only unsynced events needs none. The caller holds the writer lock.
  private func noteSetBackLog(_ applied: AppliedPosition) throws(NodeError) {
    let isUnsettled = metadata.isUnsettled
    let (held, found) = try Self.wrapping { () throws -> (VersionVector, VersionVector) in
      (
        try reading { try $0.versionVector() }.restricted { !isUnsettled($0) },
        try log.streams { !isUnsettled($0) }
      )
    }
    let lags = held.lag(against: found)
    let gone = lags.reduce(0) { $0 + $1.ahead }
    let isForked = lags.contains { !$0.forked.isEmpty }
    guard gone > 0 || isForked else { return }
    if !isForked, try Self.wrapping({ try log.lacksOnlyUnsynced(applied) }) {
      return notices.append(
        "a crash took \(counted(gone, "event")) of commits with relaxed durability that were not synced yet")
    }
    let what =
      gone > 0
      ? "lacks \(counted(gone, "event")) that the tables had applied"
      : "is not the one that the tables follow"
    notices.append(
      "the log \(what): an older log replaced it, or its end was lost; the next pull fetches "
        + "what its peers have of it")
    guard writer.dueOrigin == nil, held.partitions.values.contains(where: { $0[metadata.origin] != nil })
    else {
      return
    }
    try beginOrigin(because: "the log was set back")
  }

  /// Rebuilds the tables if this error reports their corruption and the log is complete. The caller
  /// holds the writer lock and does not use the tables.
  ///
  /// - Returns: the error to throw.
  func recovered(_ error: NodeError) -> NodeError {
    guard metadata.corruption == nil, case .tables(.needsRebuild(tablesPath, let reason)) = error else {
      return error
    }
    do throws(NodeError) { try remakeTables() } catch {
      // The command that the error names reports why the rebuild fails.
      return .tables(.needsRebuild(path: tablesPath, reason))
    }
    tablesState.applied = nil
    noteRebuild(because: reason)
    return .tables(.rebuilt(path: tablesPath, reason))
  }

  /// Warns that the tables were rebuilt, and why.
  func noteRebuild(because reason: RebuildReason) {
    notices.append("the tables were rebuilt from the log (\(Explanations.text(of: reason)))")
  }

  private func remakeTables() throws(NodeError) {
    try syncLog()
    do throws(NodeError) {
      _ = try Self.rebuild(
        tablesPath, schema: schema, log: log, ownOrigins: metadata.origins, progress: options.progress)
    } catch {
      guard error.logCorruption?.flaw.isDuplicate == true else { throw error }
      _ = try Self.rebuildAroundCorruption(
        tablesPath, schema: schema, log: log, ownOrigins: metadata.origins, progress: options.progress)
    }
    try reopenTables()
  }

  func finishFollowing(_ end: LogToken) throws {
    writer.clock.observe(try tables.read { reader throws(TablesError) in try reader.clock() })
    tablesState.applied = end
  }

  /// Applies events to the tables in one transaction. `isWanted` receives each event and the last
  /// applied sequence of its stream.
  func apply(
    upTo end: LogToken, isWanted: (Event, SequenceNumber) -> Bool = { _, _ in true },
    next: () throws -> StoredEvent?
  ) throws {
    var seen = HybridClock()
    try tables.write({ $0 as any Error }) { (transaction) throws(any Error) in
      seen.observe(try transaction.clock())
      while let event = try next()?.event {
        let head = try transaction.head(event.partition, event.id.origin)
        guard isWanted(event, head.sequence) else { continue }
        try transaction.apply(event)
        // The writer has kept its clock for own events, or their times are imported.
        if !metadata.origins.contains(event.id.origin) { seen.observe(event.timestamp) }
      }
      try transaction.keep(clock: seen.highest)
      transaction.advance(to: end)
    }
  }

  /// Builds tables at `path` from the log. For the node's own, the caller holds the writer lock.
  static func rebuild(
    _ path: String, schema: Schema, log: Log, ownOrigins: [Origin], filter: RebuildFilter = .all,
    progress: (UInt64, UInt64) -> Void
  ) throws(NodeError) -> RebuildReport {
    try wrapping {
      let total = try log.files().reduce(0) { $0 + $1.events }
      if filter == .all {
        let made = try Tables.rebuild(
          at: path, schema: schema, versionVector: try log.streams(), token: log.token, from: log.recordFiles,
          ownOrigins: ownOrigins, progress: { progress($0.events, total) })
        return RebuildReport(events: made.folded, records: made.rows)
      }
      var reader = try log.eventsByKey()
      let made = try Tables.rebuild(
        at: path, schema: schema, versionVector: nil, token: log.token, filter: filter,
        ownOrigins: ownOrigins,
        progress: { progress($0.events, total) }, next: { try reader.next() })
      return RebuildReport(events: made.folded, records: made.rows)
    }
  }
}

extension Log {
  /// Whether tables are ahead of this log only by unsynced events, as after a crash that follows
  /// relaxed commits. These events never left the node.
  func lacksOnlyUnsynced(_ applied: AppliedPosition) throws(LogError) -> Bool {
    guard applied.synced != applied.token, try !matches(applied.token) else { return false }
    return try matches(applied.synced)
  }
}

/// The result of a rebuild.
package struct RebuildReport: Sendable {
  /// Events that the tables show; for a point in time of the past, fewer than in the log.
  package var events: UInt64
  package var records: UInt64
}
