import Crypto
import StemmaEvents
import StemmaLog

// A batch (`Batch`): a part of a shipment that is adopted whole.
//
// A shipment is a sequence of batches. Each holds events that the receiver lacks, from a section of
// the sender's position order that ends between two commits. The sender received an event's causes
// before it. A receiver that applies whole batches in order thus has all causes.
//
//     offset  size  meaning
//          0     8  magic "STEMMA-P"
//          8     1  format version, 1
//          9     1  form: 0 blocks, 1 a sealed file
//         10     2  zero
//         12     4  CRC32C of the bytes before
//         16     8  log id of the sender
//                   form 0, per block: its length (varint, at least 1), the block as in a segment;
//                   `relativePosition` counts from 0 in the sender's order, over all blocks
//                   0: no more blocks
//                   form 1: blocks, footer and key filter of a segment of the sender's log,
//                   or of one made for the shipment
//                   footer:
//                     number of events
//                     number of streams; each, by partition and origin, once:
//                       partition (length, bytes), origin (8 bytes), first sequence, event count,
//                       hash of the events 1 … first - 1, hash of these events (16 bytes each)
//                     form 1: lengths of the segment's footer and key filter, end index, raw bytes
//      end-40     4  length of the footer
//      end-36     4  CRC32C of all bytes before
//      end-32    32  SHA-256 of all bytes before
//
// Between nodes in one process, a batch is an array that one passes to the other, with both digests
// zero. The sender has compared a segment's digest before, and the receiver computes its own.
//
// A segment is shipped unchanged if the receiver wants all its partitions and holds exactly the
// earlier events of each stream. Many events of several files, or of some partitions, are also laid
// out as a segment. The receiver adopts a segment unchanged if it still holds exactly the earlier
// events. Otherwise it adopts the events, as from blocks.
//
// Fixed numbers are big-endian, others LEB128 varints in their shortest form. The blocks hold key
// ranges, in the order (partition, model, key), so they compress like a segment's. The author and
// message of a commit are in the first block with one of its events. Validity: both digests match,
// and every byte is used. The sequences are exactly those of the footer, in order within each
// stream, and the events' digests add up to its hashes. In form 0 the positions are 0 … n - 1; in
// form 1 the index is correct (`SealedCheck`).

/// The events of one stream in a batch, and the hash of those before.
package struct ShippedStream: Hashable, Sendable {
  package var range: StreamRange
  /// The hash of the events 1 … `range.from` - 1: it reveals a fork even if no event id overlaps.
  package var hashBefore: StreamHash

  package init(range: StreamRange, hashBefore: StreamHash) {
    self.range = range
    self.hashBefore = hashBefore
  }
}

/// The decoded content of a batch: consistent, but not yet compared with a version vector.
package struct Batch: Sendable {
  package let sender: LogID
  /// Sorted by partition and origin.
  package let streams: [ShippedStream]
  package let eventCount: Int
  /// A segment as shipped, not yet compared with `streams`. Then `events` is empty: see `unpacked`.
  package let sealed: SealedContents?
  /// In the sender's position order.
  package let events: [Event]
  /// The digests of the events, at the same indexes.
  let digests: [StreamHash]
  /// The authors and messages of these events' commits.
  package let messages: [CommitID: CommitMessage]
}

enum BatchLayout {
  static let magic = Array("STEMMA-P".utf8)
  static let version: UInt8 = 1
  enum Form: UInt8 { case blocks, sealed }
  static let headerSize = 24
  static let trailerSize = 40
  /// Raw bytes of events at which a block ends.
  static let blockTarget = 64 << 10
  static let smallestStream = 2 + 8 + 1 + 1 + 16 + 16
}

extension Batch {
  /// The encoding of a batch with these events, in position order. `streams` must describe them.
  static func encode(
    sender: LogID, streams: [ShippedStream], events: [Event], messages: [CommitID: CommitMessage],
    isDigested: Bool = true
  ) -> [UInt8] {
    var bytes = header(.blocks, sender)
    appendBlocks(of: events, messages, to: &bytes)
    bytes.append(0)
    end(&bytes, footer(streams, eventCount: events.count), isDigested)
    return bytes
  }

  /// The encoding of a batch that is a segment. `streams` must describe its content.
  static func encode(
    sender: LogID, streams: [ShippedStream], sealed: SealedContents, isDigested: Bool = true
  ) -> [UInt8] {
    encode(
      sender: sender, streams: streams, sealed: sealed.bytes, sealed.sizes, eventCount: Int(sealed.events),
      isDigested: isDigested)
  }

  static func encode(
    sender: LogID, streams: [ShippedStream], sealed: some Collection<UInt8>, _ sizes: SealedContents.Sizes,
    eventCount: Int, isDigested: Bool = true
  ) -> [UInt8] {
    var bytes = header(.sealed, sender)
    var footer = footer(streams, eventCount: eventCount)
    footer.appendVarint(sizes.footer)
    footer.appendVarint(sizes.filter)
    footer.appendVarint(sizes.end)
    footer.appendVarint(sizes.rawBytes)
    bytes.reserveCapacity(bytes.count + sealed.count + footer.count + BatchLayout.trailerSize)
    bytes += sealed
    end(&bytes, footer, isDigested)
    return bytes
  }

  private static func header(_ form: BatchLayout.Form, _ sender: LogID) -> [UInt8] {
    var bytes = BatchLayout.magic
    bytes += [BatchLayout.version, form.rawValue, 0, 0]
    bytes.appendFixed(CRC32C.of(bytes))
    bytes.appendFixed(sender.rawValue)
    return bytes
  }

  private static func footer(_ streams: [ShippedStream], eventCount: Int) -> [UInt8] {
    var footer: [UInt8] = []
    footer.appendVarint(eventCount)
    footer.appendVarint(streams.count)
    for stream in streams {
      footer.appendCounted(stream.range.partition.bytes)
      footer.append(stream.range.origin)
      footer.appendVarint(stream.range.from.rawValue)
      footer.appendVarint(stream.range.to.rawValue - stream.range.from.rawValue + 1)
      footer.append(stream.hashBefore)
      footer.append(stream.range.hash)
    }
    return footer
  }

  /// Appends in place, because a batch is as long as a segment.
  private static func end(_ bytes: inout [UInt8], _ footer: [UInt8], _ isDigested: Bool) {
    bytes.reserveCapacity(bytes.count + footer.count + BatchLayout.trailerSize)
    bytes += footer
    bytes.appendFixed(UInt32(footer.count))
    if isDigested { seal(&bytes) } else { bytes += [UInt8](repeating: 0, count: 4 + 32) }
  }

  /// Appends the digests to a batch that ends with its footer's length.
  static func seal(_ bytes: inout [UInt8]) {
    let digest = SHA256.hash(data: bytes)
    bytes.appendFixed(CRC32C.of(bytes))
    bytes += digest
  }

  /// Groups the events by key ranges of about `blockTarget` bytes; within a block they are in
  /// position order.
  private static func appendBlocks(
    of events: [Event], _ messages: [CommitID: CommitMessage], to bytes: inout [UInt8]
  ) {
    var keys = KeyOrder(reserving: events.count)
    for index in events.indices { keys.append(events[index]) }
    let order = keys.sorted()
    var writer = BlockWriter()
    var noted: Set<CommitID> = []
    var start = 0
    while start < order.count {
      var size = 0
      var end = start
      while end < order.count {
        let isSameKey = end > start && order[end].record == order[end - 1].record
        if size >= BatchLayout.blockTarget && !isSameKey { break }
        size += events[order[end].index].rawSize
        end += 1
      }
      for index in order[start..<end].map(\.index).sorted() {
        writer.append(events[index], relativePosition: UInt64(index))
        let commit = events[index].commit
        if let message = messages[commit], noted.insert(commit).inserted {
          writer.setMessage(message, of: commit)
        }
      }
      bytes.appendCounted(writer.finish())
      start = end
    }
  }

  /// Checks and decodes a batch from an untrusted sender. Memory is bounded by the footer's counts,
  /// which `ReplicationLimits.batchEvents` limits.
  ///
  /// `isDigested`: false for a batch that never left this process, and has no digests.
  package init(decoding bytes: [UInt8], isDigested: Bool = true) throws(ReplicationError) {
    let header = BatchLayout.headerSize
    guard bytes.count <= ReplicationLimits.batch else {
      throw .overLimit("batch", found: UInt64(bytes.count), limit: UInt64(ReplicationLimits.batch))
    }
    guard bytes.count > header + BatchLayout.trailerSize, bytes.starts(with: BatchLayout.magic) else {
      throw .malformed("batch", "\(bytes.count) bytes that are no batch of a shipment")
    }
    let form: BatchLayout.Form
    (form, sender) = try bytes.read(from: 8, Self.header)
    let footer = try Self.footerRange(of: bytes, isDigested)
    let sizes: SealedContents.Sizes?
    (eventCount, streams, sizes) = try bytes[footer].read { (reader) throws(ReplicationError) in
      let count = try reader.count("events of a batch", limit: ReplicationLimits.batchEvents)
      let streams = try Self.streams(from: &reader, eventCount: count)
      let sizes = form == .sealed ? try Self.sizes(from: &reader) : nil
      try reader.finish("footer of a batch")
      return (count, streams, sizes)
    }
    let content = bytes[header..<footer.lowerBound]
    if let sizes {
      (events, digests, messages) = ([], [], [:])
      sealed = try Self.taking { () throws(Flaw) in try SealedContents(content, sizes) }
      try checkSealedStreams()
      return
    }
    sealed = nil
    let found = try BatchContent(count: eventCount, blocks: content)
    (events, messages) = (found.events, found.messages)
    var digester = EventDigester()
    digests = events.map { digester.digest(of: $0).hash }
    try checkStreams()
  }

  /// Decodes the header after the magic.
  private static func header(_ reader: inout WireReader) throws(ReplicationError) -> (BatchLayout.Form, LogID)
  {
    let version = try reader.byte("batch")
    let form = try reader.byte("batch")
    let zeros = try reader.bytes(2, "batch")
    let head = BatchLayout.magic + [version, form] + zeros
    guard try reader.fixed32("batch") == CRC32C.of(head), zeros.allSatisfy({ $0 == 0 }), version > 0 else {
      throw .corrupt("batch", "its header")
    }
    guard version == BatchLayout.version else {
      throw .newerFormat("batch", found: UInt64(version), supported: UInt64(BatchLayout.version))
    }
    guard let form = BatchLayout.Form(rawValue: form) else { throw .malformed("batch", "form \(form)") }
    return (form, LogID(try reader.fixed("batch")))
  }

  /// The range of the footer. Throws unless both digests match, if there are any.
  private static func footerRange(
    of bytes: [UInt8], _ isDigested: Bool
  ) throws(ReplicationError) -> Range<Int> {
    let trailer = bytes.count - BatchLayout.trailerSize
    let length = try bytes.read(from: trailer) { (reader) throws(ReplicationError) in
      let length = Int(try reader.fixed32("batch"))
      if isDigested { try checkDigests(of: bytes, before: trailer + 4, &reader) }
      return length
    }
    guard length <= trailer - BatchLayout.headerSize - 1 else {
      throw .malformed("batch", "a footer that is too long")
    }
    return trailer - length..<trailer
  }

  private static func checkDigests(
    of bytes: [UInt8], before end: Int, _ reader: inout WireReader
  ) throws(ReplicationError) {
    guard try reader.fixed32("batch") == CRC32C.of(bytes[..<end]) else {
      throw .corrupt("batch", "its checksum does not hold")
    }
    let digest = bytes.withUnsafeBytes { all in
      var hasher = SHA256()
      hasher.update(bufferPointer: UnsafeRawBufferPointer(rebasing: all[..<end]))
      return hasher.finalize()
    }
    guard try reader.bytes(32, "batch").elementsEqual(digest) else {
      throw .corrupt("batch", "its digest does not hold")
    }
  }

  static func sizes(from reader: inout WireReader) throws(ReplicationError) -> SealedContents.Sizes {
    SealedContents.Sizes(
      footer: try reader.count("footer of a sealed file", limit: ReplicationLimits.batch),
      filter: try reader.count("key filter of a sealed file", limit: ReplicationLimits.batch),
      end: try reader.number("positions of a batch", limit: UInt64(ReplicationLimits.batchEvents)),
      rawBytes: try reader.varint("batch"))
  }

  private static func taking<Result>(
    _ body: () throws(Flaw) -> Result
  ) throws(ReplicationError) -> Result {
    do throws(Flaw) { return try body() } catch { throw .corrupt("batch", "its sealed file: \(error)") }
  }

  /// A segment as its events; any other batch unchanged. Memory: all of them.
  func unpacked() throws(ReplicationError) -> Batch {
    guard let sealed else { return self }
    let contents = try Self.taking { () throws(Flaw) in try sealed.unpacked() }
    return try Batch(sender: sender, streams: streams, contents)
  }

  /// A whole segment of the events.
  func segment(of log: LogID) throws(ReplicationError) -> (bytes: [UInt8], segment: LooseSegment) {
    try Self.taking { () throws(Flaw) in
      if let sealed { return try LooseSegment.encoded(sealed, of: log) }
      let numbered = events.enumerated().map { BlockEvent(relativePosition: UInt64($0), event: $1) }
      let (bytes, sizes): ([UInt8], SealedContents.Sizes)
      do throws(LogError) {
        (bytes, sizes) = try SealedContents.encoded(numbered, messages: messages, digests: digests)
      } catch { throw .disagreement(error.description) }
      return try LooseSegment.encoded(try SealedContents(bytes[...], sizes), of: log)
    }
  }

  /// The part of the batch in some partitions, possibly without events. Memory: all events.
  func restricted(to scope: NarrowedScope) throws(ReplicationError) -> Batch {
    let batch = try unpacked()
    let events = batch.events.filter { scope.contains($0.partition) }
    let commits = Set(events.map(\.commit))
    return try Batch(
      sender: sender, streams: streams.filter { scope.contains($0.range.partition) },
      AdoptedEvents(events, messages: batch.messages.filter { commits.contains($0.key) }))
  }

  private init(
    sender: LogID, streams: [ShippedStream], _ contents: AdoptedEvents
  ) throws(ReplicationError) {
    self.sender = sender
    self.streams = streams
    sealed = nil
    (events, messages) = (contents.events, contents.messages)
    eventCount = events.count
    var digester = EventDigester()
    digests = events.map { digester.digest(of: $0).hash }
    try checkStreams()
  }

  /// Compares the two indexes of a segment, but not the events.
  private func checkSealedStreams() throws(ReplicationError) {
    guard let sealed else { return }
    let told = sealed.footer.partitions.flatMap { run in
      run.streams.map { StreamID(partition: run.partition, origin: $0.origin) }
    }
    let runs = sealed.footer.partitions.flatMap(\.streams)
    guard told == streams.map(\.range.stream),
      zip(runs, streams.map(\.range)).allSatisfy({ run, range in
        run.from == range.from && run.to == range.to && (!run.isHashed || run.hash == range.hash)
      }), sealed.events == UInt64(eventCount)
    else {
      throw .malformed("batch", "its footer does not say what its sealed file says")
    }
  }

  /// The streams of a footer, after the count of events.
  static func streams(
    from reader: inout WireReader, eventCount: Int
  ) throws(ReplicationError) -> [ShippedStream] {
    let count = try reader.count(
      "streams", limit: eventCount, each: BatchLayout.smallestStream)
    var streams: [ShippedStream] = []
    for _ in 0..<count {
      let partition = try reader.partition()
      let origin = try reader.origin()
      let from = try reader.sequence()
      let number = try reader.number("events of a stream", limit: Limits.highestNumber)
      let to = from.rawValue &+ number &- 1
      guard from > .zero, number > 0, to <= Limits.highestNumber else {
        throw .malformed("batch", "a stream of \(number) events from \(from)")
      }
      if let last = streams.last?.range, (last.partition, last.origin) >= (partition, origin) {
        throw .malformed("batch", "stream \(partition), \(origin) is out of order")
      }
      let hashBefore = try reader.hash()
      guard from.rawValue > 1 || hashBefore == .zero else {
        throw .malformed("batch", "a hash of no events that is not zero")
      }
      let range = StreamRange(
        partition: partition, origin: origin, from: from, to: SequenceNumber(to), hash: try reader.hash())
      streams.append(ShippedStream(range: range, hashBefore: hashBefore))
    }
    return streams
  }

  /// Compares the events with the streams in the footer.
  private func checkStreams() throws(ReplicationError) {
    var seen = VersionVector()
    for stream in streams {
      let before = SequenceNumber(stream.range.from.rawValue - 1)
      seen[stream.range.partition, stream.range.origin] = StreamHead(sequence: before, hash: .zero)
    }
    for (event, digest) in zip(events, digests) {
      guard var head = seen.partitions[event.partition]?[event.id.origin] else {
        throw .malformed("batch", "\(event.partition), \(event.id.origin) is not in its footer")
      }
      guard event.id.sequence == head.sequence.next else {
        throw .gap(
          event.partition, event.id.origin, expected: head.sequence.next, found: event.id.sequence)
      }
      head = StreamHead(sequence: event.id.sequence, hash: head.hash + digest)
      seen[event.partition, event.id.origin] = head
    }
    for stream in streams {
      let head = seen[stream.range.partition, stream.range.origin]
      guard head.sequence == stream.range.to, head.hash == stream.range.hash else {
        throw .corrupt(
          "batch", "\(stream.range.partition), \(stream.range.origin) is not what its footer says")
      }
    }
  }
}

/// Collects the blocks of a batch.
private struct BatchContent {
  private let count: Int
  private var found: [(relativePosition: UInt64, event: Event)] = []
  private(set) var messages: [CommitID: CommitMessage] = [:]

  /// In position order.
  private(set) var events: [Event] = []

  init(count: Int, blocks: ArraySlice<UInt8>) throws(ReplicationError) {
    self.count = count
    try blocks.read { (reader) throws(ReplicationError) in
      while true {
        let block = try reader.counted("block", limit: ReplicationLimits.batch)
        if block.isEmpty { break }
        try take(block: Array(block))
      }
      try reader.finish("batch")
    }
    events = try arrived()
    assert(holds(checkInvariants))
  }

  /// Traps if an event is missing or surplus, or an author and message belong to no event's commit.
  /// Debug builds call it after all blocks.
  func checkInvariants() {
    precondition(events.count == count && found.count == count, "each event is contained once")
    let commits = Set(events.map(\.commit))
    precondition(messages.keys.allSatisfy(commits.contains), "a message is of a commit that is there")
  }

  private mutating func take(block bytes: [UInt8]) throws(ReplicationError) {
    do throws(EventsError) {
      let block = try BlockReader(bytes, limit: ReplicationLimits.blockStream)
      guard block.count <= count - found.count else {
        throw .malformed("batch", "more events than its footer says")
      }
      for item in try block.events() { found.append((item.relativePosition, item.event)) }
      for (commit, message) in block.messages {
        guard messages.updateValue(message, forKey: commit) == nil else {
          throw .malformed("batch", "two messages for commit \(commit)")
        }
      }
    } catch {
      switch error {
      case .malformed(let subject, let found): throw .malformed(subject, found)
      case .overLimit(let subject, let found, let limit):
        throw .overLimit(subject, found: found, limit: limit)
      }
    }
  }

  private mutating func arrived() throws(ReplicationError) -> [Event] {
    guard found.count == count, count > 0 else {
      throw .malformed("batch", "\(found.count) events where its footer says \(count)")
    }
    var places = [Int?](repeating: nil, count: count)
    for (place, item) in found.enumerated() {
      guard item.relativePosition < UInt64(count), places[Int(item.relativePosition)] == nil else {
        throw .malformed("batch", "relativePosition \(item.relativePosition), twice or not below \(count)")
      }
      places[Int(item.relativePosition)] = place
    }
    return places.compactMap { $0.map { found[$0].event } }
  }
}
