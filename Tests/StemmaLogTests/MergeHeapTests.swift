import StemmaSimulation
import Testing

@testable import StemmaLog

/// The merge returns the least element first, in any order of insertion.
@Suite struct MergeHeapTests {
  @Test(arguments: [1, 2, 3] as [UInt64]) func theLeastElementComesFirst(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var heap = MergeHeap<UInt64>()
    var model: [UInt64] = []
    for _ in 0..<600 {
      let item = random.next() % 40
      switch random.next() % 4 {
      case 0 where !model.isEmpty:
        heap.replaceFirst(with: nil)
        model.removeFirst()
      case 1 where !model.isEmpty:
        heap.replaceFirst(with: item)
        model[0] = item
      default:
        heap.insert(item)
        model.append(item)
      }
      model.sort()
      heap.checkInvariants()
      #expect(heap.first == model.first)
    }
  }
}
