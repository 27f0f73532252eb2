import Dispatch
import StemmaLog
import Testing

@Suite struct ParallelTests {
  @Test func whatIsMadeComesInOrder() {
    for count in [0, 1, 2, 3, 1000] {
      #expect(mapInParallel(Array(0..<count)) { $0 * $0 } == (0..<count).map { $0 * $0 })
    }
    let parts = (0..<1000).map { number in MadeAhead { number } }
    #expect(parts.map { $0.take() } == Array(0..<1000))
  }

  private final class Held: Sendable {}

  /// The producing thread must release its objects before the result is returned. Otherwise a file
  /// could remain open after its consumer closed it.
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
        // Ensures that another thread does the work.
        begun.wait()
        return ahead.take()
      }()
      #expect(held == nil)
    }
  }

  /// More tasks wait for one another than the system has threads.
  @Test(.timeLimit(.minutes(2))) func whatIsMadeAheadWaitsForNoThreadThatIsNotThere() {
    @Sendable func count(_ depth: Int) -> Int {
      if depth == 0 { return 1 }
      let parts = (0..<2).map { _ in MadeAhead { count(depth - 1) } }
      return parts.reduce(0) { $0 + $1.take() }
    }
    #expect(count(12) == 4096)
  }
}
