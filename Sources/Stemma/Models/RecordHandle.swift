import StemmaEvents
import Synchronization

/// Ties a value to the store that it was read from, and remembers which of the record's events it has seen.
/// All handles are equal and hash alike: where a value comes from is no part of it.
public struct RecordHandle: Sendable, Hashable {
  let loaded: LoadedRecord?

  /// The handle of a value that no store made.
  public init() { loaded = nil }

  init(_ loaded: LoadedRecord) { self.loaded = loaded }

  public static func == (a: RecordHandle, b: RecordHandle) -> Bool { true }
  public func hash(into hasher: inout Hasher) {}

  func store(of model: String) throws(StoreError) -> Store {
    guard let loaded else { throw .notFromStore(model: model) }
    return loaded.store
  }
}

/// What copies of one value that was read share.
///
/// The context moves on with the value's own successful updates, as long as nobody else changed the record: a
/// context is a version vector and could not name an own event without the others before it.
final class LoadedRecord: Sendable {
  let store: Store
  private let state: Mutex<State>

  private struct State: Sendable {
    var context: Context
    /// The records of relationships that were read along, by the relationship's name.
    var related: [String: [any Table]] = [:]
  }

  init(_ store: Store, _ context: Context) {
    self.store = store
    state = Mutex(State(context: context))
  }

  var context: Context {
    get { state.withLock { $0.context } }
    set { state.withLock { $0.context = newValue } }
  }

  /// Nil if the relationship was not read.
  func related(_ name: String) -> [any Table]? { state.withLock { $0.related[name] } }
  func setRelated(_ name: String, _ rows: [any Table]) { state.withLock { $0.related[name] = rows } }
}
