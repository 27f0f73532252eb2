import StemmaEvents
import StemmaNode
import StemmaTables

/// Reads observed rows: after commits of this store, and after possible changes by others.
///
/// All of this runs on the writer's thread. A commit's rows are read inside its transaction, apart
/// from commits that share its sync. Observers get them once it is durable, in commit order.
/// Nothing is read without observers.
final class RowFeed: Sendable {
  /// Returns a statement that is not in use, without bound parameters.
  typealias Prepare = (String) throws -> Statement

  /// An observer of the rows of a statement.
  struct Observer: Sendable {
    /// The tables that the statement reads, in lowercase; nil: any commit may change its rows.
    let tables: Set<String>?
    /// Reads the rows, and holds them if they differ from the last ones.
    let read: @Sendable (Prepare) -> Void
    /// Delivers the rows that were read, or discards them.
    let settle: @Sendable (_ isDurable: Bool) -> Void
  }

  private let readers: Readers
  private let state = Mutex<(observers: [ObjectIdentifier: Observer], isLookDue: Bool)>(([:], false))

  init(_ readers: Readers) { self.readers = readers }

  /// Adds an observer that has rows of an earlier state.
  func add(_ observer: Observer, for identity: ObjectIdentifier) {
    state.withLock { state in
      state.observers[identity] = observer
      state.isLookDue = true
    }
  }

  func remove(_ identity: ObjectIdentifier) {
    state.withLock { state in
      state.observers[identity] = nil
      if state.observers.isEmpty { state.isLookDue = false }
    }
  }

  /// Records that a peer, another process or another store may have changed the tables.
  func noteOthers() { state.withLock { $0.isLookDue = !$0.observers.isEmpty } }

  /// Whether the rows may differ from those that were read last.
  var isLookDue: Bool { state.withLock { $0.isLookDue } }

  var hasObservers: Bool { state.withLock { !$0.observers.isEmpty } }

  /// Traps if a read is due without observers. For tests, on any thread.
  func checkInvariants() {
    state.withLock { precondition(!$0.isLookDue || !$0.observers.isEmpty, "a due read has observers") }
  }

  // MARK: On the thread that writes

  /// Reads the rows if another writer may have changed them: between two groups of commits.
  func lookIfDue() {
    let observers = state.withLock { state -> [Observer] in
      defer { state.isLookDue = false }
      return state.isLookDue ? Array(state.observers.values) : []
    }
    guard !observers.isEmpty else { return }
    do {
      try readers.readHere { connection in
        try connection.snapshot {
          for observer in observers { observer.read { try connection.statement($0) } }
        }
      }
    } catch StoreError.closed { return } catch {
      for observer in observers { observer.read { _ in throw error } }
    }
    for observer in observers { observer.settle(true) }
  }

  /// Reads the rows at the end of a commit.
  func read(_ write: WriteTransaction) {
    let observers = state.withLock { Array($0.observers.values) }
    guard !observers.isEmpty, !write.events.isEmpty else { return }
    let names = Set(write.events.map(\.model))
    let models = write.schema.models.filter { names.contains($0.storedName) }
    let tables = Set(models.map { $0.tableName.lowercased() })
    for observer in observers where observer.tables?.isDisjoint(with: tables) != true {
      observer.read { try write.prepare($0) }
    }
  }

  /// Reports to observers whether the commits of a group are durable.
  func settle(isDurable: Bool) {
    for observer in state.withLock({ Array($0.observers.values) }) { observer.settle(isDurable) }
  }
}
