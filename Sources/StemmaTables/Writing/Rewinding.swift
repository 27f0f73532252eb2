import GRDBSQLite
import StemmaEvents
import StemmaLog
import StemmaMerge

/// Tables of the past, made from a copy of the present ones.
///
/// Each record with events that the filter leaves out is folded anew from its other events, and each stream of such an
/// event ends earlier. The tables show what `Tables.rebuild` makes with the same filter. The clock and the numbers of
/// the last commits stay those of the present: only writers use them, and no writer opens tables of the past.
package final class Rewinding {
  private let tableSet: TableSet
  private let connection: Connection
  private var writers: [Int: RowWriter] = [:]
  private var rows: Int64

  fileprivate init(_ tableSet: TableSet, _ connection: Connection) throws(TablesError) {
    self.tableSet = tableSet
    self.connection = connection
    rows = try Meta.headSum(of: connection)?.rows ?? 0
  }

  /// Replaces a record by what some of its events make of it, which are given in the order of their arrival.
  package func replace(_ record: RecordKey, by events: [Event]) throws(TablesError) {
    guard let model = tableSet.index(ofStoredName: record.model) else { return }
    let layout = tableSet.layouts[model]
    let writer = try writer(model)
    var state = RecordState()
    var held = HeldEvents()
    do {
      for event in events { try held.apply(event, to: &state, layout.rules) }
      try held.applyAll(to: &state, layout.rules, leavesOut: true)
    } catch {
      throw .merge(model: layout.model.name, record.key, error)
    }
    if try writer.deleteAll(record.key) { rows -= 1 }
    if state.isEmpty { return }
    try writer.writeAll(record.key, record.partition, state)
    if state.exists(layout.rules) { rows += 1 }
  }

  private func writer(_ model: Int) throws(TablesError) -> RowWriter {
    if let writer = writers[model] { return writer }
    let writer = try RowWriter(tableSet.layouts[model], connection, isEmpty: false)
    writers[model] = writer
    return writer
  }

  /// Lets a stream end earlier. `head` without an event: there is no stream.
  package func replace(_ partition: Partition, _ origin: Origin, by head: StreamHead) throws(TablesError) {
    if head.sequence > .zero {
      return try HeadRow(partition, origin, head).write(by: connection.prepareOnce(HeadRow.upsertStream))
    }
    let statement = try connection.prepareOnce(
      "DELETE FROM _stemma_meta WHERE name = 'stream' AND partition = ? AND origin = ?")
    statement.bind(1, text: partition.bytes)
    statement.bind(2, origin.description)
    try statement.run()
  }

  fileprivate func finish(_ token: LogToken, _ filter: RebuildFilter) throws(TablesError) {
    var sum = try HeadSum.ofRows(connection)
    sum.rows = rows
    try Meta.write(token, sum, to: connection)
    if let name = filter.name { try Meta.write("as_of", .string(name), to: connection) }
  }
}

extension TablesReader {
  /// Copies these tables to a new file, in which `body` replaces the records and streams with events that the filter
  /// leaves out. Time: O(size of the tables + what `body` replaces). Memory: SQLite's page cache and one record.
  package func rewind(
    into path: String, to filter: RebuildFilter, _ body: (Rewinding) throws -> Void
  ) throws {
    let file = try Connection.open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, wait: 0)
    defer { sqlite3_close_v2(file.handle) }
    let copy = Connection(handle: file.handle, path: path, kept: KeptStatements())
    // No other process sees the file, and a crash leaves nothing that is used.
    try copy.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    try connection.copyAll(to: copy)
    // The copy has the mode of the original.
    try copy.execute("PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE")
    let rewinding = try Rewinding(tableSet, copy)
    try body(rewinding)
    try rewinding.finish(try token(), filter)
    try copy.execute("COMMIT; PRAGMA journal_mode = WAL")
  }
}
