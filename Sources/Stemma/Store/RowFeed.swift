import StemmaNode
import StemmaTables
import Synchronization

/// Has observed rows read: once for each commit of this store, and again when somebody else may have changed them.
///
/// All of that happens on the thread that writes. The rows of a commit are read inside of its transaction, where the
/// commits that share its sync can be told apart, and are given to observers once it is durable. So each of them gets
/// what it observes in the order of the commits. Nothing is done while nobody observes.
final class RowFeed: Sendable {
  /// Gives a statement without parameters that nobody steps.
  typealias Prepare = (String) throws -> Statement

  /// Somebody who observes the rows of a statement.
  struct Observer: Sendable {
    /// What the statement reads, in lowercase; nil: what may change with any commit.
    let tables: Set<String>?
    /// Reads the rows, and holds them if they are others than the last ones.
    let read: @Sendable (Prepare) -> Void
    /// Gives out what was read, or forgets it.
    let settle: @Sendable (_ isDurable: Bool) -> Void
  }

  private let readers: Readers
  private let state = Mutex<(observers: [ObjectIdentifier: Observer], isLookDue: Bool)>(([:], false))

  init(_ readers: Readers) { self.readers = readers }

  /// Takes in an observer who has the rows of a state before this.
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

  /// Notes that a peer, another process or another store may have changed the tables.
  func noteOthers() { state.withLock { $0.isLookDue = !$0.observers.isEmpty } }

  /// Whether rows may be others than what was read last.
  var isLookDue: Bool { state.withLock { $0.isLookDue } }

  /// Whether commits have rows read.
  var hasObservers: Bool { state.withLock { !$0.observers.isEmpty } }

  /// Traps if rows are to be read for nobody. For tests, on any thread.
  func checkInvariants() {
    state.withLock { precondition(!$0.isLookDue || !$0.observers.isEmpty, "nobody looks for nobody") }
  }

  // MARK: On the thread that writes

  /// Reads what is there if it may be something else: between two groups of commits.
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

  /// Reads what a commit shows, behind all that it does.
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

  /// Says whether what was read in the commits of a group is durable.
  func settle(isDurable: Bool) {
    for observer in state.withLock({ Array($0.observers.values) }) { observer.settle(isDurable) }
  }
}
