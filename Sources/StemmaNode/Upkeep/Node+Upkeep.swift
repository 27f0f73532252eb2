import Foundation
import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema
import StemmaTables

extension Node {
  // MARK: Rebuild

  /// Rebuilds the tables from the log. The old ones stay until the new ones are complete.
  ///
  /// - Throws: `.log(.corrupt)` if the log is corrupt. The tables stay: they may show what it lost.
  package func rebuild(progress: (UInt64, UInt64) -> Void) throws(NodeError) -> RebuildReport {
    try locked { () throws(NodeError) in
      try checkLogIsWhole()
      let report = try Self.rebuild(
        tablesPath, schema: schema, log: log, ownOrigins: metadata.origins, progress: progress)
      try reopenTables()
      return report
    }
  }

  /// Builds tables of a past point in time or the present in another file. Replaces a file outside
  /// of a node that holds such tables.
  ///
  /// - Throws: `.occupied`, without any change, if something else exists at the path.
  package func rebuild(
    into path: String, upTo filter: RebuildFilter?, progress: (UInt64, UInt64) -> Void
  ) throws(NodeError) -> RebuildReport {
    try checkIsReplaceable(path)
    return try Self.rebuild(
      path, schema: schema, log: log, ownOrigins: metadata.origins, filter: filter ?? .all, progress: progress
    )
  }

  private func checkIsReplaceable(_ path: String) throws(NodeError) {
    switch Tables.occupant(of: path) {
    case .nothing: return
    case .noFile: throw .occupied(path: path, what: "is no file")
    case .otherFile: throw .occupied(path: path, what: "holds no tables that Stemma made")
    case .tables:
      guard isInNode(path) else { return }
      throw .occupied(path: path, what: "lies in a node's directory")
    }
  }

  /// Whether a file is inside this node's directory, or beside the metadata of any node.
  private func isInNode(_ path: String) -> Bool {
    let folder = Log.parent(of: path)
    guard !Self.isNode(at: folder), let inner = Self.resolved(folder), let outer = Self.resolved(directory)
    else { return true }
    return (inner + "/").hasPrefix(outer == "/" ? outer : outer + "/")
  }

  /// The path without symbolic links, `.` and `..`; nil if it does not exist.
  private static func resolved(_ path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }

  // MARK: Verify

  /// Checks every byte of the log and, if that is complete, compares the tables with it. Records
  /// corruption in the metadata, if it is writable. If recorded corruption is gone, removes the
  /// record and rebuilds the tables. Otherwise cuts no tail, builds no tables and begins no origin.
  ///
  /// Runs beside writers. Their changes can look like corruption, so every finding is checked again
  /// under the writer lock before it is reported.
  ///
  /// - Throws: `.log(.inUse)` if there are findings and other processes keep writing.
  package static func verify(
    at directory: String, options: OpeningOptions
  ) throws(NodeError) -> VerificationReport {
    _ = try readMetadata(directory, options.ports)
    let first = Result { () throws(NodeError) in try look(at: directory, options) }
    if case .success(let finding) = first, finding.isGood { return finding.report }
    var finding: Finding
    if let lock = try lockIfWritable(directory, options) {
      defer { lock.release() }
      finding = try look(at: directory, options)
    } else {
      finding = try first.get()
    }
    return try wrapping {
      if finding.isWhole {
        let isReadable = !finding.report.corruption.contains { $0.remedy == .clone }
        if finding.report.metadata?.corruption != nil, isReadable {
          try forgetCorruption(in: directory, options)
        }
      } else {
        let losses = try record(finding.corruption, in: directory, options)
        finding.report.losses = RecordedCorruption.losses(losses.ranges)
        finding.report.isVague = losses.isVague
      }
      return finding.report
    }
  }

  /// The findings of one pass.
  private struct Finding {
    var report = VerificationReport()
    let log: Log
    /// The corruption of the log.
    let corruption: [Corruption]

    /// Whether the log holds all its events.
    var isWhole: Bool { log.isHarmless(corruption) }
    var isGood: Bool { report.corruption.isEmpty && report.metadata?.corruption == nil }
  }

  /// Reads everything and changes nothing.
  private static func look(at directory: String, _ options: OpeningOptions) throws(NodeError) -> Finding {
    let metadata = try readMetadata(directory, options.ports)
    let schema = try readSchema(directory, options.ports)
    return try wrapping {
      let log = try Log.open(
        in: path(directory, logDirectoryName), id: metadata.logID, fileSystem: options.ports.fileSystem,
        options: options.log(.readOnly))
      var finding = Finding(log: log, corruption: try log.verify())
      finding.report.corruption = finding.corruption.map { corruption in
        let isHarmless = log.isHarmless([corruption])
        return .init(
          file: corruption.path, offset: corruption.offset,
          part: VerificationReport.part(of: corruption, options.ports),
          what: corruption.flaw.description, remedy: isHarmless ? .none : .repair)
      }
      finding.report.corruption += try log.unrecognizedFiles().map { name in
        .init(
          file: path(directory, logDirectoryName) + "/" + name,
          what: "the manifest does not list this file, so it is never read; move it away", remedy: .remove)
      }
      finding.report.corruption += try markCorruption(in: directory, metadata, options.ports)
      finding.report.metadata = metadata
      finding.report.unconfirmed = log.unconfirmedEvents
      let files = try log.files()
      finding.report.files = files.count
      guard finding.isWhole else {
        finding.report.events = try VerificationReport.readableEvents(of: log)
        return finding
      }
      finding.report.events = files.reduce(0) { $0 + $1.events }
      let isUnsettled = metadata.isUnsettled
      let streams: VersionVector
      do throws(LogError) { streams = try log.streams { !isUnsettled($0) } } catch {
        guard let flaw = error.corruption?.flaw else { throw error }
        finding.report.corruption +=
          flaw.isDuplicate
          ? [.init(file: error.corruption?.path ?? "", what: flaw.description, remedy: .clone)]
          : try VerificationReport.orderCorruption(in: log, PartitionFilter { !isUnsettled($0) })
        return finding
      }
      // A partition with one origin cannot be out of order.
      let shared = Set(streams.partitions.filter { $0.value.count > 1 }.keys)
      let orderViolations =
        shared.isEmpty ? [] : try VerificationReport.orderCorruption(in: log, PartitionFilter(named: shared))
      guard orderViolations.isEmpty else {
        finding.report.corruption += orderViolations
        return finding
      }
      // Completing the unfinished operation rebuilds the tables.
      if metadata.remakesTables || Self.isRepaired(metadata, log) { return finding }
      let tables = path(directory, tablesFileName)
      do {
        try compareTables(tables, schema, log, options, &finding.report)
      } catch TablesError.needsRebuild(tables, let reason) {
        // Other reasons are detected on opening, corruption only when it is read.
        if case .corrupt(let what) = reason {
          finding.report.corruption.append(.init(file: tables, what: what, remedy: .rebuild))
        }
      } catch let error as TablesError where error.isDiskFull || error.isRefusalToOpen {
        // There are no tables to compare: readers here build temporary ones.
      }
      return finding
    }
  }

  /// Corruption of the metadata or its copy. A missing copy is written with the next change.
  private static func markCorruption(
    in directory: String, _ metadata: NodeMetadata, _ ports: Ports
  ) throws(NodeError) -> [VerificationReport.Corruption] {
    var (file, what) = (path(directory, NodeMetadata.fileName), "the next write restores it from its copy")
    var flaw = "its bytes are not those that were written"
    if !metadata.isFromCopy {
      do throws(NodeError) {
        _ = try NodeMetadata(try bytes(of: NodeMetadata.copyName, in: directory, ports), path: file)
        return []
      } catch {
        switch error {
        case .log(let error) where error.isNotFound: return []
        case .badMetadata: break
        case .log(.notAFile), .log(.overLimit): flaw = "it is no copy that could be read"
        default: throw error
        }
        file = path(directory, NodeMetadata.copyName)
        what = "the next change of \(NodeMetadata.fileName) recreates it"
      }
    }
    return [.init(file: file, what: "\(flaw); \(what)", remedy: .none)]
  }

  /// The minimum wait of `verify` for the lock in seconds. Writers release it between groups.
  private static let patience: Double = 10

  /// Locks out writers; nil if the directory is not writable.
  private static func lockIfWritable(
    _ directory: String, _ options: OpeningOptions
  ) throws(NodeError) -> WriterLock? {
    var options = options
    options.wait = max(options.wait, patience)
    do throws(LogError) {
      return try WriterLock(
        path(directory, lockFileName), fileSystem: options.ports.fileSystem, wait: options.waitMilliseconds)
    } catch {
      let error = NodeError.log(error)
      guard error.isRefusalToWrite else { throw error }
      return nil
    }
  }

  /// Determines the losses and records corruption in the node's metadata. If that is not writable
  /// or in use, records nothing.
  private static func record(
    _ found: [Corruption], in directory: String, _ options: OpeningOptions
  ) throws(NodeError) -> Losses {
    var reading = options
    reading.mode = .read
    reading.leavesFiles = true
    let node = try open(at: directory, reading)
    try node.recordIfWritable(found)
    var losses = try node.losses(of: found)
    losses.isVague = losses.isVague || node.metadata.corruption?.isVague == true
    return losses
  }

  /// Removes the record of corruption from a complete log, as after a file was restored, and
  /// rebuilds the tables. If the node is not writable, the record stays.
  private static func forgetCorruption(in directory: String, _ options: OpeningOptions) throws(NodeError) {
    _ = try ifWritable(directory, options) { node throws(NodeError) in
      try node.finishRepair(options.progress)
      return ()
    }
  }

  /// Changes a node under its lock; nil if it is not writable or in use.
  private static func ifWritable<Result>(
    _ directory: String, _ options: OpeningOptions, _ body: (Node) throws(NodeError) -> Result?
  ) throws(NodeError) -> Result? {
    var writing = options
    writing.mode = .write
    writing.wait = 0
    // No event is created here that would need a new origin.
    writing.delaysOrigin = true
    do throws(NodeError) {
      let node = try open(at: directory, writing)
      return try node.locked { () throws(NodeError) in try body(node) }
    } catch {
      guard error.isRefusalToWrite || error.isInUse else { throw error }
      return nil
    }
  }

  /// Throws the known corruption of the log.
  func checkLogIsWhole() throws(NodeError) {
    if let corruption = log.recovery.corruption.first { throw .log(corruption.error) }
    guard let place = metadata.corruption?.places.first else { return }
    throw .log(
      .corrupt(
        path: Self.path(directory, Self.logDirectoryName) + "/" + place.file, offset: place.offset,
        .disagreement(place.what)))
  }

  /// Compares the tables with fresh ones. Missing tables, or tables behind the log, are not
  /// corrupt: they catch up. Partitions that a scope change purges are skipped.
  private static func compareTables(
    _ path: String, _ schema: Schema, _ log: Log, _ options: OpeningOptions,
    _ report: inout VerificationReport
  ) throws {
    let tables = try Tables.open(at: path, schema: schema, mode: .readOnly)
    let (held, applied) = try tables.read { reader throws(TablesError) in
      (try reader.versionVector(), try reader.applied())
    }
    let token = applied.token
    let isBehind = token != log.token
    // Tables that are behind show an earlier end of the log.
    if isBehind {
      // A crash may take unsynced events. The next command rebuilds such tables.
      if try log.lacksOnlyUnsynced(applied) { return }
      try compareEnd(log, held, path, &report)
      // The same holds for tables with events that no watermark confirms.
      guard log.tornTail == nil, token != .start, token.position <= log.durableEnd, try log.matches(token)
      else { return }
    }
    let found = try tables.read { reader throws(TablesError) in
      try reader.token() == token ? try reader.summary() : nil
    }
    guard let found else { return }
    let folder = try TemporaryFolder()
    defer { withExtendedLifetime(folder) {} }
    let fresh = Self.tablesPath(in: folder.path)
    _ = try rebuild(
      fresh, schema: schema, log: log, ownOrigins: [],
      filter: isBehind ? .position(Position(token.position.rawValue - 1)) : .all, progress: options.progress)
    let wanted = try Tables.openForReading(at: fresh, schema: schema)
      .read { reader throws(TablesError) in try reader.summary() }
    let isUnsettled = report.metadata?.isUnsettled ?? { _ in false }
    for what in found.differences(from: wanted, comparesHeads: !isBehind, in: { !isUnsettled($0) }) {
      report.corruption.append(.init(file: path, what: what, remedy: .rebuild))
    }
  }

  /// Tables ahead of the durable log show that the log is an older copy, or that its end is
  /// corrupt. With an empty watermark, a corrupt end looks like a torn write.
  private static func compareEnd(
    _ log: Log, _ held: VersionVector, _ tables: String, _ report: inout VerificationReport
  ) throws {
    let isUnsettled = report.metadata?.isUnsettled ?? { _ in false }
    let lead = held.restricted { !isUnsettled($0) }
      .lag(against: try log.streams { !isUnsettled($0) }).reduce(0) { $0 + $1.ahead }
    // Unconfirmed events exist, and are read after a writer has confirmed them.
    guard lead > report.unconfirmed else { return }
    let lost = lead - report.unconfirmed
    guard let torn = log.tornTail else {
      return report.corruption.append(
        .init(
          file: tables,
          what:
            "they hold \(counted(lost, "event")) that the log does not have: an older log replaced it, or "
            + "its end was lost, and the next command forgets them: copy the node first, or pull them from a "
            + "peer then",
          remedy: .pull))
    }
    report.corruption.append(
      .init(
        file: torn.path, offset: torn.offset,
        what:
          "\(torn.flaw); the tables hold \(counted(lost, "event")) that cannot be read any "
          + "more, and the next command takes this for a torn write and forgets them: copy the node first, or pull "
          + "them from a peer then", remedy: .pull))
  }
}

extension Node {
  /// Throws if the state of the node is inconsistent, and traps if its log or metadata is. For
  /// tests.
  ///
  /// - Origins are unique, and the metadata names this log.
  /// - The tables are consistent, have no open transaction, and hold all streams of the log.
  /// - All events are in scope.
  ///
  /// Skips corrupt parts and unfinished operations. A writable node takes the lock and refreshes.
  package func checkInvariants() throws(NodeError) {
    guard options.mode == .write else { return try checkBeliefs() }
    try locked { () throws(NodeError) in try checkBeliefs() }
  }

  private func checkBeliefs() throws(NodeError) {
    log.checkInvariants()
    writer.clock.checkInvariants()
    metadata.checkInvariants()
    func require(_ holds: Bool, _ what: String) throws(NodeError) {
      if !holds { throw .corrupt(what: what) }
    }
    try require(log.id == metadata.logID, "the node metadata names another log")
    do { try tables.checkInvariants() } catch { throw .tables(error) }
    guard metadata.corruption == nil, log.recovery.corruption.isEmpty, !metadata.isUnfinished else { return }
    try reading { try $0.checkInvariants() }
    let applied = try reading { try $0.applied() }
    let token = applied.token
    let held = try reading { try $0.versionVector() }
    try require(applied.synced == log.syncedToken, "log and tables are durable up to different positions")
    try require(token == log.token, "the tables are at \(token.position), the log at \(log.end)")
    try Self.wrapping {
      if try log.streams() != held { throw NodeError.corrupt(what: "log and tables hold other streams") }
    }
    for partition in held.partitions.keys {
      try require(metadata.scope.contains(partition), "\(partition) is held, outside of the scope")
    }
  }
}
