import StemmaEvents

/// Returns events in the order of position, or newest first. Other threads unpack blocks in
/// advance; the caller's thread reads the files in order. Memory: the blocks of one segment and
/// some of the next, or one frame of a journal. Events are constructed on demand.
struct PositionSource: EventSource {
  enum Direction: Sendable { case oldestFirst, newestFirst }

  /// Files to come, the next one last.
  private var views: FileViews
  private let range: Range<Position>
  private let filter: PartitionFilter?
  private let times: ClosedRange<Timestamp>?
  private let direction: Direction
  private let omissions: Omissions?
  private let footers: KeptFooters?
  /// The open file: one of them, or none. Changed in place: a copy costs more than an event.
  private var segment: SegmentByPosition?
  private var journal: JournalByPosition?
  /// The last of `views`, if it is a segment whose blocks are being unpacked in advance.
  private var upcoming: SegmentByPosition?
  /// Whether opening `upcoming` has not been tried yet.
  private var looksAhead = true

  /// Without `omissions`, corruption is thrown. Without `footers`, they are read from the files.
  /// `times`: skips blocks of segments without an event of these times.
  init(
    _ views: FileViews, range: Range<Position>, filter: PartitionFilter?, direction: Direction,
    around omissions: Omissions?, footers: KeptFooters? = nil, times: ClosedRange<Timestamp>? = nil
  ) {
    self.views = views
    self.views.files.removeAll { !$0.overlaps(range) }
    if direction == .oldestFirst { self.views.files.reverse() }
    self.range = range
    self.filter = filter
    self.times = times
    self.direction = direction
    self.omissions = omissions
    self.footers = footers
  }

  mutating func next() throws(LogError) -> (StoredEvent, CommitMessage?)? {
    var found: ScannedEvent?
    try each { event in
      found = event
      return false
    }
    return found.map { ($0.stored, $0.message) }
  }

  /// Passes the remaining events, not constructed yet, to `body` until it returns false.
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
      segment = nil
      journal = nil
      guard let view = views.files.last else { return }
      looksAhead = true
      if upcoming != nil {
        swap(&segment, &upcoming)
      } else {
        let file = try omissions.reading { () throws(LogError) in try opened(view) }
        if let file { (segment, journal) = file }
      }
      views.files.removeLast()
    }
  }

  /// True if `body` returned false. After an error, the next call throws the same error.
  private mutating func eachOfFile(_ body: (ScannedEvent) -> Bool) throws(LogError) -> Bool {
    while let event = try segment?.next() {
      if looksAhead { openAhead() }
      if !body(event) { return true }
    }
    while let event = try journal?.next() { if !body(event) { return true } }
    return false
  }

  /// Traps if a file is open beside another one, or would be read out of its turn.
  func checkInvariants() {
    precondition(segment == nil || journal == nil, "one file is read at a time")
    let steps = zip(views.files, views.files.dropFirst())
    let isOrdered = steps.allSatisfy {
      direction == .oldestFirst ? $0.base >= $1.base : $0.base <= $1.base
    }
    precondition(isOrdered, "the next one is last")
    if let upcoming {
      precondition(segment != nil && !looksAhead, "what is unpacked ahead follows the open file")
      precondition(upcoming.base == views.files.last?.base, "it is the next one")
      upcoming.checkInvariants()
    }
    segment?.checkInvariants()
    journal?.checkInvariants()
  }

  /// Opens the next segment once the open one has no block left to open. Errors are thrown in turn.
  private mutating func openAhead() {
    guard segment?.isAllOpen == true, let window = segment?.window else { return }
    looksAhead = false
    guard case .segment = views.files.last, let view = views.files.last,
      case .success((var next?, _)) = Result(catching: { () throws(LogError) in try opened(view) })
    else { return }
    next.readAhead(window)
    upcoming = next
  }

  private func opened(_ view: FileView) throws(LogError) -> (SegmentByPosition?, JournalByPosition?) {
    let indices = view.positions(in: range)
    switch view {
    case .corrupt(let corruption, _): throw corruption.error
    case .segment(let entry):
      let segment = try views.segment(entry)
      return (try SegmentByPosition(segment, footers, indices, filter, times, direction, omissions), nil)
    case .journal(let journal):
      return (nil, JournalByPosition(journal, indices, filter, direction, omissions))
    }
  }
}

/// Returns the events of a segment by position. A block is opened when its first event is due, and
/// its events are entered in a table by position. Arrivals are nearly dense, and a heap of the
/// blocks would be much slower. Memory: `PositionTable`, and the blocks with events to come.
private struct SegmentByPosition: Sendable {
  /// An open block, and how many of its events are to come.
  private struct Slot: Sendable {
    var block: BlockContents?
    var left: Int
  }

  private let segment: Segment
  private let isReversed: Bool
  /// nil: all.
  private let wanted: Set<Partition>?
  private let omissions: Omissions?
  /// Blocks that are not read yet, the next one last.
  private var waiting: [BlockEntry]
  /// Blocks before those, which other threads are unpacking, the next one first.
  private var ahead: [(entry: BlockEntry, block: MadeAhead<Result<BlockContents, LogError>>)] = []
  /// The maximum of `ahead`. Rises with each opened block, so that few events stay cheap.
  private(set) var window = 0
  private static let longestWindow = 16
  private var slots: [Slot] = []
  /// The wanted positions that may exist.
  private let positions: Range<UInt64>
  /// For each: 1 + the event's index in its block, and above that the block's slot; or 0.
  private var table: PositionTable
  /// How many positions are done.
  private var done = 0
  /// How many positions can be done before the next block is due.
  private var due = 0

  init(
    _ segment: Segment, _ footers: KeptFooters?, _ indices: Range<UInt64>, _ filter: PartitionFilter?,
    _ times: ClosedRange<Timestamp>?, _ direction: PositionSource.Direction, _ omissions: Omissions?
  ) throws(LogError) {
    self.omissions = omissions
    self.segment = segment
    isReversed = direction == .newestFirst
    var blocks: [BlockEntry]
    (blocks, wanted) = try segment.selection(filter, footers)
    blocks.removeAll {
      $0.lastRelativePosition < indices.lowerBound || $0.firstRelativePosition >= indices.upperBound
    }
    if let times {
      blocks.removeAll { $0.highestTimestamp < times.lowerBound || $0.lowestTimestamp > times.upperBound }
    }
    waiting =
      isReversed
      ? blocks.sorted { $0.lastRelativePosition < $1.lastRelativePosition }
      : blocks.sorted { $0.firstRelativePosition > $1.firstRelativePosition }
    var span: Range<UInt64> = 0..<0
    for block in blocks {
      let end = min(block.lastRelativePosition, .max - 1) + 1
      span =
        span.isEmpty
        ? block.firstRelativePosition..<end
        : min(span.lowerBound, block.firstRelativePosition)..<max(span.upperBound, end)
    }
    positions = span.clamped(to: indices)
    let count = Int(clamping: positions.upperBound - positions.lowerBound)
    try LogLimits.check("positions of a segment", count, LogLimits.positions)
    table = PositionTable(count, for: blocks)
    setDue()
  }

  mutating func next() throws(LogError) -> ScannedEvent? {
    while done < table.count {
      if done >= due { try openDue() }
      let place = isReversed ? table.count - 1 - done : done
      done += 1
      prefetch(isReversed ? place - Self.distance : place + Self.distance)
      let entry = table[place]
      if entry == 0 { continue }
      let slot = Int(entry >> 32)
      guard let block = slots[slot].block else { continue }
      slots[slot].left -= 1
      if slots[slot].left == 0 { slots[slot].block = nil }
      return ScannedEvent(
        block: block, index: Int(entry & 0xFFFF_FFFF) - 1,
        position: base.advanced(by: positions.lowerBound + UInt64(place)))
    }
    return nil
  }

  var base: Position { segment.header.base }

  /// Traps if an event would be lost or come twice, or too many blocks are open. Linear time.
  func checkInvariants() {
    segment.checkInvariants()
    table.checkInvariants()
    precondition(table.count == positions.count && done <= table.count, "each relativePosition has a place")
    precondition(window <= Self.longestWindow && ahead.count <= Self.longestWindow, "memory is bounded")
    precondition(isAllOpen == (due == .max), "a block that is left is due some time")
    var left = [Int](repeating: 0, count: slots.count)
    for place in isReversed ? 0..<table.count - done : done..<table.count where table[place] != 0 {
      let entry = table[place]
      let slot = Int(entry >> 32)
      left[slot] += 1
      precondition(
        Int(entry & 0xFFFF_FFFF) <= slots[slot].block?.count ?? 0, "what is to come is in an open block")
    }
    precondition(left == slots.map(\.left), "what is left of a block is counted")
    precondition(
      slots.allSatisfy { ($0.block == nil) == ($0.left == 0) }, "a block is open until all is given")
  }

  /// How many events in advance the memory of an event is prefetched.
  private static let distance = 8

  private func prefetch(_ place: Int) {
    guard (0..<table.count).contains(place) else { return }
    let entry = table[place]
    if entry != 0 { slots[Int(entry >> 32)].block?.prefetch(Int(entry & 0xFFFF_FFFF) - 1) }
  }

  /// Call it when the next block changes. A block is due where its first event may have arrived.
  private mutating func setDue() {
    guard let block = ahead.first?.entry ?? waiting.last else {
      due = .max
      return
    }
    let places =
      isReversed
      ? positions.upperBound - min(positions.upperBound, min(block.lastRelativePosition, .max - 1) + 1)
      : max(positions.lowerBound, block.firstRelativePosition) - positions.lowerBound
    due = Int(clamping: places)
  }

  private mutating func openDue() throws(LogError) {
    while done >= due {
      try openNext()
      readAhead(window + 1)
      setDue()
    }
  }

  /// After an error, the next call throws the same error.
  private mutating func openNext() throws(LogError) {
    guard let next = ahead.first else {
      guard let entry = waiting.last else { return }
      let bytes = try omissions.reading { () throws(LogError) in try segment.bytes(of: entry) }
      if let bytes { try add(entry, Self.unpacked(bytes, entry, segment.path)) }
      waiting.removeLast()
      return
    }
    do throws(LogError) { try add(next.entry, next.block.take()) } catch {
      waiting += ahead.reversed().map(\.entry)
      ahead = []
      throw error
    }
    ahead.removeFirst()
  }

  /// Whether no block is left to be opened.
  var isAllOpen: Bool { ahead.isEmpty && waiting.isEmpty }

  /// Unpacks blocks in advance. An unreadable block throws in its turn.
  mutating func readAhead(_ blocks: Int) {
    window = min(blocks, Self.longestWindow)
    while ahead.count < window, let entry = waiting.last {
      guard
        case .success(let bytes) = Result(catching: { () throws(LogError) in try segment.bytes(of: entry) })
      else { return }
      waiting.removeLast()
      ahead.append((entry, MadeAhead { [path = segment.path] in Self.unpacked(bytes, entry, path) }))
    }
  }

  private static func unpacked(
    _ bytes: [UInt8], _ entry: BlockEntry, _ path: String
  ) -> Result<BlockContents, LogError> {
    Result { () throws(LogError) in
      let block = try Segment.block(entry, bytes: bytes, path: path)
      return try decoding(path, entry.offset) { () throws(EventsError) in try BlockContents(block) }
    }
  }

  private mutating func add(
    _ entry: BlockEntry, _ opened: Result<BlockContents, LogError>
  ) throws(LogError) {
    let read = try omissions.reading { () throws(LogError) in try opened.get() }
    guard let read else { return }
    guard read.relativePosition(0) == entry.firstRelativePosition,
      read.relativePosition(read.count - 1) == entry.lastRelativePosition
    else {
      throw .corrupt(path: segment.path, offset: entry.offset, .disagreement("positions of a block"))
    }
    let isWanted = wanted.map { wanted in
      (0..<read.reader.keyCount).map { wanted.contains(read.reader.partition(ofKey: $0)) }
    }
    let slot = UInt64(slots.count) << 32
    var left = 0
    for index in 0..<read.count {
      let relativePosition = read.relativePosition(index)
      guard positions.contains(relativePosition), isWanted?[read.key(index)] ?? true else { continue }
      let place = Int(relativePosition - positions.lowerBound)
      guard table[place] == 0 else {
        throw .corrupt(
          path: segment.path, offset: entry.offset,
          .disagreement("relativePosition \(relativePosition), twice"))
      }
      table[place] = slot | UInt64(index + 1)
      left += 1
    }
    slots.append(Slot(block: left > 0 ? read : nil, left: left))
  }
}

/// Returns the events of a journal, frame by frame.
private struct JournalByPosition: Sendable {
  private let journal: Journal
  private let indices: Range<UInt64>
  private let filter: PartitionFilter?
  private let isReversed: Bool
  private let omissions: Omissions?
  /// Frames and gaps to come, the next one last.
  private var parts: [JournalPart]
  private var cursor = BlockRun()

  init(
    _ journal: Journal, _ indices: Range<UInt64>, _ filter: PartitionFilter?,
    _ direction: PositionSource.Direction, _ omissions: Omissions?
  ) {
    self.omissions = omissions
    self.journal = journal
    self.indices = indices
    self.filter = filter
    isReversed = direction == .newestFirst
    parts = journal.parts(in: indices)
    if !isReversed { parts.reverse() }
  }

  /// Traps if an event of the current frame would come twice.
  func checkInvariants() { cursor.checkInvariants() }

  mutating func next() throws(LogError) -> ScannedEvent? {
    while true {
      if let event = cursor.take(base: journal.base) { return event }
      guard let part = parts.last else { return nil }
      let read = try omissions.reading { () throws(LogError) in try journal.contents(of: part) }
      parts.removeLast()
      guard let read else { continue }
      cursor = BlockRun(read, indices, isReversed: isReversed) { filter?($0) ?? true }
    }
  }
}
