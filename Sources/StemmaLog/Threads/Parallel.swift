import Dispatch
import StemmaEvents
import struct Synchronization.Atomic

/// Maps the inputs on several threads, and keeps their order. Returns when all are done.
///
/// The work must not touch shared state. Reading files in parallel would leave the order of
/// operations, and with it the outcome of a fault, to chance.
package func mapInParallel<Input: Sendable, Output: Sendable>(
  _ inputs: [Input], _ body: @Sendable (Input) -> Output
) -> [Output] {
  let outputs = Mutex([Output?](repeating: nil, count: inputs.count))
  DispatchQueue.concurrentPerform(iterations: inputs.count) { index in
    let output = body(inputs[index])
    outputs.withLock { $0[index] = output }
  }
  return outputs.withLock { $0.compactMap { $0 } }
}

/// The output of a body that another thread runs in advance. If none has begun it, `take` runs it
/// on the caller's thread. So no call waits for a free thread.
///
/// Until `take` returns, the body must not share state with another thread.
package final class MadeAhead<Output>: Sendable {
  private let order: Mutex<(@Sendable () -> sending Output)?>
  private let made = Mutex<Output?>(nil)
  private let isStored = Atomic(false)
  private let isDone = DispatchSemaphore(value: 0)

  package init(_ body: @escaping @Sendable () -> sending Output) {
    order = Mutex(body)
    DispatchQueue.global().async { [self] in run() }
  }

  /// Whether `take` would return at once.
  package var isMade: Bool { isStored.load(ordering: .acquiring) }

  /// Waits for the end. To be called once.
  package func take() -> sending Output {
    run()
    isDone.wait()
    let output = made.withLock { made in
      let output = made
      made = nil
      return output
    }
    guard let output else { preconditionFailure("it is taken once") }
    return output
  }

  /// Does nothing if another thread has begun it.
  private func run() { if isRunHere() { isDone.signal() } }

  /// On return, this thread retains nothing of the body, so no file stays open after `take`.
  private func isRunHere() -> Bool {
    let body = order.withLock { order in
      let body = order
      order = nil
      return body
    }
    guard let body else { return false }
    made.withLock { $0 = body() }
    isStored.store(true, ordering: .releasing)
    return true
  }
}
