import Foundation
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema
import StemmaTables

extension Node {
  /// One record as it was; nil if it did not exist. Reads the blocks in which the record may stand.
  ///
  /// - Throws: `.missing` if damage may have taken events of it.
  package func row(_ model: Model, _ key: Key, asOf moment: Moment) throws(NodeError) -> JSON? {
    let life = try life(of: key, in: model, asOf: moment)
    let state = try life.state()
    guard state.exists(life.rules) else { return nil }
    let members: [(name: String, value: JSON)] = [
      ("model", .string(model.name)), ("key", schema.json(of: key, model: model)),
      (
        "fields",
        .object(life.fields.map { ($0.name, state.value(of: $0.storedName, life.rules).json) })
      ),
      ("revision", .string(state.revision)),
    ]
    let fields = state.fieldsInConflict(life.rules).map { description.fieldName($0, model) }
    return .object(members + Self.conflictMember(fields, model))
  }

  /// Lets `body` read this node as it was: tables of then are made for it beside the system's other temporary
  /// files, of one model's partitions if it is named, and removed afterwards.
  ///
  /// - Throws: `.missing` if the log is damaged, when `body` has run, on tables without the records that may have lost
  ///   events.
  package func withTables<Result>(
    asOf moment: Moment, of model: Model? = nil, _ body: (Node) throws -> Result
  ) throws -> Result {
    if moment == .now { return try body(self) }
    let folder = try TemporaryFolder()
    defer { withExtendedLifetime(folder) {} }
    let path = Self.tablesPath(in: folder.path)
    var filter = LogFilter()
    filter.model = model
    return try readingAround(partitions: filter.partitions) { omissions in
      var reader = WholeRecords(
        try log.eventsByKey(to: moment.end, partitions: filter.partitions, around: omissions),
        Doubt(self, omissions))
      let total = try log.files().reduce(0) { $0 + $1.events }
      try Tables.rebuild(
        at: path, schema: schema, knowledge: nil, token: log.token, filter: moment.filter,
        progress: { options.progress($0.events, total) }, next: { try reader.next() })
      let tables = try Tables.openForReading(at: path, schema: schema)
      return try body(
        Node(directory: directory, mark: mark, schema: schema, options: options, log: log, tables: tables))
    }
  }
}

/// Events in key order, without those of records that may have lost some. Memory: the events of one record.
private struct WholeRecords {
  private var reader: EventReader
  private var doubt: Doubt
  /// The events of one record, and how many of them were given.
  private var record: [StoredEvent] = []
  private var given = 0
  /// The first event of the record after it.
  private var following: StoredEvent?

  init(_ reader: EventReader, _ doubt: Doubt) {
    self.reader = reader
    self.doubt = doubt
  }

  mutating func next() throws -> StoredEvent? {
    while given == record.count {
      guard let first = try following ?? reader.next() else { return nil }
      try gather(first)
      // What hides events of a record has been met when the last of those that can be read is.
      if try doubt.concerns(RecordKey(first.event)) { record.removeAll(keepingCapacity: true) }
      assert(holds(checkInvariants))
    }
    given += 1
    return record[given - 1]
  }

  /// Traps if the events at hand are of two records. In debug builds at each record.
  func checkInvariants() {
    precondition(given <= record.count, "an event is given once")
    guard let first = record.first else { return }
    let key = RecordKey(first.event)
    precondition(record.allSatisfy { RecordKey($0.event) == key }, "they are of one record")
    precondition(following.map { RecordKey($0.event) != key } ?? true, "the next one is of another")
  }

  private mutating func gather(_ first: StoredEvent) throws {
    record.removeAll(keepingCapacity: true)
    record.append(first)
    given = 0
    following = nil
    let key = RecordKey(first.event)
    while let stored = try reader.next() {
      guard RecordKey(stored.event) == key else {
        following = stored
        return
      }
      record.append(stored)
    }
  }
}
