import Dispatch
import Synchronization

/// Hands values from the thread that makes them to the thread that uses them, a few ahead.
package final class Handoff<Element: Sendable>: Sendable {
  private struct State {
    var items: [Element] = []
    var isCancelled = false
  }

  private let limit: Int
  private let state = Mutex(State())
  private let free = DispatchSemaphore(value: 0)
  private let filled = DispatchSemaphore(value: 0)

  /// `ahead`: how many values wait at most.
  package init(ahead: Int) {
    limit = ahead
    // Dispatch traps on a semaphore that is released below the value that it was made with.
    for _ in 0..<ahead { free.signal() }
  }

  /// Waits for room. False if nobody wants any more.
  package func put(_ item: Element) -> Bool {
    free.wait()
    let isWanted = state.withLock { state in
      if !state.isCancelled { state.items.append(item) }
      return !state.isCancelled
    }
    // The next one finds that out as well.
    if isWanted { filled.signal() } else { free.signal() }
    return isWanted
  }

  /// Waits for the next value.
  package func take() -> Element {
    while true {
      filled.wait()
      if let item = state.withLock({ $0.items.isEmpty ? nil : $0.items.removeFirst() }) {
        free.signal()
        return item
      }
    }
  }

  /// Waits for the next value for some time; nil if none came.
  package func take(within time: DispatchTimeInterval) -> Element? {
    let deadline = DispatchTime.now() + time
    while filled.wait(timeout: deadline) == .success {
      if let item = state.withLock({ $0.items.isEmpty ? nil : $0.items.removeFirst() }) {
        free.signal()
        return item
      }
    }
    return nil
  }

  /// Waits for the next value, and gives it with all that wait behind it.
  package func takeAll() -> [Element] {
    var items = [take()]
    while filled.wait(timeout: .now()) == .success {
      if let item = state.withLock({ $0.items.isEmpty ? nil : $0.items.removeFirst() }) {
        items.append(item)
        free.signal()
      }
    }
    return items
  }

  /// Says that no more is taken: whoever waits in `put` returns, and so does every later `put`.
  package func cancel() {
    state.withLock { state in
      state.isCancelled = true
      state.items = []
    }
    free.signal()
  }

  /// Traps if more wait than may, or some wait for nobody. For tests, on any thread.
  package func checkInvariants() {
    state.withLock { state in
      precondition(state.items.count <= limit, "whoever puts waits for room")
      precondition(!state.isCancelled || state.items.isEmpty, "nothing waits for one who takes no more")
    }
  }
}
