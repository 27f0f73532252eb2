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

  /// The cancellation ends every later call, not only the first.
  @Test func everyLaterPutLearnsItToo() {
    let handoff = Handoff<Int>(ahead: 2)
    let end = Handoff<Int>(ahead: 1)
    handoff.cancel()
    Thread.detachNewThread { _ = end.put((0..<10).count { handoff.put($0) }) }
    #expect(end.take(within: .seconds(10)) == 0)
    handoff.checkInvariants()
  }

  /// Dispatch traps if a semaphore is released with a value below its initial one.
  @Test func valuesThatNobodyTookAreReleasedWithIt() {
    for _ in 0..<10 {
      let handoff = Handoff<[Int]>(ahead: 4)
      for number in 0..<3 { #expect(handoff.put([number])) }
      handoff.cancel()
    }
  }
}
