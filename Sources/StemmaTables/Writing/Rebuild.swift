import CStemma
import Foundation
import GRDB
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema

/// Selects the events that tables are built from.
package enum RebuildFilter: Sendable, Equatable {
  case all
  /// Events with a timestamp up to this one: comparable across nodes.
  case time(Timestamp)
  /// Events that this node held when the event at this position was its newest.
  case position(Position)

  func includes(_ stored: StoredEvent) -> Bool {
    switch self {
    case .all: true
    case .time(let latest): stored.event.timestamp <= latest
    case .position(let last): stored.position <= last
    }
  }

  /// The value of `as_of` in `_stemma_meta` for a file of a past state.
  var name: String? {
    switch self {
    case .all: nil
    case .time(let latest): "time \(latest.milliseconds).\(latest.counter)"
    case .position(let last): "position \(last)"
    }
  }
}

/// The progress of a rebuild, or its result.
package struct RebuildProgress: Sendable, Equatable {
  package enum Step: String, Sendable { case rows, indexes, sync, done }

  package var step = Step.rows
  /// Events read, including those that the filter rejects.
  package var events: UInt64 = 0
  /// Events in the tables: those that the filter accepts.
  package var folded: UInt64 = 0
  package var rows: UInt64 = 0
  package var tombstones: UInt64 = 0
}

/// Fills new tables from events that are ordered by key.
struct TablesBuilder {
  private let tableSet: TableSet
  private let connection: Connection
  private let filter: RebuildFilter
  private let writers: [RowWriter]
  private var streams: StreamSummary
  private(set) var progress = RebuildProgress()

  private var model: Int?
  private var key = Key(trusted: [])
  private var partition = Partition("")
  private var state = RecordState()
  private var held = HeldEvents()

  init(
    _ tableSet: TableSet, _ connection: Connection, _ filter: RebuildFilter, _ streams: StreamSummary
  ) throws(TablesError) {
    self.tableSet = tableSet
    self.connection = connection
    self.filter = filter
    try tableSet.create(in: connection)
    var writers: [RowWriter] = []
    for layout in tableSet.layouts { writers.append(try RowWriter(layout, connection, isEmpty: true)) }
    self.writers = writers
    self.streams = streams
  }

  mutating func insert(
    _ next: () throws -> StoredEvent?, _ report: (RebuildProgress) throws -> Void
  ) throws {
    while let stored = try next() {
      progress.events += 1
      if progress.events & 8191 == 0 { try report(progress) }
      guard filter.includes(stored) else { continue }
      progress.folded += 1
      let event = stored.event
      streams.note(event)
      if model == nil || event.key != key || event.partition != partition
        || writers[model ?? 0].layout.model.storedName != event.model
      {
        try finishRecord()
        model = tableSet.index(ofStoredName: event.model)
        key = event.key
        partition = event.partition
      }
      if let model { try apply(event, writers[model].layout) }
    }
    try finishRecord()
  }

  private mutating func apply(_ event: Event, _ layout: TableLayout) throws(TablesError) {
    do { try held.apply(event, to: &state, layout.rules) } catch {
      throw .merge(model: layout.model.name, event.key, error)
    }
  }

  /// Writes the record after all its events were read.
  private mutating func finishRecord() throws(TablesError) {
    guard let model else { return }
    let writer = writers[model]
    // A past state may lack a cause whose clock was ahead of its effect's. The node could not show
    // the effect then.
    do { try held.applyAll(to: &state, writer.layout.rules, leavesOut: filter != .all) } catch {
      throw .merge(model: writer.layout.model.name, key, error)
    }
    self.model = nil
    guard !state.isEmpty else { return }
    // The key's parts are checked when it is bound, or together with its partition.
    guard writer.layout.holds(key, in: partition) else {
      _ = try writer.layout.partition(of: key)
      throw .foreignPartition(partition, model: writer.layout.model.name, key)
    }
    try writer.writeAll(key, partition, state)
    if state.exists(writer.layout.rules) { progress.rows += 1 } else { progress.tombstones += 1 }
    state = RecordState()
    assert(holds(checkInvariants))
  }

  /// Traps if state of a finished record remains. Debug builds call it after each record.
  func checkInvariants() {
    precondition(model == nil && state.isEmpty && held.isEmpty, "a record is written when it is over")
    precondition(writers.count == tableSet.layouts.count, "each model is written")
    precondition(progress.folded <= progress.events, "what is left out is read, too")
    precondition(progress.rows + progress.tombstones <= progress.folded, "a record has an event")
    for writer in writers { writer.checkInvariants() }
  }

  /// Reads and folds on another thread, and inserts on this one.
  mutating func insert(
    from files: RecordFiles, _ report: (RebuildProgress) throws -> Void
  ) throws {
    var statements: [BatchStatement] = []
    for layout in tableSet.layouts { statements.append(try BatchStatement(inserting: layout, connection)) }
    statements.append(try BatchStatement(RowWriter.upsertTombstone, connection))
    statements.append(try BatchStatement(RowWriter.insertConflict, connection))
    let handoff = Handoff<MadeRows>(ahead: 12)
    DispatchQueue(label: "stemma.rebuild").async { [tableSet, noted = streams] in
      Self.makeRows(from: files, tableSet, noted, for: handoff)
    }
    do {
      while true {
        switch handoff.take() {
        case .batch(var batch):
          try batch.run(statements)
          progress = batch.progress
          try report(progress)
        case .end(var batch, let noted):
          try batch.run(statements)
          progress = batch.progress
          streams = noted
          return
        case .failure(let error): throw error
        }
      }
    } catch {
      handoff.cancel()
      throw error
    }
  }

  private enum MadeRows: Sendable {
    case batch(RowBatch)
    case end(RowBatch, StreamSummary)
    case failure(any Error)
  }

  private static func makeRows(
    from files: RecordFiles, _ tableSet: TableSet, _ streams: StreamSummary, for handoff: Handoff<MadeRows>
  ) {
    do {
      guard let end = try makeAllRows(from: files, tableSet, streams, for: handoff) else { return }
      _ = handoff.put(end)
    } catch {
      _ = handoff.put(.failure(error))
    }
  }

  /// The last batch and streams; nil if the receiver has cancelled. All files are closed by then.
  private static func makeAllRows(
    from files: RecordFiles, _ tableSet: TableSet, _ streams: StreamSummary, for handoff: Handoff<MadeRows>
  ) throws -> MadeRows? {
    let merge = try files.open()
    var maker = RowMaker(tableSet, streams)
    while try merge.nextRecord() {
      try maker.addRecord(merge)
      if maker.batch.isFull, !handoff.put(.batch(maker.takeBatch())) { return nil }
    }
    return .end(maker.takeBatch(), maker.streams)
  }

  mutating func finish(
    _ token: LogToken, _ acknowledged: [Acknowledgement], _ report: (RebuildProgress) throws -> Void
  ) throws {
    progress.step = .indexes
    try report(progress)
    // As above, for the memory of the merge.
    stemma_return_free_memory()
    for statement in tableSet.createIndexes { try connection.execute(statement) }
    try streams.write(to: connection)
    for acknowledgement in acknowledged { try acknowledgement.write(to: connection) }
    try Meta.write(tableSet, to: connection)
    var sum = try HeadChecksum.ofRows(connection)
    sum.rows = Int64(clamping: progress.rows)
    try Meta.write(AppliedPosition(token), sum, to: connection)
    if let name = filter.name { try Meta.write("as_of", .string(name), to: connection) }
  }
}
