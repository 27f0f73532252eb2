import StemmaEvents

/// What the blocks of a file hold of each stream, in any order of the events. Memory: of the order of
/// streams.
struct StreamTally {
  private struct Stream: Hashable {
    var partition: Partition
    var origin: Origin
  }

  private struct Sum {
    var events: UInt64 = 0
    var lowest = Sequence(.max)
    var highest = Sequence.zero
    var hash = StreamHash.zero
  }

  private var streams: [Stream: Sum] = [:]
  private(set) var rawBytes: UInt64 = 0
  /// Whether every block was added.
  var isWhole = false
  private var digester = EventDigester()

  mutating func add(_ part: InspectedPart) {
    guard part.flaws.isEmpty, let block = part.block, let events = Self.events(of: block) else {
      isWhole = false
      return
    }
    for event in events {
      let stream = Stream(partition: event.event.partition, origin: event.event.dot.origin)
      var sum = streams[stream] ?? Sum()
      sum.events += 1
      sum.lowest = min(sum.lowest, event.event.dot.sequence)
      sum.highest = max(sum.highest, event.event.dot.sequence)
      sum.hash += digester.digest(of: event.event).hash
      streams[stream] = sum
      rawBytes += UInt64(event.event.rawSize)
    }
  }

  /// nil: the block's values do not decode, which its part says already.
  private static func events(of block: BlockReader) -> [BlockEvent]? {
    do throws(EventsError) { return try block.events() } catch { return nil }
  }

  /// Traps if a stream is there without an event. In debug builds when it is compared.
  func checkInvariants() {
    for sum in streams.values {
      precondition(sum.events > 0 && sum.lowest <= sum.highest, "a stream has an event")
    }
    precondition(streams.isEmpty == (rawBytes == 0), "each event has some bytes")
  }

  /// Which stream is not what the footer says; nil if all are.
  func disagreement(with partitions: [PartitionRun]) -> String? {
    assert(holds(checkInvariants))
    var left = streams
    for run in partitions {
      for told in run.streams {
        let sum = left.removeValue(forKey: Stream(partition: run.partition, origin: told.origin)) ?? Sum()
        guard sum.lowest == told.from, sum.highest == told.to, sum.hash == told.hash,
          sum.events == told.to.rawValue - told.from.rawValue + 1
        else { return "\(run.partition) of \(told.origin) is not what the footer says" }
      }
    }
    guard let other = left.keys.min(by: { ($0.partition, $0.origin) < ($1.partition, $1.origin) }) else {
      return nil
    }
    return "\(other.partition) of \(other.origin) is not in the footer"
  }
}
