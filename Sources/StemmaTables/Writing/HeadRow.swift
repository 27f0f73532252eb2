import GRDBSQLite
import StemmaEvents

/// The row of `_stemma_meta` that says how far a stream goes, or an origin's commits.
///
/// Each commit writes one of both kinds, so their texts are put together in one array, from which SQLite takes them:
/// partition, origin, a space, number, a space, hash. The hash ends with a CRC over all before it, in which one changed byte
/// would have new events continue what they do not follow. Made of strings they took a tenth of a commit's instructions.
struct HeadRow {
  let number: Int64
  /// What it adds to the sum of all rows.
  let sum: HeadSum
  private let bytes: [UInt8]
  private let partition: Int
  private let hash: Int

  /// Digits of an origin, and of a CRC.
  private static let (originDigits, crcDigits) = (16, 8)

  /// Of a stream.
  init(_ partition: Partition, _ origin: Origin, _ head: StreamHead) {
    self.init(
      "stream", partition.bytes, origin, Int64(clamping: head.sequence.rawValue), hash: head.hash)
  }

  /// Of an origin's commits.
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

  /// The CRC, in hexadecimal, of a row whose columns were read.
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

  /// Writes that of a stream by `upsertStream`, that of an origin's commits by `upsertCommit`.
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
