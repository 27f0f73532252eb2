import Crypto
import StemmaEvents

// A segment: a sealed log file. Its events are clustered by (partition, model, key), so the events
// of a partition, a model or a record are in a run of blocks. The footer has everything that a
// reader needs before it reads blocks.
//
//     header | blocks, one behind the other | footer | key filter | trailer
//
// Header:
//
//     0   16  preamble, magic STEMMA-S
//     16   8  log id
//     24   8  number of this file
//     32   8  base: the position of position 0 in its blocks
//     40   4  CRC32C of all before
//
// Footer: a root, and the pages that it lists. Numbers are varints, and texts follow their length.
// The name of a partition is the number of bytes that it shares with the name before, the length of
// the rest, and the rest. A reader of one partition reads the root and one page.
//
// Root:
//
//     origins     n, then 8 bytes each, rising
//     models      n, then n names, sorted
//     blocks      n, then for each: its first key: partition (name), model (index), length, bytes;
//                 stored length, CRC32C (4), events, first position, last - first position, lowest
//                 timestamp less that of the block before (zigzag), highest - lowest
//     pages       n, then for each: blocks; size, as that of a stream in a block; CRC32C (4).
//                 n is 0 if the only page follows at once, not deflated
//
// Page: the partitions in some blocks, sorted. Each has its name (the first one after that of the
// blocks' first key), first block less that of the partition before, blocks - 1, and n streams. A
// stream, by origin, has origin (index), from, to - from, and from 64 events on the hash (16).
//
// A stream's events in one file are a run without a gap. Blocks are cut at the end of a partition.
// One that has at least half of a block's size owns its blocks, and smaller ones share them.
//
// Key filter: one byte k, then a Bloom filter with k hashes; no bytes if it would not pay.
//
// Trailer, 108 bytes, the end of the file:
//
//     0    8  offset of the footer
//     8    8  length of the footer
//     16   8  length of the key filter
//     24   4  CRC32C of the root of the footer
//     28   4  CRC32C of the key filter
//     32   8  events
//     40   8  end: one more than the highest position that was ever here
//     48   8  raw bytes of the events
//     56   4  chain value at the end: of the sealed journal, else the CRC32C of root and header
//     60   4  length of the root
//     64  32  digest: SHA-256 of the file up to here
//     96   4  CRC32C of bytes 0 … 95 of the trailer
//    100   8  magic STEMMA-E
//
// Checksums cover every byte: header, blocks, root, pages, filter and trailer have their own, and
// the digest covers all. A segment is written under another name, synced and renamed, and the
// directory is synced: a segment with its own name is complete.

/// The SHA-256 of a segment.
package struct SegmentDigest: Hashable, Sendable, CustomStringConvertible {
  package let bytes: [UInt8]

  package static let none = SegmentDigest(bytes: [UInt8](repeating: 0, count: 32))

  init(bytes: [UInt8]) { self.bytes = bytes }

  init(from reader: inout ByteReader<Flaw>) throws(Flaw) {
    bytes = Array(try reader.bytes(32, "digest"))
  }

  /// Sixty-four lowercase hexadecimal digits.
  package var description: String { bytes.hexadecimal }
}

struct SegmentHeader: Equatable, Sendable {
  static let size = 44

  var log: LogID
  var number: UInt64
  /// The position of position 0.
  var base: Position

  func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    FilePreamble.encode(FilePreamble.segment, into: &bytes)
    bytes.appendFixed(log.rawValue)
    bytes.appendFixed(number)
    bytes.appendFixed(base.rawValue)
    bytes.appendFixed(bytes.crc32c)
    return bytes
  }

  init(log: LogID, number: UInt64, base: Position) {
    self.log = log
    self.number = number
    self.base = base
  }

  /// Reads and checks the header of file `number`. Throws `.corrupt`, `.newerFormat`,
  /// `.foreignLog`.
  init(of file: any File, path: String, log: LogID, number: UInt64) throws(LogError) {
    let bytes = try file.read(at: 0, count: Self.size)
    try FilePreamble.check(bytes, FilePreamble.segment, path: path)
    self = try locating(path, UInt64(FilePreamble.size)) { () throws(Flaw) in
      let header = try Self(fields: bytes)
      try header.check(bytes)
      guard header.number == number else { throw .malformed("number") }
      return header
    }
    guard self.log == log else { throw .foreignLog(path: path, expected: log, found: self.log) }
  }

  /// Reads the fields without validating them.
  init(fields bytes: [UInt8]) throws(Flaw) {
    self = try bytes.read(from: FilePreamble.size) { (reader) throws(Flaw) in
      Self(
        log: LogID(try reader.fixed("header")), number: try reader.fixed("header"),
        base: Position(try reader.fixed("header")))
    }
  }

  /// Throws unless the checksum holds and the fields have values that they can have.
  func check(_ bytes: [UInt8]) throws(Flaw) {
    try bytes.checkCRC(at: Self.size - 4)
    guard number > 0, number <= LogLimits.fileNumber else { throw .malformed("number") }
    guard base >= .first, base.rawValue <= Limits.highestNumber else { throw .malformed("base") }
  }
}

struct SegmentTrailer: Hashable, Sendable {
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
  var rootLength: Int
  var digest: SegmentDigest = .none

  /// The bytes that the digest covers.
  func fieldsBeforeDigest() -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.appendFixed(footerOffset)
    bytes.appendFixed(UInt64(footerLength))
    bytes.appendFixed(UInt64(filterLength))
    bytes.appendFixed(footerCRC)
    bytes.appendFixed(filterCRC)
    bytes.appendFixed(events)
    bytes.appendFixed(end)
    bytes.appendFixed(rawBytes)
    bytes.appendFixed(chain)
    bytes.appendFixed(UInt32(rootLength))
    return bytes
  }

  func encoded() -> [UInt8] {
    var bytes = fieldsBeforeDigest() + digest.bytes
    bytes.appendFixed(bytes.crc32c)
    return bytes + Self.magic
  }
}

extension SegmentTrailer {
  /// `bytes`: the last bytes of a file.
  init(decoding bytes: [UInt8]) throws(Flaw) {
    try self.init(fields: bytes)
    try check(bytes)
    guard events <= end, end <= Limits.highestNumber + 1, footerOffset >= UInt64(SegmentHeader.size),
      footerOffset <= Self.highestOffset
    else { throw .malformed("trailer") }
  }

  /// Reads the fields without validating them.
  init(fields bytes: [UInt8]) throws(Flaw) {
    self = try bytes.read { (reader) throws(Flaw) in
      var trailer = Self(
        footerOffset: try reader.fixed("trailer"), footerLength: Int(clamping: try reader.fixed("trailer")),
        filterLength: Int(clamping: try reader.fixed("trailer")), footerCRC: try reader.fixed32("trailer"),
        filterCRC: try reader.fixed32("trailer"), events: try reader.fixed("trailer"),
        end: try reader.fixed("trailer"), rawBytes: try reader.fixed("trailer"),
        chain: try reader.fixed32("trailer"), rootLength: Int(try reader.fixed32("trailer")))
      trailer.digest = try SegmentDigest(from: &reader)
      return trailer
    }
  }

  /// Throws unless magic and checksum hold and the lengths are within their limits.
  func check(_ bytes: [UInt8]) throws(Flaw) {
    guard bytes.dropFirst(Self.checksumOffset + 4).starts(with: Self.magic) else { throw .notThisFormat }
    try bytes.checkCRC(at: Self.checksumOffset)
    guard footerLength <= LogLimits.footer, filterLength <= LogLimits.footer, rootLength <= footerLength
    else {
      throw .malformed("trailer")
    }
  }

  init(
    footerOffset: UInt64, footer: [UInt8], rootSize: Int, filter: [UInt8], events: UInt64, end: UInt64,
    rawBytes: UInt64, chain: UInt32
  ) {
    self.init(
      footerOffset: footerOffset, footerLength: footer.count, filterLength: filter.count,
      footerCRC: CRC32C.of(footer[..<rootSize]), filterCRC: filter.crc32c, events: events, end: end,
      rawBytes: rawBytes, chain: chain, rootLength: rootSize)
  }
}
