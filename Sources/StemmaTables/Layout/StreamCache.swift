import StemmaEvents

/// The streams that a transaction has advanced, and the commits of their events. Written when the
/// transaction flushes.
struct StreamCache {
  struct Stream {
    let partition: Partition
    let origin: Origin
    var head: StreamHead
    var isDirty = false
    /// The number of the last savepoint in which it advanced.
    var movedSince = 0
  }

  private struct Commits {
    let origin: Origin
    var highest: UInt64
    var isDirty = false
    var movedSince = 0
  }

  /// The values before a savepoint of all streams and commits that changed since, with indexes.
  private struct Undo {
    var savepoint: Int
    var heads: [(place: Int, stream: Stream)] = []
    var commits: [(place: Int, commits: Commits)] = []
  }

  private(set) var heads: [Stream] = []
  /// The share of the stored rows of `heads` and of `commits` in the sum; zero for a missing row.
  private var headChecksums: [HeadChecksum] = []
  private var commitSums: [HeadChecksum] = []
  private var index: [StreamID: Int] = [:]
  private var last: Int?
  private var commits: [Commits] = []
  private var undo: Undo?

  mutating func head(
    _ partition: Partition, _ origin: Origin, _ connection: Connection
  ) throws(TablesError) -> StreamHead {
    let place = try self.index(partition, origin, connection)
    return heads[place].head
  }

  /// The index of a stream in `heads`.
  mutating func index(
    _ partition: Partition, _ origin: Origin, _ connection: Connection
  ) throws(TablesError) -> Int {
    // Consecutive events usually belong to one stream.
    if let last, heads[last].origin == origin, heads[last].partition == partition { return last }
    let name = StreamID(partition: partition, origin: origin)
    if let known = index[name] {
      last = known
      return known
    }
    let statement = try connection.prepareOnce(
      "SELECT sequence, hash, crc FROM _stemma_streams WHERE partition = ? AND origin = ?")
    statement.bind(1, text: partition.bytes)
    statement.bind(2, origin.description)
    defer { statement.reset() }
    let isThere = try statement.step()
    let head = try isThere ? Self.head(of: partition, origin, statement, 0) : .none
    headChecksums.append(isThere ? HeadRow(partition, origin, head).sum : .zero)
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
    heads[stream].head.sequence = event.id.sequence
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

  /// Swaps the values since the savepoint with those from before it.
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

  /// Traps if the state is inconsistent. `savepoint`: the one whose changes can be undone here.
  func checkInvariants(inSavepoint savepoint: Int?) {
    precondition(
      headChecksums.count == heads.count && commitSums.count == commits.count, "each row has its sum")
    precondition(index.count == heads.count, "each stream has a name of its own")
    for (place, stream) in heads.enumerated() {
      let name = StreamID(partition: stream.partition, origin: stream.origin)
      precondition(index[name] == place, "a stream is found by its name")
    }
    precondition(Set(commits.map(\.origin)).count == commits.count, "an origin's commits are counted once")
    precondition(last.map { heads.indices.contains($0) } ?? true, "the last stream is one of them")
    precondition(undo?.savepoint == savepoint, "records and streams are taken back together")
    guard let undo else { return }
    precondition(Set(undo.heads.map(\.place)).count == undo.heads.count, "a stream is as it was at one time")
    precondition(Set(undo.commits.map(\.place)).count == undo.commits.count, "commits are as they were once")
    for (place, before) in undo.heads {
      precondition(heads[place].head.sequence > before.head.sequence, "a stream only moves on")
      precondition(heads[place].movedSince == undo.savepoint, "only what was moved is taken back")
    }
  }

  // MARK: Commits

  mutating func highestCommit(of origin: Origin, _ connection: Connection) throws(TablesError) -> UInt64 {
    let place = try place(of: origin, connection)
    return commits[place].highest
  }

  private mutating func place(of origin: Origin, _ connection: Connection) throws(TablesError) -> Int {
    if let known = commits.firstIndex(where: { $0.origin == origin }) { return known }
    let statement = try connection.prepareOnce("SELECT number, crc FROM _stemma_commits WHERE origin = ?")
    statement.bind(1, origin.description)
    defer { statement.reset() }
    let isThere = try statement.step()
    let number = try isThere ? Self.commit(of: origin, statement, 0) : 0
    commitSums.append(isThere ? HeadRow(origin, commit: number).sum : .zero)
    commits.append(Commits(origin: origin, highest: number))
    return commits.count - 1
  }

  // MARK: Writing

  /// Returns the change of the sum of the rows.
  mutating func flush(_ connection: Connection) throws(TablesError) -> HeadChecksum {
    var change = HeadChecksum.zero
    if heads.contains(where: \.isDirty) {
      let statement = try connection.prepareOnce(HeadRow.upsertStream)
      for index in heads.indices where heads[index].isDirty {
        let stream = heads[index]
        let row = HeadRow(stream.partition, stream.origin, stream.head)
        try row.write(by: statement)
        change += row.sum - headChecksums[index]
        headChecksums[index] = row.sum
        heads[index].isDirty = false
      }
    }
    for index in commits.indices where commits[index].isDirty {
      let row = HeadRow(commits[index].origin, commit: commits[index].highest)
      try row.write(by: connection.prepareOnce(HeadRow.upsertCommit))
      change += row.sum - commitSums[index]
      commitSums[index] = row.sum
      commits[index].isDirty = false
    }
    return change
  }

  /// A stream's head from three columns. Throws if they are not what was written.
  static func head(
    of partition: Partition, _ origin: Origin, _ statement: Statement, _ column: Int32
  ) throws(TablesError) -> StreamHead {
    let sequence = statement.int(column)
    let hash = statement.text(column + 1)
    guard hash.utf8.count == 32, let high = UInt64(hash.prefix(16), radix: 16),
      let low = UInt64(hash.suffix(16), radix: 16), sequence > 0,
      statement.text(column + 2) == HeadRow.crc(partition.bytes, origin, sequence, hash)
    else {
      throw .needsRebuild(
        path: statement.connection.path, .corrupt("_stemma_streams: \(partition), \(origin)"))
    }
    return StreamHead(sequence: SequenceNumber(UInt64(sequence)), hash: StreamHash(high: high, low: low))
  }

  /// The highest number of an origin's commits. Throws if the columns are not what was written.
  private static func commit(
    of origin: Origin, _ statement: Statement, _ column: Int32
  ) throws(TablesError) -> UInt64 {
    let number = statement.int(column)
    guard number >= 0, statement.text(column + 1) == HeadRow.crc([], origin, number, "") else {
      throw .needsRebuild(path: statement.connection.path, .corrupt("_stemma_commits: \(origin)"))
    }
    return UInt64(number)
  }
}
