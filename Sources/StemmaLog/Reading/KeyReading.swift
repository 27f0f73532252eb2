import StemmaEvents

/// Gives events in the order of (partition, model, key), and for one key in arrival order: a merge of all
/// files. Memory: one block for each segment, and each journal as a whole.
struct KeySource: EventSource {
  private struct Candidate: Comparable, Sendable {
    var key: RecordKey
    var position: Position
    var slot: Int

    static func == (a: Candidate, b: Candidate) -> Bool { a.position == b.position }
    static func < (a: Candidate, b: Candidate) -> Bool {
      a.key == b.key ? a.position < b.position : a.key < b.key
    }
  }

  private var cursors: [KeyCursor] = []
  private var heap = MergeHeap<Candidate>()

  init(
    _ views: [FileView], upTo end: Position, filter: PartitionFilter?, fileSystem: any FileSystem,
    around omissions: Omissions?, staysOpen: Bool
  ) throws(LogError) {
    for view in views where view.place <= end.file {
      let limit = view.place == end.file ? end.index : .max
      if limit == 0 { continue }
      let opened = try omissions.reading { () throws(LogError) in
        try KeyCursor(view, below: limit, filter, fileSystem, omissions, staysOpen: staysOpen)
      }
      guard var cursor = opened else { continue }
      if let event = try cursor.current() {
        heap.insert(candidate(event, cursor.place, cursors.count))
        cursors.append(cursor)
      }
    }
  }

  private func candidate(_ event: BlockEvent, _ place: UInt64, _ slot: Int) -> Candidate {
    Candidate(
      key: RecordKey(event.event), position: Position(file: place, index: event.arrival), slot: slot)
  }

  /// Traps if a file does not stand at the event by which it waits for its turn.
  func checkInvariants() {
    heap.checkInvariants()
    for cursor in cursors { cursor.checkInvariants() }
    guard let first = heap.first else { return }
    precondition(cursors.indices.contains(first.slot), "who waits is a file")
    let cursor = cursors[first.slot]
    precondition(
      cursor.place == first.position.file && cursor.standing?.arrival == first.position.index,
      "the first event is that at which its file stands")
  }

  mutating func next() throws(LogError) -> (StoredEvent, CommitNote?)? {
    guard let slot = heap.first?.slot else { return nil }
    guard let result = try cursors[slot].take() else { return nil }
    let following = try cursors[slot].current()
    heap.replaceFirst(with: following.map { candidate($0, cursors[slot].place, slot) })
    return result
  }
}

/// One file in key order.
private struct KeyCursor: Sendable {
  let place: UInt64
  private let segment: Segment?
  private let limit: UInt64
  private let wanted: Set<Partition>?
  private let omissions: Omissions?
  /// Blocks to come, the next one last.
  private var waiting: [BlockEntry] = []
  private var cursor = EventRun()

  init(
    _ view: FileView, below limit: UInt64, _ filter: PartitionFilter?, _ fileSystem: any FileSystem,
    _ omissions: Omissions?, staysOpen: Bool
  ) throws(LogError) {
    self.omissions = omissions
    place = view.place
    self.limit = limit
    switch view {
    case .damaged(let damage, _): throw damage.error
    case .segment(let header, let path):
      let segment = try Segment(path: path, header: header, fileSystem: fileSystem, staysOpen: staysOpen)
      let footer = try segment.footer()
      var blocks = footer.blocks
      if let filter {
        let selection = footer.selection(filter)
        blocks = selection.blocks.map { footer.blocks[$0] }
        wanted = selection.partitions
      } else {
        wanted = nil
      }
      self.segment = segment
      waiting = blocks.filter { $0.firstArrival < limit }.reversed()
    case .journal(let journal):
      segment = nil
      wanted = nil
      let contents = try journal.contents(below: limit, around: omissions)
      var events = contents.events
      events.removeAll { event in filter.map { !$0(event.event.partition) } ?? false }
      let sorted = KeyOrder.sorted(events).map { events[$0.index] }
      cursor = EventRun(sorted, notes: contents.notes)
    }
  }

  /// The event that was asked for last.
  var standing: BlockEvent? { cursor.current }

  func checkInvariants() {
    precondition(segment != nil || waiting.isEmpty, "a journal is read as a whole")
    segment?.checkInvariants()
    cursor.checkInvariants()
  }

  /// The next event, which stays.
  mutating func current() throws(LogError) -> BlockEvent? {
    while cursor.current == nil, let entry = waiting.last, let segment {
      let read = try omissions.reading { () throws(LogError) in
        let block = try segment.block(entry)
        let events = try decoding(segment.path, entry.offset) { () throws(EventsError) in
          try block.eventsByKey()
        }
        return NumberedEvents(events: events, notes: block.notes)
      }
      waiting.removeLast()
      guard var events = read?.events, let notes = read?.notes else { continue }
      events.removeAll { $0.arrival >= limit || wanted?.contains($0.event.partition) == false }
      cursor = EventRun(events, notes: notes)
    }
    return cursor.current
  }

  mutating func take() throws(LogError) -> (StoredEvent, CommitNote?)? {
    guard let event = try current() else { return nil }
    cursor.advance()
    return cursor.stored(event, place: place)
  }
}
