import Crypto
import StemmaEvents

extension [Event] {
  /// The sum over all events.
  package var rawSize: Int {
    var size = 0
    // In place: copying an event counts a dozen references.
    for index in indices { size += self[index].rawSize }
    return size
  }
}

extension Event {
  /// The size by which files and blocks are cut: about the bytes of the key and the values.
  package var rawSize: Int {
    var size = 24 + key.bytes.count
    for assignment in assignments {
      size += 4
      switch assignment.value {
      case .null: break
      case .bool: size += 1
      case .int, .double: size += 8
      case .string(let text), .json(let text): size += text.utf8.count
      }
    }
    return size
  }
}

extension BlockCursor {
  /// `Event.rawSize` of the cursor's event.
  package var rawSize: Int {
    var size = 24 + keyBytes.count + 4 * assignmentCount
    for place in 0..<assignmentCount {
      switch tag(place) {
      case .null: break
      case .bool: size += 1
      case .int, .double: size += 8
      case .string, .json: size += text(place).count
      }
    }
    return size
  }
}

/// Events and their positions.
struct NumberedEvents: Sendable {
  /// By rising `relativePosition`.
  var events: [BlockEvent] = []
  var messages: [CommitID: CommitMessage] = [:]
  /// The digest of each event, if the caller has computed them; otherwise empty.
  var digests: [StreamHash] = []

  init(events: [BlockEvent] = [], messages: [CommitID: CommitMessage] = [:]) {
    self.events = events
    self.messages = messages
  }

  init(events: [BlockEvent], messages: [(commit: CommitID, message: CommitMessage)]) {
    self.init(
      events: events, messages: Dictionary(messages.map { ($0, $1) }, uniquingKeysWith: { first, _ in first })
    )
  }

  /// Traps if the events are out of order, or the digests do not match them.
  func checkInvariants() {
    for (a, b) in zip(events, events.dropFirst()) {
      precondition(a.relativePosition < b.relativePosition, "positions rise")
    }
    precondition(digests.isEmpty || digests.count == events.count, "each event has its digest, or none has")
  }

  mutating func add(_ more: NumberedEvents) {
    events += more.events
    messages.merge(more.messages) { first, _ in first }
  }
}

/// Writes a segment. Encodes blocks in parallel. Memory: the events, 32 bytes each, some blocks.
struct SegmentWriter {
  private let input: NumberedEvents
  /// Takes bytes and their offset.
  private let output: ([UInt8], UInt64) throws(LogError) -> Void
  /// In the order of the file.
  private let entries: [KeyOrder.Entry]
  private let level: Int32
  /// Blocks that are cut and not encoded yet, as ranges of the entries.
  private var cut: [Range<Int>] = []
  private static let madeAtOnce = 16
  private var digester = EventDigester()
  private var hasher = SHA256()
  private var offset: UInt64 = 0
  private var footer = SegmentFooter()
  private var rawBytes: UInt64 = 0
  private let blockTarget: Int

  /// Writes the whole segment to `file` and syncs it. All its positions, also purged ones, are
  /// below `end`. `chain`: the chain value of the sealed journal; nil for other events. After an
  /// error (`.gap` for a gap, `.overLimit`, `.system`) the file is unusable.
  static func write(
    _ input: NumberedEvents, header: SegmentHeader, end: UInt64, chain: UInt32?, level: Int32,
    blockTarget: Int = LogLimits.blockTarget, to file: any File
  ) throws(LogError) -> SegmentTrailer {
    var writer = SegmentWriter(input, level, blockTarget) { (bytes, offset) throws(LogError) in
      try file.write(bytes, at: offset)
    }
    try writer.put(header.encoded())
    try writer.putPartitions()
    let trailer = try writer.putEnd(header, end, chain)
    try file.sync()
    return trailer
  }

  /// The bytes between header and trailer of a segment. Throws `.gap` for a gap, or `.overLimit`.
  static func contents(
    of input: NumberedEvents, end: UInt64, level: Int32, blockTarget: Int = LogLimits.blockTarget
  ) throws(LogError) -> (bytes: [UInt8], sizes: SealedContents.Sizes) {
    var bytes: [UInt8] = []
    var writer = SegmentWriter(input, level, blockTarget) { (more, _) throws(LogError) in
      bytes += more
    }
    try writer.putPartitions()
    let (footer, filter) = try writer.putIndex()
    let sizes = SealedContents.Sizes(
      footer: footer.bytes.count, filter: filter.count, end: end, rawBytes: writer.rawBytes)
    return (bytes, sizes)
  }

  private init(
    _ input: NumberedEvents, _ level: Int32, _ blockTarget: Int,
    to output: @escaping ([UInt8], UInt64) throws(LogError) -> Void
  ) {
    self.input = input
    self.output = output
    self.blockTarget = blockTarget
    self.level = level
    entries = KeyOrder.sorted(input.events)
  }

  private mutating func put(_ bytes: [UInt8]) throws(LogError) {
    try output(bytes, offset)
    hasher.update(bytes)
    offset += UInt64(bytes.count)
  }

  /// Cuts blocks at partition borders and writes them.
  private mutating func putPartitions() throws(LogError) {
    var blockStart = 0
    var blockSize = 0
    var start = 0
    while start < entries.count {
      let partition = input.events[entries[start].index].event.partition
      var end = start
      var size = 0
      while end < entries.count, entries[end].partition == entries[start].partition {
        size += input.events[entries[end].index].event.rawSize
        end += 1
      }
      let ownsBlocks = size * 2 >= blockTarget
      if ownsBlocks || blockSize + size > blockTarget {
        try putBlock(blockStart..<start)
        (blockStart, blockSize) = (start, 0)
      }
      let firstBlock = blockCount
      if ownsBlocks {
        try putOwnBlocks(start..<end)
        (blockStart, blockSize) = (end, 0)
      } else {
        blockSize += size
      }
      let last = max(firstBlock + 1, blockCount)
      try addPartition(partition, start..<end, blocks: firstBlock..<last)
      rawBytes += UInt64(size)
      start = end
    }
    try putBlock(blockStart..<start)
    try putCutBlocks()
  }

  /// Cuts where the target is reached. The last block has the rest.
  private mutating func putOwnBlocks(_ range: Range<Int>) throws(LogError) {
    var start = range.lowerBound
    var size = 0
    for index in range {
      size += input.events[entries[index].index].event.rawSize
      if size >= blockTarget {
        try putBlock(start..<index + 1)
        (start, size) = (index + 1, 0)
      }
    }
    try putBlock(start..<range.upperBound)
  }

  /// The number of blocks before the next cut.
  private var blockCount: Int { footer.blocks.count + cut.count }

  private mutating func putBlock(_ range: Range<Int>) throws(LogError) {
    guard !range.isEmpty else { return }
    cut.append(range)
    if cut.count == Self.madeAtOnce { try putCutBlocks() }
  }

  private mutating func putCutBlocks() throws(LogError) {
    let made = mapInParallel(cut) { [input, entries, level] range in
      Result { () throws(LogError) in try Self.block(of: entries[range], input, level) }
    }
    cut.removeAll(keepingCapacity: true)
    for block in made {
      var (bytes, entry) = try block.get()
      entry.offset = offset
      footer.blocks.append(entry)
      try put(bytes)
    }
  }

  /// The block of some events, and its footer entry without the offset.
  private static func block(
    of entries: ArraySlice<KeyOrder.Entry>, _ input: NumberedEvents, _ level: Int32
  ) throws(LogError) -> (bytes: [UInt8], entry: BlockEntry) {
    var writer = BlockWriter(level: level)
    let indices = entries.map(\.index).sorted()
    var lowest = Timestamp(rawValue: .max)
    var highest = Timestamp.zero
    var noted: Set<CommitID> = []
    let events = input.events
    // In place: copying an event out of an array counts its references, here on several threads.
    events.withUnsafeBufferPointer { events in
      for index in indices {
        writer.append(events[index].event, relativePosition: events[index].relativePosition)
        lowest = min(lowest, events[index].event.timestamp)
        highest = max(highest, events[index].event.timestamp)
        let commit = events[index].event.commit
        if noted.insert(commit).inserted, let message = input.messages[commit] {
          writer.setMessage(message, of: commit)
        }
      }
    }
    guard writer.isWithinLimits else {
      throw .overLimit(
        subject: "block", found: UInt64(writer.rawBytes), limit: UInt64(Limits.blockStream))
    }
    let bytes = writer.finish()
    try LogLimits.check("block", bytes.count, LogLimits.block)
    let entry = BlockEntry(
      offset: 0, length: bytes.count, crc: bytes.crc32c, events: indices.count,
      firstRelativePosition: events[indices[0]].relativePosition,
      lastRelativePosition: events[indices[indices.count - 1]].relativePosition,
      lowestTimestamp: lowest, highestTimestamp: highest,
      firstKey: RecordKey(events[entries[entries.startIndex].index].event))
    return (bytes, entry)
  }

  private mutating func addPartition(
    _ partition: Partition, _ range: Range<Int>, blocks: Range<Int>
  ) throws(LogError) {
    var ids: [(id: EventID, index: Int)] = []
    ids.reserveCapacity(range.count)
    for entry in entries[range] { ids.append((input.events[entry.index].event.id, entry.index)) }
    ids.sort { $0.id < $1.id }
    var streams: [StreamRun] = []
    for (id, _) in ids {
      if let last = streams.last, last.origin == id.origin {
        guard id.sequence.rawValue == last.to.rawValue + 1 else {
          throw .gap(
            partition: partition, origin: id.origin, expected: last.to.next, found: id.sequence)
        }
        streams[streams.count - 1].to = id.sequence
      } else {
        streams.append(StreamRun(origin: id.origin, from: id.sequence, to: id.sequence, hash: .zero))
      }
    }
    var rest = ids[...]
    for place in streams.indices {
      let own = rest.prefix(Int(streams[place].count))
      rest = rest[own.endIndex...]
      guard streams[place].isHashed else { continue }
      for (_, index) in own {
        streams[place].hash +=
          input.digests.isEmpty ? digester.digest(of: input.events[index].event).hash : input.digests[index]
      }
    }
    footer.partitions.append(
      PartitionRun(
        partition: partition, blocks: blocks, events: UInt64(range.count), streams: streams))
  }

  /// Traps if the blocks do not match the events, or the index does not match the blocks. In debug
  /// builds before the index is written.
  func checkInvariants() {
    input.checkInvariants()
    precondition(entries.count == input.events.count, "each event has a place")
    precondition(cut.isEmpty, "each block is made")
    for (a, b) in zip(footer.blocks, footer.blocks.dropFirst()) {
      precondition(a.offset + UInt64(a.length) == b.offset, "blocks stand one behind the other")
    }
    precondition(
      footer.blocks.last.map { $0.offset + UInt64($0.length) == offset } ?? true, "the index follows them")
    for (a, b) in zip(footer.partitions, footer.partitions.dropFirst()) {
      precondition(a.partition < b.partition, "partitions rise")
    }
    precondition(
      footer.partitions.reduce(0) { $0 + $1.events } == footer.blocks.reduce(0) { $0 + UInt64($1.events) },
      "each event is in a block and of a partition")
    precondition(
      footer.partitions.allSatisfy { $0.blocks.upperBound <= footer.blocks.count }, "partitions are in blocks"
    )
  }

  /// One hash for each record.
  private func keyHashes() -> [UInt64] {
    var hashes: [UInt64] = []
    var previous: UInt32?
    for entry in entries where entry.record != previous {
      hashes.append(KeyFilter.hash(RecordKey(input.events[entry.index].event)))
      previous = entry.record
    }
    return hashes
  }

  /// Writes the footer and the key filter behind the blocks.
  private mutating func putIndex() throws(LogError) -> (footer: SegmentFooter.Encoded, filter: [UInt8]) {
    assert(holds(checkInvariants))
    let storedBytes = footer.blocks.reduce(0) { $0 + UInt64($1.length) }
    let encoded = footer.encoded(level: level)
    let filter = KeyFilter.encoded(keyHashes(), storedBytes: storedBytes)
    try LogLimits.check("footer", encoded.rootSize + encoded.rawPages, LogLimits.footer)
    try put(encoded.bytes)
    try put(filter)
    return (encoded, filter)
  }

  private mutating func putEnd(
    _ header: SegmentHeader, _ end: UInt64, _ chain: UInt32?
  ) throws(LogError) -> SegmentTrailer {
    let footerOffset = offset
    let index = try putIndex()
    var trailer = SegmentTrailer(
      footerOffset: footerOffset, footer: index.footer.bytes, rootSize: index.footer.rootSize,
      filter: index.filter,
      events: footer.partitions.reduce(0) { $0 + $1.events }, end: end, rawBytes: rawBytes, chain: 0)
    trailer.complete(header, chain: chain, &hasher)
    try output(trailer.encoded(), offset)
    return trailer
  }
}
