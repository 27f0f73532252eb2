import StemmaEvents
import StemmaLog
import StemmaReplication

/// The result of a fork repair.
package struct ForkReport: Sendable {
  /// The number of rewritten events.
  package var events: UInt64 = 0
  package var partitions: [String] = []
  /// Partitions in which the peer holds events under retired ids. The peer needs the same repair.
  package var behind: [String] = []
}

extension Node {
  /// Repairs a fork: this node and a peer hold different events under the same ids, because one
  /// writer was copied or restored and wrote again. Rewrites this node's branch and its dependents
  /// under new ids derived from the events, and removes the old ones. Also renames branches that
  /// the peer retired. Rebuilds the tables; the next sync fetches the peer's branch.
  ///
  /// Every node with the branch runs this, in any order, against a node that ran it or has the
  /// other branch. The decision is durable before any change (`pendingFork`), so the next writer
  /// completes an interrupted repair without duplicates.
  package func repairFork(
    with remote: RemotePeer, progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> ForkReport {
    let peer = try peerForReading(remote)
    return try locked { () throws(NodeError) in
      try checkLogIsWhole()
      for node in [self, peer] { try node.checkNames() }
      let comparison = try compare(with: peer)
      var report = ForkReport()
      report.behind = Set(comparison.behind.map(\.partition)).sorted().map(\.description)
      metadata.retired = comparison.retired
      guard !comparison.held.isEmpty else {
        try saveMetadata()
        return report
      }
      let renaming = try renaming(of: comparison.held)
      let branches = [ForkedBranch](merging: renaming.branches.values)
      metadata.retired = [ForkedBranch](merging: metadata.retired + branches)
      metadata.pendingFork = PendingFork(branches)
      nameNewOrigins(of: branches)
      if branches.contains(where: { $0.origin == metadata.origin.rawValue }) {
        try beginOrigin(because: "events of its origin were written again to repair a fork")
      } else {
        try saveMetadata()
      }
      try finishFork(progress)
      report.events = UInt64(renaming.count)
      report.partitions = Set(branches.map(\.partition)).sorted()
      return report
    }
  }

  /// Shows the writer of the old events as the writer of the renamed ones.
  func nameNewOrigins(of branches: [ForkedBranch]) {
    for branch in branches {
      let (old, new) = (Origin(branch.origin), branch.newOrigin)
      if metadata.origins.contains(old) {
        // The last origin is the one in use for writing.
        if !metadata.origins.contains(new) { metadata.origins.insert(new, at: metadata.origins.count - 1) }
      } else {
        metadata.names[new] = metadata.names[old]
      }
    }
  }

  /// Completes a decided fork repair. The caller holds the writer lock.
  func finishFork(_ progress: @escaping (UInt64, UInt64) -> Void) throws(NodeError) {
    guard let pending = metadata.pendingFork else { return }
    do { _ = try log.refresh() } catch { throw .log(error) }
    // Corrupt files cannot be rewritten, so the fork repair waits for the repair of the log.
    guard metadata.corruption == nil, log.recovery.corruption.isEmpty else { return }
    let first = pending.branches.starts
    if !pending.isWritten {
      let commits = try renaming(of: pending.branches).commits
      try Self.wrapping {
        if !commits.isEmpty { _ = try log.append(commits) }
        try log.sync()
      }
      metadata.pendingFork?.isWritten = true
      try saveMetadata()
    }
    let partitions = Set(first.keys.map(\.partition))
    try Self.wrapping {
      try log.purge({ partitions.contains($0) }) { first.contains($0.event) }
    }
    _ = try Self.rebuild(
      tablesPath, schema: schema, log: log, ownOrigins: metadata.origins, progress: progress)
    try reopenTables()
    do { try finishFollowing(log.token) } catch { try Self.wrapping { throw error } }
    metadata.pendingFork = nil
    try saveMetadata()
  }

  /// New ids for the events of branches. The same log gives the same ids.
  private func renaming(of branches: [ForkedBranch]) throws(NodeError) -> Renaming {
    let partitions = Set(branches.map(\.first.partition))
    var renaming = Renaming(branches)
    try Self.wrapping {
      var reader = log.events(partitions: PartitionFilter(named: partitions))
      while let event = try reader.next()?.event { renaming.take(event, reader.message) }
    }
    return renaming
  }

  private struct ForkComparison {
    /// All branches that are or must be renamed at this node or the peer.
    var retired: [ForkedBranch]
    /// Retired branches that this node holds under their old ids.
    var held: [ForkedBranch] = []
    /// First events of branches that the peer holds under old ids.
    var behind: [QualifiedEventID] = []
  }

  /// Compares the streams in which both nodes differ, and the retired ones. Reads their partitions.
  private func compare(with peer: Node) throws(NodeError) -> ForkComparison {
    let own = try reading { try $0.versionVector() }
    let theirs = try peer.reading { try $0.versionVector() }
    var streams: Set<QualifiedEventID> = []
    for (partition, heads) in own.partitions {
      for (origin, head) in heads {
        let other = theirs[partition, origin]
        if other.sequence > .zero, head != other {
          streams.insert(QualifiedEventID(stream: partition, origin))
        }
      }
    }
    var comparison = ForkComparison(
      retired: [ForkedBranch](merging: metadata.retired + peer.metadata.retired))
    streams.formUnion(comparison.retired.map(\.stream))
    let (mine, others) = (try digests(of: streams), try peer.digests(of: streams))
    var forks: [QualifiedEventID: QualifiedEventID] = [:]
    for (name, digest) in mine {
      guard let other = others[name], other != digest else { continue }
      let stream = QualifiedEventID(stream: name.partition, name.id.origin)
      if let known = forks[stream], known.id.sequence < name.id.sequence { continue }
      forks[stream] = name
    }
    for name in forks.values {
      guard let digest = mine[name], let other = others[name] else { continue }
      let (branch, theirs) = (ForkedBranch(name, digest), ForkedBranch(name, other))
      if comparison.retired.contains(branch) { continue }
      if comparison.retired.contains(theirs) {
        comparison.behind.append(name)
      } else {
        comparison.retired = [ForkedBranch](merging: comparison.retired + [branch])
      }
    }
    comparison.held = comparison.retired.filter { mine[$0.first] == $0.digest }
    comparison.behind += comparison.retired.filter { others[$0.first] == $0.digest }.map(\.first)
    return comparison
  }

  /// The digests of all events of some streams.
  private func digests(of streams: Set<QualifiedEventID>) throws(NodeError) -> [QualifiedEventID: StreamHash]
  {
    let partitions = Set(streams.map(\.partition))
    return try Self.wrapping {
      var digests: [QualifiedEventID: StreamHash] = [:]
      var digester = EventDigester()
      var reader = log.events(partitions: PartitionFilter(named: partitions))
      while let event = try reader.next()?.event {
        guard streams.contains(QualifiedEventID(streamOf: event)) else { continue }
        digests[event.name] = digester.digest(of: event).hash
      }
      return digests
    }
  }
}

extension Node {
  /// Throws `.duplicateEvents` if the log holds an event id twice. Reads the file trailers; if they
  /// count more events than the tables, also reads footers and journals.
  func checkNames() throws(NodeError) {
    let events = try Self.wrapping { try log.files().reduce(0) { $0 + $1.events } }
    guard try events > reading({ try $0.eventCount() }) else { return }
    do throws(LogError) { _ = try log.streams() } catch {
      guard case .corrupt(_, _, .duplicate(let partition, let id)) = error else { return }
      throw .duplicateEvents(
        node: metadata.name, path: directory, partition: partition.description, event: description.name(id))
    }
  }
}

extension Node {
  /// Throws `fork` if this node holds more of a stream than a peer, and the common part differs.
  ///
  /// A shipment detects a fork only in a stream that it continues. Events that depend on one branch
  /// could be adopted beside the other, where their contexts name other events. Reads the streams
  /// beyond the common part.
  ///
  /// - Parameter theirs: what the peer holds of the exchanged partitions.
  func refuseForks(against theirs: VersionVector, of peer: String) throws(NodeError) {
    let held = try reading { try $0.versionVector() }
    var ahead: [QualifiedEventID] = []
    for (partition, streams) in theirs.partitions {
      for (origin, head) in streams
      where head.sequence > .zero && held[partition, origin].sequence > head.sequence {
        ahead.append(QualifiedEventID(partition: partition, id: EventID(origin, head.sequence)))
      }
    }
    // Corrupt parts are skipped.
    let ours = try Self.wrapping { try log.streamHashes(ahead, of: held, around: Omissions()) }
    for end in ahead.sorted(by: { ($0.partition, $0.id) < ($1.partition, $1.id) }) {
      let other = theirs[end.partition, end.id.origin].hash
      guard let mine = ours[end], mine != other else { continue }
      throw .replication(
        .fork(
          Fork(
            partition: end.partition, origin: end.id.origin, sequence: end.id.sequence,
            finder: Fork.Side(node: metadata.name, hash: mine),
            peer: Fork.Side(node: peer, hash: other))))
    }
  }
}
