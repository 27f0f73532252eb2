import Dispatch
import Foundation
import StemmaLog
import Testing

@Suite struct HandoffTests {
  @Test func valuesComeInOrderAndNoneIsLost() {
    let handoff = Handoff<Int>(ahead: 3)
    Thread.detachNewThread {
      for number in 0..<1000 { _ = handoff.put(number) }
    }
    var taken: [Int] = []
    while taken.count < 1000 {
      handoff.checkInvariants()
      if taken.count % 2 == 0 { taken.append(handoff.take()) } else { taken += handoff.takeAll() }
    }
    #expect(taken == Array(0..<1000))
  }

  @Test func whoeverPutsLearnsThatNobodyWantsMore() {
    let handoff = Handoff<Int>(ahead: 2)
    let end = Handoff<Int>(ahead: 1)
    Thread.detachNewThread {
      var put = 0
      while handoff.put(put) { put += 1 }
      _ = end.put(put)
    }
    #expect(handoff.take() == 0)
    handoff.cancel()
    #expect(end.take() < 5)
  }

  /// The first one learned it, a later one waited for ever.
  @Test func everyLaterPutLearnsItToo() {
    let handoff = Handoff<Int>(ahead: 2)
    let end = Handoff<Int>(ahead: 1)
    handoff.cancel()
    Thread.detachNewThread { _ = end.put((0..<10).count { handoff.put($0) }) }
    #expect(end.take(within: .seconds(10)) == 0)
    handoff.checkInvariants()
  }

  /// An import that ended with an error left lines waiting, and the process trapped: Dispatch does not let a semaphore
  /// go below the value that it was made with.
  @Test func valuesThatNobodyTookAreReleasedWithIt() {
    for _ in 0..<10 {
      let handoff = Handoff<[Int]>(ahead: 4)
      for number in 0..<3 { #expect(handoff.put([number])) }
      handoff.cancel()
    }
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
