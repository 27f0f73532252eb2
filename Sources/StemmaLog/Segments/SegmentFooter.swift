import StemmaEvents

/// A run of a stream's events in one file.
package struct StreamRun: Hashable, Sendable {
  package var origin: Origin
  /// Sequence of the first event.
  package var from: SequenceNumber
  /// Sequence of the last one.
  package var to: SequenceNumber
  /// Sum over the events `from` … `to`; zero in a footer where the run is not `isHashed`.
  package var hash: StreamHash

  package var count: UInt64 { to.rawValue - from.rawValue + 1 }

  /// Whether a footer has the hash. Hashes of short runs are computed on demand: they do not
  /// deflate, and would be as long as the events.
  package var isHashed: Bool { count >= LogLimits.hashedRun }
}

/// The events of one partition in one file.
package struct PartitionRun: Hashable, Sendable {
  package var partition: Partition
  /// Indices of the blocks that hold its events; other partitions may share them.
  package var blocks: Range<Int>
  package var events: UInt64
  /// Sorted by origin.
  package var streams: [StreamRun]
}

/// A record's place in the order of segments.
package struct RecordKey: Hashable, Comparable, Sendable {
  package var partition: Partition
  package var model: String
  package var key: Key

  package init(_ event: Event) {
    partition = event.partition
    model = event.model
    key = event.key
  }

  package init(_ record: BlockReader.Record) {
    self.init(partition: record.partition, model: record.model, key: record.key)
  }

  package init(partition: Partition, model: String, key: Key) {
    self.partition = partition
    self.model = model
    self.key = key
  }

  package static func == (a: RecordKey, b: RecordKey) -> Bool {
    a.partition == b.partition && a.model.hasSameBytes(as: b.model) && a.key == b.key
  }

  package static func < (a: RecordKey, b: RecordKey) -> Bool {
    if a.partition != b.partition { return a.partition < b.partition }
    if !a.model.hasSameBytes(as: b.model) { return a.model.hasBytes(before: b.model) }
    return a.key < b.key
  }
}

/// The footer's facts about a block.
package struct BlockEntry: Hashable, Sendable {
  /// Bytes from the beginning of the file.
  package var offset: UInt64
  package var length: Int
  package var crc: UInt32
  package var events: Int
  package var firstRelativePosition: UInt64
  package var lastRelativePosition: UInt64
  package var lowestTimestamp: Timestamp
  package var highestTimestamp: Timestamp
  package var firstKey: RecordKey
}

/// The index of a segment, or a part of it. Partitions and blocks are in key order.
package struct SegmentFooter: Hashable, Sendable {
  package var partitions: [PartitionRun]
  package var blocks: [BlockEntry]

  /// A footer without events.
  init() {
    partitions = []
    blocks = []
  }

  /// The partitions that pass `isWanted`, and the indices of their blocks, rising.
  func selection(_ isWanted: (Partition) -> Bool) -> (partitions: Set<Partition>, blocks: [Int]) {
    var wanted: Set<Partition> = []
    var indices: [Int] = []
    for run in partitions where isWanted(run.partition) {
      wanted.insert(run.partition)
      for index in run.blocks where indices.last.map({ $0 < index }) ?? true { indices.append(index) }
    }
    return (wanted, indices)
  }
}

extension SegmentFooter {
  /// The wanted partitions with all hashes. Computes those that the footer omits from the events:
  /// calls `block` once for each block that may have such events.
  func hashedPartitions<Failure: Error>(
    _ isWanted: (Partition) -> Bool = { _ in true }, block: (Int) throws(Failure) -> BlockCursor
  ) throws(Failure) -> [PartitionRun] {
    var runs = partitions.filter { isWanted($0.partition) }
    let short = runs.filter { !$0.streams.allSatisfy(\.isHashed) }
    let partitions = Set(short.map(\.partition))
    var sums: [StreamID: StreamHash] = [:]
    var digester = BlockDigester()
    for index in selection(partitions.contains).blocks {
      let cursor = try block(index)
      digester.begin(cursor)
      while cursor.advance() {
        let partition = cursor.partition
        guard partitions.contains(partition) else { continue }
        let stream = StreamID(partition: partition, origin: cursor.id.origin)
        sums[stream, default: .zero] += digester.digest(of: cursor)
      }
    }
    for index in runs.indices where partitions.contains(runs[index].partition) {
      for place in runs[index].streams.indices where !runs[index].streams[place].isHashed {
        let stream = StreamID(partition: runs[index].partition, origin: runs[index].streams[place].origin)
        runs[index].streams[place].hash = sums[stream, default: .zero]
      }
    }
    return runs
  }

  /// The partition of each run of keys in a block, as a place in `partitions`. Throws unless the
  /// index lists the partition for the block, and the key filter has every record: readers skip
  /// blocks and files by them. `index`: of the block.
  func partitions(of block: BlockReader, _ index: Int, _ filter: KeyFilter?) throws(Flaw) -> [Int] {
    var places: [Int] = []
    var place = 0
    var hash = KeyHash(partition: block.partition(ofKey: 0), model: block.model(ofKey: 0))
    for key in 0..<block.keyCount {
      if block.run(ofKey: key) == places.count {
        let partition = block.partition(ofKey: key)
        while place < partitions.count, partitions[place].partition < partition { place += 1 }
        guard place < partitions.count, partitions[place].partition == partition,
          partitions[place].blocks.contains(index)
        else { throw .disagreement("partitions in the footer and in a block") }
        places.append(place)
        hash = KeyHash(partition: partition, model: block.model(ofKey: key))
      }
      guard filter?.mayContain(hash.of(block.keyBytes(key))) ?? true else {
        throw .disagreement("keys in the filter and in a block")
      }
    }
    return places
  }
}
