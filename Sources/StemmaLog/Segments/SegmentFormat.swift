import Crypto
import StemmaEvents

// A segment: a sealed log file. Its events are clustered by (partition, model, key), so that a partition, a
// model and a record each are a run of blocks, and everything that is asked before blocks are read stands in
// the footer.
//
//     header | blocks, one behind the other | footer | key filter | trailer
//
// Header:
//
//     0   16  preamble, magic STEMMA-S
//     16   8  log id
//     24   8  number of this file
//     32   8  place: the file number in the positions of its events. The number itself, unless this file
//             replaces others; then the place of the first of them
//     40  32  digest of the file at the place before this one (zeros: there is none)
//     72   4  r, how many files it replaces
//     76  40r for each its number (8) and its digest (32); all of them, also those that its forerunners did; and
//             its own place with what the file behind it calls it (`Log.header`)
//      …   4  CRC32C of all before
//
// Footer (varints; texts and names with their length before them):
//
//     origins     n, then 8 bytes each, rising
//     models      n, then n names, sorted
//     partitions  n, then for each, sorted: bytes shared with the name before, length of the rest, the rest;
//                 first block less that of the partition before; blocks - 1; events;
//                 streams n, then for each, by origin: origin (index), from, to - from, stream hash of these events (16)
//     blocks      n, then for each: stored length, CRC32C (4), events, first arrival, last - first arrival,
//                 lowest timestamp, highest - lowest; its first key: partition (index), model (index),
//                 length, bytes
//
// A stream's events in one file are a run from … to without a hole. Blocks are cut where a partition ends: one
// that has at least half of a block's size owns its blocks, smaller ones share them.
//
// Key filter: one byte k, then a Bloom filter with k hashes; no bytes at all where it would not pay.
//
// Trailer, 108 bytes, the end of the file:
//
//     0    8  offset of the footer
//     8    8  length of the footer
//     16   8  length of the key filter
//     24   4  CRC32C of the footer
//     28   4  CRC32C of the key filter
//     32   8  events
//     40   8  end index: one more than the highest arrival that was ever in this place
//     48   8  raw bytes of the events
//     56   4  chain value at the end of this place: of the journal that was sealed
//     60   4  zero
//     64  32  digest: SHA-256 of the file up to here
//     96   4  CRC32C of bytes 0 … 95 of the trailer
//    100   8  magic STEMMA-E
//
// Every byte is covered: the header by its CRC, blocks, footer and filter by theirs, the trailer by its own, and
// all of it by the digest. A segment is written under another name, synced, renamed, and the directory
// synced: one that has its name is whole.

/// The SHA-256 of a segment.
package struct SegmentDigest: Hashable, Sendable, CustomStringConvertible {
  package let bytes: [UInt8]

  package static let none = SegmentDigest(bytes: [UInt8](repeating: 0, count: 32))

  init(bytes: [UInt8]) { self.bytes = bytes }

  /// Sixty-four lowercase hexadecimal digits.
  package var description: String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

/// A file that another one stands in for.
struct ReplacedFile: Equatable, Sendable {
  var number: UInt64
  var digest: SegmentDigest
}

struct SegmentHeader: Equatable, Sendable {
  static let fixedSize = 76

  var log: LogID
  var number: UInt64
  var place: UInt64
  var predecessor: SegmentDigest
  var replaced: [ReplacedFile]

  static func size(replaced count: Int) -> Int { fixedSize + 40 * count + 4 }
  var size: Int { Self.size(replaced: replaced.count) }

  func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    FilePreamble.encode(FilePreamble.segment, into: &bytes)
    bytes.put(log.rawValue)
    bytes.put(number)
    bytes.put(place)
    bytes += predecessor.bytes
    bytes.put(UInt32(replaced.count))
    for file in replaced {
      bytes.put(file.number)
      bytes += file.digest.bytes
    }
    bytes.put(bytes.crc32c)
    return bytes
  }

  init(log: LogID, number: UInt64, place: UInt64, predecessor: SegmentDigest, replaced: [ReplacedFile] = []) {
    self.log = log
    self.number = number
    self.place = place
    self.predecessor = predecessor
    self.replaced = replaced
  }

  /// Reads the header of an open file, which must have the number of its name. Throws `.damaged`, `.newerFormat`,
  /// `.foreignLog`.
  init(of file: any File, path: String, log: LogID, number: UInt64) throws(LogError) {
    try self.init(of: file, path: path, log: log)
    if self.number != number { throw misnamed(path).error }
  }

  /// What is wrong with a file that has this header and the name of another one.
  func misnamed(_ path: String) -> Damage {
    LogFileName.segment(number).misnamed(path)
  }

  /// Reads the header of an open file, whatever its name.
  init(of file: any File, path: String, log: LogID) throws(LogError) {
    var bytes = try file.read(at: 0, count: Self.size(replaced: 0))
    try FilePreamble.check(bytes, FilePreamble.segment, path: path)
    let count = try locating(path, UInt64(FilePreamble.size)) { [bytes] () throws(Flaw) in
      var reader = FieldReader(bytes, at: Self.fixedSize - 4)
      let count = try reader.uint32()
      guard count <= LogLimits.replaced else { throw .malformed("replaced files") }
      return Int(count)
    }
    if count > 0 {
      bytes += try file.read(at: UInt64(bytes.count), count: Self.size(replaced: count) - bytes.count)
    }
    self = try locating(path, UInt64(FilePreamble.size)) { [bytes] () throws(Flaw) in
      let header = try Self(fields: bytes, replaced: count)
      try header.check(bytes)
      return header
    }
    guard self.log == log else { throw .foreignLog(path: path, expected: log, found: self.log) }
  }

  /// Takes the fields as they stand there; nothing is compared.
  init(fields bytes: [UInt8], replaced count: Int) throws(Flaw) {
    var reader = FieldReader(bytes, at: FilePreamble.size)
    log = LogID(try reader.uint64())
    number = try reader.uint64()
    place = try reader.uint64()
    predecessor = SegmentDigest(bytes: try reader.raw(32))
    _ = try reader.uint32()
    replaced = []
    for _ in 0..<count {
      let number = try reader.uint64()
      replaced.append(ReplacedFile(number: number, digest: SegmentDigest(bytes: try reader.raw(32))))
    }
  }

  /// Throws unless the checksum holds and the fields have values that they can have.
  func check(_ bytes: [UInt8]) throws(Flaw) {
    var reader = FieldReader(bytes, at: size - 4)
    let expected = try reader.uint32()
    let found = bytes.crc32c(0..<size - 4)
    guard expected == found else { throw .checksum(expected: expected, found: found) }
    guard number <= LogLimits.fileNumber else { throw .malformed("number") }
    guard place > 0, place <= number, (place < number) == !replaced.isEmpty else {
      throw .malformed("place")
    }
    guard replaced.allSatisfy({ $0.number < number && $0.number >= place }) else {
      throw .malformed("replaced files")
    }
  }
}

struct SegmentTrailer: Equatable, Sendable {
  static let size = 108
  static let digestOffset = 64
  static let checksumOffset = 96
  static let magic: [UInt8] = Array("STEMMA-E".utf8)
  /// Far above any file, and low enough that distances between two offsets do not overflow.
  static let highestOffset: UInt64 = 1 << 62

  var footerOffset: UInt64
  var footerLength: Int
  var filterLength: Int
  var footerCRC: UInt32
  var filterCRC: UInt32
  var events: UInt64
  var end: UInt64
  var rawBytes: UInt64
  var chain: UInt32
  var digest: SegmentDigest = .none

  /// The bytes that the digest covers.
  func fieldsBeforeDigest() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.put(footerOffset)
    bytes.put(UInt64(footerLength))
    bytes.put(UInt64(filterLength))
    bytes.put(footerCRC)
    bytes.put(filterCRC)
    bytes.put(events)
    bytes.put(end)
    bytes.put(rawBytes)
    bytes.put(chain)
    bytes.put(0 as UInt32)
    return bytes
  }

  func encoded() -> [UInt8] {
    var bytes = fieldsBeforeDigest() + digest.bytes
    bytes.put(bytes.crc32c)
    return bytes + Self.magic
  }

  /// `bytes` are the last of a file whose header takes `headerSize`.
  init(decoding bytes: [UInt8], headerSize: Int) throws(Flaw) {
    try self.init(fields: bytes)
    try check(bytes)
    guard events <= end, end <= Limits.highestNumber + 1, footerOffset >= UInt64(headerSize),
      footerOffset <= Self.highestOffset
    else { throw .malformed("trailer") }
  }

  /// Takes the fields as they stand there; nothing is compared.
  init(fields bytes: [UInt8]) throws(Flaw) {
    var reader = FieldReader(bytes)
    footerOffset = try reader.uint64()
    footerLength = Int(clamping: try reader.uint64())
    filterLength = Int(clamping: try reader.uint64())
    footerCRC = try reader.uint32()
    filterCRC = try reader.uint32()
    events = try reader.uint64()
    end = try reader.uint64()
    rawBytes = try reader.uint64()
    chain = try reader.uint32()
    _ = try reader.uint32()
    digest = SegmentDigest(bytes: try reader.raw(32))
  }

  /// Throws unless magic and checksum hold and the lengths are within their limits.
  func check(_ bytes: [UInt8]) throws(Flaw) {
    var reader = FieldReader(bytes, at: Self.checksumOffset)
    let expected = try reader.uint32()
    guard try reader.raw(8) == Self.magic else { throw .notThisFormat }
    let found = bytes.crc32c(0..<Self.checksumOffset)
    guard expected == found else { throw .checksum(expected: expected, found: found) }
    reader = FieldReader(bytes, at: 60)
    try reader.zeros(4, "trailer")
    guard footerLength <= LogLimits.footer, filterLength <= LogLimits.footer else {
      throw .malformed("trailer")
    }
  }

  init(
    footerOffset: UInt64, footer: [UInt8], filter: [UInt8], events: UInt64, end: UInt64, rawBytes: UInt64,
    chain: UInt32
  ) {
    self.footerOffset = footerOffset
    footerLength = footer.count
    filterLength = filter.count
    footerCRC = footer.crc32c
    filterCRC = filter.crc32c
    self.events = events
    self.end = end
    self.rawBytes = rawBytes
    self.chain = chain
  }
}
