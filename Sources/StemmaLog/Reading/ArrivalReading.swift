import StemmaEvents

/// Gives events in the order in which this node came to hold them, or newest first. Memory: the blocks of one
/// segment at most; of a journal one frame. Only events that are asked for are made.
struct ArrivalSource: EventSource {
  enum Direction: Sendable { case oldestFirst, newestFirst }

  private enum Cursor {
    case segment(SegmentArrival)
    case journal(JournalArrival)
  }

  /// Files to come, the next one last.
  private var views: [FileView]
  private let range: Range<Position>
  private let filter: PartitionFilter?
  private let direction: Direction
  private let fileSystem: any FileSystem
  private let omissions: Omissions?
  private var cursor: Cursor?

  /// `views` in the order of their places. `omissions`: nil, and damage is thrown.
  init(
    _ views: [FileView], range: Range<Position>, filter: PartitionFilter?, direction: Direction,
    fileSystem: any FileSystem, around omissions: Omissions?
  ) {
    let touched = views.filter {
      let indices = Self.indices(of: $0.place, in: range)
      return indices.lowerBound < indices.upperBound
    }
    self.views = direction == .oldestFirst ? touched.reversed() : touched
    self.range = range
    self.filter = filter
    self.direction = direction
    self.fileSystem = fileSystem
    self.omissions = omissions
  }

  /// The indices of a file that lie in a range of positions.
  private static func indices(of place: UInt64, in range: Range<Position>) -> Range<UInt64> {
    guard range.lowerBound.file <= place, place <= range.upperBound.file else { return 0..<0 }
    let low = range.lowerBound.file == place ? range.lowerBound.index : 0
    let high = range.upperBound.file == place ? range.upperBound.index : .max
    return low..<max(low, high)
  }

  mutating func next() throws(LogError) -> (StoredEvent, CommitNote?)? {
    var found: ScannedEvent?
    try each { event in
      found = event
      return false
    }
    return found.map { ($0.stored, $0.note) }
  }

  /// Gives the events that are left, not made yet, until `body` says false.
  mutating func forEach(_ body: (ScannedEvent) throws -> Bool) throws {
    var failure: (any Error)?
    try each { event in
      do { return try body(event) } catch {
        failure = error
        return false
      }
    }
    if let failure { throw failure }
  }

  private mutating func each(_ body: (ScannedEvent) -> Bool) throws(LogError) {
    while true {
      if try eachOfFile(body) { return }
      cursor = nil
      guard let view = views.last else { return }
      cursor = try omissions.reading { () throws(LogError) in try opened(view) }
      views.removeLast()
    }
  }

  /// True if `body` has had enough. The cursor is taken out while it changes, so that its arrays are not copied,
  /// and put back in any case: after an error the next call must meet the same error.
  private mutating func eachOfFile(_ body: (ScannedEvent) -> Bool) throws(LogError) -> Bool {
    switch cursor {
    case .segment(var arrival):
      cursor = nil
      defer { cursor = .segment(arrival) }
      while let event = try arrival.next() { if !body(event) { return true } }
    case .journal(var arrival):
      cursor = nil
      defer { cursor = .journal(arrival) }
      while let event = try arrival.next() { if !body(event) { return true } }
    case nil: break
    }
    return false
  }

  private func opened(_ view: FileView) throws(LogError) -> Cursor {
    let indices = Self.indices(of: view.place, in: range)
    switch view {
    case .damaged(let damage, _): throw damage.error
    case .segment(let header, let path):
      let segment = try Segment(path: path, header: header, fileSystem: fileSystem)
      return .segment(try SegmentArrival(segment, indices, filter, direction, omissions))
    case .journal(let journal):
      return .journal(JournalArrival(journal, indices, filter, direction, omissions))
    }
  }
}

/// Merges the blocks of a segment by arrival; a block is opened when its turn may have come.
private struct SegmentArrival: Sendable {
  private struct Candidate: Comparable, Sendable {
    /// The arrival, complemented when the newest comes first.
    var rank: UInt64
    var slot: Int
    static func < (a: Candidate, b: Candidate) -> Bool { a.rank < b.rank }
  }

  private let segment: Segment
  private let indices: Range<UInt64>
  private let isReversed: Bool
  /// nil: all.
  private let wanted: Set<Partition>?
  private let omissions: Omissions?
  /// Blocks that are not open yet, the next one last.
  private var waiting: [BlockEntry] = []
  private var cursors: [BlockRun] = []
  private var heap = MergeHeap<Candidate>()

  init(
    _ segment: Segment, _ indices: Range<UInt64>, _ filter: PartitionFilter?,
    _ direction: ArrivalSource.Direction, _ omissions: Omissions?
  ) throws(LogError) {
    self.omissions = omissions
    self.segment = segment
    self.indices = indices
    isReversed = direction == .newestFirst
    let footer = try segment.footer()
    var blocks = footer.blocks
    if let filter {
      let selection = footer.selection(filter)
      blocks = selection.blocks.map { footer.blocks[$0] }
      wanted = selection.partitions
    } else {
      wanted = nil
    }
    blocks.removeAll { $0.lastArrival < indices.lowerBound || $0.firstArrival >= indices.upperBound }
    waiting = blocks.sorted { rank(ofFirst: $0) > rank(ofFirst: $1) }
  }

  private func rank(_ arrival: UInt64) -> UInt64 { isReversed ? ~arrival : arrival }
  private func rank(ofFirst block: BlockEntry) -> UInt64 {
    rank(isReversed ? block.lastArrival : block.firstArrival)
  }

  mutating func next() throws(LogError) -> ScannedEvent? {
    while let block = waiting.last, heap.first.map({ rank(ofFirst: block) < $0.rank }) ?? true {
      try open(block)
      waiting.removeLast()
    }
    guard let slot = heap.first?.slot else { return nil }
    let event = cursors[slot].take(place: segment.header.place)
    if let arrival = cursors[slot].arrival {
      heap.replaceFirst(with: Candidate(rank: rank(arrival), slot: slot))
    } else {
      heap.replaceFirst(with: nil)
      cursors[slot] = BlockRun()
    }
    return event
  }

  private mutating func open(_ entry: BlockEntry) throws(LogError) {
    let read = try omissions.reading { () throws(LogError) in
      let block = try segment.block(entry)
      return try decoding(segment.path, entry.offset) { () throws(EventsError) in try BlockContents(block) }
    }
    guard let read else { return }
    let run = BlockRun(read, indices, isReversed: isReversed) { wanted?.contains($0) ?? true }
    guard let first = run.arrival else { return }
    cursors.append(run)
    heap.insert(Candidate(rank: rank(first), slot: cursors.count - 1))
  }
}

/// Gives the events of a journal, frame by frame.
private struct JournalArrival: Sendable {
  private let journal: Journal
  private let indices: Range<UInt64>
  private let filter: PartitionFilter?
  private let isReversed: Bool
  private let omissions: Omissions?
  /// Frames and holes to come, the next one last.
  private var parts: [JournalPart]
  private var cursor = BlockRun()

  init(
    _ journal: Journal, _ indices: Range<UInt64>, _ filter: PartitionFilter?,
    _ direction: ArrivalSource.Direction, _ omissions: Omissions?
  ) {
    self.omissions = omissions
    self.journal = journal
    self.indices = indices
    self.filter = filter
    isReversed = direction == .newestFirst
    parts = journal.parts(in: indices)
    if !isReversed { parts.reverse() }
  }

  mutating func next() throws(LogError) -> ScannedEvent? {
    while true {
      if let event = cursor.take(place: journal.number) { return event }
      guard let part = parts.last else { return nil }
      let read = try omissions.reading { () throws(LogError) in try journal.contents(of: part) }
      parts.removeLast()
      guard let read else { continue }
      cursor = BlockRun(read, indices, isReversed: isReversed) { filter?($0) ?? true }
    }
  }
}
