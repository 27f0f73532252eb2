import StemmaEvents
import StemmaMerge
import StemmaNode
import Synchronization

/// What copies of one value that was read share.
///
/// What it has seen of the record moves on with the value's own successful updates.
struct LoadedRecord: Sendable {
  private let group: LoadedRecords
  /// The only entry of the context that was read; with the sequence 0, the group has the view.
  private let entry: Context.Entry
  private let place: Int32

  init(_ group: LoadedRecords, _ place: Int32, _ entry: Context.Entry) {
    self.group = group
    self.entry = entry
    self.place = place
  }

  var store: Store { group.store }

  var view: ValueView {
    get { group.view(at: place) ?? ValueView(RecordView(read: Context(trusted: [entry]))) }
    nonmutating set { group.setView(newValue, at: place) }
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
    /// Those that were moved on, or whose context has not just one entry.
    var views: [Int32: ValueView] = [:]
    var related: [Int32: [String: [any Table]]] = [:]
  }

  init(_ store: Store) { self.store = store }

  fileprivate func view(at place: Int32) -> ValueView? { state.withLock { $0.views[place] } }

  func setView(_ view: ValueView, at place: Int32) {
    state.withLock { $0.views[place] = view }
  }

  fileprivate func related(_ name: String, at place: Int32) -> [any Table]? {
    state.withLock { $0.related[place]?[name] }
  }

  fileprivate func setRelated(_ name: String, _ rows: [any Table], at place: Int32) {
    state.withLock { $0.related[place, default: [:]][name] = rows }
  }
}

/// What the copies of a value have seen of its record, and what was recorded from them.
struct ValueView: Equatable, Sendable {
  var record: RecordView
  /// The numbers of the settings that were recorded.
  var recorded: Set<UInt64> = []

  init(_ record: RecordView) { self.record = record }
}

/// Views that a commit has moved on, to be taken back if it is not made.
final class MovedViews: Sendable {
  private let moved = Mutex<[(LoadedRecord, ValueView)]>([])

  /// `before`: the view that the record had.
  func note(_ record: LoadedRecord, _ before: ValueView) { moved.withLock { $0.append((record, before)) } }

  func takeBack() {
    for (record, view) in moved.withLock({ $0.reversed() }) { record.view = view }
  }
}
