import GRDBSQLite
import StemmaEvents
import StemmaLog
import StemmaMerge

/// Tables of the past, derived from a copy of the present ones.
///
/// Each record with events that the filter rejects is folded again from its other events. Each
/// stream of such an event ends earlier. The tables equal those of `Tables.rebuild` with this
/// filter. Clock and commit numbers are the present ones: only writers use them, but open no such
/// tables.
package final class Rewinding {
  private let tableSet: TableSet
  private let connection: Connection
  private var writers: [Int: RowWriter] = [:]
  private var rows: Int64

  fileprivate init(_ tableSet: TableSet, _ connection: Connection) throws(TablesError) {
    self.tableSet = tableSet
    self.connection = connection
    rows = try Meta.headChecksum(of: connection)?.rows ?? 0
  }

  /// Replaces a record by the result of some of its events, which are in position order.
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

  /// Ends a stream earlier. A `head` without an event removes the stream.
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
    var sum = try HeadChecksum.ofRows(connection)
    sum.rows = rows
    try Meta.write(AppliedPosition(token), sum, to: connection)
    if let name = filter.name { try Meta.write("as_of", .string(name), to: connection) }
  }
}

extension TablesReader {
  /// Copies these tables to a new file, in which `body` replaces the records and streams with
  /// rejected events. Time: O(size of the tables + replacements). Memory: page cache and one
  /// record.
  package func rewind(
    into path: String, to filter: RebuildFilter, _ body: (Rewinding) throws -> Void
  ) throws {
    let file = try Connection.open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, wait: 0)
    defer { sqlite3_close_v2(file.handle) }
    let copy = Connection(handle: file.handle, path: path, kept: KeptStatements())
    // No other process opens the file, and a crash leaves no file that is used.
    try copy.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
    try connection.copyAll(to: copy)
    // The copy inherits the mode of the original.
    try copy.execute("PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE")
    let rewinding = try Rewinding(tableSet, copy)
    try body(rewinding)
    try rewinding.finish(try token(), filter)
    try copy.execute("COMMIT; PRAGMA journal_mode = WAL")
  }
}
