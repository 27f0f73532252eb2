import StemmaEvents
import StemmaTables

/// Notifies observers that the tables have changed.
///
/// Commits of this store notify at once. Commits of other processes and stores, and rebuilds of the
/// tables, are found by polling while there are observers. A poll of SQLite's change counter costs
/// a few microseconds.
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

  /// The polling interval.
  private static let interval = Duration.milliseconds(100)

  init(_ readers: Readers, _ rows: RowFeed) {
    self.readers = readers
    self.rows = rows
  }

  /// One element at once and one after each change; changes between two reads are one element.
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
      precondition(!state.isFinished || state.observers.isEmpty, "a closed store has no observers")
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

/// Detects changes of the tables by other connections.
private actor ForeignChanges {
  private let readers: Readers
  private let executor = QueueExecutor("stemma.watch")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
  /// A separate connection, because the counter shows only changes by other connections.
  private var connection: ReadConnection?
  private var seen: Int64?

  init(_ readers: Readers) { self.readers = readers }

  /// An error counts as a change: observers meet it when they read rows, and the next poll retries.
  func haveHappened() -> Bool {
    do {
      let isReplaced = connection?.isReplaced ?? false
      if connection == nil || isReplaced {
        connection = try readers.connection()
        seen = nil
      }
      let counter = try connection?.changeCounter()
      defer { seen = counter }
      // The first poll counts as a change, because there may be earlier ones.
      return isReplaced || seen != counter
    } catch {
      connection = nil
      return true
    }
  }
}
