import StemmaEvents

/// Gives events in the order in which this node came to hold them, or newest first. Blocks are unpacked on other
/// threads before their turn; files are read on the caller's own, in order. Memory: the blocks of one segment and some
/// of the next at most; of a journal one frame. Only events that are asked for are made.
struct ArrivalSource: EventSource {
  enum Direction: Sendable { case oldestFirst, newestFirst }

  /// Files to come, the next one last.
  private var views: [FileView]
  private let range: Range<Position>
  private let filter: PartitionFilter?
  private let times: ClosedRange<Timestamp>?
  private let direction: Direction
  private let fileSystem: any FileSystem
  private let omissions: Omissions?
  private let footers: KeptFooters?
  /// The open file: one of them, or none. Changed where they are, as a copy would cost more than an event.
  private var segment: SegmentArrival?
  private var journal: JournalArrival?
  /// The last of `views`, if that is a segment whose blocks are being unpacked while events of the open file are given.
  private var upcoming: SegmentArrival?
  /// Whether that is still to be tried.
  private var looksAhead = true

  /// `views` in the order of their places. Without `omissions` damage is thrown. Without `footers` they are read.
  /// `times`: blocks of a segment without an event of these times are left out.
  init(
    _ views: [FileView], range: Range<Position>, filter: PartitionFilter?, direction: Direction,
    fileSystem: any FileSystem, around omissions: Omissions?, footers: KeptFooters? = nil,
    times: ClosedRange<Timestamp>? = nil
  ) {
    let touched = views.filter {
      let indices = Self.indices(of: $0.place, in: range)
      return indices.lowerBound < indices.upperBound
    }
    self.views = direction == .oldestFirst ? touched.reversed() : touched
    self.range = range
    self.filter = filter
    self.times = times
    self.direction = direction
    self.fileSystem = fileSystem
    self.omissions = omissions
    self.footers = footers
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
      segment = nil
      journal = nil
      guard let view = views.last else { return }
      looksAhead = true
      if upcoming != nil {
        swap(&segment, &upcoming)
      } else {
        let file = try omissions.reading { () throws(LogError) in try opened(view) }
        if let file { (segment, journal) = file }
      }
      views.removeLast()
    }
  }

  /// True if `body` has had enough. After an error the next call meets the same error.
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
    let steps = zip(views, views.dropFirst())
    let isOrdered = steps.allSatisfy {
      direction == .oldestFirst ? $0.place >= $1.place : $0.place <= $1.place
    }
    precondition(isOrdered, "the next one is last")
    if let upcoming {
      precondition(segment != nil && !looksAhead, "what is unpacked ahead follows the open file")
      precondition(upcoming.place == views.last?.place, "it is the next one")
      upcoming.checkInvariants()
    }
    segment?.checkInvariants()
    journal?.checkInvariants()
  }

  /// Opens the next segment as soon as the open one has nothing left to unpack. If that fails, it is met again in turn.
  private mutating func openAhead() {
    guard segment?.isAllOpen == true, let window = segment?.window else { return }
    looksAhead = false
    guard case .segment = views.last, let view = views.last,
      case .success((var next?, _)) = Result(catching: { () throws(LogError) in try opened(view) })
    else { return }
    next.readAhead(window)
    upcoming = next
  }

  private func opened(_ view: FileView) throws(LogError) -> (SegmentArrival?, JournalArrival?) {
    let indices = Self.indices(of: view.place, in: range)
    switch view {
    case .damaged(let damage, _): throw damage.error
    case .segment(let header, let path):
      let segment = try Segment(path: path, header: header, fileSystem: fileSystem)
      return (try SegmentArrival(segment, footers, indices, filter, times, direction, omissions), nil)
    case .journal(let journal):
      return (nil, JournalArrival(journal, indices, filter, direction, omissions))
    }
  }
}

/// Gives the events of a segment by arrival. A block is opened when its turn may have come, and every event of it is
/// entered at its arrival in a table: arrivals are nearly dense, and a heap of the blocks would cost more than all
/// the rest. Memory: the table (`ArrivalTable`), and the blocks of which events are still to come.
private struct SegmentArrival: Sendable {
  /// An open block, and how many of its events are still to come.
  private struct Slot: Sendable {
    var block: BlockContents?
    var left: Int
  }

  private let segment: Segment
  private let isReversed: Bool
  /// nil: all.
  private let wanted: Set<Partition>?
  private let omissions: Omissions?
  /// Blocks that nobody has read yet, the next one last.
  private var waiting: [BlockEntry]
  /// Those before them, which are being unpacked on other threads, the next one first.
  private var ahead: [(entry: BlockEntry, block: MadeAhead<Result<BlockContents, LogError>>)] = []
  /// How many of them there may be: one more for each block that was opened, as whoever wants a few events should
  /// not pay for many.
  private(set) var window = 0
  private static let longestWindow = 16
  private var slots: [Slot] = []
  /// The arrivals that are asked for and may be there.
  private let arrivals: Range<UInt64>
  /// For each of them 1 + the event's place in its block, and the slot of the block above that; 0: there is none.
  private var table: ArrivalTable
  /// How many of them are done.
  private var done = 0
  /// How many of them can be done before the next block is due.
  private var due = 0

  init(
    _ segment: Segment, _ footers: KeptFooters?, _ indices: Range<UInt64>, _ filter: PartitionFilter?,
    _ times: ClosedRange<Timestamp>?, _ direction: ArrivalSource.Direction, _ omissions: Omissions?
  ) throws(LogError) {
    self.omissions = omissions
    self.segment = segment
    isReversed = direction == .newestFirst
    let footer = if let footers { try footers.footer(of: segment) } else { try segment.footer() }
    var blocks = footer.blocks
    if let filter {
      let selection = footer.selection(filter)
      blocks = selection.blocks.map { footer.blocks[$0] }
      wanted = selection.partitions
    } else {
      wanted = nil
    }
    blocks.removeAll { $0.lastArrival < indices.lowerBound || $0.firstArrival >= indices.upperBound }
    if let times {
      // A gap may have events of any time.
      blocks.removeAll {
        !$0.isGap && ($0.highestTimestamp < times.lowerBound || $0.lowestTimestamp > times.upperBound)
      }
    }
    waiting =
      isReversed
      ? blocks.sorted { $0.lastArrival < $1.lastArrival }
      : blocks.sorted { $0.firstArrival > $1.firstArrival }
    var span: Range<UInt64> = 0..<0
    for block in blocks {
      let end = min(block.lastArrival, .max - 1) + 1
      span =
        span.isEmpty
        ? block.firstArrival..<end : min(span.lowerBound, block.firstArrival)..<max(span.upperBound, end)
    }
    arrivals = span.clamped(to: indices)
    let count = Int(clamping: arrivals.upperBound - arrivals.lowerBound)
    try LogLimits.check("arrivals of a segment", count, LogLimits.arrivals)
    table = ArrivalTable(count, for: blocks)
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
        position: Position(file: segment.header.place, index: arrivals.lowerBound + UInt64(place)))
    }
    return nil
  }

  var place: UInt64 { segment.header.place }

  /// Traps if an event would be lost or come twice, or too many blocks are open. Looks at each arrival that is left.
  func checkInvariants() {
    segment.checkInvariants()
    table.checkInvariants()
    precondition(table.count == arrivals.count && done <= table.count, "each arrival has a place")
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
    for (_, block) in ahead { block.checkInvariants() }
  }

  /// How many events before its turn the memory of one is asked for.
  private static let distance = 8

  private func prefetch(_ place: Int) {
    guard (0..<table.count).contains(place) else { return }
    let entry = table[place]
    if entry != 0 { slots[Int(entry >> 32)].block?.prefetch(Int(entry & 0xFFFF_FFFF) - 1) }
  }

  /// To be called when the next block is another one. It is due where its first event may have arrived.
  private mutating func setDue() {
    guard let block = ahead.first?.entry ?? waiting.last else {
      due = .max
      return
    }
    let places =
      isReversed
      ? arrivals.upperBound - min(arrivals.upperBound, min(block.lastArrival, .max - 1) + 1)
      : max(arrivals.lowerBound, block.firstArrival) - arrivals.lowerBound
    due = Int(clamping: places)
  }

  /// Opens all blocks that are due.
  private mutating func openDue() throws(LogError) {
    while done >= due {
      try openNext()
      readAhead(window + 1)
      setDue()
    }
  }

  /// After an error the next call meets the same error.
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

  /// Has blocks unpacked that will be due. What cannot be read is met again when it is.
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
    guard read.arrival(0) == entry.firstArrival, read.arrival(read.count - 1) == entry.lastArrival else {
      throw .damaged(path: segment.path, offset: entry.offset, .disagreement("arrivals of a block"))
    }
    let isWanted = wanted.map { wanted in
      (0..<read.reader.keyCount).map { wanted.contains(read.reader.partition(ofKey: $0)) }
    }
    let slot = UInt64(slots.count) << 32
    var left = 0
    for index in 0..<read.count {
      let arrival = read.arrival(index)
      guard arrivals.contains(arrival), isWanted?[read.key(index)] ?? true else { continue }
      let place = Int(arrival - arrivals.lowerBound)
      guard table[place] == 0 else {
        throw .damaged(path: segment.path, offset: entry.offset, .disagreement("arrival \(arrival), twice"))
      }
      table[place] = slot | UInt64(index + 1)
      left += 1
    }
    slots.append(Slot(block: left > 0 ? read : nil, left: left))
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

  /// Traps if an event of the frame at hand would come twice.
  func checkInvariants() { cursor.checkInvariants() }

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
