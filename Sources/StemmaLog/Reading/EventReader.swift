import StemmaEvents

/// Events of a log, one after the other, in the order of the reader.
///
/// A reader sees the log as of its creation. Appends, seals and rewrites of the same process do not
/// disturb it, and an open file stays readable after its removal. A file that is removed before it
/// is opened throws `.corrupt` (`.missing`); the caller makes a new reader after `refresh`. After
/// an error, further calls throw the same error or return nil. No wrong event is ever returned.
package struct EventReader: Sendable {
  private var source: any EventSource

  /// Author and message of the last event's commit, if it has them.
  package private(set) var message: CommitMessage?

  init(_ source: any EventSource) { self.source = source }

  /// Traps if the state of the reader contradicts itself. For tests and the suites, between two
  /// events.
  package func checkInvariants() { source.checkInvariants() }

  /// The next event, nil after the last.
  package mutating func next() throws(LogError) -> StoredEvent? {
    guard let (event, message) = try source.next() else { return nil }
    self.message = message
    return event
  }
}

protocol EventSource: Sendable {
  mutating func next() throws(LogError) -> (StoredEvent, CommitMessage?)?

  func checkInvariants()
}

/// One file as a reader sees it.
enum FileView: Sendable {
  case segment(SegmentEntry)
  case journal(Journal)
  /// Reading it throws.
  case corrupt(Corruption, base: Position)

  /// The position of its position 0.
  var base: Position {
    switch self {
    case .segment(let entry): entry.base
    case .journal(let journal): journal.base
    case .corrupt(_, let base): base
    }
  }

  /// The position behind its readable events.
  var end: Position {
    switch self {
    case .segment(let entry): entry.past
    case .journal(let journal): journal.endPosition
    case .corrupt(_, let base): base
    }
  }

  /// The positions of a file that lie in a range of positions.
  func positions(in range: Range<Position>) -> Range<UInt64> {
    let low = range.lowerBound.distance(from: base)
    return low..<max(low, range.upperBound.distance(from: base))
  }

  /// Whether a file has positions of a range, or may have.
  func overlaps(_ range: Range<Position>) -> Bool {
    switch self {
    case .segment(let entry): entry.base < range.upperBound && range.lowerBound < entry.past
    case .journal(let journal):
      journal.base < range.upperBound
        && (range.lowerBound < journal.endPosition || !journal.gaps.isEmpty)
    case .corrupt(_, let base): base < range.upperBound
    }
  }
}

/// The files of a log as a reader found them, and their directory.
struct FileViews: Sendable {
  /// In the order of the log.
  var files: [FileView]
  let directory: String
  let log: LogID
  let fileSystem: any FileSystem

  func segment(_ entry: SegmentEntry, staysOpen: Bool = true) throws(LogError) -> Segment {
    try Segment(entry, in: directory, log: log, fileSystem: fileSystem, staysOpen: staysOpen)
  }
}

/// One event of a block, not constructed yet.
package struct ScannedEvent: Sendable {
  package let block: BlockContents
  /// Its place in the block.
  package let index: Int
  package let position: Position

  package var stored: StoredEvent { StoredEvent(block.event(index), at: position) }
  package var message: CommitMessage? { block.note(index) }
}

/// Like an `EventReader`, without constructing the events.
package struct EventScan: Sendable {
  fileprivate var source: PositionSource

  init(source: PositionSource) { self.source = source }

  /// Passes the remaining events to `body` until it returns false.
  package mutating func forEach(_ body: (ScannedEvent) throws -> Bool) throws { try source.forEach(body) }
}

/// Some events of one block, to be returned one by one.
struct BlockRun: Sendable {
  private struct Place {
    var relativePosition: UInt64
    var index: UInt32
  }

  private let block: BlockContents?
  /// Places in the block, the next one last.
  private var places: [Place]

  init() {
    block = nil
    places = []
  }

  /// The events with an position in a range and a wanted partition, forwards or backwards.
  init(
    _ block: BlockContents, _ positions: Range<UInt64>, isReversed: Bool,
    _ isWanted: (Partition) -> Bool
  ) {
    self.block = block
    let wanted = (0..<block.reader.keyCount).map { isWanted(block.reader.partition(ofKey: $0)) }
    places = []
    places.reserveCapacity(block.count)
    for index in 0..<block.count {
      let relativePosition = block.relativePosition(index)
      if positions.contains(relativePosition), wanted[block.key(index)] {
        places.append(Place(relativePosition: relativePosition, index: UInt32(index)))
      }
    }
    if !isReversed { places.reverse() }
  }

  /// The events of some keys, forwards.
  init(_ block: BlockContents, below limit: UInt64, keys: [Bool]) {
    self.block = block
    places = []
    for index in stride(from: block.count - 1, through: 0, by: -1) where keys[block.key(index)] {
      let relativePosition = block.relativePosition(index)
      if relativePosition < limit {
        places.append(Place(relativePosition: relativePosition, index: UInt32(index)))
      }
    }
  }

  var relativePosition: UInt64? { places.last?.relativePosition }

  /// Traps if an event is none of the block's, or would come twice.
  func checkInvariants() {
    precondition(places.allSatisfy { $0.index < block?.count ?? 0 }, "they are events of the block")
    let steps = zip(places, places.dropFirst())
    precondition(
      steps.allSatisfy { $0.relativePosition > $1.relativePosition }
        || steps.allSatisfy { $0.relativePosition < $1.relativePosition },
      "they come in their order, or against it")
  }

  /// `base`: the position of position 0 of its file.
  mutating func take(base: Position) -> ScannedEvent? {
    guard let block, let place = places.popLast() else { return nil }
    return ScannedEvent(
      block: block, index: Int(place.index), position: base.advanced(by: place.relativePosition))
  }
}

/// Decoded events of one block or journal, to be returned one by one.
struct EventRun: Sendable {
  private(set) var events: [BlockEvent]
  private let messages: [CommitID: CommitMessage]
  private var index = 0

  init(_ events: [BlockEvent] = [], messages: [CommitID: CommitMessage] = [:]) {
    self.events = events
    self.messages = messages
  }

  init(_ events: [BlockEvent], messages: [(commit: CommitID, message: CommitMessage)]) {
    self.init(
      events, messages: Dictionary(messages.map { ($0, $1) }, uniquingKeysWith: { first, _ in first }))
  }

  var current: BlockEvent? { index < events.count ? events[index] : nil }
  mutating func advance() { index += 1 }

  /// Traps if more were given than there are.
  func checkInvariants() { precondition(index <= events.count, "an event is given once") }

  func stored(_ event: BlockEvent, base: Position) -> (StoredEvent, CommitMessage?) {
    let message = messages.isEmpty ? nil : messages[event.event.commit]
    return (StoredEvent(event.event, at: base.advanced(by: event.relativePosition)), message)
  }
}
