import StemmaEvents
import StemmaNode

/// The state of a record as it was read, shared by all copies of the value.
struct LoadedRecord: Sendable {
  private let group: LoadedRecords
  /// The only entry of the causal context that was read. With sequence 0, `group` has the context.
  private let entry: Context.Entry
  private let place: Int32

  init(_ group: LoadedRecords, _ place: Int32, _ entry: Context.Entry) {
    self.group = group
    self.entry = entry
    self.place = place
  }

  var store: Store { group.store }
  /// Whether it was read from past tables: then it belongs to no store.
  var isPast: Bool { group.isPast }

  /// Traps if it contradicts itself. For tests.
  func checkInvariants() {
    precondition((0..<LoadedRecords.limit).contains(place), "a row has a place")
    precondition(
      entry.sequence > .zero || group.context(at: place) != nil, "the row has a causal context")
    group.checkInvariants()
  }

  /// Whether it was read inside a commit that failed, after the commit's first event.
  var isTakenBack: Bool { group.commit?.isTakenBack ?? false }

  var view: RecordView { RecordView(read: group.context(at: place) ?? Context(trusted: [entry])) }

  /// The records of a relationship that were read along, by its name. Nil if it was not read.
  func related(_ name: String) -> RecordsReadAlong? { group.related(name, at: place) }
  func setRelated(_ name: String, _ records: RecordsReadAlong) {
    group.setRelated(name, records, at: place)
  }
}

extension LoadedRecord: Hashable {
  static func == (a: LoadedRecord, b: LoadedRecord) -> Bool { a.group === b.group && a.place == b.place }

  func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(group))
    hasher.combine(place)
  }
}

/// The records of a relationship that were read along with a record.
struct RecordsReadAlong: Sendable {
  let rows: [any Table]
  /// The key of the search: the reference, or the record's own key.
  let key: [Value]
}

/// The state of a few rows that were read together, by their places.
///
/// An object for each row would cost as much as reading the row does.
final class LoadedRecords: Sendable {
  let store: Store
  /// The commit inside which the rows were read, after its first event. Nil: they are durable.
  let commit: RecordedSettings?
  /// Whether the rows were read from past tables.
  let isPast: Bool
  private let state = Mutex(State())

  /// How many rows share an object. A row in use keeps the state of all of them in memory.
  static let limit: Int32 = 64

  private struct State: Sendable {
    /// The contexts without exactly one entry.
    var contexts: [Int32: Context] = [:]
    var related: [Int32: [String: RecordsReadAlong]] = [:]
  }

  init(_ store: Store, _ commit: RecordedSettings?, isPast: Bool) {
    self.store = store
    self.commit = commit
    self.isPast = isPast
  }

  /// Traps if state is kept for a row outside the limit. For tests, on any thread.
  func checkInvariants() {
    state.withLock { state in
      let places = Array(state.contexts.keys) + state.related.keys
      precondition(places.allSatisfy { (0..<Self.limit).contains($0) }, "a row has a place")
      for context in state.contexts.values { context.checkInvariants() }
    }
  }

  fileprivate func context(at place: Int32) -> Context? { state.withLock { $0.contexts[place] } }

  func setContext(_ context: Context, at place: Int32) {
    state.withLock { $0.contexts[place] = context }
  }

  fileprivate func related(_ name: String, at place: Int32) -> RecordsReadAlong? {
    state.withLock { $0.related[place]?[name] }
  }

  fileprivate func setRelated(_ name: String, _ records: RecordsReadAlong, at place: Int32) {
    state.withLock { $0.related[place, default: [:]][name] = records }
  }
}
