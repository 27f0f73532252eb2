import Foundation
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema

/// One transaction of a writer: applies events to records.
///
/// Records are read once and kept in memory; changes are collected there and written, in key order, when the
/// transaction ends, or before rows are queried with SQL (`reader`). So a record
/// that a commit changes ten times is written once, and checking that a new key is free costs one look-up
/// for the check and the event together.
///
/// Must not be used after the block of `Tables.write` that it was given to. The next block may get it again: as long as nobody
/// else has written, where streams stand need not be read twice.
package final class TablesTransaction {
  let connection: Connection
  package let tableSet: TableSet
  private let writers: [RowWriter]

  var records: [Record] = []
  private(set) var recordIndex: [RecordName: Int] = [:]
  /// For each model, the places in `records` of those that were changed and not written.
  private(set) var dirty: [[Int]]
  var streams = StreamCache()
  /// For each model, whether it has tombstones at all; nil: not asked yet. Most models have none, and
  /// then a new key needs no look-up there.
  private(set) var hasTombstones: [Bool?]
  var token: LogToken?
  /// What SQLite has of both, if it was read or written.
  private var position: (token: LogToken, sum: HeadSum)?
  /// What written records, tombstones and conflicts add to the sum of what stands in the file; zero whenever SQLite begins a
  /// savepoint.
  private var listed = HeadSum.zero
  private var digester = EventDigester()
  /// Of the savepoint that was begun, if it is none of SQLite yet.
  var undo: Undo?
  var savepointNumber = 0
  var savepointDepth = 0

  /// How many records are kept; beyond it, all are written and forgotten.
  private static let recordLimit = 16_384
  /// Above how many streams or records nothing is kept for the next transaction.
  private static let keptLimit = 1024
  /// How many records are kept for the next transaction, and how many bytes of them, as SQLite has them.
  private static let (keptRecords, keptBytes) = (256, 1 << 18)

  struct RecordName: Hashable {
    let model: Int
    let key: Key
  }

  struct Record {
    /// What the tables hold of it.
    enum Stored {
      case nothing
      case row
      case tombstone
    }

    let name: RecordName
    var state: RecordState
    var stored: Stored
    var isConflictStored: Bool
    var isDirty = false
    /// The number of the last savepoint since which it was changed.
    var changedSince = 0
    /// That of the events that were applied to it; nil: none was.
    var partition: Partition?
    /// Bytes of it that SQLite was given last; 0: none.
    var size = 0
  }

  /// Records that were written, and the sum of their sizes.
  private var written = (count: 0, bytes: 0)

  init(connection: Connection, tableSet: TableSet, writers: [RowWriter]) {
    self.connection = connection
    self.tableSet = tableSet
    self.writers = writers
    hasTombstones = Array(repeating: nil, count: writers.count)
    dirty = Array(repeating: [], count: writers.count)
  }

  // MARK: Reading

  /// The state of a record, also of one that is deleted; nil if nothing is known of it.
  package func state(of key: Key, in model: Model) throws(TablesError) -> RecordState? {
    guard let index = tableSet.index(ofStoredName: model.storedName) else { throw .unknownModel(model.name) }
    let record = try load(RecordName(model: index, key: key), nil)
    let state = records[record].state
    return state.isEmpty ? nil : state
  }

  /// How far a stream was applied; earlier events of this transaction included.
  package func head(_ partition: Partition, _ origin: Origin) throws(TablesError) -> StreamHead {
    try streams.head(partition, origin, connection)
  }

  /// The highest commit number that an origin's applied events carry; 0 if there are none.
  package func highestCommit(of origin: Origin) throws(TablesError) -> UInt64 {
    try streams.highestCommit(of: origin, connection)
  }

  /// How many events an origin has written, to all partitions together, earlier events of this transaction
  /// included. O(partitions that it wrote to).
  package func eventCount(of origin: Origin) throws(TablesError) -> UInt64 {
    let statement = try prepare("SELECT total(sequence) FROM _stemma_streams WHERE origin = ?")
    statement.bind(1, origin.description)
    guard try statement.step() else { return 0 }
    defer { statement.reset() }
    return UInt64(clamping: statement.int(0))
  }

  /// Rows as the events applied so far make them.
  package func reader() throws(TablesError) -> TablesReader {
    try flush()
    return TablesReader(connection: connection, tableSet: tableSet)
  }

  /// The keys of the records whose reference leads to this key, in key order.
  package func children(of key: Key, through inverse: InverseReference) throws(TablesError) -> [Key] {
    // Only the children's table is read.
    if let model = tableSet.index(ofStoredName: inverse.child.storedName), !dirty[model].isEmpty {
      try writeSavepoint()
      try writeRecords(of: model)
    }
    return try TablesReader(connection: connection, tableSet: tableSet).children(of: key, through: inverse)
  }

  // MARK: Changing

  /// Applies the next event of its stream. False, and nothing changes, if it was applied before. An event of a
  /// model that the schema does not know moves its stream only.
  ///
  /// - Parameter digest: the event's, if the caller has it already.
  /// - Throws: `gap` if an earlier event of the stream is missing, `merge`, `unfitKey` or `foreignPartition` if the
  ///   event cannot be applied. The record and its stream are as before.
  @discardableResult
  package func apply(_ event: Event, digest: StreamHash? = nil) throws(TablesError) -> Bool {
    let stream = try streams.index(event.partition, event.dot.origin, connection)
    let held = streams.heads[stream].head.sequence
    guard event.dot.sequence > held else { return false }
    guard event.dot.sequence == held.next else { throw .gap(event.partition, event.dot, held: held) }
    if let model = tableSet.index(ofStoredName: event.model) {
      let record = try load(RecordName(model: model, key: event.key), event.partition)
      remember(record)
      do { _ = try records[record].state.apply(event, writers[model].layout.rules) } catch {
        throw .merge(model: event.model, event.key, error)
      }
      if !records[record].isDirty { noteDirty(record) }
    }
    try streams.advance(stream, by: event, digest ?? digester.digest(of: event).hash, connection)
    return true
  }

  /// Writes what was applied so far, and the clock, to SQLite, which shows nothing of it before the transaction ends. The
  /// pages of the records go into its file as well; so ending the transaction writes little more than the position.
  package func writeAhead(clock: Timestamp) throws(TablesError) {
    try writeSavepoint()
    try writeRecords()
    // Not later: a page that is changed once more would be written twice.
    try connection.writePages()
    try keep(clock: clock)
    try writeAll()
  }

  /// Says that everything in the log before the token's position has been applied.
  package func advance(to token: LogToken) { self.token = token }

  /// Keeps the highest reading of the node's clock for those who write next. It is kept apart from the events,
  /// because an imported event carries a time that the clock never had.
  package func keep(clock: Timestamp) throws(TablesError) {
    try writeSavepoint()
    try Meta.write(clock: clock, to: connection)
  }

  /// The reading that was kept last; zero if none was.
  package func clock() throws(TablesError) -> Timestamp { try Meta.clock(of: connection) }

  /// Notes what a peer has confirmed to hold; of the partitions for which `isKnown` holds it holds nothing else.
  package func confirm(
    _ held: [Acknowledgement], by peer: String, in isKnown: (Partition) -> Bool
  ) throws(TablesError) {
    let reader = TablesReader(connection: connection, tableSet: tableSet)
    let before = Set(try reader.acknowledgements().filter { $0.peer == peer })
    let gone = before.subtracting(held).filter { isKnown($0.partition) }
    let new = Set(held).subtracting(before)
    if gone.isEmpty, new.isEmpty { return }
    try writeSavepoint()
    // A number that changes is written over.
    for row in gone { try row.remove(from: connection) }
    for row in new { try row.write(to: connection) }
  }

  /// A prepared statement, without parameters, that reads what was applied so far. It must be stepped to its end,
  /// or reset, before the next change.
  ///
  /// - Throws: `notAQuery` for one that would change something.
  package func prepare(_ sql: String) throws(TablesError) -> Statement {
    try flush()
    return try connection.queryOnce(sql)
  }

  // MARK: Memory

  private func load(_ name: RecordName, _ partition: Partition?) throws(TablesError) -> Int {
    if let index = recordIndex[name] {
      guard let partition else { return index }
      if let known = records[index].partition, known != partition {
        try check(partition, name)
      } else {
        records[index].partition = partition
      }
      return index
    }
    if records.count >= Self.recordLimit {
      try flush()
      forgetRecords()
    }
    let writer = writers[name.model]
    var state = try writer.row(name.key)
    if let partition { try check(partition, name) }
    var stored = state == nil ? Record.Stored.nothing : .row
    if state == nil, try mayHaveTombstones(name.model) {
      state = try writer.tombstone(name.key)
      if state != nil { stored = .tombstone }
    }
    let index = records.count
    records.append(
      Record(
        name: name, state: state ?? RecordState(), stored: stored,
        isConflictStored: state.map { $0.isInConflict(writer.layout.rules) } ?? false, partition: partition))
    recordIndex[name] = index
    return index
  }

  private func check(_ partition: Partition, _ name: RecordName) throws(TablesError) {
    let layout = writers[name.model].layout
    guard layout.holds(name.key, in: partition) else {
      throw .foreignPartition(partition, model: layout.model.name, name.key)
    }
  }

  private func mayHaveTombstones(_ model: Int) throws(TablesError) -> Bool {
    if let known = hasTombstones[model] { return known }
    let statement = try connection.prepareOnce("SELECT 1 FROM _stemma_tombstones WHERE model = ? LIMIT 1")
    statement.bind(1, writers[model].layout.model.storedName)
    defer { statement.reset() }
    let has = try statement.step()
    hasTombstones[model] = has
    return has
  }

  /// Writes everything that was collected.
  func flush() throws(TablesError) {
    try writeSavepoint()
    try writeAll()
  }

  /// As above, with a savepoint that was begun left where it is.
  func writeAll() throws(TablesError) {
    try writeRecords()
    let change = try streams.flush(connection) + listed
    listed = .zero
    guard token != nil || change != .zero else { return }
    position = try Meta.move(position, to: token, headsBy: change, connection)
    token = nil
  }

  private func writeRecords() throws(TablesError) {
    for model in dirty.indices { try writeRecords(of: model) }
  }

  private func writeRecords(of model: Int) throws(TablesError) {
    guard !dirty[model].isEmpty else { return }
    sortDirty(model)
    // Some may have been taken back.
    for index in dirty[model] where records[index].isDirty { try write(index) }
    dirty[model].removeAll(keepingCapacity: true)
  }

  func noteDirty(_ record: Int) {
    records[record].isDirty = true
    dirty[records[record].name.model].append(record)
  }

  /// By key: rows that are written in the order of the table cost a fraction of others.
  private func sortDirty(_ model: Int) {
    records.withUnsafeBufferPointer { records in
      dirty[model].sort { a, b in
        records[a].name.key.bytes.withUnsafeBytes { a in
          records[b].name.key.bytes.withUnsafeBytes { b in
            guard let startA = a.baseAddress, let startB = b.baseAddress else { return a.count < b.count }
            let order = memcmp(startA, startB, min(a.count, b.count))
            return order == 0 ? a.count < b.count : order < 0
          }
        }
      }
    }
  }

  private func write(_ index: Int) throws(TablesError) {
    let writer = writers[records[index].name.model]
    let rules = writer.layout.rules
    let key = records[index].name.key
    let stored = records[index].stored
    let size: Int
    if records[index].state.exists(rules) {
      size = try writer.write(key, records[index].state)
      if stored == .tombstone {
        try writer.deleteTombstone(key)
        listed -= .tombstone
      }
      if stored != .row { listed += .row }
      records[index].stored = .row
    } else {
      size = try writer.writeTombstone(key, try writer.layout.partition(of: key), records[index].state)
      if stored == .row {
        try writer.deleteRow(key)
        listed -= .row
      }
      if stored != .tombstone { listed += .tombstone }
      records[index].stored = .tombstone
      hasTombstones[records[index].name.model] = true
    }
    let isInConflict = records[index].state.isInConflict(rules)
    if isInConflict != records[index].isConflictStored {
      if isInConflict {
        try writer.writeConflict(key, try writer.layout.partition(of: key))
        listed += .conflict
      } else {
        try writer.deleteConflict(key)
        listed -= .conflict
      }
      records[index].isConflictStored = isInConflict
    }
    records[index].isDirty = false
    written.bytes += size - records[index].size
    if records[index].size == 0 { written.count += 1 }
    records[index].size = size
  }

  /// Drops what is kept in memory, changes included: SQLite holds the truth again.
  func forget() {
    forgetRecords()
    for model in dirty.indices { dirty[model].removeAll(keepingCapacity: true) }
    streams = StreamCache()
    position = nil
    listed = .zero
    hasTombstones = Array(repeating: nil, count: writers.count)
  }

  /// When all is committed. A record that was just written is often the next to be changed, so a few small ones are kept;
  /// not such as were only read: nothing says how large they are, and to what partition their key belongs.
  ///
  /// - Returns: whether all is little enough to be kept.
  func end() -> Bool {
    guard max(records.count, streams.heads.count) <= Self.keptLimit else { return false }
    if written.count < records.count || records.count > Self.keptRecords || written.bytes > Self.keptBytes {
      forgetRecords()
    }
    return true
  }

  private func forgetRecords() {
    records.removeAll(keepingCapacity: true)
    recordIndex.removeAll(keepingCapacity: true)
    written = (0, 0)
  }
}

extension RecordState {
  /// Whether `_stemma_conflicts` lists the record.
  func isInConflict(_ rules: MergeRules) -> Bool { !conflicts(rules).isEmpty }
}
