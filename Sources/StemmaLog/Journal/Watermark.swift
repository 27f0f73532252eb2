import StemmaEvents

// The watermark: how far the open journal is known durable.
//
// Two slots of 512 bytes, at 0 and 512, are written in turn after a sync of the journal. The slots
// themselves are not synced. A crash can tear one slot; the other one is older but true. Each:
//
//     0    16  preamble, magic STEMMA-W
//     16    8  log id
//     24    8  turn: rises by one with every write; even turns are in slot 0, odd ones in slot 1
//     32    8  number of the journal
//     40    8  how many bytes of it are durable
//     48    8  turn of the last manifest whose name is known durable
//     56  452  zero
//     508   4  CRC32C of bytes 0 … 507
//
// All journals of lower number are durable as a whole. The file's inode and time of birth
// distinguish a directory from its copy.

/// The content of the newer valid slot.
struct Watermark: Equatable, Sendable {
  static let slotSize = 512

  var turn: UInt64
  /// Number of a journal.
  var journal: UInt64
  /// Bytes of it.
  var durable: UInt64
  /// Turn of the last manifest whose name is known durable.
  var manifest: UInt64 = 0

  func encoded(_ log: LogID) -> [UInt8] {
    // One is written with every sync.
    var bytes = Self.preamble
    bytes.reserveCapacity(Self.slotSize)
    bytes.appendFixed(log.rawValue)
    bytes.appendFixed(turn)
    bytes.appendFixed(journal)
    bytes.appendFixed(durable)
    bytes.appendFixed(manifest)
    bytes.append(contentsOf: repeatElement(0, count: Self.slotSize - 4 - bytes.count))
    bytes.appendFixed(bytes.crc32c)
    return bytes
  }

  private static let preamble: [UInt8] = {
    var bytes: [UInt8] = []
    FilePreamble.encode(FilePreamble.watermark, into: &bytes)
    return bytes
  }()

  var offset: UInt64 { turn % 2 * UInt64(Self.slotSize) }

  private init(slot bytes: [UInt8], path: String, log: LogID, at offset: UInt64) throws(LogError) {
    try FilePreamble.check(bytes, FilePreamble.watermark, path: path, at: offset)
    let found: LogID
    (self, found) = try locating(path, offset) { () throws(Flaw) in
      guard bytes.count == Self.slotSize else {
        throw .cutShort(expected: UInt64(Self.slotSize), found: UInt64(bytes.count))
      }
      try Self.check(slot: bytes)
      let fields = try Self.fields(slot: bytes)
      try fields.0.checkFields()
      return fields
    }
    guard found == log else { throw .foreignLog(path: path, expected: log, found: found) }
  }

  /// The fields of a slot, not validated.
  static func fields(slot bytes: [UInt8]) throws(Flaw) -> (Watermark, LogID) {
    try bytes.read(from: FilePreamble.size) { (reader) throws(Flaw) in
      let log = LogID(try reader.fixed("slot"))
      let turn = try reader.fixed("slot")
      let journal = try reader.fixed("slot")
      let durable = try reader.fixed("slot")
      return (
        Watermark(turn: turn, journal: journal, durable: durable, manifest: try reader.fixed("slot")), log
      )
    }
  }

  /// Throws if no such journal can exist, or if no turn can follow.
  func checkFields() throws(Flaw) {
    guard journal <= LogLimits.fileNumber else { throw .malformed("journal") }
    guard turn <= Limits.highestNumber else { throw .malformed("turn") }
  }

  /// Throws unless the checksum of a slot holds.
  static func check(slot bytes: [UInt8]) throws(Flaw) {
    try bytes.checkCRC(at: Self.slotSize - 4)
  }

  init(turn: UInt64, journal: UInt64, durable: UInt64, manifest: UInt64 = 0) {
    self.turn = turn
    self.journal = journal
    self.durable = durable
    self.manifest = manifest
  }

  /// The newer valid slot of a watermark file, nil if none is valid, and the corruption of the
  /// others. A second slot of zeros was never written. Throws `.newerFormat` and `.foreignLog`.
  static func read(_ file: any File, path: String, log: LogID) throws(LogError) -> (Watermark?, [Corruption])
  {
    let bytes = try file.read(at: 0, count: 2 * slotSize)
    var best: Watermark?
    var corruption: [Corruption] = []
    for start in [0, slotSize] {
      let slot = Array(bytes[min(start, bytes.count)..<min(start + slotSize, bytes.count)])
      if start > 0, slot.count == slotSize, slot.allSatisfy({ $0 == 0 }) { continue }
      do throws(LogError) {
        let found = try Watermark(slot: slot, path: path, log: log, at: UInt64(start))
        if best.map({ $0.turn < found.turn }) ?? true { best = found }
      } catch {
        guard case .corrupt(_, let offset, let flaw) = error else { throw error }
        corruption.append(Corruption(path: path, offset: offset, flaw: flaw))
      }
    }
    return (best, corruption)
  }
}
