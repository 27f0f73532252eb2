import StemmaEvents
import Dispatch

/// Hands values from a producer thread to a consumer thread, a few in advance.
package final class Handoff<Element: Sendable>: Sendable {
  private struct State {
    var items: [Element] = []
    var isCancelled = false
  }

  private let limit: Int
  private let state = Mutex(State())
  private let free = DispatchSemaphore(value: 0)
  private let filled = DispatchSemaphore(value: 0)

  /// `ahead`: how many values can wait.
  package init(ahead: Int) {
    limit = ahead
    // Dispatch traps if a semaphore is released below its initial value.
    for _ in 0..<ahead { free.signal() }
  }

  /// Waits for room. Returns false after `cancel`.
  package func put(_ item: Element) -> Bool {
    free.wait()
    let isWanted = state.withLock { state in
      if !state.isCancelled { state.items.append(item) }
      return !state.isCancelled
    }
    // After `cancel`, wakes the next waiting `put`.
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

  /// Waits for the next value. Returns it with all values that wait behind it.
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

  /// Ends the handoff: waiting and later calls of `put` return false.
  package func cancel() {
    state.withLock { state in
      state.isCancelled = true
      state.items = []
    }
    free.signal()
  }

  /// Traps if more values wait than `limit`, or any after `cancel`. For tests, on any thread.
  package func checkInvariants() {
    state.withLock { state in
      precondition(state.items.count <= limit, "a producer waits for room")
      precondition(!state.isCancelled || state.items.isEmpty, "nothing waits for one who takes no more")
    }
  }
}
