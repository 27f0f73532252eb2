import StemmaEvents
import StemmaMerge
import Synchronization

/// What copies of one value that was read share.
///
/// The context moves on with the value's own successful updates, as long as nobody else changed the record: a
/// context is a version vector and could not name an own event without the others before it.
struct LoadedRecord: Sendable {
  private let group: LoadedRecords
  private let place: Int32

  init(_ group: LoadedRecords, _ place: Int32) {
    self.group = group
    self.place = place
  }

  var store: Store { group.store }

  var context: Context {
    get { group.context(at: place) }
    nonmutating set { group.setContext(newValue, at: place) }
  }

  /// The records of a relationship that were read along, by its name. Nil if it was not read.
  func related(_ name: String) -> [any Table]? { group.related(name, at: place) }
  func setRelated(_ name: String, _ rows: [any Table]) { group.setRelated(name, rows, at: place) }
}

extension LoadedRecord: Hashable {
  static func == (a: LoadedRecord, b: LoadedRecord) -> Bool { a.group === b.group && a.place == b.place }

  func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(group))
    hasher.combine(place)
  }
}

/// What a few rows that were read together remember.
///
/// An object and an array for each row would cost as much as reading the row does.
final class LoadedRecords: Sendable {
  let store: Store
  private let state: Mutex<State>

  /// How many rows share an object. Whoever keeps one of them keeps what the others remember.
  private static let limit = 64

  private struct State: Sendable {
    /// The contexts as they were read, one behind the other, and where each ends.
    var entries: [Context.Entry] = []
    var ends: [Int32] = []
    /// Contexts that were moved on.
    var moved: [Int32: Context] = [:]
    var related: [Int32: [String: [any Table]]] = [:]
  }

  init(_ store: Store) {
    self.store = store
    state = Mutex(State())
  }

  /// Takes in a record with the context that encoded bytes of a state begin with, and gives its place. Nil if there is no
  /// room.
  func add(_ state: UnsafeRawBufferPointer) throws(MergeError) -> Int32? {
    try add { entries throws(MergeError) in try RecordState.readContext(of: state, into: &entries) }
  }

  func add(_ context: Context) -> Int32? { add { $0 += context.entries } }

  @inline(__always)
  private func add<Failure: Error>(
    _ read: (inout [Context.Entry]) throws(Failure) -> Void
  ) throws(Failure) -> Int32? {
    try state.withLock { state throws(Failure) in
      let place = state.ends.count
      if place == Self.limit { return nil }
      // Most queries for one row are, and most records have one origin.
      if place == 1 {
        state.ends.reserveCapacity(Self.limit)
        state.entries.reserveCapacity(Self.limit)
      }
      try read(&state.entries)
      state.ends.append(Int32(truncatingIfNeeded: state.entries.count))
      return Int32(truncatingIfNeeded: place)
    }
  }

  fileprivate func context(at place: Int32) -> Context {
    state.withLock { state in
      if let context = state.moved[place] { return context }
      let start = place == 0 ? 0 : Int(state.ends[Int(place) - 1])
      return Context(trusted: Array(state.entries[start..<Int(state.ends[Int(place)])]))
    }
  }

  fileprivate func setContext(_ context: Context, at place: Int32) {
    state.withLock { $0.moved[place] = context }
  }

  fileprivate func related(_ name: String, at place: Int32) -> [any Table]? {
    state.withLock { $0.related[place]?[name] }
  }

  fileprivate func setRelated(_ name: String, _ rows: [any Table], at place: Int32) {
    state.withLock { $0.related[place, default: [:]][name] = rows }
  }
}

/// Contexts that a commit has moved on, to be taken back if it is not made.
final class MovedContexts: Sendable {
  private let moved = Mutex<[(LoadedRecord, Context)]>([])

  /// `before`: the context that the record had.
  func note(_ record: LoadedRecord, _ before: Context) { moved.withLock { $0.append((record, before)) } }

  func takeBack() {
    for (record, context) in moved.withLock({ $0.reversed() }) { record.context = context }
  }
}
