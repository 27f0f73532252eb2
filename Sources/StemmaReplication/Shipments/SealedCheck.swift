import StemmaEvents
import StemmaLog
import StemmaSchema

/// Checks that the index of a received segment is correct, and that correct writers could have
/// created its events (`EventCheck`). The segment can then be adopted byte for byte. Reads every
/// block once, in place, and creates no event.
///
/// Readers skip blocks by the index, so all of it must be correct: order and bounds of blocks,
/// streams and their hashes, positions, sizes, and a complete key filter. Memory: four bytes for
/// each event, one for each position, and the contexts that extend beyond a block.
struct SealedCheck {
  /// A stream of the segment, and the computed hash.
  private struct Stream {
    let partition: Int
    let told: StreamRun
    /// The index of its first event in `positions`.
    let first: Int
    var hash = StreamHash.zero
  }

  /// A context entry that names an event of the same segment, which must have arrived earlier.
  private struct Dependency {
    var stream: Int
    var sequence: SequenceNumber
    var relativePosition: UInt32
  }

  private static let none = UInt32.max

  private let contents: SealedContents
  /// The held streams of each partition of the segment.
  private let held: [[Origin: StreamHead]]
  private var streams: [Stream] = []
  /// The first stream of each partition, and the total at the end.
  private var firstStreams: [Int] = []
  /// The position of each event, by stream and sequence.
  private var positions: [UInt32] = []
  private var isTaken: [Bool]
  private var dependencies: [Dependency] = []
  private var rawBytes: UInt64 = 0
  private var lastKey: RecordKey?

  /// Throws `malformed`, `corrupt`, `hostileEvent` or `gap`. Each stream must directly continue
  /// `held`, the receiver's version vector. `shipped`: the batch's streams, in the index's order.
  static func run(
    _ blocks: SealedBlocks, held: VersionVector, _ shipped: [ShippedStream]
  ) throws(ReplicationError) {
    var blocks = blocks
    var pass = try Self(blocks.contents, held, shipped)
    var index = 0
    while let block = try blocks.next() {
      try pass.take(block, index)
      index += 1
    }
    try pass.finish()
  }

  private init(
    _ contents: SealedContents, _ held: VersionVector, _ shipped: [ShippedStream]
  ) throws(ReplicationError) {
    guard contents.events <= contents.sizes.end, contents.sizes.end <= UInt64(ReplicationLimits.batchEvents)
    else {
      throw .overLimit(
        "positions of a batch", found: contents.sizes.end, limit: UInt64(ReplicationLimits.batchEvents))
    }
    self.contents = contents
    self.held = contents.footer.partitions.map { held.partitions[$0.partition] ?? [:] }
    isTaken = [Bool](repeating: false, count: Int(contents.sizes.end))
    var count: UInt64 = 0
    for (index, partition) in contents.footer.partitions.enumerated() {
      firstStreams.append(streams.count)
      var ofPartition: UInt64 = 0
      for run in partition.streams {
        if let last = streams.last, last.partition == index, last.told.origin >= run.origin {
          throw .malformed("batch", "streams out of order")
        }
        var told = run
        told.hash = shipped[streams.count].range.hash
        streams.append(Stream(partition: index, told: told, first: Int(count + ofPartition)))
        ofPartition += run.to.rawValue - run.from.rawValue + 1
        guard count + ofPartition <= contents.events else { throw SealedBlocks.lie("numbers of events") }
      }
      guard ofPartition == partition.events else { throw SealedBlocks.lie("numbers of events") }
      count += ofPartition
    }
    firstStreams.append(streams.count)
    guard count == contents.events else { throw SealedBlocks.lie("numbers of events") }
    positions = [UInt32](repeating: Self.none, count: Int(count))
  }

  // MARK: Blocks

  private mutating func take(_ block: SealedBlocks.Opened, _ index: Int) throws(ReplicationError) {
    guard block.firstKey == contents.footer.blocks[index].firstKey,
      lastKey.map({ $0 <= block.firstKey }) ?? true
    else { throw SealedBlocks.lie("keys") }
    lastKey = block.lastKey
    rawBytes += block.rawBytes
    try takeEvents(of: block, index)
  }

  private mutating func takeEvents(of block: SealedBlocks.Opened, _ index: Int) throws(ReplicationError) {
    let cursor = block.cursor
    let entry = contents.footer.blocks[index]
    var (firstRelativePosition, lastRelativePosition) = (UInt64.max, UInt64.zero)
    var (lowest, highest) = (Timestamp(rawValue: .max), Timestamp.zero)
    var stream = 0
    var event = 0
    while cursor.advance() {
      let id = cursor.id
      let partition = block.partitions[cursor.run]
      if streams[stream].partition != partition || streams[stream].told.origin != id.origin {
        guard let found = self.stream(partition, id.origin) else { throw SealedBlocks.lie("streams") }
        stream = found
      }
      let told = streams[stream].told
      let relativePosition = cursor.relativePosition
      guard id.sequence >= told.from, id.sequence <= told.to, relativePosition < contents.sizes.end else {
        throw SealedBlocks.lie("streams")
      }
      let slot = streams[stream].first + Int(id.sequence.rawValue - told.from.rawValue)
      guard positions[slot] == Self.none, !isTaken[Int(relativePosition)] else {
        throw SealedBlocks.lie("streams")
      }
      positions[slot] = UInt32(relativePosition)
      isTaken[Int(relativePosition)] = true
      streams[stream].hash += block.digests[event]
      event += 1
      firstRelativePosition = min(firstRelativePosition, relativePosition)
      lastRelativePosition = max(lastRelativePosition, relativePosition)
      lowest = min(lowest, cursor.timestamp)
      highest = max(highest, cursor.timestamp)
      if cursor.commit.origin != id.origin {
        throw .hostileEvent(name(cursor), "its commit \(cursor.commit) is another origin's")
      }
      // An implicit context names earlier events of the block, which were checked there.
      if !cursor.isContextImplicit { try takeContext(of: cursor, partition) }
    }
    guard firstRelativePosition == entry.firstRelativePosition,
      lastRelativePosition == entry.lastRelativePosition,
      lowest == entry.lowestTimestamp, highest == entry.highestTimestamp
    else { throw SealedBlocks.lie("times of events") }
  }

  private func name(_ cursor: BlockCursor) -> QualifiedEventID {
    QualifiedEventID(partition: cursor.partition, id: cursor.id)
  }

  /// A binary search: the streams of a partition are sorted by origin.
  private func stream(_ partition: Int, _ origin: Origin) -> Int? {
    let own = streams[firstStreams[partition]..<firstStreams[partition + 1]]
    let index = own.partitioningIndex { !($0.told.origin < origin) }
    return index < own.endIndex && own[index].told.origin == origin ? index : nil
  }

  private mutating func takeContext(
    of cursor: BlockCursor, _ partition: Int
  ) throws(ReplicationError) {
    var depth: UInt64 = 0
    for index in 0..<cursor.contextCount {
      let entry = cursor.contextEntry(index)
      let head = (held[partition][entry.origin] ?? .none).sequence
      if entry.sequence > head {
        guard let stream = stream(partition, entry.origin), entry.sequence <= streams[stream].told.to else {
          throw .gap(cursor.partition, entry.origin, expected: head.next, found: entry.sequence)
        }
        dependencies.append(
          Dependency(
            stream: stream, sequence: entry.sequence, relativePosition: UInt32(cursor.relativePosition)))
      }
      let (sum, overflow) = depth.addingReportingOverflow(entry.sequence.rawValue)
      depth = overflow ? .max : sum
    }
    guard EventCheck.fits(cursor.version, depth: depth, isContextEmpty: cursor.contextCount == 0) else {
      throw .hostileEvent(name(cursor), "version \(cursor.version) does not fit its context")
    }
  }

  // MARK: End

  /// Traps if an event counts for two streams, or two events share an position.
  func checkInvariants() {
    precondition(firstStreams.count == contents.footer.partitions.count + 1, "each partition has streams")
    var first = 0
    for stream in streams {
      precondition(stream.first == first, "the positions of streams stand one behind the other")
      first += Int(stream.told.to.rawValue - stream.told.from.rawValue + 1)
    }
    precondition(first == positions.count, "each event has an relativePosition")
    precondition(
      positions.count { $0 != Self.none } == isTaken.count { $0 }, "each relativePosition is one event's")
  }

  private func finish() throws(ReplicationError) {
    assert(holds(checkInvariants))
    guard rawBytes == contents.sizes.rawBytes else { throw SealedBlocks.lie("sizes") }
    for stream in streams {
      guard stream.hash == stream.told.hash else { throw SealedBlocks.lie("streams") }
      let count = Int(stream.told.to.rawValue - stream.told.from.rawValue)
      for slot in stream.first..<stream.first + count where positions[slot] >= positions[slot + 1] {
        throw SealedBlocks.lie("positions")
      }
    }
    for dependency in dependencies {
      let stream = streams[dependency.stream]
      let slot = stream.first + Int(dependency.sequence.rawValue - stream.told.from.rawValue)
      guard positions[slot] < dependency.relativePosition else {
        throw .gap(
          contents.footer.partitions[stream.partition].partition, stream.told.origin,
          expected: stream.told.from, found: dependency.sequence)
      }
    }
  }
}
