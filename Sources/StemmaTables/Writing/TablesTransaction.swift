import Foundation
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema

/// One transaction of a writer: applies events to records.
///
/// Each record is read once and kept in memory. Changes are collected there and written, in key
/// order, when the transaction ends, or before SQL queries rows (`reader`). So a record that a
/// commit changes ten times is written once. Checking that a new key is free costs one look-up for
/// the check and the event together.
///
/// Must not be used after the block of `Tables.write` that received it. The next block may receive
/// it again: unless another process has written, the heads of streams need not be read again.
package final class TablesTransaction {
  let connection: Connection
  package let tableSet: TableSet
  private let writers: [RowWriter]

  var records: [Record] = []
  private(set) var recordIndex: [RecordName: Int] = [:]
  /// For each model, the indexes in `records` of changed, unwritten records.
  private(set) var dirty: [[Int]]
  var streams = StreamCache()
  /// For each model, whether it has any tombstones; nil if not yet queried. Most models have none,
  /// and a new key then needs no look-up there.
  private(set) var hasTombstones: [Bool?]
  var token: AppliedPosition?
  /// The stored position and sum, if they were read or written.
  private var position: (applied: AppliedPosition, sum: HeadChecksum)?
  /// The change of the stored sum through written records, tombstones and conflicts; zero whenever
  /// a SQLite savepoint begins.
  private var listed = HeadChecksum.zero
  private var digester = EventDigester()
  /// For the current savepoint, unless SQLite has created it.
  var undo: Undo?
  var savepointNumber = 0
  var savepointDepth = 0

  /// How many bytes the records may take, approximately. Beyond it, all are written and dropped.
  package var memoryLimit = TablesTransaction.ordinaryMemory
  package static let ordinaryMemory = 32 << 20
  private static let leastMemory = 4 << 20
  private var memory = 0
  /// The memory of a record besides its values, in bytes.
  private static let recordMemory = 768
  /// SQLite's count of changed rows before this transaction.
  private var changesBefore: Int64
  /// Whether the applied events are only in memory, for the next transaction to write.
  private(set) var isHeldBack = false
  /// With more streams or records than this, nothing is kept for the next transaction.
  private static let keptLimit = 1024
  /// The limits of records, in number and stored bytes, that are kept for the next transaction.
  private static let (keptRecords, keptBytes) = (256, 1 << 18)

  struct RecordName: Hashable {
    let model: Int
    let key: Key
  }

  struct Record {
    /// How the tables store it.
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
    /// The number of the last savepoint in which it changed.
    var changedSince = 0
    /// The partition of the events that were applied to it; nil if none was.
    var partition: Partition?
    /// The bytes that were last passed to SQLite; 0 if none.
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
    changesBefore = connection.changedRowsOfAll
  }

  /// Begins the next transaction with the state of this one.
  func resume() {
    changesBefore = connection.changedRowsOfAll
    isHeldBack = false
    memoryLimit = Self.ordinaryMemory
  }

  /// Keeps the changes in memory at the end. The next transaction writes them, unless another
  /// process writes to the file before. Until then the file shows the earlier records.
  ///
  /// - Returns: false if some changes are written already, or memory is exhausted. The transaction
  ///   then ends normally.
  package func holdBack() -> Bool {
    isHeldBack =
      undo == nil && savepointDepth == 0 && memory < memoryLimit
      && connection.changedRowsOfAll == changesBefore
    return isHeldBack
  }

  // MARK: Reading

  /// The state of a record, even a deleted one; nil if the tables have no event of it.
  package func state(of key: Key, in model: Model) throws(TablesError) -> RecordState? {
    guard let index = tableSet.index(ofStoredName: model.storedName) else { throw .unknownModel(model.name) }
    let record = try load(RecordName(model: index, key: key), nil)
    let state = records[record].state
    return state.isEmpty ? nil : state
  }

  /// The applied head of a stream, including earlier events of this transaction.
  package func head(_ partition: Partition, _ origin: Origin) throws(TablesError) -> StreamHead {
    try streams.head(partition, origin, connection)
  }

  /// The highest commit number of an origin's applied events; 0 if there are none.
  package func highestCommit(of origin: Origin) throws(TablesError) -> UInt64 {
    try streams.highestCommit(of: origin, connection)
  }

  /// How many events an origin has written, to all partitions together, including earlier events of
  /// this transaction. O(partitions that it wrote to).
  package func eventCount(of origin: Origin) throws(TablesError) -> UInt64 {
    let statement = try prepare("SELECT total(sequence) FROM _stemma_streams WHERE origin = ?")
    statement.bind(1, origin.description)
    guard try statement.step() else { return 0 }
    defer { statement.reset() }
    return UInt64(clamping: statement.int(0))
  }

  /// A reader that sees all events applied so far.
  package func reader() throws(TablesError) -> TablesReader {
    try flush()
    return TablesReader(connection: connection, tableSet: tableSet)
  }

  /// The keys of the records that refer to this key, in key order.
  package func children(of key: Key, through inverse: InverseReference) throws(TablesError) -> [Key] {
    // Only the children's table is read.
    if let model = tableSet.index(ofStoredName: inverse.child.storedName), !dirty[model].isEmpty {
      try writeSavepoint()
      try writeRecords(of: model)
    }
    return try TablesReader(connection: connection, tableSet: tableSet).children(of: key, through: inverse)
  }

  // MARK: Changing

  /// Applies the next event of its stream. Returns false, without a change, if it was applied
  /// before. An event of a model that the schema lacks only advances its stream.
  ///
  /// - Parameter digest: the event's, if the caller has it already.
  /// - Throws: `gap` if an earlier event of the stream is missing; `merge`, `unfitKey` or
  ///   `foreignPartition` if the event cannot be applied. Record and stream are then unchanged.
  @discardableResult
  package func apply(_ event: Event, digest: StreamHash? = nil) throws(TablesError) -> Bool {
    let stream = try streams.index(event.partition, event.id.origin, connection)
    let held = streams.heads[stream].head.sequence
    guard event.id.sequence > held else { return false }
    guard event.id.sequence == held.next else { throw .gap(event.partition, event.id, held: held) }
    if let model = tableSet.index(ofStoredName: event.model) {
      let record = try load(RecordName(model: model, key: event.key), event.partition)
      remember(record)
      do { _ = try records[record].state.apply(event, writers[model].layout.rules) } catch {
        throw .merge(model: event.model, event.key, error)
      }
      memory += event.rawSize
      if !records[record].isDirty { noteDirty(record) }
    }
    try streams.advance(stream, by: event, digest ?? digester.digest(of: event).hash, connection)
    return true
  }

  /// Writes the applied events and the clock to SQLite, invisible to readers until the commit. The
  /// changed pages go to the write-ahead log, so the commit writes little more than the position.
  package func writeAhead(clock: Timestamp) throws(TablesError) {
    try writeSavepoint()
    try writeRecords()
    // This comes first: a page that changes again would be written twice.
    try connection.writePages()
    try keep(clock: clock)
    try writeAll()
  }

  /// Records that all events before the token's position are applied, and how much of the log is
  /// durable when the transaction ends.
  package func advance(to token: LogToken, synced: LogToken) {
    self.token = AppliedPosition(token, synced: synced)
  }

  /// Records that all events before this position of a durable log are applied.
  package func advance(to token: LogToken) { advance(to: token, synced: token) }

  /// Stores the highest reading of the node's clock for later writers. It is separate from the
  /// events, because an imported event has a time that the clock never had.
  package func keep(clock: Timestamp) throws(TablesError) {
    try writeSavepoint()
    try Meta.write(clock: clock, to: connection)
  }

  /// The last stored reading; zero if there is none.
  package func clock() throws(TablesError) -> Timestamp { try Meta.clock(of: connection) }

  /// Records the events that a peer holds. It holds no others where `isKnown` returns true.
  package func confirm(
    _ held: [Acknowledgement], by peer: String, in isKnown: (Partition) -> Bool
  ) throws(TablesError) {
    let reader = TablesReader(connection: connection, tableSet: tableSet)
    let before = Set(try reader.acknowledgements().filter { $0.peer == peer })
    let gone = before.subtracting(held).filter { isKnown($0.partition) }
    let new = Set(held).subtracting(before)
    if gone.isEmpty, new.isEmpty { return }
    try writeSavepoint()
    // A changed number is overwritten.
    for row in gone { try row.remove(from: connection) }
    for row in new { try row.write(to: connection) }
  }

  /// A prepared statement, without parameters, that sees all events applied so far. Step it to its
  /// end, or reset it, before the next change.
  ///
  /// - Throws: `notAQuery` for a statement that writes.
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
    if memory >= max(memoryLimit, Self.leastMemory) {
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
    memory += Self.recordMemory + writer.readBytes
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

  /// Writes all collected changes.
  func flush() throws(TablesError) {
    try writeSavepoint()
    try writeAll()
  }

  /// As above, but does not write the current savepoint.
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
    // Undone changes are skipped.
    for index in dirty[model] where records[index].isDirty { try write(index) }
    dirty[model].removeAll(keepingCapacity: true)
  }

  func noteDirty(_ record: Int) {
    records[record].isDirty = true
    dirty[records[record].name.model].append(record)
  }

  /// By key: writing rows in table order costs a fraction of other orders.
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

  /// Drops the state in memory, changes included. SQLite's rows are authoritative again.
  func forget() {
    forgetRecords()
    for model in dirty.indices { dirty[model].removeAll(keepingCapacity: true) }
    streams = StreamCache()
    position = nil
    listed = .zero
    hasTombstones = Array(repeating: nil, count: writers.count)
  }

  /// Ends a committed transaction. A written record is often the next to change, so a few small
  /// ones are kept. Records that were only read are dropped: their size and partition are unknown.
  ///
  /// - Returns: whether the remaining state is small enough to keep.
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
    memory = 0
  }
}

extension RecordState {
  /// Whether `_stemma_conflicts` lists the record.
  func isInConflict(_ rules: MergeRules) -> Bool { !conflicts(rules).isEmpty }
}
