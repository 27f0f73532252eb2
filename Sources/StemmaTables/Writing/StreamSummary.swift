import StemmaEvents

/// The streams and commits of a rebuild's events, and the highest time from other nodes.
struct StreamSummary: Sendable {
  private let known: VersionVector?
  private var heads: [StreamID: StreamHead] = [:]
  private var commits: [CommitID] = []
  private var clock = HybridClock()
  private let ownOrigins: [Origin]
  private var digester = EventDigester()
  /// For the last event, because the next one usually has the same origin.
  private var lastOrigin: (origin: Origin, isOwn: Bool)?
  private var lastCommit = 0

  /// `known`: the heads of all streams, if the events need not determine them.
  init(_ known: VersionVector?, ownOrigins: [Origin]) {
    self.known = known
    self.ownOrigins = ownOrigins
  }

  /// Records the commit and the time of an event.
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
    note(by: event.id.origin, commit: event.commit, timestamp: event.timestamp)
    guard known == nil else { return }
    let name = StreamID(event)
    var head = heads[name] ?? .none
    head.sequence = max(head.sequence, event.id.sequence)
    head.hash += digester.digest(of: event).hash
    heads[name] = head
  }

  /// Traps if a stream or a commit is recorded twice, or in two ways.
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
    var all: [(StreamID, StreamHead)] = heads.map { ($0, $1) }
    for (partition, streams) in known?.partitions ?? [:] {
      all += streams.map { (StreamID(partition: partition, origin: $0), $1) }
    }
    all.sort { $0.0 < $1.0 }
    let statement = try connection.prepareOnce(HeadRow.upsertStream)
    for (stream, head) in all where head.sequence > .zero {
      try HeadRow(stream.partition, stream.origin, head).write(by: statement)
    }
    for commit in commits.sorted() {
      let row = HeadRow(commit.origin, commit: commit.number)
      try row.write(by: connection.prepareOnce(HeadRow.upsertCommit))
    }
    try Meta.write(clock: clock.highest, to: connection)
  }
}
