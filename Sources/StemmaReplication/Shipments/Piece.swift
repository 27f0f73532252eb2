import Crypto
import StemmaEvents
import StemmaLog

// A piece: a part of a shipment that is adopted whole.
//
// A shipment is a row of pieces. Each holds events that the receiver lacks, from a run of the sender's
// arrival order that ends between two commits. An event's causes arrived at the sender before it; so a
// receiver that applies pieces in order, each whole, has applied the causes of all that it applies.
//
//     offset  size  meaning
//          0     8  magic "STEMMA-P"
//          8     1  format version, 1
//          9     1  form: 0 blocks, 1 a sealed file
//         10     2  zero
//         12     4  CRC32C of the bytes before
//         16     8  log id of the sender
//                   form 0, per block: its length (varint, at least 1) and the block, laid out as in a segment;
//                   `arrival` counts from 0 in the sender's order, over all blocks of the piece
//                   0: no more blocks
//                   form 1: blocks, footer and key filter of a segment, as they stand in a file of the sender's
//                   or were made for the shipment
//                   footer:
//                     number of events
//                     number of streams; each, by partition and origin, once:
//                       partition (length, bytes), origin (8 bytes), first sequence, number of events,
//                       hash of the events 1 … first - 1, hash of these events (16 bytes each)
//                     form 1: lengths of the segment's footer and key filter, its end index, raw bytes
//      end-40     4  length of the footer
//      end-36     4  CRC32C of all bytes before
//      end-32    32  SHA-256 of all bytes before
//
// Where both nodes are in one process, a piece is nothing but an array that one hands to the other: both digests are zero
// and nobody compares them. The sender has compared that of a sealed file before, and the receiver makes that of its own.
//
// A sealed file travels as it is where the receiver wants all of its partitions and holds of each stream what
// comes before the file, and nothing of it; and many events that are gathered from several files, or of some
// partitions only, are laid out as one. It is then adopted as it is, if the receiver still holds just what comes
// before it; otherwise its events are, as if they had come in blocks.
//
// Fixed numbers are big-endian, others LEB128 varints in their shortest form. The blocks hold ranges of keys,
// in the order (partition, model, key), so they compress as a segment's do, and a note of a commit stands in
// the first block that has one of its events. Validity: both digests hold; every byte is accounted for; the
// events' sequences are exactly those that the footer states, in order within each stream; their digests sum
// to the stated hashes; in form 0 the arrivals are 0 … n - 1; in form 1 all that the index says is so
// (`SealedCheck`).

/// What a piece holds of one stream, and what precedes it.
package struct ShippedStream: Hashable, Sendable {
  package var range: StreamRange
  /// Of the events 1 … `range.from` - 1: by this a fork is found even where no dot overlaps.
  package var hashBefore: StreamHash

  package init(range: StreamRange, hashBefore: StreamHash) {
    self.range = range
    self.hashBefore = hashBefore
  }
}

/// The decoded content of a piece; consistent in itself, not yet compared with anybody's knowledge.
package struct Piece: Sendable {
  package let sender: LogID
  /// By partition and origin.
  package let streams: [ShippedStream]
  package let eventCount: Int
  /// A sealed file as it was shipped, not compared with `streams` yet. Then `events` is empty: see `unpacked`.
  package let sealed: SealedContents?
  /// In the sender's arrival order.
  package let events: [Event]
  /// Of the events, at the same indices.
  let digests: [StreamHash]
  /// Of commits of these events.
  package let notes: [CommitID: CommitNote]
}

enum PieceLayout {
  static let magic = Array("STEMMA-P".utf8)
  static let version: UInt8 = 1
  enum Form: UInt8 { case blocks, sealed }
  static let headerSize = 24
  static let trailerSize = 40
  /// Raw bytes of events at which a block is cut.
  static let blockTarget = 64 << 10
  static let smallestStream = 2 + 8 + 1 + 1 + 16 + 16
}

extension Piece {
  /// The bytes of a piece with these events, in arrival order. `streams` must describe exactly these.
  static func encode(
    sender: LogID, streams: [ShippedStream], events: [Event], notes: [CommitID: CommitNote],
    isDigested: Bool = true
  ) -> [UInt8] {
    var bytes = header(.blocks, sender)
    appendBlocks(of: events, notes, to: &bytes)
    bytes.append(0)
    end(&bytes, footer(streams, eventCount: events.count), isDigested)
    return bytes
  }

  /// The bytes of a piece that is a sealed file. `streams` must describe what is in it.
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
    footer.append(sizes.footer)
    footer.append(sizes.filter)
    footer.append(sizes.end)
    footer.append(sizes.rawBytes)
    bytes.reserveCapacity(bytes.count + sealed.count + footer.bytes.count + PieceLayout.trailerSize)
    bytes += sealed
    end(&bytes, footer, isDigested)
    return bytes
  }

  private static func header(_ form: PieceLayout.Form, _ sender: LogID) -> [UInt8] {
    var bytes = PieceLayout.magic
    bytes += [PieceLayout.version, form.rawValue, 0, 0]
    bytes.appendFixed(CRC32C.of(bytes))
    bytes.appendFixed(sender.rawValue)
    return bytes
  }

  private static func footer(_ streams: [ShippedStream], eventCount: Int) -> WireWriter {
    var footer = WireWriter()
    footer.append(eventCount)
    footer.append(streams.count)
    for stream in streams {
      footer.append(stream.range.partition.bytes)
      footer.append(stream.range.origin)
      footer.append(stream.range.from.rawValue)
      footer.append(stream.range.to.rawValue - stream.range.from.rawValue + 1)
      footer.append(stream.hashBefore)
      footer.append(stream.range.hash)
    }
    return footer
  }

  /// In place: a piece is as long as a sealed file.
  private static func end(_ bytes: inout [UInt8], _ footer: WireWriter, _ isDigested: Bool) {
    bytes.reserveCapacity(bytes.count + footer.bytes.count + PieceLayout.trailerSize)
    bytes += footer.bytes
    bytes.appendFixed(UInt32(footer.bytes.count))
    if isDigested { seal(&bytes) } else { bytes += [UInt8](repeating: 0, count: 4 + 32) }
  }

  /// Ends a piece, whose bytes up to its footer's length are given, with the digests over them.
  static func seal(_ bytes: inout [UInt8]) {
    let digest = SHA256.hash(data: bytes)
    bytes.appendFixed(CRC32C.of(bytes))
    bytes += digest
  }

  /// Groups the events by ranges of keys of about `blockTarget` bytes; inside of a block they stand in
  /// arrival order.
  private static func appendBlocks(
    of events: [Event], _ notes: [CommitID: CommitNote], to bytes: inout [UInt8]
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
        if size >= PieceLayout.blockTarget && !isSameKey { break }
        size += events[order[end].index].rawSize
        end += 1
      }
      for index in order[start..<end].map(\.index).sorted() {
        writer.append(events[index], arrival: UInt64(index))
        let commit = events[index].commit
        if let note = notes[commit], noted.insert(commit).inserted { writer.setNote(note, of: commit) }
      }
      bytes.appendCounted(writer.finish())
      start = end
    }
  }

  /// Checks and decodes the bytes of a piece from anybody. At most what the footer's counts allow is held in
  /// memory, and these are limited by `ReplicationLimits.pieceEvents`.
  ///
  /// `isDigested`: false for a piece that has been in the memory of this process only, and has no digests.
  package init(decoding bytes: [UInt8], isDigested: Bool = true) throws(ReplicationError) {
    let header = PieceLayout.headerSize
    guard bytes.count <= ReplicationLimits.piece else {
      throw .overLimit("piece", found: UInt64(bytes.count), limit: UInt64(ReplicationLimits.piece))
    }
    guard bytes.count > header + PieceLayout.trailerSize, bytes.starts(with: PieceLayout.magic) else {
      throw .malformed("piece", "\(bytes.count) bytes that are no piece of a shipment")
    }
    var reader = WireReader(bytes[8..<header], subject: "piece")
    let version = try reader.byte()
    let form = try reader.byte()
    let zeros = try reader.slice(2)
    guard try reader.fixed32() == CRC32C.of(bytes[..<12]), zeros.allSatisfy({ $0 == 0 }), version > 0 else {
      throw .damaged("piece", "its header")
    }
    guard version == PieceLayout.version else {
      throw .newerFormat("piece", found: UInt64(version), supported: UInt64(PieceLayout.version))
    }
    guard let form = PieceLayout.Form(rawValue: form) else { throw .malformed("piece", "form \(form)") }
    sender = LogID(try reader.fixed())

    let footer = try Self.footerRange(of: bytes, isDigested)
    reader = WireReader(bytes[footer], subject: "footer of a piece")
    eventCount = Int(try reader.number("events of a piece", limit: UInt64(ReplicationLimits.pieceEvents)))
    streams = try Self.streams(from: &reader, eventCount: eventCount)
    let content = bytes[header..<footer.lowerBound]
    if form == .sealed {
      let sizes = try Self.sizes(from: &reader)
      try reader.end()
      (events, digests, notes) = ([], [], [:])
      sealed = try Self.taking { () throws(Flaw) in try SealedContents(content, sizes) }
      try checkSealedStreams()
      return
    }
    try reader.end()
    sealed = nil
    let found = try PieceContent(count: eventCount, blocks: content)
    (events, notes) = (found.events, found.notes)
    var digester = EventDigester()
    digests = events.map { digester.digest(of: $0).hash }
    try checkStreams()
  }

  /// Where the footer stands. Throws unless both digests hold, if there are any.
  private static func footerRange(
    of bytes: [UInt8], _ isDigested: Bool
  ) throws(ReplicationError) -> Range<Int> {
    let trailer = bytes.count - PieceLayout.trailerSize
    var reader = WireReader(bytes[trailer...], subject: "piece")
    let length = Int(try reader.fixed32())
    if isDigested { try checkDigests(of: bytes, before: trailer + 4, &reader) }
    guard length <= trailer - PieceLayout.headerSize - 1 else {
      throw .malformed("piece", "a footer that is too long")
    }
    return trailer - length..<trailer
  }

  private static func checkDigests(
    of bytes: [UInt8], before end: Int, _ reader: inout WireReader
  ) throws(ReplicationError) {
    guard try reader.fixed32() == CRC32C.of(bytes[..<end]) else {
      throw .damaged("piece", "its checksum does not hold")
    }
    let digest = bytes.withUnsafeBytes { all in
      var hasher = SHA256()
      hasher.update(bufferPointer: UnsafeRawBufferPointer(rebasing: all[..<end]))
      return hasher.finalize()
    }
    guard try reader.slice(32).elementsEqual(digest) else {
      throw .damaged("piece", "its digest does not hold")
    }
  }

  static func sizes(from reader: inout WireReader) throws(ReplicationError) -> SealedContents.Sizes {
    let limit = UInt64(ReplicationLimits.piece)
    return SealedContents.Sizes(
      footer: Int(try reader.number("footer of a sealed file", limit: limit)),
      filter: Int(try reader.number("key filter of a sealed file", limit: limit)),
      end: try reader.number("arrivals of a piece", limit: UInt64(ReplicationLimits.pieceEvents)),
      rawBytes: try reader.number())
  }

  private static func taking<Result>(
    _ body: () throws(Flaw) -> Result
  ) throws(ReplicationError) -> Result {
    do throws(Flaw) { return try body() } catch { throw .damaged("piece", "its sealed file: \(error)") }
  }

  /// A sealed file as its events; any other piece as it is. Memory: all of them.
  func unpacked() throws(ReplicationError) -> Piece {
    guard let sealed else { return self }
    let contents = try Self.taking { () throws(Flaw) in try sealed.unpacked() }
    return try Piece(sender: sender, streams: streams, contents)
  }

  private init(
    sender: LogID, streams: [ShippedStream], _ contents: AdoptedEvents
  ) throws(ReplicationError) {
    self.sender = sender
    self.streams = streams
    sealed = nil
    (events, notes) = (contents.events, contents.notes)
    eventCount = events.count
    var digester = EventDigester()
    digests = events.map { digester.digest(of: $0).hash }
    try checkStreams()
  }

  /// Compares the two indexes of a sealed file, not yet the events.
  private func checkSealedStreams() throws(ReplicationError) {
    guard let sealed else { return }
    let told = sealed.footer.partitions.flatMap { run in
      run.streams.map {
        StreamRange(partition: run.partition, origin: $0.origin, from: $0.from, to: $0.to, hash: $0.hash)
      }
    }
    guard told == streams.map(\.range), sealed.events == UInt64(eventCount) else {
      throw .malformed("piece", "its footer does not say what its sealed file says")
    }
  }

  /// The streams of a footer, behind the count of events.
  static func streams(
    from reader: inout WireReader, eventCount: Int
  ) throws(ReplicationError) -> [ShippedStream] {
    let count = try reader.count(
      "streams", limit: eventCount, itemSize: PieceLayout.smallestStream)
    var streams: [ShippedStream] = []
    for _ in 0..<count {
      let partition = try reader.partition()
      let origin = try reader.origin()
      let from = try reader.sequence()
      let number = try reader.number("events of a stream", limit: Limits.highestNumber)
      let to = from.rawValue &+ number &- 1
      guard from > .zero, number > 0, to <= Limits.highestNumber else {
        throw reader.malformed("a stream of \(number) events from \(from)")
      }
      if let last = streams.last?.range, (last.partition, last.origin) >= (partition, origin) {
        throw reader.malformed("stream \(partition), \(origin) is out of order")
      }
      let hashBefore = try reader.hash()
      guard from.rawValue > 1 || hashBefore == .zero else {
        throw reader.malformed("a hash of no events that is not zero")
      }
      let range = StreamRange(
        partition: partition, origin: origin, from: from, to: Sequence(to), hash: try reader.hash())
      streams.append(ShippedStream(range: range, hashBefore: hashBefore))
    }
    return streams
  }

  /// Compares the events with what the footer says of their streams.
  private func checkStreams() throws(ReplicationError) {
    var seen = Knowledge()
    for stream in streams {
      let before = Sequence(stream.range.from.rawValue - 1)
      seen[stream.range.partition, stream.range.origin] = StreamHead(sequence: before, hash: .zero)
    }
    for (event, digest) in zip(events, digests) {
      guard var head = seen.partitions[event.partition]?[event.dot.origin] else {
        throw .malformed("piece", "\(event.partition), \(event.dot.origin) is not in its footer")
      }
      guard event.dot.sequence == head.sequence.next else {
        throw .gap(
          event.partition, event.dot.origin, expected: head.sequence.next, found: event.dot.sequence)
      }
      head = StreamHead(sequence: event.dot.sequence, hash: head.hash + digest)
      seen[event.partition, event.dot.origin] = head
    }
    for stream in streams {
      let head = seen[stream.range.partition, stream.range.origin]
      guard head.sequence == stream.range.to, head.hash == stream.range.hash else {
        throw .damaged(
          "piece", "\(stream.range.partition), \(stream.range.origin) is not what its footer says")
      }
    }
  }
}

/// Collects the blocks of a piece.
private struct PieceContent {
  private let count: Int
  private var found: [(arrival: UInt64, event: Event)] = []
  private(set) var notes: [CommitID: CommitNote] = [:]

  /// In the order of their arrivals.
  private(set) var events: [Event] = []

  init(count: Int, blocks: ArraySlice<UInt8>) throws(ReplicationError) {
    self.count = count
    var reader = WireReader(blocks, subject: "piece")
    while true {
      let length = try reader.number("block", limit: UInt64(ReplicationLimits.piece))
      if length == 0 { break }
      guard length <= UInt64(reader.left) else { throw reader.malformed("a block that is cut short") }
      try take(block: Array(try reader.slice(Int(length))))
    }
    try reader.end()
    events = try arrived()
    assert(holds(checkInvariants))
  }

  /// Traps if an event is missing or was made up, or if a note is of a commit that none of the events is of. In debug
  /// builds when all blocks were taken.
  func checkInvariants() {
    precondition(events.count == count && found.count == count, "each event stands there once")
    let commits = Set(events.map(\.commit))
    precondition(notes.keys.allSatisfy(commits.contains), "a note is of a commit that is there")
  }

  private mutating func take(block bytes: [UInt8]) throws(ReplicationError) {
    do throws(EventsError) {
      let block = try BlockReader(bytes, limit: ReplicationLimits.blockStream)
      guard block.count <= count - found.count else {
        throw .malformed("piece", "more events than its footer says")
      }
      for item in try block.events() { found.append((item.arrival, item.event)) }
      for (commit, note) in block.notes {
        guard notes.updateValue(note, forKey: commit) == nil else {
          throw .malformed("piece", "two notes for commit \(commit)")
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
      throw .malformed("piece", "\(found.count) events where its footer says \(count)")
    }
    var places = [Int?](repeating: nil, count: count)
    for (place, item) in found.enumerated() {
      guard item.arrival < UInt64(count), places[Int(item.arrival)] == nil else {
        throw .malformed("piece", "arrival \(item.arrival), twice or not below \(count)")
      }
      places[Int(item.arrival)] = place
    }
    return places.compactMap { $0.map { found[$0].event } }
  }
}
