import StemmaEvents

/// The streams and commits of the events that a rebuild reads, and the highest time of those from other nodes.
struct StreamSummary: Sendable {
  private struct Name: Hashable {
    let partition: Partition
    let origin: Origin
  }

  private let known: Knowledge?
  private var heads: [Name: StreamHead] = [:]
  private var commits: [CommitID] = []
  private var clock = HybridClock()
  private let ownOrigins: [Origin]
  private var digester = EventDigester()
  /// Of the last event, as the next one mostly has the same.
  private var lastOrigin: (origin: Origin, isOwn: Bool)?
  private var lastCommit = 0

  /// `known`: the heads of all streams, if they need not be taken from the events.
  init(_ known: Knowledge?, ownOrigins: [Origin]) {
    self.known = known
    self.ownOrigins = ownOrigins
  }

  /// Notes what every event tells.
  mutating func note(by origin: Origin, commit: CommitID, timestamp: Timestamp) {
    if lastOrigin?.origin != origin { lastOrigin = (origin, ownOrigins.contains(origin)) }
    if lastOrigin?.isOwn != true, timestamp > clock.highest { clock.observe(timestamp) }
    if lastCommit < commits.count, commits[lastCommit].origin == commit.origin {
      if commits[lastCommit].number < commit.number { commits[lastCommit] = commit }
      return
    }
    for index in commits.indices where commits[index].origin == commit.origin {
      if commits[index].number < commit.number { commits[index] = commit }
      lastCommit = index
      return
    }
    lastCommit = commits.count
    commits.append(commit)
  }

  mutating func note(_ event: Event) {
    note(by: event.dot.origin, commit: event.commit, timestamp: event.timestamp)
    guard known == nil else { return }
    let name = Name(partition: event.partition, origin: event.dot.origin)
    var head = heads[name] ?? .none
    head.sequence = max(head.sequence, event.dot.sequence)
    head.hash += digester.digest(of: event).hash
    heads[name] = head
  }

  /// Traps if a stream or a commit is known twice over, or in two ways. In debug builds before it is written.
  func checkInvariants() {
    precondition(known == nil || heads.isEmpty, "what is known is not taken from the events")
    precondition(heads.values.allSatisfy { $0.sequence > .zero }, "a stream has an event")
    precondition(Set(commits.map(\.origin)).count == commits.count, "of each origin the last commit is kept")
    precondition(lastCommit < max(1, commits.count), "the commit of the last event is among them")
    if let (origin, isOwn) = lastOrigin { precondition(isOwn == ownOrigins.contains(origin), "whose it was") }
    clock.checkInvariants()
  }

  func write(to connection: Connection) throws(TablesError) {
    assert(holds(checkInvariants))
    var all: [(Partition, Origin, StreamHead)] = heads.map { ($0.partition, $0.origin, $1) }
    for (partition, streams) in known?.partitions ?? [:] {
      all += streams.map { (partition, $0, $1) }
    }
    all.sort { $0.0 != $1.0 ? $0.0 < $1.0 : $0.1 < $1.1 }
    let statement = try connection.prepareOnce(HeadRow.upsertStream)
    for (partition, origin, head) in all where head.sequence > .zero {
      try HeadRow(partition, origin, head).write(by: statement)
    }
    for commit in commits.sorted() {
      let row = HeadRow(commit.origin, commit: commit.number)
      try row.write(by: connection.prepareOnce(HeadRow.upsertCommit))
    }
    try Meta.write(clock: clock.highest, to: connection)
  }
}
