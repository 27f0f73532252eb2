import StemmaEvents

// The watermark: how far the open journal is known durable.
//
// Two slots of 512 bytes, at 0 and 512, written in turn and without a sync of their own, after a sync of the
// journal. A write that a crash tears spoils one slot; the other still tells a truth, if an older one. Each:
//
//     0    16  preamble, magic STEMMA-W
//     16    8  log id
//     24    8  turn: rises by one with every write; even turns stand in slot 0, odd ones in slot 1
//     32    8  number of the journal
//     40    8  how many bytes of it are durable
//     48  460  zero
//     508   4  CRC32C of bytes 0 … 507
//
// All journals of lower number are durable as a whole. The file's inode and time of birth tell a directory
// from its copy.

/// What the newer valid slot says.
struct Watermark: Equatable, Sendable {
  static let slotSize = 512

  var turn: UInt64
  /// Number of a journal.
  var journal: UInt64
  /// Bytes of it.
  var durable: UInt64

  func encoded(_ log: LogID) -> [UInt8] {
    // One is written with every sync.
    var bytes = Self.preamble
    bytes.reserveCapacity(Self.slotSize)
    bytes.put(log.rawValue)
    bytes.put(turn)
    bytes.put(journal)
    bytes.put(durable)
    bytes.append(contentsOf: repeatElement(0, count: Self.slotSize - 4 - bytes.count))
    bytes.put(bytes.crc32c)
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

  /// The fields of a slot as they stand there; nothing is compared.
  static func fields(slot bytes: [UInt8]) throws(Flaw) -> (Watermark, LogID) {
    var reader = FieldReader(bytes, at: FilePreamble.size)
    let log = LogID(try reader.uint64())
    let turn = try reader.uint64()
    let journal = try reader.uint64()
    return (Watermark(turn: turn, journal: journal, durable: try reader.uint64()), log)
  }

  /// Throws if there can be no such journal, or no turn after this one.
  func checkFields() throws(Flaw) {
    guard journal <= LogLimits.fileNumber else { throw .malformed("journal") }
    guard turn <= Limits.highestNumber else { throw .malformed("turn") }
  }

  /// Throws unless the checksum of a slot holds.
  static func check(slot bytes: [UInt8]) throws(Flaw) {
    var reader = FieldReader(bytes, at: Self.slotSize - 4)
    let expected = try reader.uint32()
    let computed = bytes.crc32c(0..<Self.slotSize - 4)
    guard expected == computed else { throw .checksum(expected: expected, found: computed) }
  }

  /// Whether each slot was written before the first frame of a log, whichever it is, or never.
  static func isOfUnusedLog(_ bytes: [UInt8], path: String) -> Bool {
    guard bytes.count == 2 * slotSize else { return false }
    return [0, slotSize].allSatisfy { start in
      let slot = Array(bytes[start..<start + slotSize])
      if slot.allSatisfy({ $0 == 0 }) { return true }
      do throws(LogError) {
        try FilePreamble.check(slot, FilePreamble.watermark, path: path, at: UInt64(start))
        let (found, _) = try locating(path, UInt64(start)) { () throws(Flaw) in
          try check(slot: slot)
          return try fields(slot: slot)
        }
        return found.journal <= 1 && found.durable <= UInt64(JournalHeader.size)
      } catch { return false }
    }
  }

  init(turn: UInt64, journal: UInt64, durable: UInt64) {
    self.turn = turn
    self.journal = journal
    self.durable = durable
  }

  /// What a watermark file says, and the damage of slots that are not as they were written. A slot of zeros
  /// was never written. nil if no slot is valid. Throws `.newerFormat` and `.foreignLog`.
  static func read(_ file: any File, path: String, log: LogID) throws(LogError) -> (Watermark?, [Damage]) {
    let bytes = try file.read(at: 0, count: 2 * slotSize)
    var best: Watermark?
    var damage: [Damage] = []
    for start in [0, slotSize] {
      let slot = Array(bytes[min(start, bytes.count)..<min(start + slotSize, bytes.count)])
      if start > 0, slot.count == slotSize, slot.allSatisfy({ $0 == 0 }) { continue }
      do throws(LogError) {
        let found = try Watermark(slot: slot, path: path, log: log, at: UInt64(start))
        if best.map({ $0.turn < found.turn }) ?? true { best = found }
      } catch {
        guard case .damaged(_, let offset, let flaw) = error else { throw error }
        damage.append(Damage(path: path, offset: offset, flaw: flaw))
      }
    }
    return (best, damage)
  }
}
