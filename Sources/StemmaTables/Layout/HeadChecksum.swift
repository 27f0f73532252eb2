import StemmaEvents
import StemmaLog

/// The sum of all rows of streams and commits, and the numbers of records, tombstones and listed
/// conflicts. It is stored with the position, in a row that every writer changes.
///
/// The sum detects rows that are missing, have another key, or are on a page that the disk returned
/// in an older state. A row's own CRC detects none of these. With a missing row, a writer would
/// restart a stream that the log continues, create a deleted record again, or hide a conflict. A
/// change updates the sum without reading other rows. It does not detect an edit of rows and sum
/// alike.
struct HeadChecksum: Equatable {
  /// The rows of streams and commits.
  var heads: UInt64
  var tombstones: Int64 = 0
  var conflicts: Int64 = 0
  /// The rows of models. Few callers compare it: counting rows takes as long as reading all keys.
  var rows: Int64 = 0

  static let zero = HeadChecksum(heads: 0)
  static let tombstone = HeadChecksum(heads: 0, tombstones: 1)
  static let conflict = HeadChecksum(heads: 0, conflicts: 1)
  static let row = HeadChecksum(heads: 0, rows: 1)

  static func + (a: HeadChecksum, b: HeadChecksum) -> HeadChecksum {
    HeadChecksum(
      heads: a.heads &+ b.heads, tombstones: a.tombstones &+ b.tombstones,
      conflicts: a.conflicts &+ b.conflicts, rows: a.rows &+ b.rows)
  }

  static func - (a: HeadChecksum, b: HeadChecksum) -> HeadChecksum {
    HeadChecksum(
      heads: a.heads &- b.heads, tombstones: a.tombstones &- b.tombstones,
      conflicts: a.conflicts &- b.conflicts, rows: a.rows &- b.rows)
  }

  static func += (a: inout HeadChecksum, b: HeadChecksum) { a = a + b }
  static func -= (a: inout HeadChecksum, b: HeadChecksum) { a = a - b }

  /// The sum of one row of `_stemma_meta`.
  /// `row`: origin, number and hash, separated by spaces.
  static func of(
    _ name: StaticString, _ partition: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer
  ) -> HeadChecksum {
    HeadChecksum(heads: KeyHash(partition: partition, model: name.description).of(row))
  }

  /// The sum of the stored rows, except those of the records. O(streams + tombstones + conflicts).
  /// SQLite counts a hundred tombstones or conflicts in the time of one stream.
  static func ofRows(_ connection: Connection) throws(TablesError) -> HeadChecksum {
    var sum = HeadChecksum.zero
    for name: StaticString in ["commit", "stream"] {
      let statement = try connection.prepare(
        "SELECT partition, origin || ' ' || value || ' ' || hash FROM _stemma_meta WHERE name = ?")
      statement.bind(1, name.description)
      while try statement.step() { sum += of(name, statement.bytes(0), statement.bytes(1)) }
    }
    sum.tombstones = try connection.integer("SELECT count(*) FROM _stemma_tombstones") ?? 0
    sum.conflicts = try countConflicts(connection)
    return sum
  }

  private static func countConflicts(_ connection: Connection) throws(TablesError) -> Int64 {
    try connection.integer("SELECT count(*) FROM _stemma_conflicts") ?? 0
  }

  /// Throws `needsRebuild` unless the stored rows are those that were written.
  static func check(_ connection: Connection) throws(TablesError) {
    let written = try Meta.headChecksum(of: connection)
    var found = try ofRows(connection)
    found.rows = written?.rows ?? 0
    if found == written { return }
    let table =
      found.heads != written?.heads
      ? "_stemma_meta" : found.tombstones != written?.tombstones ? "_stemma_tombstones" : "_stemma_conflicts"
    throw failure(table, connection)
  }

  /// As `check`, for the conflicts alone.
  static func checkConflicts(_ connection: Connection) throws(TablesError) {
    guard try countConflicts(connection) == Meta.headChecksum(of: connection)?.conflicts else {
      throw failure("_stemma_conflicts", connection)
    }
  }

  /// Throws `needsRebuild` if there are more or fewer records than were written.
  static func check(rows: Int64, _ connection: Connection) throws(TablesError) {
    guard rows == (try Meta.headChecksum(of: connection)?.rows) else {
      throw failure("the records", connection)
    }
  }

  private static func failure(_ table: String, _ connection: Connection) -> TablesError {
    .needsRebuild(
      path: connection.path, .corrupt("\(table): rows are missing, or not those that were written"))
  }
}
