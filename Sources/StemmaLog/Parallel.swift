import Dispatch
import Synchronization

/// What `body` makes of each of these, on as many threads as there are processors, or as can be made; in the same order.
/// Returns when all are done.
///
/// For work that touches nothing outside, such as unpacking blocks: reading files in parallel would make the order
/// of operations, and with it the outcome of a fault, a matter of chance.
package func mapInParallel<Input: Sendable, Output: Sendable>(
  on pool: ThreadPool = .shared, _ inputs: [Input], _ body: @Sendable (Input) -> Output
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
  let next = Atomic(0)
  withoutActuallyEscaping(body) { body in
    let work: @Sendable () -> Void = {
      while true {
        let index = next.add(1, ordering: .relaxed).oldValue
        guard index < inputs.count else { return }
        target[index] = body(inputs[index])
      }
    }
    let others = (1..<min(pool.limit, inputs.count)).map { _ in DoneAhead(on: pool, work) }
    work()
    for other in others { other.finish() }
  }
  return slots.compactMap { $0 }
}

/// A body that is run on another thread meanwhile, for one who waits for its end later: on that one's thread, if no
/// other has begun by then. So nobody waits for a thread that is not there, or cannot be made, however many of them wait
/// for each other.
///
/// For the same kind of work as above, or for work on something that nobody else touches before `finish` has returned.
package final class DoneAhead: Sendable {
  private let order: Mutex<(@Sendable () -> Void)?>
  private let isDone = DispatchSemaphore(value: 0)

  package init(on pool: ThreadPool = .shared, _ body: @escaping @Sendable () -> Void) {
    order = Mutex(body)
    pool.add(self)
  }

  /// Does nothing if it is done already, or being done.
  func run() { if isRunHere() { isDone.signal() } }

  /// When this returns, this thread holds nothing any more of the body: no file stays open for a moment behind one who
  /// waits, and closes that.
  private func isRunHere() -> Bool {
    let body = order.withLock { order in
      let body = order
      order = nil
      return body
    }
    guard let body else { return false }
    body()
    return true
  }

  var isOrdered: Bool { order.withLock { $0 != nil } }

  /// Waits for the end. To be called once.
  package func finish() {
    run()
    isDone.wait()
  }
}

/// As above, for what a body makes.
package final class MadeAhead<Output>: Sendable {
  private final class Place: Sendable {
    let made = Mutex<Output?>(nil)
    let isMade = Atomic(false)
  }

  private let place: Place
  private let making: DoneAhead

  package init(on pool: ThreadPool = .shared, _ body: @escaping @Sendable () -> sending Output) {
    let place = Place()
    self.place = place
    making = DoneAhead(on: pool) {
      place.made.withLock { $0 = body() }
      place.isMade.store(true, ordering: .releasing)
    }
  }

  /// Traps if what is made is to be made once more. For tests, on any thread.
  package func checkInvariants() {
    // In this order: what is made was ordered before.
    let isMade = place.made.withLock { $0 != nil }
    precondition(!isMade || !making.isOrdered, "it is made once")
  }

  /// Whether nobody would have to wait for it any more.
  package var isMade: Bool { place.isMade.load(ordering: .acquiring) }

  /// Waits until it is there. To be called once.
  package func take() -> sending Output {
    making.finish()
    let output = place.made.withLock { made in
      let output = made
      made = nil
      return output
    }
    guard let output else { preconditionFailure("it is taken once") }
    return output
  }
}
