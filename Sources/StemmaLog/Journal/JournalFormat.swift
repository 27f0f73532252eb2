import StemmaEvents

// The journal: the log file that is being appended to.
//
// Header, 48 bytes, written once before the file gets its name:
//
//     0   16  preamble, magic STEMMA-J
//     16   8  log id
//     24   8  number of this file
//     32   8  base: the position of its first event
//     40   4  chain value at the end of the file before it
//     44   4  CRC32C of bytes 0 … 43
//
// Then frames, one behind the other. Each has a commit, several small ones, or events of a peer:
//
//     0    4  magic FRM1
//     4    4  length of the payload
//     8    8  synced: how many bytes of this file were known durable when the frame was written
//     16   4  chain value before the frame: the CRC of the previous frame, or of the header
//     20   4  events in the payload
//     24   4  raw bytes of these events
//     28   4  CRC32C of log id, file number, frame offset (8 bytes each), bytes 0 … 27, payload
//     32   …  payload: one block
//
// The CRC covers the offset of the frame, and the chain value the frames before it. So a frame of
// another log, journal, offset or history is never valid here, even if its bytes are intact.
//
// A frame is valid if its magic, length, chain and CRC are. The events of a file are numbered from
// 0 in the order of appending. These numbers are their positions in the blocks.
//
// The journal ends at the end of the file, or where only zeros follow. Small groups of events are
// written with zeros ahead: a later sync is cheaper if it allocates no blocks. Writers never write
// behind these zeros, so old bytes of the disk are never taken for frames.
//
// Torn or corrupt: the *durable end* is the highest of the watermark and `synced` of every valid
// frame, including frames behind a bad byte. All bytes below it were synced. A first bad byte at or
// above it begins a torn tail, which was never acknowledged and is cut. Below it, a bad byte is
// corruption: nothing is cut, valid frames stay readable, and appending continues in the next
// journal. Rot in the last commits is undetectable until a later frame or the watermark confirms
// them.

/// The facts at the beginning of a journal.
struct JournalHeader: Equatable {
  static let size = 48

  var log: LogID
  var number: UInt64
  /// The position at which it begins, and the chain value of the file before it.
  var start: LogToken

  func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    FilePreamble.encode(FilePreamble.journal, into: &bytes)
    bytes.appendFixed(log.rawValue)
    bytes.appendFixed(number)
    bytes.appendFixed(start.position.rawValue)
    bytes.appendFixed(start.chain)
    bytes.appendFixed(bytes.crc32c)
    return bytes
  }

  /// The chain value before the first frame.
  static func chain(_ encoded: [UInt8]) -> UInt32 { encoded.crc32c(0..<size - 4) }

  /// Throws `.corrupt`, `.newerFormat` or `.foreignLog`.
  init(decoding bytes: [UInt8], path: String, log: LogID, number: UInt64) throws(LogError) {
    try FilePreamble.check(bytes, FilePreamble.journal, path: path)
    self = try locating(path, UInt64(FilePreamble.size)) { () throws(Flaw) in
      let header = try Self(fields: bytes)
      try header.check(bytes)
      guard header.number == number else { throw .malformed("number") }
      guard header.start.position >= .first, header.start.position.rawValue <= Limits.highestNumber else {
        throw .malformed("base")
      }
      return header
    }
    guard self.log == log else { throw .foreignLog(path: path, expected: log, found: self.log) }
  }

  init(fields bytes: [UInt8]) throws(Flaw) {
    self = try bytes.read(from: FilePreamble.size) { (reader) throws(Flaw) in
      let log = LogID(try reader.fixed("header"))
      let number = try reader.fixed("header")
      let base = Position(try reader.fixed("header"))
      return Self(
        log: log, number: number, start: LogToken(position: base, chain: try reader.fixed32("header")))
    }
  }

  /// Throws unless the checksum holds.
  func check(_ bytes: [UInt8]) throws(Flaw) { try bytes.checkCRC(at: Self.size - 4) }

  init(log: LogID, number: UInt64, start: LogToken) {
    self.log = log
    self.number = number
    self.start = start
  }
}

/// The facts before the payload of a frame.
struct JournalFrame: Equatable {
  static let headerSize = 32
  static let magic: [UInt8] = Array("FRM1".utf8)

  /// Bytes of payload.
  var length: Int
  var synced: UInt64
  var previous: UInt32
  var events: Int
  var raw: Int
  var crc: UInt32

  /// The CRC of a frame with 28 header bytes from `start` on and its payload from `start + 32` on.
  static func checksum(
    _ bytes: [UInt8], at start: Int, payload: Int, log: LogID, number: UInt64, offset: UInt64
  ) -> UInt32 {
    let place = place(log: log, number: number, offset: offset)
    let crc = bytes.crc32c(start..<start + headerSize - 4, from: place.crc32c)
    return bytes.crc32c(start + headerSize..<start + headerSize + payload, from: crc)
  }

  /// The bytes that the CRC covers before those of the frame.
  static func place(log: LogID, number: UInt64, offset: UInt64) -> [UInt8] {
    var place: [UInt8] = []
    place.reserveCapacity(24)
    place.appendFixed(log.rawValue)
    place.appendFixed(number)
    place.appendFixed(offset)
    return place
  }

  /// Appends a whole frame to `bytes` and returns its CRC. Throws `.overLimit`.
  static func encode(
    payload: [UInt8], events: Int, raw: Int, synced: UInt64, previous: UInt32, log: LogID, number: UInt64,
    offset: UInt64, into bytes: inout [UInt8]
  ) throws(LogError) -> UInt32 {
    try LogLimits.check("journal frame", payload.count, LogLimits.framePayload)
    let start = bytes.count
    bytes += magic
    bytes.appendFixed(UInt32(payload.count))
    bytes.appendFixed(synced)
    bytes.appendFixed(previous)
    bytes.appendFixed(UInt32(events))
    bytes.appendFixed(UInt32(clamping: raw))
    bytes.appendFixed(0 as UInt32)
    bytes += payload
    let crc = checksum(bytes, at: start, payload: payload.count, log: log, number: number, offset: offset)
    bytes.replaceSubrange(
      start + headerSize - 4..<start + headerSize, with: withUnsafeBytes(of: crc.bigEndian, Array.init))
    return crc
  }

  /// Bytes of header and payload.
  var size: UInt64 { UInt64(Self.headerSize + length) }
}

extension JournalFrame {
  /// Reads the header at `index` without comparing the CRC. Throws if it is no frame of this chain
  /// (nil: unknown), or if its length exceeds the limit or the `available` bytes of payload.
  init(decoding bytes: [UInt8], at index: Int, previous chain: UInt32?, available: UInt64) throws(Flaw) {
    self = try bytes.read(from: index) { (reader) throws(Flaw) in
      guard try reader.bytes(4, "frame").elementsEqual(Self.magic) else { throw .notThisFormat }
      return Self(
        length: Int(try reader.fixed32("frame")), synced: try reader.fixed("frame"),
        previous: try reader.fixed32("frame"), events: Int(try reader.fixed32("frame")),
        raw: Int(try reader.fixed32("frame")), crc: try reader.fixed32("frame"))
    }
    guard length <= LogLimits.framePayload else { throw .malformed("frame length") }
    guard UInt64(length) <= available else {
      throw .cutShort(expected: UInt64(length), found: available)
    }
    if let chain, previous != chain { throw .checksum(expected: chain, found: previous) }
  }

  /// Throws unless the CRC fits. `bytes` hold the frame from `index` on.
  func check(_ bytes: [UInt8], at index: Int, log: LogID, number: UInt64, offset: UInt64) throws(Flaw) {
    let found = Self.checksum(bytes, at: index, payload: length, log: log, number: number, offset: offset)
    guard found == crc else { throw .checksum(expected: crc, found: found) }
  }
}
