import StemmaEvents

/// The streams, commits and time of the events that a rebuild reads.
struct StreamSummary: Sendable {
  private struct Name: Hashable {
    let partition: Partition
    let origin: Origin
  }

  private let known: Knowledge?
  private var heads: [Name: StreamHead] = [:]
  private var commits: [CommitID] = []
  private var latest = Timestamp.zero
  private var digester = EventDigester()

  /// `known`: the heads of all streams, if they need not be taken from the events.
  init(_ known: Knowledge? = nil) { self.known = known }

  /// Notes what every event tells.
  mutating func note(commit: CommitID, timestamp: Timestamp) {
    latest = max(latest, timestamp)
    for index in commits.indices where commits[index].origin == commit.origin {
      if commits[index].number < commit.number { commits[index] = commit }
      return
    }
    commits.append(commit)
  }

  mutating func note(_ event: Event) {
    note(commit: event.commit, timestamp: event.timestamp)
    guard known == nil else { return }
    let name = Name(partition: event.partition, origin: event.dot.origin)
    var head = heads[name] ?? .none
    head.sequence = max(head.sequence, event.dot.sequence)
    head.hash += digester.digest(of: event).hash
    heads[name] = head
  }

  /// Takes over the commits and the time that another one has noted.
  mutating func add(_ other: StreamSummary) {
    for commit in other.commits { note(commit: commit, timestamp: other.latest) }
  }

  func write(to connection: Connection) throws(TablesError) {
    var all: [(Partition, Origin, StreamHead)] = heads.map { ($0.partition, $0.origin, $1) }
    for (partition, streams) in known?.partitions ?? [:] {
      all += streams.map { (partition, $0, $1) }
    }
    all.sort { $0.0 != $1.0 ? $0.0 < $1.0 : $0.1 < $1.1 }
    let statement = try connection.prepare(StreamCache.upsertStream)
    for (partition, origin, head) in all where head.sequence > .zero {
      try StreamCache.write(partition, origin, head, statement)
    }
    for commit in commits.sorted() {
      try StreamCache.write(commit.origin, commit.number, connection)
    }
    try Meta.write("latest", .int(Int64(bitPattern: latest.rawValue)), to: connection)
  }
}
