import StemmaEvents

// The encoding of a footer: see `SegmentFormat.swift`.

extension [UInt8] {
  /// A name in a list: the length that it shares with the one before it, and the rest.
  fileprivate mutating func appendName(_ partition: Partition, after previous: Partition?) {
    let name = partition.bytes
    let shared = Swift.zip(previous?.bytes ?? [], name).prefix { $0 == $1 }.count
    appendVarint(shared)
    appendCounted(Array(name[shared...]))
  }
}

extension ByteReader<Flaw> {
  fileprivate mutating func name(after previous: Partition?) throws(Flaw) -> Partition {
    let before = previous?.bytes ?? []
    let shared = try count("partition", limit: before.count)
    let rest = try count("partition", limit: Limits.partition)
    let name = Array(before[..<shared]) + (try bytes(rest, "partition"))
    do throws(EventsError) { return try Partition(validating: name) } catch { throw .block(error) }
  }
}

/// The front of a footer: all of it but the partitions, which are in pages. A reader of one
/// partition reads the root and a page.
struct FooterRoot: Hashable, Sendable {
  struct Page: Hashable, Sendable {
    /// The blocks that hold the events of its partitions.
    var blocks: Range<Int>
    /// Bytes from the end of the root.
    var offset: Int
    var size: StoredSize
    var crc: UInt32
  }

  let origins: [Origin]
  let blocks: [BlockEntry]
  let pages: [Page]
  /// The only page, if it is in the root.
  let inner: [UInt8]

  /// `start`: the offset of the first block. A checksum covers the bytes; these checks keep wrong
  /// bytes with a valid checksum from trapping. Leaves the bytes of the pages.
  init(_ reader: inout ByteReader<Flaw>, from start: UInt64) throws(Flaw) {
    var origins: [Origin] = []
    for _ in 0..<(try reader.count("origins", each: 8)) {
      let origin = Origin(try reader.fixed("origins"))
      if let last = origins.last, !(last < origin) { throw .malformed("order of origins") }
      origins.append(origin)
    }
    self.origins = origins
    var models: [String] = []
    for _ in 0..<(try reader.count("models", each: 1)) {
      let model = try reader.text("model", limit: Limits.name)
      if let last = models.last, !last.hasBytes(before: model) { throw .malformed("order of models") }
      models.append(model)
    }
    var blocks: [BlockEntry] = []
    var offset = start
    let blockCount = try reader.count("blocks", each: 14)
    blocks.reserveCapacity(blockCount)
    for _ in 0..<blockCount {
      let block = try Self.block(&reader, offset, after: blocks.last, models)
      offset += UInt64(block.length)
      blocks.append(block)
    }
    self.blocks = blocks
    let pageCount = try reader.count("pages", limit: blockCount)
    inner = pageCount == 0 ? Array(try reader.bytes(reader.remaining, "page")) : []
    var pages: [Page] = []
    var (firstBlock, end, raw) = (0, 0, 0)
    for _ in 0..<pageCount {
      let count = try reader.count("blocks of a page", limit: blockCount - firstBlock)
      let size = try StoredSize(&reader, "page", limit: LogLimits.footer - raw)
      guard count > 0 else { throw .malformed("blocks of a page") }
      pages.append(
        Page(
          blocks: firstBlock..<firstBlock + count, offset: end, size: size, crc: try reader.fixed32("page")))
      (firstBlock, end, raw) = (firstBlock + count, end + size.stored, raw + size.raw)
    }
    guard pageCount == 0 || firstBlock == blockCount else { throw .malformed("blocks of a page") }
    self.pages = pages
  }

  private static func block(
    _ reader: inout ByteReader<Flaw>, _ offset: UInt64, after previous: BlockEntry?, _ models: [String]
  ) throws(Flaw) -> BlockEntry {
    let partition = try reader.name(after: previous?.firstKey.partition)
    let model = models[try reader.index("model", below: models.count)]
    let keyBytes = Array(try reader.counted("key", limit: Limits.key))
    let key: Key
    do throws(EventsError) { key = try Key(encoded: keyBytes) } catch { throw .block(error) }
    let length = try reader.count("length of a block", limit: LogLimits.block)
    let crc = try reader.fixed32("block entry")
    let events = try reader.count("events of a block", limit: Limits.blockEvents)
    let first = try reader.varint("block entry")
    let last = first.addingReportingOverflow(try reader.varint("block entry"))
    let step = UInt64(bitPattern: try reader.zigzag("block entry"))
    let lowest = (previous?.lowestTimestamp.rawValue ?? 0) &+ step
    let highest = lowest.addingReportingOverflow(try reader.varint("block entry"))
    guard !last.overflow, last.partialValue <= Limits.highestNumber, !highest.overflow else {
      throw .malformed("block entry")
    }
    return BlockEntry(
      offset: offset, length: length, crc: crc, events: events, firstRelativePosition: first,
      lastRelativePosition: last.partialValue, lowestTimestamp: Timestamp(rawValue: lowest),
      highestTimestamp: Timestamp(rawValue: highest.partialValue),
      firstKey: RecordKey(partition: partition, model: model, key: key))
  }

  /// Throws unless the blocks fill `data`, and hold `events` if that is given.
  func check(_ data: Range<UInt64>, events: UInt64? = nil) throws(Flaw) {
    guard (blocks.last.map { $0.offset + UInt64($0.length) } ?? data.lowerBound) == data.upperBound else {
      throw .malformed("lengths of blocks")
    }
    guard events.map({ $0 == blocks.reduce(0) { $0 + UInt64($1.events) } }) ?? true else {
      throw .malformed("count of events")
    }
  }

  /// Bytes of the pages behind the root.
  var pagesSize: Int { pages.last.map { $0.offset + $0.size.stored } ?? 0 }

  /// The pages that may have some partitions, rising. nil: all pages.
  func pages(of wanted: Set<Partition>?) -> [Int] {
    guard let wanted else { return Array(pages.indices) }
    let places = wanted.map { partition in
      pages.partitioningIndex { partition < blocks[$0.blocks.lowerBound].firstKey.partition } - 1
    }
    return Set(places).filter { $0 >= 0 }.sorted()
  }

  /// The partitions of page `index`, which has the bytes `stored`.
  func partitions(of index: Int, _ stored: [UInt8]) throws(Flaw) -> [PartitionRun] {
    let page = pages[index]
    let memory = stored.withUnsafeBytes { page.size.inflate($0, strictly: true) }
    guard let memory else { throw .block(.malformed("page", "not the deflate stream it should be")) }
    defer { withExtendedLifetime(memory) {} }
    var reader = ByteReader<Flaw>(memory.bytes)
    let runs = try partitions(&reader, page.blocks)
    if index + 1 < pages.count, let last = runs.last?.partition,
      !(last < blocks[pages[index + 1].blocks.lowerBound].firstKey.partition)
    {
      throw .malformed("order of partitions")
    }
    return runs
  }

  func innerPartitions() throws(Flaw) -> [PartitionRun] {
    try inner.read { (reader) throws(Flaw) in try partitions(&reader, 0..<blocks.count) }
  }

  private func partitions(
    _ reader: inout ByteReader<Flaw>, _ range: Range<Int>
  ) throws(Flaw) -> [PartitionRun] {
    var runs: [PartitionRun] = []
    while !reader.isAtEnd {
      let run = try partition(&reader, after: runs.last, range)
      if runs.isEmpty, run.partition != blocks[range.lowerBound].firstKey.partition {
        throw .malformed("order of partitions")
      }
      runs.append(run)
    }
    return runs
  }

  private func partition(
    _ reader: inout ByteReader<Flaw>, after previous: PartitionRun?, _ range: Range<Int>
  ) throws(Flaw) -> PartitionRun {
    guard range.lowerBound < blocks.count else { throw .malformed("blocks of a partition") }
    let first = blocks[range.lowerBound].firstKey.partition
    let partition = try reader.name(after: previous?.partition ?? first)
    if let previous, !(previous.partition < partition) { throw .malformed("order of partitions") }
    let start =
      (previous?.blocks.lowerBound ?? range.lowerBound) + (try reader.count("blocks", limit: blocks.count))
    let own = start..<start + 1 + (try reader.count("blocks", limit: blocks.count))
    guard own.upperBound <= range.upperBound else { throw .malformed("blocks of a partition") }
    var streams: [StreamRun] = []
    var events: UInt64 = 0
    for _ in 0..<(try reader.count("streams", each: 3)) {
      let origin = origins[try reader.index("origin", below: origins.count)]
      if let last = streams.last, !(last.origin < origin) { throw .malformed("order of streams") }
      let from = try reader.varint("sequence")
      let more = try reader.varint("sequence")
      guard from > 0, from <= Limits.highestNumber, more <= Limits.highestNumber - from,
        more < Limits.highestNumber - events
      else { throw .malformed("sequence") }
      var run = StreamRun(
        origin: origin, from: SequenceNumber(from), to: SequenceNumber(from + more), hash: .zero)
      if run.isHashed {
        run.hash = StreamHash(high: try reader.fixed("stream hash"), low: try reader.fixed("stream hash"))
      }
      streams.append(run)
      events += more + 1
    }
    return PartitionRun(partition: partition, blocks: own, events: events, streams: streams)
  }
}

extension SegmentFooter {
  /// The footer with some pages of a root. Throws if the sum of its events exceeds the limit.
  init(_ root: FooterRoot, _ pages: [[PartitionRun]]) throws(Flaw) {
    blocks = root.blocks
    partitions = try Array(pages.joined()) + root.innerPartitions()
    var events: UInt64 = 0
    for run in partitions {
      guard run.events <= Limits.highestNumber - events else { throw .malformed("events of a partition") }
      events += run.events
    }
  }

  /// All of a footer. `data`: the bytes of the file that the blocks must fill.
  init(decoding bytes: [UInt8], data: Range<UInt64>) throws(Flaw) {
    var size = 0
    try self.init(decoding: bytes, data: data, rootSize: &size)
  }

  /// Like the above. `rootSize`: how many of the bytes are the root.
  init(decoding bytes: [UInt8], data: Range<UInt64>, rootSize: inout Int) throws(Flaw) {
    let (root, size) = try bytes.read { (reader) throws(Flaw) in
      let root = try FooterRoot(&reader, from: data.lowerBound)
      guard reader.remaining == root.pagesSize else { throw .malformed("end of the footer") }
      return (root, reader.offset)
    }
    try root.check(data)
    var pages: [[PartitionRun]] = []
    for (index, page) in root.pages.enumerated() {
      let stored = bytes[size + page.offset..<size + page.offset + page.size.stored]
      let found = CRC32C.of(stored)
      guard found == page.crc else { throw .checksum(expected: page.crc, found: found) }
      pages.append(try root.partitions(of: index, Array(stored)))
    }
    try self.init(root, pages)
    rootSize = size
  }
}

// MARK: Writing

extension SegmentFooter {
  /// The encoded form.
  struct Encoded {
    /// The root, then the pages.
    var bytes: [UInt8]
    var rootSize: Int
    /// Bytes of the pages before they are deflated.
    var rawPages: Int
  }

  func encoded(level: Int32 = 6) -> Encoded {
    let origins = Array(Set(partitions.flatMap { $0.streams.map(\.origin) })).sorted()
    var root: [UInt8] = []
    root.appendVarint(origins.count)
    for origin in origins { root.appendFixed(origin.rawValue) }
    encodeBlocks(into: &root)
    let pages = pages()
    let raw = pages.map { page($0, origins) }
    // The root has a single page that is not deflated, which saves a read.
    if pages.count == 1, raw[0].count < StoredSize.leastDeflated {
      root.appendVarint(0)
      root += raw[0]
      return Encoded(bytes: root, rootSize: root.count, rawPages: raw[0].count)
    }
    root.appendVarint(pages.count)
    let deflater = Deflater(level: level)
    var bodies: [UInt8] = []
    for (page, bytes) in zip(pages, raw) {
      let start = bodies.count
      let size = deflater.append(bytes, to: &bodies)
      root.appendVarint(page.blocks.count)
      size.append(to: &root)
      root.appendFixed(CRC32C.of(bodies[start...]))
    }
    return Encoded(bytes: root + bodies, rootSize: root.count, rawPages: raw.reduce(0) { $0 + $1.count })
  }

  private func encodeBlocks(into bytes: inout [UInt8]) {
    let models = Array(Set(blocks.map { Array($0.firstKey.model.utf8) })).sorted {
      $0.lexicographicallyPrecedes($1)
    }
    let modelNumbers = Dictionary(uniqueKeysWithValues: zip(models, 0...))
    bytes.appendVarint(models.count)
    for model in models { bytes.appendCounted(model) }
    bytes.appendVarint(blocks.count)
    var previous: BlockEntry?
    for block in blocks {
      bytes.appendName(block.firstKey.partition, after: previous?.firstKey.partition)
      bytes.appendVarint(modelNumbers[Array(block.firstKey.model.utf8), default: 0])
      bytes.appendCounted(block.firstKey.key.bytes)
      bytes.appendVarint(block.length)
      bytes.appendFixed(block.crc)
      bytes.appendVarint(block.events)
      bytes.appendVarint(block.firstRelativePosition)
      bytes.appendVarint(block.lastRelativePosition - block.firstRelativePosition)
      let before = previous?.lowestTimestamp.rawValue ?? 0
      bytes.appendZigzag(Int64(bitPattern: block.lowestTimestamp.rawValue &- before))
      bytes.appendVarint(block.highestTimestamp.rawValue - block.lowestTimestamp.rawValue)
      previous = block
    }
  }

  /// Cut where a block begins, so that the first key of that block names the first partition.
  private func pages() -> [(blocks: Range<Int>, partitions: Range<Int>)] {
    var pages: [(blocks: Range<Int>, partitions: Range<Int>)] = []
    var start = (block: 0, partition: 0)
    for (index, run) in partitions.enumerated().dropFirst() {
      guard index - start.partition >= LogLimits.pagedPartitions,
        run.blocks.lowerBound >= partitions[index - 1].blocks.upperBound
      else { continue }
      pages.append((start.block..<run.blocks.lowerBound, start.partition..<index))
      start = (run.blocks.lowerBound, index)
    }
    return pages + [(start.block..<blocks.count, start.partition..<partitions.count)]
  }

  private func page(
    _ page: (blocks: Range<Int>, partitions: Range<Int>), _ origins: [Origin]
  ) -> [UInt8] {
    let numbers = Dictionary(uniqueKeysWithValues: zip(origins, 0...))
    var bytes: [UInt8] = []
    var previous = page.blocks.isEmpty ? nil : blocks[page.blocks.lowerBound].firstKey.partition
    var firstBlock = page.blocks.lowerBound
    for run in partitions[page.partitions] {
      bytes.appendName(run.partition, after: previous)
      bytes.appendVarint(run.blocks.lowerBound - firstBlock)
      bytes.appendVarint(run.blocks.count - 1)
      bytes.appendVarint(run.streams.count)
      for stream in run.streams {
        bytes.appendVarint(numbers[stream.origin, default: 0])
        bytes.appendVarint(stream.from.rawValue)
        bytes.appendVarint(stream.to.rawValue - stream.from.rawValue)
        if stream.isHashed {
          bytes.appendFixed(stream.hash.high)
          bytes.appendFixed(stream.hash.low)
        }
      }
      previous = run.partition
      firstBlock = run.blocks.lowerBound
    }
    return bytes
  }
}
