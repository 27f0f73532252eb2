import StemmaEvents
import StemmaLog
import StemmaReplication

/// What mending a fork did.
package struct ForkReport: Sendable {
  /// Events that were written again under the new origin.
  package var events: UInt64 = 0
  package var partitions: [String] = []
  package var notices: [String] = []
}

/// A fork whose mending was decided, and perhaps not carried out to its end: kept in the mark, so that whoever takes
/// the writer lock next finishes it.
package struct PendingFork: Sendable, Equatable, Encodable {
  /// What they are written under. Nothing else is.
  var origin: UInt64
  /// What is written again.
  var streams: [StreamSuffix]
  /// Whether all of them are written again, durably, so that the old ones may go.
  var isWritten = false

  fileprivate init(_ streams: [EventName: Sequence], origin: Origin) {
    self.origin = origin.rawValue
    self.streams = [StreamSuffix](streams)
  }

  init(_ stored: MarkReader) throws(NodeError) {
    origin = try stored.number("origin")
    streams = try stored.streams("streams")
    isWritten = try stored.flag("isWritten")
  }
}

extension Node {
  /// Mends a fork: this node was copied or set back, and wrote again under numbers that a peer holds other events
  /// for. Its own events from there on are written again under a new origin, with everything of its own that
  /// builds on them, and removed under their old names; the next sync fetches the peer's. The tables are rebuilt.
  ///
  /// What is to be done is decided durably first (`pendingFork`); interrupted, it is finished by whoever writes to
  /// the node next, and no event is written twice.
  /// - Throws: `.forkIsSpread` if events of another node build on what would be renamed: then that node must be
  ///   asked for what it knows. No event was changed.
  package func repairFork(
    with remote: RemotePeer, progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) -> ForkReport {
    let peer = try peerForReading(remote)
    return try locked { () throws(NodeError) in
      try checkLogIsWhole()
      let fork = try forkedStreams(against: peer)
      var report = ForkReport()
      guard !fork.isEmpty else { return report }
      try beginOrigin(because: "it wrote under numbers for which \(peer.mark.name) holds other events")
      let renaming = try renaming(of: fork, under: mark.origin)
      mark.pendingFork = PendingFork(renaming.fork, origin: mark.origin)
      try saveMark()
      try finishFork(progress)
      report.events = UInt64(renaming.renamed.count)
      report.partitions = Set(fork.keys.map(\.partition)).sorted().map(\.description)
      report.notices = notices
      return report
    }
  }

  /// Carries out the mending of a fork that was decided. The writer lock must be held.
  func finishFork(_ progress: @escaping (UInt64, UInt64) -> Void) throws(NodeError) {
    guard let pending = mark.pendingFork else { return }
    do { _ = try log.refresh() } catch { throw .log(error) }
    let next = Origin(pending.origin)
    guard mark.damage == nil, log.recovery.damage.isEmpty else {
      // Damaged files cannot be rewritten: it waits for the repair, and its numbers are not used meanwhile.
      if mark.origin == next { try beginOrigin(because: "the mending of a fork waits for a repair") }
      return
    }
    let first = pending.streams.starts
    if !pending.isWritten {
      let renaming = try renaming(of: first, under: next)
      try Self.wrapping {
        _ = try log.append(renaming.commits)
        try log.sync()
      }
      mark.pendingFork?.isWritten = true
      try saveMark()
    }
    let partitions = Set(first.keys.map(\.partition))
    try Self.wrapping {
      try log.purge({ partitions.contains($0) }) { first.contains($0) }
    }
    _ = try Self.rebuild(
      tablesPath, schema: schema, log: log, ownOrigins: mark.origins, progress: progress)
    try reopenTables()
    do { try finishFollowing(log.token) } catch { try Self.wrapping { throw error } }
    mark.pendingFork = nil
    try saveMark()
  }

  /// New names for the events of a fork, without the commits that were written already before an interruption:
  /// the same log gives the same names.
  private func renaming(
    of fork: [EventName: Sequence], under next: Origin
  ) throws(NodeError) -> Renaming {
    let partitions = Set(fork.keys.map(\.partition))
    var renaming = Renaming(fork: fork, own: Set(mark.origins), next: next)
    try Self.wrapping {
      var written: Set<EventName> = []
      var reader = log.events(partitions: { partitions.contains($0) })
      while let event = try reader.next()?.event {
        if event.dot.origin == next {
          written.insert(event.name)
        } else {
          try renaming.take(event, reader.note)
        }
      }
      renaming.forget(written)
    }
    return renaming
  }

  /// Streams of this node's own origins of which the peer holds other events, with the first sequence that
  /// differs. Reads the partitions in which both hold any of them.
  private func forkedStreams(against peer: Node) throws(NodeError) -> [EventName: Sequence] {
    let own = try reading { try $0.knowledge() }
    let theirs = try peer.reading { try $0.knowledge() }
    let origins = Set(mark.origins)
    let shared = Set(
      own.partitions.filter { partition, streams in
        streams.keys.contains { origins.contains($0) && theirs[partition, $0].sequence > .zero }
      }.keys)
    return try Self.wrapping {
      var digests: [EventName: StreamHash] = [:]
      var digester = EventDigester()
      var reader = log.events(partitions: { shared.contains($0) })
      while let event = try reader.next()?.event {
        guard origins.contains(event.dot.origin) else { continue }
        digests[event.name] = digester.digest(of: event).hash
      }
      var fork: [EventName: Sequence] = [:]
      var other = peer.log.events(partitions: { shared.contains($0) })
      while let event = try other.next()?.event {
        guard let known = digests[event.name], known != digester.digest(of: event).hash else { continue }
        let stream = EventName(streamOf: event)
        fork[stream] = min(fork[stream] ?? event.dot.sequence, event.dot.sequence)
      }
      return fork
    }
  }
}

/// Gives events new names under a new origin.
private struct Renaming {
  /// An event of a record, and what it is called now.
  private struct Known {
    var dot: Dot
    var renamed: Dot?
  }

  /// Streams that are renamed, each from a sequence on.
  private(set) var fork: [EventName: Sequence]
  private let own: Set<Origin>
  private let next: Origin
  private var records: [RecordKey: [Known]] = [:]
  private var sequences: [Partition: Sequence] = [:]
  private var commitNumbers: [CommitID: UInt64] = [:]
  private(set) var commits: [Commit] = []
  /// From old names to new ones.
  private(set) var renamed: [EventName: EventName] = [:]

  init(fork: [EventName: Sequence], own: Set<Origin>, next: Origin) {
    self.fork = fork
    self.own = own
    self.next = next
  }

  /// The next event of the log, in arrival order.
  mutating func take(_ event: Event, _ note: CommitNote?) throws(NodeError) {
    let record = RecordKey(event)
    let stream = EventName(streamOf: event)
    let covered = (records[record] ?? []).filter { event.context.covers($0.dot) }
    let isForked = fork.contains(event)
    guard isForked || covered.contains(where: { $0.renamed != nil }) else {
      records[record, default: []].append(Known(dot: event.dot, renamed: nil))
      return
    }
    guard own.contains(event.dot.origin) else { throw .forkIsSpread("\(event.dot) of \(event.partition)") }
    // What this origin wrote to the partition afterwards would stand behind a hole.
    if !isForked { fork[stream] = event.dot.sequence }
    let dot = Dot(next, (sequences[event.partition] ?? .zero).next)
    sequences[event.partition] = dot.sequence
    renamed[event.name] = EventName(partition: event.partition, dot: dot)
    records[record, default: []].append(Known(dot: event.dot, renamed: dot))
    var copy = event
    copy.dot = dot
    copy.cause = event.cause.map { renamed[$0] ?? $0 }
    copy.context = .empty
    for known in covered { copy.context.insert(known.renamed ?? known.dot) }
    append(copy, event.commit, note)
  }

  /// Leaves out the commits of events that are written already; each is written as a whole.
  mutating func forget(_ written: Set<EventName>) {
    commits.removeAll { $0.events.allSatisfy { written.contains($0.name) } }
  }

  private mutating func append(_ event: Event, _ old: CommitID, _ note: CommitNote?) {
    var copy = event
    let isOpen = commits.last?.events.last?.commit.number == commitNumbers[old]
    let number = commitNumbers[old] ?? UInt64(commitNumbers.count) + 1
    commitNumbers[old] = number
    copy.commit = CommitID(next, number)
    if isOpen, !commits.isEmpty {
      commits[commits.count - 1].events.append(copy)
    } else {
      commits.append(Commit([copy], note: note ?? CommitNote()))
    }
  }
}
