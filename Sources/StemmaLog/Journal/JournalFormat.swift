import StemmaEvents

// The journal: the log file that is being appended to.
//
// Header, 64 bytes, written once before the file gets its name:
//
//     0   16  preamble, magic STEMMA-J
//     16   8  log id
//     24   8  number of this file
//     32   8  place of the file before it (0: none)
//     40   8  end index of that file: how many events it has given numbers to
//     48   4  chain value at its end
//     52   8  0; or, where the journal before it was damaged when it was closed, how many bytes of it were durable
//     60   4  CRC32C of bytes 0 … 59
//
// Then frames, one for each commit, each where the one before it ends:
//
//     0    4  magic FRM1
//     4    4  length of the payload
//     8    8  synced: how many bytes of this file were known durable when the frame was written
//     16   4  chain value before the frame: the CRC of the previous frame, or of the header
//     20   4  events in the payload
//     24   4  raw bytes of these events
//     28   4  CRC32C of log id, file number, offset of the frame (8 bytes each), bytes 0 … 27, payload
//     32   …  payload: one block
//
// The CRC covers where the frame stands, and the chain what stands before it. So a frame of another log, of
// another journal, of another place or of another past is never valid here, even if its bytes are whole.
//
// A frame is valid if its magic, length, chain and CRC are. The events of a file are numbered 0, 1, 2 … in the
// order in which they were appended; the numbers are the blocks' `arrival`.
//
// The end is the end of the file, or zeros: where many small groups are written, zeros are written ahead, since
// a sync that need not note a new size, nor that a block is used now, is the cheaper one on a disk that is not busy
// otherwise. Nothing is ever
// written behind them, so bytes of an earlier use of the disk are never taken for frames.
//
// Torn or corrupt: every byte below the *durable end* = max(watermark, `synced` of every valid frame, also of
// those behind a bad byte) was synced. A first bad byte at or above it is a torn tail of a write that nobody was
// told had succeeded: it is cut. Below it, it is corruption: nothing is cut. The journal is closed as it is, its
// valid frames stay readable, and appending goes on in the next one. One case remains that no reader can tell
// apart: rot in the last group of commits before a later frame or the watermark confirmed it.

/// The facts at the beginning of a journal.
struct JournalHeader: Equatable {
  static let size = 64

  var log: LogID
  var number: UInt64
  /// The end of the file before this one.
  var predecessor: LogToken
  /// How many bytes of the journal before this one were durable, if not all of them could be read when it was
  /// closed; else 0.
  var damagedBelow: UInt64 = 0

  func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    FilePreamble.encode(FilePreamble.journal, into: &bytes)
    bytes.put(log.rawValue)
    bytes.put(number)
    bytes.put(predecessor.position.file)
    bytes.put(predecessor.position.index)
    bytes.put(predecessor.chain)
    bytes.put(damagedBelow)
    bytes.put(bytes.crc32c)
    return bytes
  }

  /// The chain value before the first frame.
  static func chain(_ encoded: [UInt8]) -> UInt32 { encoded.crc32c(0..<size - 4) }

  /// Throws `.damaged`, `.newerFormat` or `.foreignLog`.
  init(decoding bytes: [UInt8], path: String, log: LogID, number: UInt64) throws(LogError) {
    try FilePreamble.check(bytes, FilePreamble.journal, path: path)
    self = try locating(path, UInt64(FilePreamble.size)) { () throws(Flaw) in
      let header = try Self(fields: bytes)
      try header.check(bytes)
      guard header.number == number else { throw .malformed("number") }
      return header
    }
    guard self.log == log else { throw .foreignLog(path: path, expected: log, found: self.log) }
  }

  /// The number that stands in a whole header of a log's journal, whatever its name; nil: there is none, or one that no file
  /// has.
  static func number(of file: any File, log: LogID) throws(LogError) -> UInt64? {
    guard let header = try whole(of: file), header.log == log,
      (1...LogLimits.fileNumber).contains(header.number)
    else { return nil }
    return header.number
  }

  /// The header of any log's journal; nil: there is none that is whole.
  static func whole(of file: any File) throws(LogError) -> Self? {
    let bytes = try file.read(at: 0, count: size)
    do throws(Flaw) {
      let header = try Self(fields: bytes)
      try header.check(bytes)
      return bytes.starts(with: FilePreamble.journal) ? header : nil
    } catch { return nil }
  }

  /// Takes the fields as they stand there; nothing is compared.
  init(fields bytes: [UInt8]) throws(Flaw) {
    var reader = FieldReader(bytes, at: FilePreamble.size)
    log = LogID(try reader.uint64())
    number = try reader.uint64()
    let position = Position(file: try reader.uint64(), index: try reader.uint64())
    predecessor = LogToken(position: position, chain: try reader.uint32())
    damagedBelow = try reader.uint64()
  }

  /// Throws unless the checksum holds.
  func check(_ bytes: [UInt8]) throws(Flaw) {
    var reader = FieldReader(bytes, at: Self.size - 4)
    let expected = try reader.uint32()
    let computed = Self.chain(bytes)
    guard expected == computed else { throw .checksum(expected: expected, found: computed) }
  }

  init(log: LogID, number: UInt64, predecessor: LogToken, damagedBelow: UInt64 = 0) {
    self.log = log
    self.number = number
    self.predecessor = predecessor
    self.damagedBelow = damagedBelow
  }
}

/// The facts before the payload of a frame.
struct JournalFrame: Equatable {
  static let headerSize = 32
  static let magic: [UInt8] = Array("FRM1".utf8)

  /// Bytes of payload.
  var length: Int
  var synced: UInt64
  /// The chain value before the frame.
  var previous: UInt32
  var events: Int
  /// Raw bytes of the events.
  var raw: Int
  var crc: UInt32

  /// The CRC of a frame whose first 28 bytes are `bytes[start..<start + 28]` and whose payload follows at
  /// `start + 32`.
  static func checksum(
    _ bytes: [UInt8], at start: Int, payload: Int, log: LogID, number: UInt64, offset: UInt64
  ) -> UInt32 {
    let place = place(log: log, number: number, offset: offset)
    let crc = bytes.crc32c(start..<start + headerSize - 4, from: place.crc32c)
    return bytes.crc32c(start + headerSize..<start + headerSize + payload, from: crc)
  }

  /// What the CRC covers before the frame's own bytes.
  static func place(log: LogID, number: UInt64, offset: UInt64) -> [UInt8] {
    var place: [UInt8] = []
    place.reserveCapacity(24)
    place.put(log.rawValue)
    place.put(number)
    place.put(offset)
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
    bytes.put(UInt32(payload.count))
    bytes.put(synced)
    bytes.put(previous)
    bytes.put(UInt32(events))
    bytes.put(UInt32(clamping: raw))
    bytes.put(0 as UInt32)
    bytes += payload
    let crc = checksum(bytes, at: start, payload: payload.count, log: log, number: number, offset: offset)
    bytes.replaceSubrange(
      start + headerSize - 4..<start + headerSize, with: withUnsafeBytes(of: crc.bigEndian, Array.init))
    return crc
  }

  /// Bytes of header and payload.
  var size: UInt64 { UInt64(Self.headerSize + length) }

  /// Reads the header at `index`; the CRC is not compared yet. Throws if it is no frame of this chain (nil: that
  /// is not known) or its
  /// length is more than `available` bytes of payload or above its limit.
  init(decoding bytes: [UInt8], at index: Int, previous chain: UInt32?, available: UInt64) throws(Flaw) {
    var reader = FieldReader(bytes, at: index)
    guard try reader.raw(4) == Self.magic else { throw .notThisFormat }
    length = Int(try reader.uint32())
    synced = try reader.uint64()
    previous = try reader.uint32()
    events = Int(try reader.uint32())
    raw = Int(try reader.uint32())
    crc = try reader.uint32()
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
