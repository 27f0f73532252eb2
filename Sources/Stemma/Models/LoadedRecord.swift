import StemmaEvents
import StemmaMerge
import Synchronization

/// What copies of one value that was read share.
///
/// The context moves on with the value's own successful updates, as long as nobody else changed the record: a
/// context is a version vector and could not name an own event without the others before it.
struct LoadedRecord: Sendable {
  private let group: LoadedRecords
  /// The only entry of the context that was read; with the sequence 0, the group has that context.
  private let entry: Context.Entry
  private let place: Int32

  init(_ group: LoadedRecords, _ place: Int32, _ entry: Context.Entry) {
    self.group = group
    self.entry = entry
    self.place = place
  }

  var store: Store { group.store }

  var context: Context {
    get { group.context(at: place) ?? Context(trusted: [entry]) }
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

/// What a few rows that were read together remember, by their places.
///
/// An object for each row would cost as much as reading the row does.
final class LoadedRecords: Sendable {
  let store: Store
  private let state = Mutex(State())

  /// How many rows share an object. Whoever keeps one of them keeps what the others remember.
  static let limit: Int32 = 64

  private struct State: Sendable {
    /// Contexts that were moved on, or have not just one entry.
    var contexts: [Int32: Context] = [:]
    var related: [Int32: [String: [any Table]]] = [:]
  }

  init(_ store: Store) { self.store = store }

  fileprivate func context(at place: Int32) -> Context? { state.withLock { $0.contexts[place] } }

  func setContext(_ context: Context, at place: Int32) {
    state.withLock { $0.contexts[place] = context }
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
