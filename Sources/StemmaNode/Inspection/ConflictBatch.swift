import StemmaEvents
import StemmaMerge
import StemmaTables

/// Open conflicts whose candidates are looked up in the log together.
struct ConflictBatch {
  /// The most conflicts of a batch. A batch reads the journal once, so a large one costs less time a conflict.
  static let mostConflicts = 1 << 14
  /// The most bytes of text in a batch, except that one conflict alone may have more.
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
  let by: String?
  private let event: Event

  init(_ event: Event, by: String?) {
    isDecision = event.isDecision
    self.by = by
    var event = event
    event.assignments = []
    self.event = event
  }

  /// Those of some writes to the same record that its writer had seen.
  func seen(of writes: [(dot: Dot, version: Version)]) -> [Dot] { event.seen(of: writes) }
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
