import Crypto
import StemmaEvents

extension [Event] {
  /// That of all events together.
  package var rawSize: Int {
    var size = 0
    // In place: a copy of an event has a dozen parts to be counted.
    for index in indices { size += self[index].rawSize }
    return size
  }
}

extension Event {
  /// What the event counts for where files and blocks are cut: about the bytes of its key and values.
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
  /// `Event.rawSize` of the event at which the cursor stands.
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

/// Events and the indices that they have in their place.
struct NumberedEvents: Sendable {
  /// Rising `arrival`.
  var events: [BlockEvent] = []
  var notes: [CommitID: CommitNote] = [:]
  /// Of the events, at the same indices, where somebody has taken them already; otherwise empty.
  var digests: [StreamHash] = []

  init(events: [BlockEvent] = [], notes: [CommitID: CommitNote] = [:]) {
    self.events = events
    self.notes = notes
  }

  init(events: [BlockEvent], notes: [(commit: CommitID, note: CommitNote)]) {
    self.init(
      events: events, notes: Dictionary(notes.map { ($0, $1) }, uniquingKeysWith: { first, _ in first }))
  }

  /// Traps if the events are not in order, or a digest is of none of them.
  func checkInvariants() {
    for (a, b) in zip(events, events.dropFirst()) { precondition(a.arrival < b.arrival, "arrivals rise") }
    precondition(digests.isEmpty || digests.count == events.count, "each event has its digest, or none has")
  }

  mutating func add(_ more: NumberedEvents) {
    events += more.events
    notes.merge(more.notes) { first, _ in first }
  }
}

/// What a file held of a partition, of which some events are lost and not found again.
struct PartitionGap: Sendable {
  /// The streams that lack events: what the file held of each of them.
  var streams: [StreamRun] = []
  /// How many events are lacking.
  var events: UInt64 = 0
}

/// Writes a segment: everything but its name. Blocks are made side by side. Memory: the events, 32 bytes for each, and
/// `madeAtOnce` blocks.
struct SegmentWriter {
  private let input: NumberedEvents
  /// Takes bytes and their offset.
  private let output: ([UInt8], UInt64) throws(LogError) -> Void
  /// In the order of the file.
  private let entries: [KeyOrder.Entry]
  private let gaps: [Partition: PartitionGap]
  private let end: UInt64
  private let level: Int32
  /// Blocks that are cut and not made yet, as ranges of the entries.
  private var cut: [Range<Int>] = []
  private static let madeAtOnce = 16
  private var digester = EventDigester()
  private var hasher = SHA256()
  private var offset: UInt64 = 0
  private var footer = SegmentFooter()
  private var rawBytes: UInt64 = 0
  private let blockTarget: Int

  /// Writes the whole segment to `file` and syncs it. `end`: the end index of its place. `chain`: the chain
  /// value of the journal that is sealed, nil for a file that comes from elsewhere. `gaps`: of partitions that
  /// still lack events; there must be some event.
  /// Throws `.hole` if a stream has one, or `.system`; the file is of no use then.
  static func write(
    _ input: NumberedEvents, header: SegmentHeader, end: UInt64, chain: UInt32?, level: Int32,
    gaps: [Partition: PartitionGap] = [:], blockTarget: Int = LogLimits.blockTarget, to file: any File
  ) throws(LogError) -> SegmentTrailer {
    var writer = SegmentWriter(input, gaps, end, level, blockTarget) { (bytes, offset) throws(LogError) in
      try file.write(bytes, at: offset)
    }
    try writer.put(header.encoded())
    try writer.putPartitions()
    let trailer = try writer.putEnd(header, chain)
    try file.sync()
    return trailer
  }

  /// The bytes of what a segment of these events would hold between header and trailer. Throws `.hole` if a stream
  /// has one, or `.overLimit`.
  static func contents(
    of input: NumberedEvents, end: UInt64, level: Int32, blockTarget: Int = LogLimits.blockTarget
  ) throws(LogError) -> (bytes: [UInt8], sizes: SealedContents.Sizes) {
    var bytes: [UInt8] = []
    var writer = SegmentWriter(input, [:], end, level, blockTarget) { (more, _) throws(LogError) in
      bytes += more
    }
    try writer.putPartitions()
    let (footer, filter) = try writer.putIndex()
    let sizes = SealedContents.Sizes(
      footer: footer.count, filter: filter.count, end: end, rawBytes: writer.rawBytes)
    return (bytes, sizes)
  }

  private init(
    _ input: NumberedEvents, _ gaps: [Partition: PartitionGap], _ end: UInt64, _ level: Int32,
    _ blockTarget: Int, to output: @escaping ([UInt8], UInt64) throws(LogError) -> Void
  ) {
    self.input = input
    self.gaps = gaps
    self.end = end
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

  /// Cuts at partition borders and writes the blocks.
  private mutating func putPartitions() throws(LogError) {
    var blockStart = 0
    var blockSize = 0
    var start = 0
    var gapsLeft = gaps.keys.sorted()[...]
    while start < entries.count {
      let partition = input.events[entries[start].index].event.partition
      if let gap = gapsLeft.first, gap <= partition {
        try putBlock(blockStart..<start)
        (blockStart, blockSize) = (start, 0)
        while let gap = gapsLeft.first, gap < partition {
          try putGap(of: gap)
          gapsLeft.removeFirst()
        }
      }
      var end = start
      var size = 0
      while end < entries.count, entries[end].partition == entries[start].partition {
        size += input.events[entries[end].index].event.rawSize
        end += 1
      }
      let hasGap = gapsLeft.first == partition
      let ownsBlocks = hasGap || size * 2 >= blockTarget
      if ownsBlocks || blockSize + size > blockTarget {
        try putBlock(blockStart..<start)
        (blockStart, blockSize) = (start, 0)
      }
      let firstBlock = blockCount
      if hasGap {
        gapsLeft.removeFirst()
        try putGapBlocks(of: partition)
      }
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
    for gap in gapsLeft { try putGap(of: gap) }
    try putCutBlocks()
  }

  /// Of a partition of which the file has no event.
  private mutating func putGap(of partition: Partition) throws(LogError) {
    let firstBlock = blockCount
    try putGapBlocks(of: partition)
    try addPartition(partition, 0..<0, blocks: firstBlock..<blockCount)
  }

  private mutating func putGapBlocks(of partition: Partition) throws(LogError) {
    var left = gaps[partition]?.events ?? 0
    guard let first = input.events.first?.event else { return }
    try putCutBlocks()
    while left > 0 {
      let count = min(left, UInt64(Limits.blockEvents))
      footer.blocks.append(
        BlockEntry(
          offset: offset, length: 1, crc: ([0] as [UInt8]).crc32c, events: Int(count), firstArrival: 0,
          lastArrival: end - 1, lowestTimestamp: first.timestamp, highestTimestamp: first.timestamp,
          firstKey: RecordKey(partition: partition, model: first.model, key: first.key)))
      try put([0])
      left -= count
    }
  }

  /// Cuts where the target is reached. Leaves no block much smaller than the others at the end.
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

  /// How many blocks there are before the next one that is cut.
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

  /// The block of some events, and its place in the footer but for the offset.
  private static func block(
    of entries: ArraySlice<KeyOrder.Entry>, _ input: NumberedEvents, _ level: Int32
  ) throws(LogError) -> (bytes: [UInt8], entry: BlockEntry) {
    var writer = BlockWriter(level: level)
    let indices = entries.map(\.index).sorted()
    var lowest = Timestamp(rawValue: .max)
    var highest = Timestamp.zero
    var noted: Set<CommitID> = []
    let events = input.events
    // In place: an event that is taken out of an array has its references counted, here by several threads at once.
    events.withUnsafeBufferPointer { events in
      for index in indices {
        writer.append(events[index].event, arrival: events[index].arrival)
        lowest = min(lowest, events[index].event.timestamp)
        highest = max(highest, events[index].event.timestamp)
        let commit = events[index].event.commit
        if noted.insert(commit).inserted, let note = input.notes[commit] { writer.setNote(note, of: commit) }
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
      firstArrival: events[indices[0]].arrival, lastArrival: events[indices[indices.count - 1]].arrival,
      lowestTimestamp: lowest, highestTimestamp: highest,
      firstKey: RecordKey(events[entries[entries.startIndex].index].event))
    return (bytes, entry)
  }

  private mutating func addPartition(
    _ partition: Partition, _ range: Range<Int>, blocks: Range<Int>
  ) throws(LogError) {
    let gap = gaps[partition] ?? PartitionGap()
    var dots: [(dot: Dot, index: Int)] = []
    dots.reserveCapacity(range.count)
    for entry in entries[range] { dots.append((input.events[entry.index].event.dot, entry.index)) }
    dots.sort { $0.dot < $1.dot }
    var streams: [StreamRun] = []
    for (dot, index) in dots where !gap.streams.contains(where: { $0.origin == dot.origin }) {
      let hash =
        input.digests.isEmpty ? digester.digest(of: input.events[index].event).hash : input.digests[index]
      if let last = streams.last, last.origin == dot.origin {
        guard dot.sequence.rawValue == last.to.rawValue + 1 else {
          throw .hole(
            partition: partition, origin: dot.origin, expected: last.to.next, found: dot.sequence)
        }
        streams[streams.count - 1].to = dot.sequence
        streams[streams.count - 1].hash += hash
      } else {
        streams.append(StreamRun(origin: dot.origin, from: dot.sequence, to: dot.sequence, hash: hash))
      }
    }
    streams = (streams + gap.streams).sorted { $0.origin < $1.origin }
    footer.partitions.append(
      PartitionRun(
        partition: partition, blocks: blocks, events: UInt64(range.count) + gap.events, streams: streams))
  }

  /// Traps if the blocks are not those of the events, or the index says anything else of them. In debug builds before the
  /// index is written.
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

  /// Puts the footer and the key filter behind the blocks.
  private mutating func putIndex() throws(LogError) -> (footer: [UInt8], filter: [UInt8]) {
    assert(holds(checkInvariants))
    let storedBytes = footer.blocks.reduce(0) { $0 + UInt64($1.length) }
    let footerBytes = footer.encoded()
    // Nobody knows the keys of what is lacking.
    let filter = gaps.isEmpty ? KeyFilter.encoded(keyHashes(), storedBytes: storedBytes) : []
    try LogLimits.check("footer", footerBytes.count, LogLimits.footer)
    try put(footerBytes)
    try put(filter)
    return (footerBytes, filter)
  }

  private mutating func putEnd(
    _ header: SegmentHeader, _ chain: UInt32?
  ) throws(LogError) -> SegmentTrailer {
    let footerOffset = offset
    let index = try putIndex()
    var trailer = SegmentTrailer(
      footerOffset: footerOffset, footer: index.footer, filter: index.filter,
      events: footer.partitions.reduce(0) { $0 + $1.events }, end: end, rawBytes: rawBytes, chain: 0)
    trailer.complete(header, chain: chain, &hasher)
    try output(trailer.encoded(), offset)
    return trailer
  }
}
