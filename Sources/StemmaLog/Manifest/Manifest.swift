import StemmaEvents

// The manifest: the list of live files.
//
//     0   16  preamble, magic STEMMA-M
//     16   8  log id
//     24   8  turn: rises by one whenever it is replaced
//     32   8  number of the next segment: every segment number below was given to a file
//     40   8  number of the first live journal; the others have the next numbers
//     48   8  position at which the first live journal begins
//     56   4  chain value there
//     60   4  how many torn tails were cut from journals since the log was made
//     64   4  n, how many segments
//     68   4  m, how many files this manifest has made obsolete
//     72 64n  for each segment, in the order of the log: number, bytes of the file, base, position
//             behind its last position (8 each), SHA-256 of the file without its last 44 bytes (32)
//      … 16m  for each obsolete file: 0 segment, 1 journal (1); 0 remove, 1 move to corrupt/ (1);
//             zero (6); number (8)
//      …   4  CRC32C of all before
//
// A replacement is written to manifest.partial and synced. manifest is renamed to
// manifest.previous, manifest.partial to manifest, and the directory is synced. Then obsolete files
// are removed. Without a readable manifest, manifest.previous counts if all of its files exist.

/// A file that is no longer part of the log.
struct ObsoleteFile: Hashable, Sendable {
  var name: LogFileName
  /// Whether it was corrupt, and is kept in `corrupt/`.
  var isKept = false

  static let encodedSize = 16
}

/// The list of live files.
struct Manifest: Equatable, Sendable {
  static let name = LogFileName.manifestName
  static let previousName = LogFileName.previousManifestName
  static let fixedSize = 72

  var log: LogID
  var turn: UInt64 = 0
  var nextSegment: UInt64 = 1
  var firstJournal: UInt64 = 1
  /// The position at which the first live journal begins, and the chain value there.
  var start = LogToken.start
  var cuts: UInt32 = 0
  /// In the order of the log.
  var segments: [SegmentEntry] = []
  var obsolete: [ObsoleteFile] = []

  init(log: LogID) { self.log = log }

  func encoded() -> [UInt8] {
    var bytes: [UInt8] = []
    FilePreamble.encode(FilePreamble.manifest, into: &bytes)
    for number in [log.rawValue, turn, nextSegment, firstJournal, start.position.rawValue] {
      bytes.appendFixed(number)
    }
    for number in [start.chain, cuts, UInt32(segments.count), UInt32(obsolete.count)] {
      bytes.appendFixed(number)
    }
    for segment in segments {
      for number in [segment.number, segment.size, segment.base.rawValue, segment.past.rawValue] {
        bytes.appendFixed(number)
      }
      bytes += segment.digest.bytes
    }
    for file in obsolete {
      bytes += [file.name.isJournal ? 1 : 0, file.isKept ? 1 : 0, 0, 0, 0, 0, 0, 0]
      bytes.appendFixed(file.name.number ?? 0)
    }
    bytes.appendFixed(bytes.crc32c)
    return bytes
  }

  /// Throws `.corrupt`, `.newerFormat` or `.foreignLog`.
  init(decoding bytes: [UInt8], path: String, log: LogID) throws(LogError) {
    try self.init(decoding: bytes, path: path)
    guard self.log == log else { throw .foreignLog(path: path, expected: log, found: self.log) }
  }

  /// Reads the manifest of any log.
  init(decoding bytes: [UInt8], path: String) throws(LogError) {
    try FilePreamble.check(bytes, FilePreamble.manifest, path: path)
    self = try locating(path, UInt64(FilePreamble.size)) { () throws(Flaw) in
      let manifest = try Self(fields: bytes)
      try manifest.check()
      return manifest
    }
  }

  private init(fields bytes: [UInt8]) throws(Flaw) {
    self = try bytes.read(from: FilePreamble.size) { (reader) throws(Flaw) in
      func next() throws(Flaw) -> UInt64 { try reader.fixed("manifest") }
      var manifest = Self(log: LogID(try next()))
      manifest.turn = try next()
      manifest.nextSegment = try next()
      manifest.firstJournal = try next()
      let position = Position(try next())
      manifest.start = LogToken(position: position, chain: try reader.fixed32("manifest"))
      manifest.cuts = try reader.fixed32("manifest")
      let count = Int(try reader.fixed32("manifest"))
      let obsoleteCount = Int(try reader.fixed32("manifest"))
      guard count <= LogLimits.segments, obsoleteCount <= 2 * LogLimits.segments else {
        throw .malformed("count of files")
      }
      let size =
        Self.fixedSize + SegmentEntry.encodedSize * count + ObsoleteFile.encodedSize * obsoleteCount + 4
      guard bytes.count == size else { throw .cutShort(expected: UInt64(size), found: UInt64(bytes.count)) }
      try bytes.checkCRC(at: size - 4)
      manifest.segments.reserveCapacity(count)
      for _ in 0..<count {
        manifest.segments.append(
          SegmentEntry(
            number: try next(), size: try next(), base: Position(try next()), past: Position(try next()),
            digest: try SegmentDigest(from: &reader)))
      }
      for _ in 0..<obsoleteCount {
        let fields = try next()
        guard fields & ~0x0101_0000_0000_0000 == 0 else { throw .malformed("obsolete file") }
        let number = try next()
        manifest.obsolete.append(
          ObsoleteFile(
            name: fields >> 56 == 1 ? .journal(number) : .segment(number), isKept: fields >> 48 & 1 == 1))
      }
      return manifest
    }
  }

  /// Throws if a field has a value that it cannot have.
  private func check() throws(Flaw) {
    guard turn <= Limits.highestNumber else { throw .malformed("turn") }
    guard (1...LogLimits.fileNumber + 1).contains(nextSegment),
      (1...LogLimits.fileNumber + 1).contains(firstJournal)
    else { throw .malformed("file number") }
    var end = Position.first
    for segment in segments {
      guard segment.number > 0, segment.number < nextSegment else { throw .malformed("file number") }
      guard segment.base >= end, segment.past >= segment.base else { throw .malformed("position") }
      end = segment.past
    }
    guard start.position >= end, start.position.rawValue <= Limits.highestNumber else {
      throw .malformed("position")
    }
    guard Set(segments.map(\.number)).count == segments.count else { throw .malformed("file number") }
  }

  /// Traps if it would not be read back. In debug builds before it is written.
  func checkInvariants() {
    var isRight = true
    do throws(Flaw) { try check() } catch { isRight = false }
    precondition(isRight, "a manifest lists files in the order of their positions")
    let obsolete = Set(obsolete.map(\.name))
    precondition(
      segments.allSatisfy { !obsolete.contains(.segment($0.number)) }, "what is listed is not obsolete")
  }

  /// The maximum length of a manifest.
  static let sizeLimit =
    fixedSize + (SegmentEntry.encodedSize + 2 * ObsoleteFile.encodedSize) * LogLimits.segments + 4

  /// The segment that covers a position, or the next one; nil: the position is behind all of them.
  func segment(at position: Position) -> SegmentEntry? {
    let index = segments.partitioningIndex { $0.past > position }
    return index < segments.count ? segments[index] : nil
  }
}
