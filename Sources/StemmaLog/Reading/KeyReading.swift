import StemmaEvents

/// Returns events by (partition, model, key), and by position for one key, by merging all files.
/// Memory: one block for each segment, and each journal as a whole.
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
    _ views: FileViews, upTo end: Position, filter: PartitionFilter?, around omissions: Omissions?,
    staysOpen: Bool
  ) throws(LogError) {
    for view in views.files where view.base < end {
      let limit = end.distance(from: view.base)
      let opened = try omissions.reading { () throws(LogError) in
        try KeyCursor(view, of: views, below: limit, filter, omissions, staysOpen: staysOpen)
      }
      guard var cursor = opened else { continue }
      if let event = try cursor.current() {
        heap.insert(candidate(event, cursor.base, cursors.count))
        cursors.append(cursor)
      }
    }
  }

  private func candidate(_ event: BlockEvent, _ base: Position, _ slot: Int) -> Candidate {
    Candidate(key: RecordKey(event.event), position: base.advanced(by: event.relativePosition), slot: slot)
  }

  /// Traps if the first file of the heap is not at the event by which it is ordered.
  func checkInvariants() {
    heap.checkInvariants()
    for cursor in cursors { cursor.checkInvariants() }
    guard let first = heap.first else { return }
    precondition(cursors.indices.contains(first.slot), "who waits is a file")
    let cursor = cursors[first.slot]
    precondition(
      cursor.standing.map { cursor.base.advanced(by: $0.relativePosition) } == first.position,
      "the first event is that at which its file stands")
  }

  mutating func next() throws(LogError) -> (StoredEvent, CommitMessage?)? {
    guard let slot = heap.first?.slot else { return nil }
    guard let result = try cursors[slot].take() else { return nil }
    let following = try cursors[slot].current()
    heap.replaceFirst(with: following.map { candidate($0, cursors[slot].base, slot) })
    return result
  }
}

/// One file in key order.
private struct KeyCursor: Sendable {
  let base: Position
  private let segment: Segment?
  private let limit: UInt64
  private let wanted: Set<Partition>?
  private let omissions: Omissions?
  /// Blocks to come, the next one last.
  private var waiting: [BlockEntry] = []
  private var cursor = EventRun()

  init(
    _ view: FileView, of views: FileViews, below limit: UInt64, _ filter: PartitionFilter?,
    _ omissions: Omissions?, staysOpen: Bool
  ) throws(LogError) {
    self.omissions = omissions
    base = view.base
    self.limit = limit
    switch view {
    case .corrupt(let corruption, _): throw corruption.error
    case .segment(let entry):
      let segment = try views.segment(entry, staysOpen: staysOpen)
      let blocks: [BlockEntry]
      (blocks, wanted) = try segment.selection(filter)
      self.segment = segment
      waiting = blocks.filter { $0.firstRelativePosition < limit }.reversed()
    case .journal(let journal):
      segment = nil
      wanted = nil
      let contents = try journal.contents(below: limit, around: omissions)
      var events = contents.events
      events.removeAll { event in filter.map { !$0(event.event.partition) } ?? false }
      let sorted = KeyOrder.sorted(events).map { events[$0.index] }
      cursor = EventRun(sorted, messages: contents.messages)
    }
  }

  /// The event that `current` returned last.
  var standing: BlockEvent? { cursor.current }

  func checkInvariants() {
    precondition(segment != nil || waiting.isEmpty, "a journal is read as a whole")
    segment?.checkInvariants()
    cursor.checkInvariants()
  }

  /// The next event, without consuming it.
  mutating func current() throws(LogError) -> BlockEvent? {
    while cursor.current == nil, let entry = waiting.last, let segment {
      let read = try omissions.reading { () throws(LogError) in
        let block = try segment.block(entry)
        let events = try decoding(segment.path, entry.offset) { () throws(EventsError) in
          try block.eventsByKey()
        }
        return NumberedEvents(events: events, messages: block.messages)
      }
      waiting.removeLast()
      guard var events = read?.events, let messages = read?.messages else { continue }
      events.removeAll { $0.relativePosition >= limit || wanted?.contains($0.event.partition) == false }
      cursor = EventRun(events, messages: messages)
    }
    return cursor.current
  }

  mutating func take() throws(LogError) -> (StoredEvent, CommitMessage?)? {
    guard let event = try current() else { return nil }
    cursor.advance()
    return cursor.stored(event, base: base)
  }
}
