import StemmaEvents
import StemmaMerge
import StemmaNode
import StemmaTables

/// Open conflicts whose candidates are read from the log together.
struct ConflictBatch {
  /// The most conflicts in a batch. Each batch reads the journal once, so large batches are faster.
  static let mostConflicts = 1 << 14
  /// The most bytes of text in a batch, unless one conflict alone has more.
  static let mostBytes = 16 << 20

  private(set) var conflicts: [OpenConflict] = []
  private var bytes = 0

  var isFull: Bool { conflicts.count >= Self.mostConflicts || bytes >= Self.mostBytes }

  mutating func append(_ conflict: OpenConflict) {
    conflicts.append(conflict)
    for choice in conflict.choices { bytes += choice.value.textBytes }
  }
}

/// An event that wrote a candidate, without its values.
struct CandidateEvent {
  let isDecision: Bool
  let author: String?
  private let event: Event

  init(_ event: Event, author: String?) {
    isDecision = event.isDecision
    self.author = author
    var event = event
    event.assignments = []
    self.event = event
  }

  /// The writes among `writes` to the same record that this event's writer had seen.
  func seen(of writes: [(id: EventID, version: Version)]) -> [EventID] { event.seen(of: writes) }
}

extension OpenConflict.Choice.Value {
  fileprivate var textBytes: Int {
    switch self {
    case .field(let value): value.textBytes
    case .fields(let assignments): assignments.reduce(0) { $0 + $1.value.textBytes }
    case .exists, .record: 0
    }
  }
}

extension Value {
  fileprivate var textBytes: Int {
    switch self {
    case .string(let text), .json(let text): text.utf8.count
    case .null, .bool, .int, .double: 0
    }
  }
}
