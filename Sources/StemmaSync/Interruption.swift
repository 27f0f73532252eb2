import Foundation
import StemmaEvents

/// Ends calls for which threads wait.
package final class Interruption: Sendable {
  /// A call took longer than permitted.
  struct Silence: Error {}

  private struct State {
    var isSet = false
    var lastNumber = 0
    var calls: [Int: @Sendable () -> Void] = [:]
  }

  private let state = Mutex(State())

  package init() {}

  package var isSet: Bool { state.withLock { $0.isSet } }

  /// Cancels the calls in progress, and each later one. The threads continue at once, even if a
  /// call ignores its cancellation.
  package func interrupt() {
    let calls = state.withLock { state in
      state.isSet = true
      defer { state.calls = [:] }
      return Array(state.calls.values)
    }
    for cancel in calls { cancel() }
  }

  /// Runs `body` in a task and waits for it on this thread, which must not be one of Swift's shared
  /// pool.
  ///
  /// - Parameter seconds: the longest wait; nil: no limit.
  /// - Throws: `CancellationError` after an interruption, `Silence` after the wait, otherwise the
  ///   error of `body`.
  package func wait<Result: Sendable>(
    _ seconds: Double? = nil, _ body: @escaping @Sendable () async throws -> Result
  ) throws -> Result {
    let call = Call<Result>()
    let task = Task.detached {
      do { call.end(.success(try await body())) } catch { call.end(.failure(error)) }
    }
    let number = add {
      task.cancel()
      call.end(.failure(CancellationError()))
    }
    defer { remove(number) }
    guard let result = call.result(within: seconds) else {
      task.cancel()
      throw Silence()
    }
    return try result.get()
  }

  /// Calls `cancel` at the interruption, or at once after it.
  ///
  /// - Returns: a number for `remove`.
  package func add(_ cancel: @escaping @Sendable () -> Void) -> Int {
    let (number, isSet) = state.withLock { state in
      state.lastNumber += 1
      if !state.isSet { state.calls[state.lastNumber] = cancel }
      return (state.lastNumber, state.isSet)
    }
    if isSet { cancel() }
    return number
  }

  package func remove(_ number: Int) { state.withLock { $0.calls[number] = nil } }

  /// The first result of a call.
  private final class Call<Value: Sendable>: Sendable {
    private let result = Mutex<Result<Value, any Error>?>(nil)
    private let isDone = DispatchSemaphore(value: 0)

    func end(_ new: Result<Value, any Error>) {
      result.withLock { if $0 == nil { $0 = new } }
      isDone.signal()
    }

    func result(within seconds: Double?) -> Result<Value, any Error>? {
      _ = isDone.wait(timeout: seconds.map { .now() + $0 } ?? .distantFuture)
      return result.withLock { $0 }
    }
  }
}
