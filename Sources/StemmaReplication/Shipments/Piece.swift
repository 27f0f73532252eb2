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
//          9     3  zero
//         12     4  CRC32C of the bytes before
//         16     8  log id of the sender
//                   per block: its length (varint, at least 1) and the block, laid out as in a segment;
//                   `arrival` counts from 0 in the sender's order, over all blocks of the piece
//                   0: no more blocks
//                   footer:
//                     number of events
//                     number of streams; each, by partition and origin, once:
//                       partition (length, bytes), origin (8 bytes), first sequence, number of events,
//                       hash of the events 1 … first - 1, hash of these events (16 bytes each)
//      end-40     4  length of the footer
//      end-36     4  CRC32C of all bytes before
//      end-32    32  SHA-256 of all bytes before
//
// Fixed numbers are big-endian, others LEB128 varints in their shortest form. The blocks hold ranges of keys,
// in the order (partition, model, key), so they compress as a segment's do, and a note of a commit stands in
// the first block that has one of its events. Validity: both digests hold; every byte is accounted for; the
// events' sequences are exactly those that the footer states, in order within each stream; their digests sum
// to the stated hashes; the arrivals are 0 … n - 1.

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
  static let headerSize = 24
  static let trailerSize = 40
  /// Raw bytes of events at which a block is cut.
  static let blockTarget = 64 << 10
  static let smallestStream = 2 + 8 + 1 + 1 + 16 + 16
}

extension Piece {
  /// The bytes of a piece with these events, in arrival order. `streams` must describe exactly these.
  static func encode(
    sender: LogID, streams: [ShippedStream], events: [Event], notes: [CommitID: CommitNote]
  ) -> [UInt8] {
    var bytes = PieceLayout.magic
    bytes += [PieceLayout.version, 0, 0, 0]
    bytes.appendFixed(CRC32C.of(bytes))
    bytes.appendFixed(sender.rawValue)
    appendBlocks(of: events, notes, to: &bytes)
    bytes.append(0)
    var footer = WireWriter()
    footer.append(events.count)
    footer.append(streams.count)
    for stream in streams {
      footer.append(stream.range.partition.bytes)
      footer.append(stream.range.origin)
      footer.append(stream.range.from.rawValue)
      footer.append(stream.range.to.rawValue - stream.range.from.rawValue + 1)
      footer.append(stream.hashBefore)
      footer.append(stream.range.hash)
    }
    bytes += footer.bytes
    bytes.appendFixed(UInt32(footer.bytes.count))
    return seal(bytes)
  }

  /// Ends a piece, whose bytes up to its footer's length are given, with the digests over them.
  static func seal(_ content: [UInt8]) -> [UInt8] {
    var bytes = content
    bytes.appendFixed(CRC32C.of(content))
    bytes += SHA256.hash(data: content)
    return bytes
  }

  /// Groups the events by ranges of keys of about `blockTarget` bytes; inside of a block they stand in
  /// arrival order.
  private static func appendBlocks(
    of events: [Event], _ notes: [CommitID: CommitNote], to bytes: inout [UInt8]
  ) {
    let order = events.indices.sorted { a, b in events[a].isOrdered(before: events[b]) ?? (a < b) }
    var writer = BlockWriter()
    var noted: Set<CommitID> = []
    var start = 0
    while start < order.count {
      var size = 0
      var end = start
      while end < order.count {
        let isSameKey = end > start && events[order[end]].isOrdered(before: events[order[end - 1]]) == nil
        if size >= PieceLayout.blockTarget && !isSameKey { break }
        size += events[order[end]].rawSize
        end += 1
      }
      for index in order[start..<end].sorted() {
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
  package init(decoding bytes: [UInt8]) throws(ReplicationError) {
    let header = PieceLayout.headerSize
    guard bytes.count <= ReplicationLimits.piece else {
      throw .overLimit("piece", found: UInt64(bytes.count), limit: UInt64(ReplicationLimits.piece))
    }
    guard bytes.count > header + PieceLayout.trailerSize, bytes.starts(with: PieceLayout.magic) else {
      throw .malformed("piece", "\(bytes.count) bytes that are no piece of a shipment")
    }
    var reader = WireReader(bytes[8..<header], subject: "piece")
    let version = try reader.byte()
    let zeros = try reader.slice(3)
    guard try reader.fixed32() == CRC32C.of(bytes[..<12]), zeros.allSatisfy({ $0 == 0 }), version > 0 else {
      throw .damaged("piece", "its header")
    }
    guard version == PieceLayout.version else {
      throw .newerFormat("piece", found: UInt64(version), supported: UInt64(PieceLayout.version))
    }
    sender = LogID(try reader.fixed())

    let trailer = bytes.count - PieceLayout.trailerSize
    reader = WireReader(bytes[trailer...], subject: "piece")
    let footerLength = Int(try reader.fixed32())
    guard try reader.fixed32() == CRC32C.of(bytes[..<(trailer + 4)]) else {
      throw .damaged("piece", "its checksum does not hold")
    }
    guard try reader.slice(32).elementsEqual(SHA256.hash(data: bytes[..<(trailer + 4)])) else {
      throw .damaged("piece", "its digest does not hold")
    }
    guard footerLength <= trailer - header - 1 else { throw .malformed("piece", "a footer that is too long") }
    reader = WireReader(bytes[(trailer - footerLength)..<trailer], subject: "footer of a piece")
    let count = Int(try reader.number("events of a piece", limit: UInt64(ReplicationLimits.pieceEvents)))
    streams = try Self.streams(from: &reader, eventCount: count)
    try reader.end()

    reader = WireReader(bytes[header..<(trailer - footerLength)], subject: "piece")
    var content = PieceContent(count: count)
    while true {
      let length = try reader.number("block", limit: UInt64(ReplicationLimits.piece))
      if length == 0 { break }
      guard length <= UInt64(reader.left) else { throw reader.malformed("a block that is cut short") }
      try content.take(block: Array(try reader.slice(Int(length))))
    }
    try reader.end()
    events = try content.arrived()
    notes = content.notes
    var digester = EventDigester()
    digests = events.map { digester.digest(of: $0).hash }
    try checkStreams()
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

  init(count: Int) { self.count = count }

  mutating func take(block bytes: [UInt8]) throws(ReplicationError) {
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

  mutating func arrived() throws(ReplicationError) -> [Event] {
    guard found.count == count, count > 0 else {
      throw .malformed("piece", "\(found.count) events where its footer says \(count)")
    }
    found.sort { $0.arrival < $1.arrival }
    for (index, item) in found.enumerated() where item.arrival != UInt64(index) {
      throw .malformed("piece", "arrival \(item.arrival) where \(index) was expected")
    }
    return found.map(\.event)
  }
}

extension Event {
  /// The order of blocks: partition, model, key. Nil for the same record.
  fileprivate func isOrdered(before other: Event) -> Bool? {
    if partition != other.partition { return partition < other.partition }
    if !model.hasSameBytes(as: other.model) { return model.hasBytes(before: other.model) }
    return key == other.key ? nil : key < other.key
  }
}
