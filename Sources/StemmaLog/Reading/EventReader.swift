import StemmaEvents

/// Which partitions a reader gives.
package typealias PartitionFilter = @Sendable (Partition) -> Bool

/// Events of a log, one after the other, in the order for which it was made.
///
/// A reader sees the log as it was when the reader was made; appends, sealing and rewriting by the same process
/// do not disturb it (a file that was opened stays readable after its removal; one that was not yet opened and
/// is gone gives `.system` with ENOENT: make a new reader after `refresh`). After an error, further calls give
/// the same error or nil; no wrong event is ever returned.
package struct EventReader: Sendable {
  private var source: any EventSource

  /// The note of the last event's commit, if it has one.
  package private(set) var note: CommitNote?

  init(_ source: any EventSource) { self.source = source }

  /// Traps if what is left to be read contradicts itself. For tests and the suites, between two events.
  package func checkInvariants() { source.checkInvariants() }

  /// The next event, nil after the last.
  package mutating func next() throws(LogError) -> StoredEvent? {
    guard let (event, note) = try source.next() else { return nil }
    self.note = note
    return event
  }
}

/// Where a reader's events come from.
protocol EventSource: Sendable {
  mutating func next() throws(LogError) -> (StoredEvent, CommitNote?)?

  func checkInvariants()
}

/// One file as a reader sees it.
enum FileView: Sendable {
  case segment(SegmentHeader, path: String)
  case journal(Journal)
  /// Reading it throws.
  case damaged(Damage, place: UInt64)

  var isDamaged: Bool { if case .damaged = self { true } else { false } }

  /// The file number in the positions of its events.
  var place: UInt64 {
    switch self {
    case .segment(let header, _): header.place
    case .journal(let journal): journal.number
    case .damaged(_, let place): place
    }
  }
}

/// One event of a block, not made yet.
package struct ScannedEvent: Sendable {
  package let block: BlockContents
  /// Its place in the block.
  package let index: Int
  package let position: Position

  package var stored: StoredEvent { StoredEvent(block.event(index), at: position) }
  package var note: CommitNote? { block.note(index) }
}

/// As an `EventReader`, without making the events.
package struct EventScan: Sendable {
  fileprivate var source: ArrivalSource

  init(source: ArrivalSource) { self.source = source }

  /// Gives the events that are left, until `body` says false.
  package mutating func forEach(_ body: (ScannedEvent) throws -> Bool) throws { try source.forEach(body) }
}

/// Some events of one block, being given out.
struct BlockRun: Sendable {
  private struct Place {
    var arrival: UInt64
    var index: UInt32
  }

  private let block: BlockContents?
  /// Places in the block, the next one last.
  private var places: [Place]

  init() {
    block = nil
    places = []
  }

  /// Those whose arrival is in a range and whose partition is wanted (nil: all), forwards or backwards.
  init(
    _ block: BlockContents, _ arrivals: Range<UInt64>, isReversed: Bool,
    _ isWanted: (Partition) -> Bool
  ) {
    self.block = block
    let wanted = (0..<block.reader.keyCount).map { isWanted(block.reader.partition(ofKey: $0)) }
    places = []
    places.reserveCapacity(block.count)
    for index in 0..<block.count {
      let arrival = block.arrival(index)
      if arrivals.contains(arrival), wanted[block.key(index)] {
        places.append(Place(arrival: arrival, index: UInt32(index)))
      }
    }
    if !isReversed { places.reverse() }
  }

  /// Those of some keys, forwards.
  init(_ block: BlockContents, below limit: UInt64, keys: [Bool]) {
    self.block = block
    places = []
    for index in stride(from: block.count - 1, through: 0, by: -1) where keys[block.key(index)] {
      let arrival = block.arrival(index)
      if arrival < limit { places.append(Place(arrival: arrival, index: UInt32(index))) }
    }
  }

  var arrival: UInt64? { places.last?.arrival }

  /// Traps if an event is none of the block's, or would come twice.
  func checkInvariants() {
    precondition(places.allSatisfy { $0.index < block?.count ?? 0 }, "they are events of the block")
    let steps = zip(places, places.dropFirst())
    precondition(
      steps.allSatisfy { $0.arrival > $1.arrival } || steps.allSatisfy { $0.arrival < $1.arrival },
      "they come in their order, or against it")
  }

  mutating func take(place file: UInt64) -> ScannedEvent? {
    guard let block, let place = places.popLast() else { return nil }
    return ScannedEvent(
      block: block, index: Int(place.index), position: Position(file: file, index: place.arrival))
  }
}

/// Decoded events of one block or journal, being given out.
struct EventRun: Sendable {
  private(set) var events: [BlockEvent]
  private let notes: [CommitID: CommitNote]
  private var index = 0

  init(_ events: [BlockEvent] = [], notes: [CommitID: CommitNote] = [:]) {
    self.events = events
    self.notes = notes
  }

  init(_ events: [BlockEvent], notes: [(commit: CommitID, note: CommitNote)]) {
    self.init(events, notes: Dictionary(notes.map { ($0, $1) }, uniquingKeysWith: { first, _ in first }))
  }

  var current: BlockEvent? { index < events.count ? events[index] : nil }
  mutating func advance() { index += 1 }

  /// Traps if more were given than there are.
  func checkInvariants() { precondition(index <= events.count, "an event is given once") }

  func stored(_ event: BlockEvent, place: UInt64) -> (StoredEvent, CommitNote?) {
    let note = notes.isEmpty ? nil : notes[event.event.commit]
    return (StoredEvent(event.event, at: Position(file: place, index: event.arrival)), note)
  }
}
