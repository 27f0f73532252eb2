import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema
import StemmaTables

/// The result of a repair or of its dry run.
package struct RepairReport: Sendable {
  /// Names of the corrupt files in `log/` that were rewritten. The originals are in `log/corrupt/`.
  package var files: [String] = []
  /// The number of restored events.
  package var events: UInt64 = 0
  /// Events that are still lost. Without acceptance of the loss, nothing was changed.
  package var missing: [RecordedCorruption.Loss] = []
  /// The number of events that were written from the tables to replace lost ones.
  package var written: UInt64 = 0
  /// Partitions in which a peer holds different events under the same ids; nothing was changed.
  package var refused: [String] = []
  /// Whether the corrupt files may have held events beyond the known losses.
  package var isVague = false
  /// Whether the log is complete after the repair, or would be after a dry run.
  package var isWhole = true
  /// Names of the peers that had none of the lost events.
  package var strangers: [String] = []

  package var json: JSON {
    .object([
      ("files", .array(files.map { .string($0) })), ("events", .int(Int64(clamping: events))),
      ("missing", .array(missing.map(\.json))), ("written", .int(Int64(clamping: written))),
      ("refused", .array(refused.map { .string($0) })), ("isWhole", .bool(isWhole)),
    ])
  }
}

extension Node {
  /// Repairs a corrupt log. A temporary node holds each affected partition up to its first lost
  /// event, pulls the rest from peers, and adds readable events that they lack. The log then
  /// changes atomically: corrupt files are rewritten, and the originals move to `log/corrupt/`. The
  /// pulled events replace the rest of these partitions. The tables are rebuilt.
  ///
  /// If events are still missing, nothing changes unless the loss is accepted. Then each stream
  /// ends before its first lost event, and events that depend on lost ones are removed. The rows of
  /// the tables are written as events of a new origin. A later pull can still fetch lost events. If
  /// the extent of the loss is unknown, the repair ends with a pull from every peer.
  ///
  /// An interrupted repair is complete or has no effect. Memory: the ids of the pulled events.
  /// - Parameters:
  ///   - acceptsLoss: continue without the missing events.
  ///   - isDryRun: report what a repair would do, and leave the log unchanged.
  /// - Throws: `.notAPeer`, or `.log` if a file cannot be read or written.
  package func repair(
    from remotes: [RemotePeer], acceptsLoss: Bool = false, isDryRun: Bool = false, author: String? = nil,
    progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> RepairReport {
    if isDryRun { return try repairLocked(from: remotes, acceptsLoss, true, author, progress) }
    var report = try locked { () throws(NodeError) in
      try remakingCorruptTables { () throws(NodeError) in
        try Self.wrapping { try log.verify() }
      } _: { () throws(NodeError) in
        try repairLocked(from: remotes, acceptsLoss, false, author, progress)
      }
    }
    guard report.isVague, report.isWhole else { return report }
    for remote in remotes {
      let pulled = try exchange(with: remote, pulls: true, pushes: false, partitions: [], progress: progress)
      report.events += pulled.pulled?.events ?? 0
    }
    return report
  }

  private func repairLocked(
    from remotes: [RemotePeer], _ acceptsLoss: Bool, _ isDryRun: Bool, _ author: String?,
    _ progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> RepairReport {
    let found = try Self.wrapping { try log.verify() }
    var report = RepairReport()
    if log.isHarmless(found) {
      if metadata.corruption != nil, !isDryRun { try finishRepair(progress) }
      return report
    }
    if !isDryRun { try recordCorruption(found) }
    let losses = try losses(of: found)
    let corrupt = Set(found.filter { !log.isHarmless([$0]) }.map(\.path))
    report.files = corrupt.map(\.fileName).sorted()
    report.missing = RecordedCorruption.losses(losses.ranges)
    report.isVague = losses.isVague
    report.isWhole = false
    let canGoOn = acceptsLoss || !remotes.isEmpty || losses.ranges.isEmpty && !losses.isVague
    guard canGoOn else { return report }
    let copy = losses.ranges.isEmpty ? nil : try PartitionCopy(of: self, losses, author: author)
    var failure: NodeError?
    for remote in remotes {
      do throws(NodeError) {
        let events = try copy?.pull(from: remote, progress) ?? 0
        if events == 0, copy != nil { report.strangers.append(remote.name) }
      } catch {
        // Another peer may have what a corrupt one lacks.
        guard case .replication(.corruptLog) = error else { throw error }
        failure = failure ?? error
      }
    }
    if let copy {
      try copy.addReadableEvents()
      report.missing = RecordedCorruption.losses(copy.missing)
      report.refused = copy.refused.sorted().map(\.description)
      report.events = losses.ranges.reduce(0) { $0 + $1.count } - copy.missing.reduce(0) { $0 + $1.count }
    }
    if !report.refused.isEmpty { return report }
    let isLossy = !(copy?.isComplete ?? true)
    if isLossy, let failure { throw failure }
    if isLossy, !acceptsLoss { return report }
    if isLossy || losses.isVague, acceptsLoss {
      let origin = Origin(ports.newID())
      if !isDryRun {
        try beginOrigin(because: "lost events were accepted", origin)
        // The rebuild of the tables includes this origin in the node's own.
      }
      report.written = try copy?.writeRows(as: isDryRun ? origin : metadata.origin) ?? 0
    }
    report.isWhole = true
    if isDryRun { return report }
    try Self.wrapping {
      let parts = copy?.parts()
      try log.repair(corrupt, removing: { copy?.partitions.contains($0) == true }) {
        $0.position >= losses.start
      } appending: { () throws(LogError) in
        try parts?.next()
      }
    }
    try finishRepair(progress)
    if losses.isVague, !acceptsLoss {
      // This node may have written more than `losses` lists. A peer that has it sends it later.
      try beginOrigin(because: "events of this node may be lost")
    }
    return report
  }

  /// The record of the corruption is removed only after the tables follow the complete log.
  func finishRepair(_ progress: @escaping (UInt64, UInt64) -> Void) throws(NodeError) {
    _ = try Self.rebuild(
      tablesPath, schema: schema, log: log, ownOrigins: metadata.origins, progress: progress)
    try reopenTables()
    tablesState.rememberAll = true
    metadata.corruption = nil
    try saveMetadata()
    do { try finishFollowing(log.token) } catch { try Self.wrapping { throw error } }
  }

  /// Removes recorded corruption of files that the log no longer lists: a crashed repair left it
  /// behind. The caller holds the writer lock.
  func forgetRepairedCorruption() throws(NodeError) {
    if Self.isRepaired(metadata, log) { try finishRepair(options.progress) }
  }

  /// Whether the recorded corruption concerns only files that the log no longer lists.
  static func isRepaired(_ metadata: NodeMetadata, _ log: Log) -> Bool {
    guard let corruption = metadata.corruption, log.recovery.corruption.isEmpty else { return false }
    return !corruption.places.contains { log.lists($0.file) }
  }

  func peerForReading(_ remote: RemotePeer) throws(NodeError) -> Node {
    let peer: Node
    do throws(NodeError) {
      peer = try Self.open(at: remote.address, options.ofPeer(writes: false))
    } catch .noNode {
      throw .notAPeer(path: remote.address, reason: "there is no node in that directory")
    }
    // A copy has the same log id, and may hold events that this node lost.
    if peer.metadata.logID == metadata.logID,
      peer.log.recovery.watermarkIdentity == log.recovery.watermarkIdentity
    {
      throw .notAPeer(path: remote.address, reason: "it is this node itself")
    }
    return peer
  }

  /// Rebuilds the manifest of a node's log from the files, if both manifests are lost, or if a
  /// remade one lacks files. Returns the listed files, and names for those that are missing.
  package static func remakeManifest(
    at directory: String, _ options: OpeningOptions
  ) throws(NodeError) -> (files: [String], missing: [String]) {
    let metadata = try readMetadata(directory, options.ports)
    let place = path(directory, logDirectoryName)
    return try wrapping {
      let lock = try WriterLock(
        path(directory, lockFileName), fileSystem: options.ports.fileSystem, wait: options.waitMilliseconds)
      defer { lock.release() }
      do throws(LogError) {
        let log = try Log.open(
          in: place, id: metadata.logID, fileSystem: options.ports.fileSystem, options: options.log(.readOnly)
        )
        if !log.listsUnknownFiles { return ([], []) }
      } catch { guard case .noManifest = error else { throw error } }
      return try Log.remakeManifest(in: place, id: metadata.logID, fileSystem: options.ports.fileSystem)
    }
  }
}

extension Node {
  /// Recreates the metadata of a node that lost both copies. The log identifies itself; the other
  /// entries are lost. The node begins a new origin, has everything in scope, and knows no remotes.
  ///
  /// - Throws: `noSchema`, `badSchema` or `alreadyANode`; `.log(.noLog)` if no readable headers
  ///   agree on the id of the log.
  package static func recreateMetadata(
    at directory: String, name: String, _ options: OpeningOptions
  ) throws(NodeError) {
    let ports = options.ports
    _ = try readSchema(directory, ports)
    try wrapping {
      let lock = try WriterLock(
        path(directory, lockFileName), fileSystem: ports.fileSystem, wait: options.waitMilliseconds)
      defer { lock.release() }
      for file in [NodeMetadata.fileName, NodeMetadata.copyName] where try ports.exists(file, in: directory) {
        throw NodeError.alreadyANode(path: directory)
      }
      let place = path(directory, logDirectoryName)
      guard let id = try Log.id(in: place, fileSystem: ports.fileSystem) else {
        throw LogError.noLog(path: place)
      }
      let log = try Log.open(
        in: place, id: id, fileSystem: ports.fileSystem, options: options.log(.readOnly))
      var metadata = NodeMetadata(
        logID: id, name: name, origins: [Origin(ports.newID())],
        watermark: log.recovery.watermarkIdentity ?? .none, scope: .everything)
      metadata.cutCount = log.recovery.cutCount
      metadata.isRecreated = true
      try save(metadata, in: directory, ports)
    }
  }
}

extension Node {
  /// Stores events in the given order and refreshes the tables. Returns the end of the log.
  func take(_ source: @escaping EventParts.Source) throws(NodeError) -> Position {
    let parts = EventParts(size: log.segmentSize, source)
    return try locked { () throws(NodeError) in
      try Self.wrapping { while let part = try parts.next() { _ = try log.adopt(part) } }
      try catchUp()
      return log.end
    }
  }
}
