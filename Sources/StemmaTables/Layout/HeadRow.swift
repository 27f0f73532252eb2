import GRDBSQLite
import StemmaEvents

/// The row of `_stemma_meta` for the head of a stream, or for an origin's commits.
///
/// Each commit writes one row of both kinds. One array holds the texts, and SQLite reads them in
/// place: partition, origin, a space, number, a space, hash. The hash ends with a CRC over all
/// before it: after a changed byte, new events would continue the wrong event.
struct HeadRow {
  let number: Int64
  /// Its contribution to the sum of all rows.
  let sum: HeadChecksum
  private let bytes: [UInt8]
  private let partition: Int
  private let hash: Int

  /// The digits of an origin, and of a CRC.
  private static let (originDigits, crcDigits) = (16, 8)

  /// The row of a stream.
  init(_ partition: Partition, _ origin: Origin, _ head: StreamHead) {
    self.init(
      "stream", partition.bytes, origin, Int64(clamping: head.sequence.rawValue), hash: head.hash)
  }

  /// The row of an origin's commits.
  init(_ origin: Origin, commit: UInt64) {
    self.init("commit", [], origin, Int64(clamping: commit), hash: nil)
  }

  private init(
    _ name: StaticString, _ partition: [UInt8], _ origin: Origin, _ number: Int64, hash: StreamHash?
  ) {
    var bytes = Self.words(partition, origin, number)
    self.hash = bytes.count
    if let hash {
      bytes.append(hex: hash.high)
      bytes.append(hex: hash.low)
    }
    bytes.append(hex: CRC32C.of(bytes))
    self.number = number
    self.partition = partition.count
    self.bytes = bytes
    sum = bytes.withUnsafeBytes { bytes in
      .of(
        name, UnsafeRawBufferPointer(rebasing: bytes[..<partition.count]),
        UnsafeRawBufferPointer(rebasing: bytes[partition.count...]))
    }
  }

  private static func words(_ partition: [UInt8], _ origin: Origin, _ number: Int64) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(partition.count + 96)
    bytes += partition
    bytes.append(hex: origin.rawValue)
    bytes.append(UInt8(ascii: " "))
    bytes.append(decimal: number)
    bytes.append(UInt8(ascii: " "))
    return bytes
  }

  /// The CRC, in hexadecimal, of a row that was read by columns.
  static func crc(_ partition: [UInt8], _ origin: Origin, _ number: Int64, _ hash: String) -> String {
    hexadecimal(CRC32C.of(words(partition, origin, number) + Array(hash.utf8)))
  }

  /// Eight digits.
  static func hexadecimal(_ crc: UInt32) -> String {
    var digits: [UInt8] = []
    digits.append(hex: crc)
    return String(decoding: digits, as: UTF8.self)
  }

  static let upsertStream: StaticString = """
    INSERT INTO _stemma_meta (name, partition, origin, value, hash) VALUES ('stream', ?, ?, ?, ?)
    ON CONFLICT DO UPDATE SET value = excluded.value, hash = excluded.hash
    """

  static let upsertCommit: StaticString = """
    INSERT INTO _stemma_meta (name, origin, value, hash) VALUES ('commit', ?, ?, ?)
    ON CONFLICT DO UPDATE SET value = excluded.value, hash = excluded.hash
    """

  /// Writes a stream's row by `upsertStream`, an origin's commits by `upsertCommit`.
  func write(by statement: Statement) throws(TablesError) {
    try statement.run(bytes) { statement, bytes in
      func bind(_ index: Int32, _ range: Range<Int>) {
        statement.bind(index, inPlace: UnsafeRawBufferPointer(rebasing: bytes[range]))
      }
      var index: Int32 = 1
      if partition > 0 {
        bind(index, 0..<partition)
        index += 1
      }
      bind(index, partition..<partition + Self.originDigits)
      statement.bind(index + 1, number)
      bind(index + 2, hash..<bytes.count)
    }
  }
}
