import StemmaTables
import Synchronization

/// Tells observers that the tables have changed.
///
/// Commits of this store are told at once. Those of other processes, of other stores on the same directory, and a rebuild
/// of the tables are noticed by looking at SQLite's counter of changes, which costs a few microseconds, as long as anybody
/// observes.
final class ChangeFeed: Sendable {
  private let readers: Readers
  private let rows: RowFeed
  private let state = Mutex(State())

  private struct State {
    var observers: [Int: AsyncStream<Void>.Continuation] = [:]
    var nextNumber = 0
    var watch: Task<Void, Never>?
    var isFinished = false
  }

  /// How often others' changes are looked for.
  private static let interval = Duration.milliseconds(100)

  init(_ readers: Readers, _ rows: RowFeed) {
    self.readers = readers
    self.rows = rows
  }

  /// One element now and one after each change; changes while nobody listens are one element.
  func stream() -> AsyncStream<Void> {
    let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let number = state.withLock { state -> Int? in
      if state.isFinished { return nil }
      state.nextNumber += 1
      state.observers[state.nextNumber] = continuation
      if state.watch == nil { state.watch = watch() }
      return state.nextNumber
    }
    guard let number else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in self?.remove(number) }
    continuation.yield()
    return stream
  }

  private func remove(_ number: Int) {
    let idle = state.withLock { state -> Task<Void, Never>? in
      state.observers[number] = nil
      guard state.observers.isEmpty else { return nil }
      defer { state.watch = nil }
      return state.watch
    }
    idle?.cancel()
  }

  func publish() {
    for continuation in state.withLock({ Array($0.observers.values) }) { continuation.yield() }
  }

  func finish() {
    let (observers, watch) = state.withLock { state in
      state.isFinished = true
      defer { (state.observers, state.watch) = ([:], nil) }
      return (Array(state.observers.values), state.watch)
    }
    watch?.cancel()
    for continuation in observers { continuation.finish() }
  }

  /// Traps if what is kept contradicts itself. For tests, on any thread.
  func checkInvariants() {
    state.withLock { state in
      precondition(
        (state.watch == nil) == state.observers.isEmpty, "others' changes are looked for if anybody observes")
      precondition(!state.isFinished || state.observers.isEmpty, "nobody observes a closed store")
      precondition(
        state.observers.keys.allSatisfy { $0 <= state.nextNumber }, "each observer has a number of its own")
    }
  }

  private func watch() -> Task<Void, Never> {
    Task.detached(priority: .utility) { [weak self, readers, rows] in
      let watch = ForeignChanges(readers)
      while !Task.isCancelled {
        if await watch.haveHappened() {
          rows.noteOthers()
          self?.publish()
        }
        // Cancelled while it sleeps: the loop ends.
        do { try await Task.sleep(for: Self.interval) } catch { return }
      }
    }
  }
}

/// Notices that somebody has changed the tables.
private actor ForeignChanges {
  private let readers: Readers
  private let executor = QueueExecutor("stemma.watch")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  /// A connection of its own: the counter says what others than this connection have done.
  private var connection: ReadConnection?
  private var seen: Int64?

  init(_ readers: Readers) { self.readers = readers }

  /// What cannot be read now is read again soon, and whoever observes finds it out when it reads the rows.
  func haveHappened() -> Bool {
    do {
      let isReplaced = connection?.isReplaced ?? false
      if connection == nil || isReplaced {
        connection = try readers.connection()
        seen = nil
      }
      let counter = try connection?.changeCounter()
      defer { seen = counter }
      // At first, too: something may have happened before anybody looked.
      return isReplaced || seen != counter
    } catch {
      connection = nil
      return true
    }
  }
}
