import Dispatch
import Synchronization

/// What `body` makes of each of these, on as many threads as there are processors; in the same order. Returns when
/// all are done.
///
/// For work that touches nothing outside, such as unpacking blocks: reading files in parallel would make the order
/// of operations, and with it the outcome of a fault, a matter of chance.
package func mapInParallel<Input: Sendable, Output: Sendable>(
  _ inputs: [Input], _ body: @Sendable (Input) -> Output
) -> [Output] {
  guard inputs.count > 1 else { return inputs.map(body) }
  let slots = UnsafeMutableBufferPointer<Output?>.allocate(capacity: inputs.count)
  slots.initialize(repeating: nil)
  defer {
    slots.deinitialize()
    slots.deallocate()
  }
  // Each slot is written by one thread, once, and all of them are done before anybody reads.
  nonisolated(unsafe) let target = slots
  DispatchQueue.concurrentPerform(iterations: inputs.count) { target[$0] = body(inputs[$0]) }
  return slots.compactMap { $0 }
}

/// What a body makes of something on another thread meanwhile, for one who takes it later. The same holds of the body.
final class MadeAhead<Output>: Sendable {
  private let made = Mutex<Output?>(nil)
  private let isMade = DispatchSemaphore(value: 0)

  init<Input: Sendable>(of input: Input, _ body: @escaping @Sendable (Input) -> sending Output) {
    DispatchQueue.global().async { [self] in
      made.withLock { $0 = body(input) }
      isMade.signal()
    }
  }

  /// Waits until it is there. To be called once.
  func take() -> sending Output {
    isMade.wait()
    let output = made.withLock { made in
      let output = made
      made = nil
      return output
    }
    guard let output else { preconditionFailure("it is taken once") }
    return output
  }
}
