import Dispatch
import StemmaLog
import Synchronization
import Testing

@Suite struct ParallelTests {
  /// The first `refusals` threads that are asked for cannot be made, nor those beyond `threads`.
  private func pool(limit: Int = 4, threads: Int, refusals: Int = 0) -> ThreadPool {
    let asked = Mutex(0)
    return ThreadPool(limit: limit) { body in
      let number = asked.withLock { asked in
        asked += 1
        return asked
      }
      guard (refusals + 1...refusals + threads + 1).dropLast().contains(number) else { return false }
      return (try? System.beginThread(for: "", body)) != nil
    }
  }

  /// Everybody waited for ever.
  @Test(.timeLimit(.minutes(2)), arguments: [0, 1, 2, 4])
  func whatNoThreadIsThereForIsDoneByWhoeverWaits(threads: Int) {
    let pool = pool(threads: threads)
    for count in [0, 1, 2, 3, 1000] {
      #expect(mapInParallel(on: pool, Array(0..<count)) { $0 * $0 } == (0..<count).map { $0 * $0 })
      pool.checkInvariants()
    }
    let parts = (0..<1000).map { number in MadeAhead(on: pool) { number } }
    pool.checkInvariants()
    #expect(parts.map { $0.take() } == Array(0..<1000))
    pool.checkInvariants()
  }

  @Test func aThreadIsAskedForAgain() {
    let pool = pool(threads: 1, refusals: 3)
    let done = (0..<4).map { _ in DispatchSemaphore(value: 0) }
    let parts = done.map { done in DoneAhead(on: pool) { done.signal() } }
    // The one thread that there is in the end runs the last of them, of which nobody waits for the end.
    #expect(done[3].wait(timeout: .now() + 60) == .success)
    for part in parts { part.finish() }
    for done in done[..<3] { #expect(done.wait(timeout: .now()) == .success) }
  }

  @Test func threadsStayAndAreNoMoreThanMayBe() {
    let begun = Mutex(0)
    let pool = ThreadPool(limit: 2) { body in
      begun.withLock { $0 += 1 }
      return (try? System.beginThread(for: "", body)) != nil
    }
    for turn in 0..<200 {
      let parts = (0..<8).map { number in MadeAhead(on: pool) { number + turn } }
      #expect(parts.reduce(0) { $0 + $1.take() } == 28 + 8 * turn)
      pool.checkInvariants()
    }
    #expect(begun.withLock { $0 } == 2)
  }

  /// It would have waited for a thread as long as the process lives.
  @Test func whatNobodyRunsIsLetGo() {
    let pool = pool(threads: 0)
    weak var held: Held?
    do {
      let made = Held()
      held = made
      let ahead = MadeAhead(on: pool) { made === made }
      ahead.checkInvariants()
    }
    #expect(held == nil)
  }

  private final class Held: Sendable {}

  /// A thread that had made something held what it was made of a moment longer than the one who took it: a file that this
  /// one closed then stayed open.
  @Test func whatIsTakenIsHeldByNobodyElse() {
    for _ in 0..<20_000 {
      weak var held: Held?
      _ = {
        let made = Held()
        held = made
        let begun = DispatchSemaphore(value: 0)
        let ahead = MadeAhead {
          begun.signal()
          return made === made
        }
        // So it is another thread that makes it.
        begun.wait()
        return ahead.take()
      }()
      #expect(held == nil)
    }
  }

  /// More of them wait for one another than the system has threads for.
  @Test(.timeLimit(.minutes(2))) func whatIsMadeAheadWaitsForNoThreadThatIsNotThere() {
    @Sendable func count(_ depth: Int) -> Int {
      if depth == 0 { return 1 }
      let parts = (0..<2).map { _ in MadeAhead { count(depth - 1) } }
      for part in parts { part.checkInvariants() }
      return parts.reduce(0) { $0 + $1.take() }
    }
    #expect(count(12) == 4096)
  }
}
