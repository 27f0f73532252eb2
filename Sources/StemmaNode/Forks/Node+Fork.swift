import StemmaEvents
import StemmaLog
import StemmaReplication

/// What mending a fork did.
package struct ForkReport: Sendable {
  /// Events that were written again.
  package var events: UInt64 = 0
  /// Those of them that may have seen either of two pasts, and count as having seen what both share.
  package var unsure: UInt64 = 0
  /// Events that this node's log had twice.
  package var copies: UInt64 = 0
  package var partitions: [String] = []
  /// Partitions of which the peer holds events that this node knows under new names: it has to learn them.
  package var behind: [String] = []
}

/// A fork whose mending was decided, and perhaps not carried out to its end: kept in the mark, so that whoever takes
/// the writer lock next finishes it.
package struct PendingFork: Sendable, Equatable, Encodable {
  /// What is written again.
  var branches: [ForkedBranch]
  /// Whether all of them are written again, durably, so that the old ones may go.
  var isWritten = false

  fileprivate init(_ branches: [ForkedBranch]) { self.branches = branches }

  init(_ stored: MarkReader) throws(NodeError) {
    branches = try stored.branches("branches")
    isWritten = try stored.flag("isWritten")
  }
}

extension Node {
  /// Mends a fork: under some names this node and a peer hold different events, since one of those who wrote them was
  /// copied or set back, and wrote again. This node's branch is written again under new names, which depend on the
  /// events alone, with everything that builds on it, and removed under its old names; the next sync fetches the
  /// peer's. What the peer has done so before is done here too. The tables are rebuilt.
  ///
  /// Every node that holds the branch has to do it, from a peer that has done it or that holds the other one, in any
  /// order: then all hold all events once. What is to be done is decided durably first (`pendingFork`); interrupted, it
  /// is finished by whoever writes to the node next, and no event is written twice.
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
      mark.retired = comparison.retired
      guard !comparison.held.isEmpty else {
        try saveMark()
        return report
      }
      let renaming = try renaming(of: comparison.held)
      let branches = [ForkedBranch](merging: renaming.branches.values)
      mark.retired = [ForkedBranch](merging: mark.retired + branches)
      mark.pendingFork = PendingFork(branches)
      nameNewOrigins(of: branches)
      if branches.contains(where: { $0.origin == mark.origin.rawValue }) {
        try beginOrigin(because: "events of its origin were written again to mend a fork")
      } else {
        try saveMark()
      }
      try finishFork(progress)
      report.events = UInt64(renaming.count)
      report.partitions = Set(branches.map(\.partition)).sorted()
      return report
    }
  }

  /// Whoever wrote the events is shown as their writer, by their new names too.
  func nameNewOrigins(of branches: [ForkedBranch]) {
    for branch in branches {
      let (old, new) = (Origin(branch.origin), branch.newOrigin)
      if mark.origins.contains(old) {
        // The last one is what is written under.
        if !mark.origins.contains(new) { mark.origins.insert(new, at: mark.origins.count - 1) }
      } else {
        mark.names[new] = mark.names[old]
      }
    }
  }

  /// Carries out the mending of a fork that was decided. The writer lock must be held.
  func finishFork(_ progress: @escaping (UInt64, UInt64) -> Void) throws(NodeError) {
    guard let pending = mark.pendingFork else { return }
    do { _ = try log.refresh() } catch { throw .log(error) }
    // Damaged files cannot be rewritten: it waits for the repair.
    guard mark.damage == nil, log.recovery.damage.isEmpty else { return }
    let first = pending.branches.starts
    if !pending.isWritten {
      let commits = try renaming(of: pending.branches).commits
      try Self.wrapping {
        if !commits.isEmpty { _ = try log.append(commits) }
        try log.sync()
      }
      mark.pendingFork?.isWritten = true
      try saveMark()
    }
    let partitions = Set(first.keys.map(\.partition))
    try Self.wrapping {
      try log.purge({ partitions.contains($0) }) { first.contains($0.event) }
    }
    _ = try Self.rebuild(
      tablesPath, schema: schema, log: log, ownOrigins: mark.origins, progress: progress)
    try reopenTables()
    do { try finishFollowing(log.token) } catch { try Self.wrapping { throw error } }
    mark.pendingFork = nil
    try saveMark()
  }

  /// New names for the events of branches: the same log gives the same names.
  private func renaming(of branches: [ForkedBranch]) throws(NodeError) -> Renaming {
    let partitions = Set(branches.map(\.first.partition))
    var renaming = Renaming(branches)
    try Self.wrapping {
      var reader = log.events(partitions: { partitions.contains($0) })
      while let event = try reader.next()?.event { renaming.take(event, reader.note) }
    }
    return renaming
  }

  private struct ForkComparison {
    /// All branches that are written again, here or at the peer, or must be.
    var retired: [ForkedBranch]
    /// Those of them that this node holds under their old names.
    var held: [ForkedBranch] = []
    /// First events of those that the peer holds, and this node knows under new names.
    var behind: [EventName] = []
  }

  /// Compares the streams that both hold, and not equally. Reads their partitions, and those of branches.
  private func compare(with peer: Node) throws(NodeError) -> ForkComparison {
    let own = try reading { try $0.knowledge() }
    let theirs = try peer.reading { try $0.knowledge() }
    var streams: Set<EventName> = []
    for (partition, heads) in own.partitions {
      for (origin, head) in heads {
        let other = theirs[partition, origin]
        if other.sequence > .zero, head != other { streams.insert(EventName(stream: partition, origin)) }
      }
    }
    var comparison = ForkComparison(retired: [ForkedBranch](merging: mark.retired + peer.mark.retired))
    streams.formUnion(comparison.retired.map(\.stream))
    let (mine, others) = (try digests(of: streams), try peer.digests(of: streams))
    var forks: [EventName: EventName] = [:]
    for (name, digest) in mine {
      guard let other = others[name], other != digest else { continue }
      let stream = EventName(stream: name.partition, name.dot.origin)
      if let known = forks[stream], known.dot.sequence < name.dot.sequence { continue }
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
  private func digests(of streams: Set<EventName>) throws(NodeError) -> [EventName: StreamHash] {
    let partitions = Set(streams.map(\.partition))
    return try Self.wrapping {
      var digests: [EventName: StreamHash] = [:]
      var digester = EventDigester()
      var reader = log.events(partitions: { partitions.contains($0) })
      while let event = try reader.next()?.event {
        guard streams.contains(EventName(streamOf: event)) else { continue }
        digests[event.name] = digester.digest(of: event).hash
      }
      return digests
    }
  }
}
