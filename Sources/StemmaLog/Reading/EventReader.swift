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

  func stored(_ event: BlockEvent, place: UInt64) -> (StoredEvent, CommitNote?) {
    let note = notes.isEmpty ? nil : notes[event.event.commit]
    return (StoredEvent(event.event, at: Position(file: place, index: event.arrival)), note)
  }
}
