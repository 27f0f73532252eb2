import Foundation
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaReplication
import StemmaSchema
import StemmaTables

/// A directory that holds a log, a schema and tables; the composition of all modules below.
///
/// Writing goes through `write`: it takes the writer lock for one group of commits, takes in what other
/// processes appended since, lets the bodies make their changes inside of one SQLite transaction, appends
/// their events to the log, syncs once, and only then commits the transaction. So the tables never run ahead of
/// what is durable; if the process dies in between they catch up from the log.
///
/// An instance is used by one thread at a time; several instances and processes may share the directory.
package final class Node {
  package enum Mode: Sendable {
    /// Takes no lock and changes nothing, except that tables that are behind the log catch up where the
    /// directory can be written.
    case read
    case write
  }

  static let schemaFileName = "schema.graphql"
  static let lockFileName = "lock"
  static let tablesFileName = "tables.sqlite"
  static let snapshotsFileName = "snapshots.sqlite"
  static let logDirectoryName = "log"
  /// Longest `stemma.json` and `schema.graphql` that are read, in bytes.
  static let metadataLimit = 64 << 20

  package let directory: String
  package internal(set) var mark: NodeMark
  package internal(set) var schema: Schema
  package internal(set) var schemaWarnings: [Diagnostic] = []
  /// Rises when another process has changed the schema.
  package private(set) var schemaChanges = 0
  /// What a person should know about how opening went; one sentence each.
  package internal(set) var notices: [String] = []

  let options: OpeningOptions
  /// Where the tables are, if not in the directory.
  var temporary: TemporaryFolder?
  let log: Log
  var tables: Tables
  var clock = HybridClock()
  var identifiers = UUIDv7()
  /// When the first of the series that follow each other began; and how much is in the last one, if it is not complete.
  var seriesSince: UInt64?
  var openSeries: CommitSeries.Size?
  /// The segment that is being made meanwhile, if one is.
  var sealing: UnfinishedSealing?
  /// Called on another thread when that is about to be made, so that somebody sees to its end (`sealOrNote`) who may not commit
  /// again for long: until then nobody else can seal.
  package var segmentIsMade: @Sendable () -> Void = {}
  /// Whether the tables hold what this node held before the log was damaged.
  var tablesRemember = true
  /// A giving up that another process had decided, and this one finished, until `giveUp` reports it.
  var finishedGivingUp: GivenUp?
  /// Whether a reader met damage after the node was opened, which its notices did not tell.
  var hasUntoldDamage = false
  /// Whether the log was found to have no name of an event twice.
  private var hasPlainNames = false
  /// The origin that this node writes as from its next event on; it is not begun before, so that what is refused leaves
  /// the node as it was.
  var dueOrigin: Origin?
  /// Up to where the tables are known to follow the log.
  var applied: LogToken?
  /// The bytes of the node's own files as they were read last.
  private var seen: (mark: [UInt8]?, schema: [UInt8]?) = (nil, nil)
  /// Whether mark and schema are those of the files: nobody else has held the lock since they were read.
  private var knowsOwnFiles = false
  private let holder = WriterLock.Holder(random: SystemRandomSource())
  /// Whether a `locked` of this instance is under way, inside of which it cannot take the lock again.
  private(set) var isLocked = false

  init(
    directory: String, mark: NodeMark, schema: Schema, options: OpeningOptions, log: Log, tables: Tables
  ) {
    self.directory = directory
    self.mark = mark
    self.schema = schema
    self.options = options
    self.log = log
    self.tables = tables
  }

  var ports: Ports { options.ports }
  static func path(_ directory: String, _ name: String) -> String { directory + "/" + name }
  /// Where the tables of a node are.
  package static func tablesPath(in directory: String) -> String { path(directory, tablesFileName) }
  var tablesPath: String { Self.tablesPath(in: directory) }
  /// The file of the tables that this instance reads, which are those of the past inside of `withTables(asOf:)`.
  package var tablesFile: String { tables.path }

  package var description: EventDescription { EventDescription(schema: schema, mark: mark) }

  /// Lets the errors of the modules below out as errors of the node.
  static func wrapping<Result>(_ body: () throws -> Result) throws(NodeError) -> Result {
    do { return try body() } catch let error as NodeError { throw error } catch let error as LogError {
      throw .log(error)
    } catch let error as TablesError { throw .tables(error) } catch let error as ReplicationError {
      throw .replication(error)
    } catch let error as MutationError { throw .mutation(error) } catch let error as InspectionError {
      throw .inspection(error)
    } catch {
      // Of Foundation's.
      throw .damaged(what: error.localizedDescription)
    }
  }

  // MARK: The mark

  func saveMark() throws(NodeError) { try Self.save(mark, in: directory, ports) }

  static func save(_ mark: NodeMark, in directory: String, _ ports: Ports) throws(NodeError) {
    let bytes = try mark.encoded
    do throws(LogError) {
      // The mark last: without it there is no node, and nothing is decided.
      for name in [NodeMark.copyName, NodeMark.fileName] {
        try ports.replace(path(directory, name), with: bytes, in: directory)
      }
    } catch { throw .log(error) }
  }

  /// Takes the writer lock for as long as `body` runs, with what other processes did taken in.
  func locked<Result>(_ body: () throws(NodeError) -> Result) throws(NodeError) -> Result {
    try locked(readingAlways: true) { _ throws(NodeError) in try body() }
  }

  /// As `locked`, but reads the log, the metadata and the schema only if another process held the lock since this instance
  /// held it last; `body` gets whether that is so. For the many batches of a transfer, whose rows follow at its end.
  func lockedForAdoption<Result>(_ body: (Bool) throws(NodeError) -> Result) throws(NodeError) -> Result {
    try locked(readingAlways: false, body)
  }

  private func locked<Result>(
    readingAlways: Bool, _ body: (Bool) throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    let lock = try takeLock()
    isLocked = true
    defer {
      isLocked = false
      lock.release()
    }
    do throws(NodeError) {
      let isShared = !knowsOwnFiles
      if isShared {
        try takeIn()
        // Before anything reads them.
        if tables.isReplaced { try reopenTables() }
      }
      if isShared || readingAlways {
        // What another process decided and died over.
        try finishGivingUp(options.progress)
        try finishFork(options.progress)
        try catchUp()
        try finishScopeChange()
      }
      return try body(isShared)
    } catch {
      // What was changed in memory may not have come to be in the files.
      knowsOwnFiles = false
      seen.mark = nil
      throw mended(error)
    }
  }

  /// As `locked`, for those who make events: where names of events are there twice, nobody could tell any more which of
  /// the two a new one has seen.
  func lockedForEvents<Result>(_ body: () throws(NodeError) -> Result) throws(NodeError) -> Result {
    try locked { () throws(NodeError) in
      if !hasPlainNames { try checkNames() }
      hasPlainNames = true
      return try body()
    }
  }

  /// Takes the writer lock, and nothing in.
  func takeLock() throws(NodeError) -> WriterLock {
    do throws(LogError) {
      let lock = try WriterLock(
        Self.path(directory, Self.lockFileName), fileSystem: ports.fileSystem, wait: options.waitMilliseconds,
        holder: holder)
      if !lock.isReturning { knowsOwnFiles = false }
      return lock
    } catch { throw .log(error) }
  }

  /// Takes in what other processes changed of the node's own files. The writer lock must be held. Both are small,
  /// and seldom change: comparing their bytes costs far less than parsing them again.
  private func takeIn() throws(NodeError) {
    let markBytes = try Self.bytes(of: NodeMark.fileName, in: directory, ports)
    if markBytes != seen.mark {
      mark = try Self.mark(markBytes, directory, ports)
      // Another process may have begun one.
      if log.recovery.watermarkIdentity == mark.watermark { dueOrigin = nil }
    }
    let schemaBytes = try Self.bytes(of: Self.schemaFileName, in: directory, ports)
    if let before = seen.schema, schemaBytes != before {
      schema = try Self.readSchema(directory, ports)
      schemaChanges += 1
      try reopenTables()
    }
    seen = (markBytes, schemaBytes)
    knowsOwnFiles = true
  }

  static func bytes(of name: String, in directory: String, _ ports: Ports) throws(NodeError) -> [UInt8] {
    do { return try ports.contents(of: path(directory, name), limit: metadataLimit) } catch {
      guard error.isNotFound else { throw .log(error) }
      switch name {
      case NodeMark.fileName: throw try lostMark(in: directory, ports) ?? .noNode(path: directory)
      case schemaFileName: throw .noSchema(path: path(directory, name))
      default: throw .log(error)
      }
    }
  }

  /// Begins a new origin, durable before its first event.
  func beginOrigin(because reason: String) throws(NodeError) {
    try begin(Origin(ports.newID()))
    notices.append("\(reason): this node now writes as a new origin, \(mark.origin)")
  }

  /// Begins the origin that is due, if one is. The writer lock must be held.
  func beginDueOrigin() throws(NodeError) { if let dueOrigin { try begin(dueOrigin) } }

  private func begin(_ origin: Origin) throws(NodeError) {
    mark.origins.append(origin)
    if let identity = log.recovery.watermarkIdentity { mark.watermark = identity }
    mark.keptTails = log.recovery.keptTails
    try saveMark()
    dueOrigin = nil
  }

  // MARK: Tables

  func reopenTables() throws(NodeError) {
    applied = nil
    tables = try Self.openTables(directory, schema, log, mark, options).tables
  }

  /// How tables came to be open.
  enum TablesOpening { case asTheyWere, rebuilt(RebuildReason), rebuiltAround(Damage) }

  /// Opens the tables of a node, made anew from the log where they cannot be used. The writer lock must be held.
  static func openTables(
    _ directory: String, _ schema: Schema, _ log: Log, _ mark: NodeMark, _ options: OpeningOptions
  ) throws(NodeError) -> (tables: Tables, how: TablesOpening) {
    let path = path(directory, tablesFileName)
    Tables.removeUnfinished(at: path)
    return try wrapping {
      do {
        let wait = max(options.wait, Tables.busyLimit)
        let tables = try Tables.open(at: path, schema: schema, mode: .readWrite, wait: wait)
        let token = try tables.read { reader throws(TablesError) in try reader.token() }
        let isFar = log.end.file > 1 || !log.recovery.damage.isEmpty
        if token != .start || !isFar { return (tables, .asTheyWere) }
        // A log that lost all of its beginning stands at the start too: then the tables are what remembers it.
        let held = try tables.read { reader throws(TablesError) in try reader.knowledge() }
        if !held.partitions.isEmpty { return (tables, .asTheyWere) }
        // Tables that were lost, and just made anew, empty.
        try tables.close()
        throw TablesError.needsRebuild(path: path, .missing)
      } catch TablesError.needsRebuild(_, let reason) {
        var how = TablesOpening.rebuilt(reason)
        do throws(NodeError) {
          _ = try rebuild(
            path, schema: schema, log: log, ownOrigins: mark.origins, progress: options.progress)
        } catch {
          guard let damage = error.logDamage else { throw error }
          how = .rebuiltAround(damage)
          _ = try rebuildAroundDamage(
            path, schema: schema, log: log, ownOrigins: mark.origins, progress: options.progress)
        }
        let wait = max(options.wait, Tables.busyLimit)
        return (try Tables.open(at: path, schema: schema, mode: .readWrite, wait: wait), how)
      }
    }
  }

  /// Brings the tables to the end of the log. The writer lock must be held.
  ///
  /// Damage that is met on the way is recorded, and the tables follow around it: the partitions that lost events
  /// stay what they are, and never lose rows.
  func catchUp() throws(NodeError) {
    let isRefreshed: Bool
    do { isRefreshed = try log.refresh() } catch { throw .log(error) }
    let isReplaced = tables.isReplaced
    if !isRefreshed, !isReplaced, applied == log.token { return }
    if isReplaced { try reopenTables() }
    try recordDamage(log.recovery.damage)
    if mark.damage == nil {
      do throws(NodeError) {
        return try Self.wrapping { try follow() }
      } catch {
        guard let damage = error.logDamage else { throw error }
        try recordDamage([damage])
      }
    }
    try Self.wrapping { try followAroundDamage() }
  }

  /// Tables in which damage is met are made anew.
  private func follow() throws {
    do { try followByEvents() } catch TablesError.needsRebuild(_, let reason) {
      try remakeTables()
      noteRebuild(because: reason)
      try finishFollowing(log.token)
    }
  }

  private func followByEvents() throws {
    let token = try tables.read { reader throws(TablesError) in try reader.token() }
    let end = log.token
    if token != end {
      let isFar =
        try token == .start && (end.position.file > 1 || log.files().contains { $0.kind == .segment })
      let fits = try log.matches(token)
      if isFar || !fits {
        if !fits { try noteSetBackLog() }
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

  /// Says what the tables had taken in, and the log does not have: an older one stands in its place, or its end is gone without a
  /// trace. What this node wrote there may be known to others, so that its numbers must not be used again. The writer lock
  /// must be held.
  private func noteSetBackLog() throws(NodeError) {
    let isUnsettled = mark.isUnsettled
    let (held, found) = try Self.wrapping { () throws -> (Knowledge, Knowledge) in
      (
        try reading { try $0.knowledge() }.restricted { !isUnsettled($0) },
        try log.streams { !isUnsettled($0) }
      )
    }
    let lags = held.lag(against: found)
    let gone = lags.reduce(0) { $0 + $1.ahead }
    guard gone > 0 || lags.contains(where: { !$0.forked.isEmpty }) else { return }
    let what =
      gone > 0
      ? "lacks \(counted(gone, "event")) that the tables had taken in"
      : "is not the one that the tables follow"
    notices.append(
      "the log \(what): an older one stands in its place, or its end was lost; whoever has more of it sends that with "
        + "the next pull")
    guard dueOrigin == nil, held.partitions.values.contains(where: { $0[mark.origin] != nil }) else { return }
    try beginOrigin(because: "the log was set back")
  }

  /// Makes the tables anew if this error says that they are damaged, and the log is whole. The writer lock must be
  /// held, and nobody use the tables.
  ///
  /// - Returns: the error to throw.
  func mended(_ error: NodeError) -> NodeError {
    guard mark.damage == nil, case .tables(.needsRebuild(tablesPath, let reason)) = error else {
      return error
    }
    do throws(NodeError) { try remakeTables() } catch {
      // What keeps the tables from being made is told by the command that the error names.
      return .tables(.needsRebuild(path: tablesPath, reason))
    }
    applied = nil
    noteRebuild(because: reason)
    return .tables(.rebuilt(path: tablesPath, reason))
  }

  /// Warns of what was wrong with tables that were made anew.
  func noteRebuild(because reason: RebuildReason) {
    notices.append("the tables were rebuilt from the log (\(Explanations.text(of: reason)))")
  }

  private func remakeTables() throws(NodeError) {
    do throws(NodeError) {
      _ = try Self.rebuild(
        tablesPath, schema: schema, log: log, ownOrigins: mark.origins, progress: options.progress)
    } catch {
      guard error.logDamage?.flaw.isDoubled == true else { throw error }
      _ = try Self.rebuildAroundDamage(
        tablesPath, schema: schema, log: log, ownOrigins: mark.origins, progress: options.progress)
    }
    try reopenTables()
  }

  func finishFollowing(_ end: LogToken) throws {
    clock.observe(try tables.read { reader throws(TablesError) in try reader.clock() })
    applied = end
  }

  /// Applies events to the tables in one transaction. `isWanted` sees each event with how far its stream was
  /// applied.
  func apply(
    upTo end: LogToken, isWanted: (Event, Sequence) -> Bool = { _, _ in true },
    next: () throws -> StoredEvent?
  ) throws {
    var seen = HybridClock()
    try tables.write({ $0 as any Error }) { (transaction) throws(any Error) in
      seen.observe(try transaction.clock())
      while let event = try next()?.event {
        let head = try transaction.head(event.partition, event.dot.origin)
        guard isWanted(event, head.sequence) else { continue }
        try transaction.apply(event)
        // A time in an own event was given by this node's clock, which its writer kept, or imported.
        if !mark.origins.contains(event.dot.origin) { seen.observe(event.timestamp) }
      }
      try transaction.keep(clock: seen.highest)
      transaction.advance(to: end)
    }
  }

  /// Makes tables from the log in the place of `path`. The writer lock must be held if it is the node's own.
  static func rebuild(
    _ path: String, schema: Schema, log: Log, ownOrigins: [Origin], filter: RebuildFilter = .all,
    progress: (UInt64, UInt64) -> Void
  ) throws(NodeError) -> RebuildReport {
    try wrapping {
      let total = try log.files().reduce(0) { $0 + $1.events }
      if filter == .all {
        let made = try Tables.rebuild(
          at: path, schema: schema, knowledge: try log.streams(), token: log.token, from: log.recordFiles,
          ownOrigins: ownOrigins, progress: { progress($0.events, total) })
        return RebuildReport(events: made.folded, records: made.rows)
      }
      var reader = try log.eventsByKey()
      let made = try Tables.rebuild(
        at: path, schema: schema, knowledge: nil, token: log.token, filter: filter, ownOrigins: ownOrigins,
        progress: { progress($0.events, total) }, next: { try reader.next() })
      return RebuildReport(events: made.folded, records: made.rows)
    }
  }
}

/// What a rebuild made.
package struct RebuildReport: Sendable {
  /// Those that the tables show; with a moment of the past fewer than the log has.
  package var events: UInt64
  package var records: UInt64
}
