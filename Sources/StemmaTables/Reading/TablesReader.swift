import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema

/// Reads one committed state of the tables, or the uncommitted state of a transaction.
///
/// Its cursors stream rows and hold one in memory. The reader and its cursors are valid only in the
/// block of `Tables.read` or `Tables.write` that received the reader.
package struct TablesReader {
  let connection: Connection
  package let tableSet: TableSet

  // MARK: The log's side

  /// The log position up to which events are applied.
  package func token() throws(TablesError) -> LogToken { try applied().token }

  package func applied() throws(TablesError) -> AppliedPosition {
    guard let applied = try Meta.applied(of: connection) else {
      throw .needsRebuild(path: connection.path, .corrupt("no position in the log"))
    }
    return applied
  }

  /// The heads of all streams that were applied.
  package func versionVector() throws(TablesError) -> VersionVector {
    try HeadChecksum.check(connection)
    let statement = try connection.prepare(
      "SELECT partition, origin, sequence, hash, crc FROM _stemma_streams")
    var versionVector = VersionVector()
    while try statement.step() {
      let (partition, origin) = (partition(statement, 0), try origin(statement, 1))
      versionVector[partition, origin] = try StreamCache.head(of: partition, origin, statement, 2)
    }
    return versionVector
  }

  /// How many events were applied. O(streams).
  package func eventCount() throws(TablesError) -> UInt64 {
    UInt64(clamping: try connection.integer("SELECT sum(sequence) FROM _stemma_streams") ?? 0)
  }

  package func head(_ partition: Partition, _ origin: Origin) throws(TablesError) -> StreamHead {
    var cache = StreamCache()
    return try cache.head(partition, origin, connection)
  }

  package func highestCommit(of origin: Origin) throws(TablesError) -> UInt64 {
    var cache = StreamCache()
    return try cache.highestCommit(of: origin, connection)
  }

  /// The highest reading of the node's clock that a writer has stored; zero if none did.
  package func clock() throws(TablesError) -> Timestamp { try Meta.clock(of: connection) }

  /// The past state that the tables show, if they do: `time …` or `position …`.
  package func asOf() throws(TablesError) -> String? { try Meta.text("as_of", of: connection) }

  /// Omits corrupt rows: their events count as not confirmed.
  package func acknowledgements() throws(TablesError) -> [Acknowledgement] {
    let statement = try connection.prepare(
      "SELECT peer, partition, origin, sequence, crc FROM _stemma_acknowledged ORDER BY peer, partition, origin"
    )
    var found: [Acknowledgement] = []
    while try statement.step() {
      let row = Acknowledgement(
        peer: statement.text(0), partition: partition(statement, 1), origin: try origin(statement, 2),
        sequence: SequenceNumber(UInt64(clamping: statement.int(3))))
      if statement.text(4) == row.crc { found.append(row) }
    }
    return found
  }

  func partition(_ statement: Statement, _ column: Int32) -> Partition {
    Partition(statement.text(column))
  }

  private func origin(_ statement: Statement, _ column: Int32) throws(TablesError) -> Origin {
    let text = statement.text(column)
    guard text.utf8.count == 16, let number = UInt64(text, radix: 16) else {
      throw .needsRebuild(path: connection.path, .corrupt("origin \(text)"))
    }
    return Origin(number)
  }
}

/// The events of a stream that a peer has confirmed to hold.
package struct Acknowledgement: Hashable, Sendable {
  package var peer: String
  package var partition: Partition
  package var origin: Origin
  package var sequence: SequenceNumber

  package init(peer: String, partition: Partition, origin: Origin, sequence: SequenceNumber) {
    self.peer = peer
    self.partition = partition
    self.origin = origin
    self.sequence = sequence
  }

  func remove(from connection: Connection) throws(TablesError) {
    let statement = try connection.prepare(
      "DELETE FROM _stemma_acknowledged WHERE peer = ? AND partition = ? AND origin = ?")
    bindKey(to: statement)
    try statement.run()
  }

  func write(to connection: Connection) throws(TablesError) {
    let statement = try connection.prepare(
      """
      INSERT OR REPLACE INTO _stemma_acknowledged (peer, partition, origin, sequence, crc) VALUES (?, ?, ?, ?, ?)
      """)
    bindKey(to: statement)
    statement.bind(4, Int64(clamping: sequence.rawValue))
    statement.bind(5, crc)
    try statement.run()
  }

  private func bindKey(to statement: Statement) {
    statement.bind(1, peer)
    statement.bind(2, text: partition.bytes)
    statement.bind(3, origin.description)
  }

  fileprivate var crc: String {
    HeadRow.hexadecimal(
      CRC32C.of(Array("\(peer) ".utf8) + partition.bytes + Array(" \(origin) \(sequence.rawValue)".utf8)))
  }
}
