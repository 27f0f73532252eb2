import StemmaEvents
import StemmaLog

/// What the rows of all streams and commits add up to. It stands in the row of the position, which every writer
/// changes with them.
///
/// A changed row has its own CRC, but one that is missing, has another key, or stands on a page that the disk gave
/// back as it was some time ago, looks like any other: with it, a writer would begin a stream anew that the log goes on
/// with. A sum is moved by each change without reading the other rows. It is of 64 bits, and meant for accidents: who
/// edits rows and sum alike is not found by it.
struct HeadSum: Equatable {
  var rawValue: UInt64

  static let zero = HeadSum(rawValue: 0)

  static func + (a: HeadSum, b: HeadSum) -> HeadSum { HeadSum(rawValue: a.rawValue &+ b.rawValue) }
  static func - (a: HeadSum, b: HeadSum) -> HeadSum { HeadSum(rawValue: a.rawValue &- b.rawValue) }

  /// Of one row of `_stemma_meta`.
  static func of(
    _ name: String, _ partition: [UInt8], _ origin: Origin, _ number: Int64, _ hash: String
  ) -> HeadSum {
    partition.withUnsafeBytes { partition in
      Array("\(origin) \(number) \(hash)".utf8).withUnsafeBytes { row in of(name, partition, row) }
    }
  }

  private static func of(
    _ name: String, _ partition: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer
  ) -> HeadSum {
    HeadSum(rawValue: KeyHash(partition: partition, model: name).of(row))
  }

  /// Of the rows that are there. O(streams).
  static func ofRows(_ connection: Connection) throws(TablesError) -> HeadSum {
    var sum = HeadSum.zero
    for name in ["commit", "stream"] {
      let statement = try connection.prepare(
        "SELECT partition, origin || ' ' || value || ' ' || hash FROM _stemma_meta WHERE name = ?")
      statement.bind(1, name)
      while try statement.step() { sum = sum + of(name, statement.bytes(0), statement.bytes(1)) }
    }
    return sum
  }

  /// Throws `needsRebuild` unless the rows that are there are those that were written.
  static func check(_ connection: Connection) throws(TablesError) {
    guard try ofRows(connection) == Meta.headSum(of: connection) else {
      throw .needsRebuild(
        path: connection.path, .damaged("_stemma_meta: rows are missing, or not those that were written"))
    }
  }
}
