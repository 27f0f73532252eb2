import StemmaEvents
import Testing

@testable import StemmaLog
@testable import StemmaNode

/// The recorded corruption in a node's metadata.
@Suite struct RecordedCorruptionTests {
  /// Different commands find parts of a lost run. The parts are merged: `a:3-9`, not `a:3-5,
  /// a:6-9`.
  @Test func runsThatFollowEachOtherAreOne() {
    func lost(_ partition: String, _ origin: UInt64, _ from: UInt64, _ to: UInt64) -> LostRange {
      LostRange(
        partition: Partition(partition), origin: Origin(origin), from: SequenceNumber(from),
        to: SequenceNumber(to))
    }
    let losses = RecordedCorruption.losses([
      lost("t=a", 1, 3, 5), lost("t=a", 1, 6, 9), lost("t=a", 1, 11, 12), lost("t=a", 2, 13, 14),
      lost("t=b", 2, 15, 16),
    ])
    #expect(losses.map { [$0.from, $0.to] } == [[3, 9], [11, 12], [13, 14], [15, 16]])
    #expect(losses.map(\.partition) == ["t=a", "t=a", "t=a", "t=b"])
    #expect(Set(losses.prefix(2).map(\.origin)) != Set(losses.suffix(2).map(\.origin)))
  }
}
