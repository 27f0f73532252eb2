import StemmaEvents
import StemmaLog

/// What the rows of all streams and commits add up to, and how many records, tombstones and listed conflicts there are. It
/// stands in the row of the position, which every writer changes with them.
///
/// A changed row has its own CRC, but one that is missing, has another key, or stands on a page that the disk gave
/// back as it was some time ago, looks like any other: with it, a writer would begin a stream anew that the log goes on
/// with. Without its tombstone, a record that was deleted would be created as if it had never been, and a conflict that
/// is not listed is shown to nobody. A sum is moved by each change without reading the other rows. It is of 64 bits, and
/// meant for accidents: who edits rows and sum alike is not found by it.
struct HeadSum: Equatable {
  /// Of streams and commits.
  var heads: UInt64
  var tombstones: Int64 = 0
  var conflicts: Int64 = 0
  /// Of models. Compared only where somebody counts them anyway: they are as many as the node has records.
  var rows: Int64 = 0

  static let zero = HeadSum(heads: 0)
  static let tombstone = HeadSum(heads: 0, tombstones: 1)
  static let conflict = HeadSum(heads: 0, conflicts: 1)
  static let row = HeadSum(heads: 0, rows: 1)

  static func + (a: HeadSum, b: HeadSum) -> HeadSum {
    HeadSum(
      heads: a.heads &+ b.heads, tombstones: a.tombstones &+ b.tombstones,
      conflicts: a.conflicts &+ b.conflicts, rows: a.rows &+ b.rows)
  }

  static func - (a: HeadSum, b: HeadSum) -> HeadSum {
    HeadSum(
      heads: a.heads &- b.heads, tombstones: a.tombstones &- b.tombstones,
      conflicts: a.conflicts &- b.conflicts, rows: a.rows &- b.rows)
  }

  static func += (a: inout HeadSum, b: HeadSum) { a = a + b }
  static func -= (a: inout HeadSum, b: HeadSum) { a = a - b }

  /// Of one row of `_stemma_meta`.
  /// `row`: origin, number and hash, with a space between them.
  static func of(
    _ name: StaticString, _ partition: UnsafeRawBufferPointer, _ row: UnsafeRawBufferPointer
  ) -> HeadSum {
    HeadSum(heads: KeyHash(partition: partition, model: name.description).of(row))
  }

  /// Of what is there beside the records. O(streams + tombstones + conflicts); SQLite counts a hundred of the latter in
  /// the time of one stream.
  static func ofRows(_ connection: Connection) throws(TablesError) -> HeadSum {
    var sum = HeadSum.zero
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

  /// Throws `needsRebuild` unless the rows that are there are those that were written.
  static func check(_ connection: Connection) throws(TablesError) {
    let written = try Meta.headSum(of: connection)
    var found = try ofRows(connection)
    found.rows = written?.rows ?? 0
    if found == written { return }
    let table =
      found.heads != written?.heads
      ? "_stemma_meta" : found.tombstones != written?.tombstones ? "_stemma_tombstones" : "_stemma_conflicts"
    throw failure(table, connection)
  }

  /// As `check`, of the conflicts alone.
  static func checkConflicts(_ connection: Connection) throws(TablesError) {
    guard try countConflicts(connection) == Meta.headSum(of: connection)?.conflicts else {
      throw failure("_stemma_conflicts", connection)
    }
  }

  /// Throws `needsRebuild` if there are more or fewer records than were written.
  static func check(rows: Int64, _ connection: Connection) throws(TablesError) {
    guard rows == (try Meta.headSum(of: connection)?.rows) else {
      throw failure("the records", connection)
    }
  }

  private static func failure(_ table: String, _ connection: Connection) -> TablesError {
    .needsRebuild(
      path: connection.path, .damaged("\(table): rows are missing, or not those that were written"))
  }
}
