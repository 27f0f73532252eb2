import StemmaEvents
import Testing

@Suite struct PartitioningIndexTests {
  @Test func theFirstIndexBehindABorderIsFound() {
    for count in 0...20 {
      let numbers = Array(0..<count)
      for border in 0...count {
        #expect(numbers.partitioningIndex { $0 >= border } == border)
        let slice = numbers[(border / 2)...]
        #expect(slice.partitioningIndex { $0 >= border } == border)
      }
    }
  }
}
