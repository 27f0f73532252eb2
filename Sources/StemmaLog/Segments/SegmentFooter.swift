import StemmaEvents

/// A run of a stream's events in one file.
package struct StreamRun: Hashable, Sendable {
  package var origin: Origin
  /// Sequence of the first event.
  package var from: Sequence
  /// Sequence of the last one.
  package var to: Sequence
  /// Sum over the events `from` … `to`.
  package var hash: StreamHash
}

/// What one file holds of one partition.
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

/// What is known of a block without reading it.
package struct BlockEntry: Hashable, Sendable {
  /// Bytes from the beginning of the file.
  package var offset: UInt64
  package var length: Int
  package var crc: UInt32
  package var events: Int
  package var firstArrival: UInt64
  package var lastArrival: UInt64
  package var lowestTimestamp: Timestamp
  package var highestTimestamp: Timestamp
  package var firstKey: RecordKey

  /// Whether it stands for events of its partition that damage took from a file, when others of that file were put
  /// back (`Log.mend`). No block is so short. It is one byte, 0, so that every entry has an offset of its own;
  /// reading it is damage. The footer claims its events, of which keys and arrivals are unknown: `firstKey` is some
  /// key of the partition, and the arrivals are all that the place has.
  package var isGap: Bool { length == 1 }
}

/// The index of a segment. Partitions and blocks are in the order of their keys.
package struct SegmentFooter: Hashable, Sendable {
  package var partitions: [PartitionRun]
  package var blocks: [BlockEntry]

  /// Of no events.
  init() {
    partitions = []
    blocks = []
  }

  func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    let origins = Array(Set(partitions.flatMap { $0.streams.map(\.origin) })).sorted()
    let models = Array(Set(blocks.map { Array($0.firstKey.model.utf8) })).sorted {
      $0.lexicographicallyPrecedes($1)
    }
    bytes.appendVarint(origins.count)
    for origin in origins { bytes.put(origin.rawValue) }
    bytes.appendVarint(models.count)
    for model in models { bytes.appendCounted(model) }
    encodePartitions(origins, into: &bytes)
    encodeBlocks(models, into: &bytes)
    return bytes
  }

  private func encodePartitions(_ origins: [Origin], into bytes: inout [UInt8]) {
    let numbers = Dictionary(uniqueKeysWithValues: zip(origins, 0...))
    bytes.appendVarint(partitions.count)
    var previous: [UInt8] = []
    var firstBlock = 0
    for run in partitions {
      let name = run.partition.bytes
      let shared = zip(previous, name).prefix { $0 == $1 }.count
      bytes.appendVarint(shared)
      bytes.appendCounted(Array(name[shared...]))
      bytes.appendVarint(run.blocks.lowerBound - firstBlock)
      bytes.appendVarint(run.blocks.count - 1)
      bytes.appendVarint(run.events)
      bytes.appendVarint(run.streams.count)
      for stream in run.streams {
        bytes.appendVarint(numbers[stream.origin, default: 0])
        bytes.appendVarint(stream.from.rawValue)
        bytes.appendVarint(stream.to.rawValue - stream.from.rawValue)
        bytes.put(stream.hash.high)
        bytes.put(stream.hash.low)
      }
      previous = name
      firstBlock = run.blocks.lowerBound
    }
  }

  private func encodeBlocks(_ models: [[UInt8]], into bytes: inout [UInt8]) {
    let modelNumbers = Dictionary(uniqueKeysWithValues: zip(models, 0...))
    let partitionNumbers = Dictionary(uniqueKeysWithValues: zip(partitions.map(\.partition), 0...))
    bytes.appendVarint(blocks.count)
    for block in blocks {
      bytes.appendVarint(block.length)
      bytes.put(block.crc)
      bytes.appendVarint(block.events)
      bytes.appendVarint(block.firstArrival)
      bytes.appendVarint(block.lastArrival - block.firstArrival)
      bytes.appendVarint(block.lowestTimestamp.rawValue)
      bytes.appendVarint(block.highestTimestamp.rawValue - block.lowestTimestamp.rawValue)
      bytes.appendVarint(partitionNumbers[block.firstKey.partition, default: 0])
      bytes.appendVarint(modelNumbers[Array(block.firstKey.model.utf8), default: 0])
      bytes.appendCounted(block.firstKey.key.bytes)
    }
  }

  /// `data`: the bytes of the file in which the blocks lie; they must fill it. The footer is covered by a
  /// checksum that was compared; what is checked here keeps wrong bytes with a right checksum from trapping.
  init(decoding bytes: [UInt8], data: Range<UInt64>) throws(Flaw) {
    try self.init(decoding: bytes, from: data.lowerBound)
    let end = blocks.last.map { $0.offset + UInt64($0.length) } ?? data.lowerBound
    guard end == data.upperBound else { throw .malformed("lengths of blocks") }
  }

  /// As above, without comparing where the blocks end. `start`: where the first one begins.
  init(decoding bytes: [UInt8], from start: UInt64) throws(Flaw) {
    var reader = FieldReader(bytes)
    try self.init(reading: &reader, from: start)
    guard reader.remaining == 0 else { throw .malformed("end of the footer") }
  }

  /// As above; other bytes may follow. A footer says itself where it ends.
  init(reading reader: inout FieldReader, from start: UInt64) throws(Flaw) {
    var origins: [Origin] = []
    for _ in 0..<(try reader.count("origins", each: 8)) {
      let origin = Origin(try reader.uint64())
      if let last = origins.last, !(last < origin) { throw .malformed("order of origins") }
      origins.append(origin)
    }
    var models: [String] = []
    for _ in 0..<(try reader.count("models")) {
      let model = try reader.text("model", limit: Limits.name)
      if let last = models.last, !last.hasBytes(before: model) { throw .malformed("order of models") }
      models.append(model)
    }
    partitions = []
    blocks = []
    let count = try reader.count("partitions", each: 5)
    partitions.reserveCapacity(count)
    for _ in 0..<count { partitions.append(try Self.partition(&reader, after: partitions.last, origins)) }
    var offset = start
    let blockCount = try reader.count("blocks", each: 13)
    blocks.reserveCapacity(blockCount)
    for _ in 0..<blockCount {
      let block = try Self.block(&reader, offset, partitions, models)
      offset += UInt64(block.length)
      blocks.append(block)
    }
    guard partitions.allSatisfy({ $0.blocks.upperBound <= blocks.count }) else {
      throw .malformed("blocks of a partition")
    }
    try checkSums()
  }

  /// Throws if the numbers of events are such as no file has. All of a file can be added up then.
  private func checkSums() throws(Flaw) {
    var events: UInt64 = 0
    var sequences: UInt64 = 0
    for run in partitions {
      guard run.events <= Limits.highestNumber - events else { throw .malformed("events of a partition") }
      events += run.events
      for stream in run.streams {
        // At most twice the limit, as `partition` has checked both ends.
        sequences += stream.to.rawValue - stream.from.rawValue + 1
        guard sequences <= Limits.highestNumber else { throw .malformed("sequence") }
      }
    }
  }

  private static func partition(
    _ reader: inout FieldReader, after previous: PartitionRun?, _ origins: [Origin]
  ) throws(Flaw) -> PartitionRun {
    let before = previous?.partition.bytes ?? []
    let shared = try reader.length("partition", limit: before.count)
    let rest = try reader.length("partition", limit: Limits.partition)
    let name = Array(before[..<shared]) + (try reader.raw(rest))
    let partition: Partition
    do throws(EventsError) { partition = try Partition(validating: name) } catch { throw .block(error) }
    if let previous, !(previous.partition < partition) { throw .malformed("order of partitions") }
    let first = (previous?.blocks.lowerBound ?? 0) + (try reader.length("blocks", limit: Int(Int32.max)))
    let blocks = first..<first + 1 + (try reader.length("blocks", limit: Int(Int32.max)))
    let events = try reader.varint()
    var streams: [StreamRun] = []
    for _ in 0..<(try reader.count("streams", each: 19)) {
      let index = try reader.varint()
      guard index < UInt64(origins.count) else { throw .malformed("origin") }
      let origin = origins[Int(index)]
      if let last = streams.last, !(last.origin < origin) { throw .malformed("order of streams") }
      let from = try reader.varint()
      let more = try reader.varint()
      guard from > 0, from <= Limits.highestNumber, more <= Limits.highestNumber - from else {
        throw .malformed("sequence")
      }
      streams.append(
        StreamRun(
          origin: origin, from: Sequence(from), to: Sequence(from + more),
          hash: StreamHash(high: try reader.uint64(), low: try reader.uint64())))
    }
    return PartitionRun(partition: partition, blocks: blocks, events: events, streams: streams)
  }

  private static func block(
    _ reader: inout FieldReader, _ offset: UInt64, _ partitions: [PartitionRun], _ models: [String]
  ) throws(Flaw) -> BlockEntry {
    let length = try reader.length("length of a block", limit: LogLimits.block)
    let crc = try reader.uint32()
    let events = try reader.length("events of a block", limit: Limits.blockEvents)
    let first = try reader.varint()
    let last = first.addingReportingOverflow(try reader.varint())
    let lowest = try reader.varint()
    let highest = lowest.addingReportingOverflow(try reader.varint())
    let partition = try reader.varint()
    let model = try reader.varint()
    guard !last.overflow, last.partialValue <= Limits.highestNumber, !highest.overflow,
      partition < UInt64(partitions.count), model < UInt64(models.count)
    else { throw .malformed("block entry") }
    let keyLength = try reader.length("key", limit: Limits.key)
    let keyBytes = try reader.raw(keyLength)
    let key: Key
    do throws(EventsError) { key = try Key(encoded: keyBytes) } catch { throw .block(error) }
    return BlockEntry(
      offset: offset, length: length, crc: crc, events: events, firstArrival: first,
      lastArrival: last.partialValue, lowestTimestamp: Timestamp(rawValue: lowest),
      highestTimestamp: Timestamp(rawValue: highest.partialValue),
      firstKey: RecordKey(
        partition: partitions[Int(partition)].partition, model: models[Int(model)], key: key))
  }

  /// The partitions that `isWanted`, and the indices of their blocks, rising.
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
  /// Of each run of keys of a block its partition, as a place in `partitions`. Throws unless the index says that the
  /// partition has events in the block, and the key filter has every record: readers skip blocks and files by them.
  /// `index`: of the block.
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
