import StemmaEvents

/// The streams that a transaction has moved, and the commits of their events. Written when the transaction
/// flushes.
struct StreamCache {
  struct Stream {
    let partition: Partition
    let origin: Origin
    var head: StreamHead
    var isDirty = false
    /// The number of the last savepoint since which it was moved.
    var movedSince = 0
  }

  private struct Name: Hashable {
    let partition: Partition
    let origin: Origin
  }

  private struct Commits {
    let origin: Origin
    var highest: UInt64
    var isDirty = false
    var movedSince = 0
  }

  /// What was moved since a savepoint, and its places, as it was.
  private struct Undo {
    var savepoint: Int
    var heads: [(place: Int, stream: Stream)] = []
    var commits: [(place: Int, commits: Commits)] = []
  }

  private(set) var heads: [Stream] = []
  private var index: [Name: Int] = [:]
  private var last: Int?
  private var commits: [Commits] = []
  private var undo: Undo?

  mutating func head(
    _ partition: Partition, _ origin: Origin, _ connection: Connection
  ) throws(TablesError) -> StreamHead {
    let place = try self.index(partition, origin, connection)
    return heads[place].head
  }

  /// The place of a stream in `heads`.
  mutating func index(
    _ partition: Partition, _ origin: Origin, _ connection: Connection
  ) throws(TablesError) -> Int {
    // Events of one stream follow each other more often than not.
    if let last, heads[last].origin == origin, heads[last].partition == partition { return last }
    let name = Name(partition: partition, origin: origin)
    if let known = index[name] {
      last = known
      return known
    }
    let statement = try connection.prepareOnce(
      "SELECT sequence, hash FROM _stemma_streams WHERE partition = ? AND origin = ?")
    statement.bind(1, text: partition.bytes)
    statement.bind(2, origin.description)
    defer { statement.reset() }
    let head = try statement.step() ? Self.head(statement, 0) : .none
    heads.append(Stream(partition: partition, origin: origin, head: head))
    index[name] = heads.count - 1
    last = heads.count - 1
    return heads.count - 1
  }

  mutating func advance(
    _ stream: Int, by event: Event, _ hash: StreamHash, _ connection: Connection
  ) throws(TablesError) {
    let commit = try place(of: event.commit.origin, connection)
    remember(stream, commit)
    if event.commit.number > commits[commit].highest {
      commits[commit].highest = event.commit.number
      commits[commit].isDirty = true
    }
    heads[stream].head.sequence = event.dot.sequence
    heads[stream].head.hash += hash
    heads[stream].isDirty = true
  }

  // MARK: Savepoints

  mutating func beginUndo(_ savepoint: Int) { undo = Undo(savepoint: savepoint) }
  mutating func endUndo() { undo = nil }

  private mutating func remember(_ stream: Int, _ commit: Int) {
    guard let savepoint = undo?.savepoint else { return }
    if heads[stream].movedSince != savepoint {
      undo?.heads.append((stream, heads[stream]))
      heads[stream].movedSince = savepoint
    }
    if commits[commit].movedSince != savepoint {
      undo?.commits.append((commit, commits[commit]))
      commits[commit].movedSince = savepoint
    }
  }

  /// Lets what was moved since the savepoint and what was before it change places.
  mutating func exchangeUndo() {
    guard var exchanged = undo else { return }
    for index in exchanged.heads.indices {
      swap(&heads[exchanged.heads[index].place], &exchanged.heads[index].stream)
    }
    for index in exchanged.commits.indices {
      swap(&commits[exchanged.commits[index].place], &exchanged.commits[index].commits)
    }
    undo = exchanged
  }

  // MARK: Commits

  mutating func highestCommit(of origin: Origin, _ connection: Connection) throws(TablesError) -> UInt64 {
    let place = try place(of: origin, connection)
    return commits[place].highest
  }

  private mutating func place(of origin: Origin, _ connection: Connection) throws(TablesError) -> Int {
    if let known = commits.firstIndex(where: { $0.origin == origin }) { return known }
    let statement = try connection.prepareOnce("SELECT number FROM _stemma_commits WHERE origin = ?")
    statement.bind(1, origin.description)
    defer { statement.reset() }
    let number = try statement.step() ? UInt64(clamping: statement.int(0)) : 0
    commits.append(Commits(origin: origin, highest: number))
    return commits.count - 1
  }

  // MARK: Writing

  mutating func flush(_ connection: Connection) throws(TablesError) {
    if heads.contains(where: \.isDirty) {
      let statement = try connection.prepareOnce(Self.upsertStream)
      for index in heads.indices where heads[index].isDirty {
        let stream = heads[index]
        try Self.write(stream.partition, stream.origin, stream.head, statement)
        heads[index].isDirty = false
      }
    }
    for index in commits.indices where commits[index].isDirty {
      try Self.write(commits[index].origin, commits[index].highest, connection)
      commits[index].isDirty = false
    }
  }

  static let upsertStream = """
    INSERT INTO _stemma_meta (name, partition, origin, value, hash) VALUES ('stream', ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET value = excluded.value, hash = excluded.hash
    """

  static func write(
    _ partition: Partition, _ origin: Origin, _ head: StreamHead, _ statement: Statement
  ) throws(TablesError) {
    statement.bind(1, text: partition.bytes)
    statement.bind(2, origin.description)
    statement.bind(3, Int64(clamping: head.sequence.rawValue))
    statement.bind(4, head.hash.description)
    try statement.run()
  }

  static func write(_ origin: Origin, _ commit: UInt64, _ connection: Connection) throws(TablesError) {
    let statement = try connection.prepareOnce(
      """
      INSERT INTO _stemma_meta (name, origin, value) VALUES ('commit', ?, ?)
      ON CONFLICT DO UPDATE SET value = excluded.value
      """)
    statement.bind(1, origin.description)
    statement.bind(2, Int64(clamping: commit))
    try statement.run()
  }

  /// A stream's head from two columns. Throws if someone has written something else there.
  static func head(_ statement: Statement, _ column: Int32) throws(TablesError) -> StreamHead {
    let hash = statement.text(column + 1)
    guard hash.utf8.count == 32, let high = UInt64(hash.prefix(16), radix: 16),
      let low = UInt64(hash.suffix(16), radix: 16), statement.int(column) > 0
    else {
      throw .needsRebuild(path: statement.connection.path, .damaged("_stemma_streams: hash \(hash)"))
    }
    return StreamHead(
      sequence: Sequence(UInt64(statement.int(column))), hash: StreamHash(high: high, low: low))
  }
}
