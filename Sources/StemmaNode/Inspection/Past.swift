import Foundation
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema
import StemmaTables

extension Node {
  /// One record at a point in time; nil if it did not exist. Reads the blocks that may contain the
  /// record.
  ///
  /// - Throws: `.missing` if its events may be lost.
  package func row(_ model: Model, _ key: Key, asOf pointInTime: PointInTime) throws(NodeError) -> JSON? {
    let life = try life(of: key, in: model, asOf: pointInTime)
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

  /// Runs `body` on this node with temporary tables of a point in time. If few records have changed
  /// since, these are a modified copy of the present tables, built in time proportional to their
  /// size and the changes. Otherwise they are built from the log, or from one model's partitions.
  ///
  /// - Parameter rebuilds: always build from the log.
  /// - Throws: `.missing` after `body` has run, if the log is corrupt. The tables then lack the
  ///   records that may have lost events.
  package func withTables<Result>(
    asOf pointInTime: PointInTime, of model: Model? = nil, rebuilds: Bool = false,
    _ body: (Node) throws -> Result
  ) throws -> Result {
    if pointInTime == .now { return try body(self) }
    let folder = try TemporaryFolder()
    defer { withExtendedLifetime(folder) {} }
    let path = Self.tablesPath(in: folder.path)
    if !rebuilds, try rewindTables(to: pointInTime, at: path) { return try body(try withTables(at: path)) }
    var filter = LogFilter()
    filter.model = model
    return try readingAround(partitions: filter.partitions) { omissions in
      var reader = WholeRecords(
        try log.eventsByKey(to: pointInTime.end, partitions: filter.partitions, around: omissions),
        Doubt(self, omissions))
      let total = try log.files().reduce(0) { $0 + $1.events }
      try Tables.rebuild(
        at: path, schema: schema, versionVector: nil, token: log.token, filter: pointInTime.filter,
        progress: { options.progress($0.events, total) }, next: { try reader.next() })
      return try body(try withTables(at: path))
    }
  }

  /// This node with other tables.
  private func withTables(at path: String) throws -> Node {
    Node(
      directory: directory, metadata: metadata, schema: schema, options: options, log: log,
      tables: try Tables.openForReading(at: path, schema: schema))
  }

  /// Builds tables of the past from a copy of the present ones. Returns false and leaves no file if
  /// too many records have changed, the tables are not up to date, or events may be lost.
  func rewindTables(to pointInTime: PointInTime, at path: String) throws(NodeError) -> Bool {
    guard metadata.corruption == nil, !areTablesPartial else { return false }
    let touched = try recordsTouched(between: pointInTime, and: .now, of: nil)
    guard let records = touched.records, touched.missing == nil else { return false }
    var isMade = false
    do throws(NodeError) {
      isMade = try rewindTables(to: pointInTime, records, at: path)
    } catch .tables(.needsRebuild) {
      // The tables can be built from the log instead.
    }
    if !isMade {
      do { try Tables.remove(at: path) } catch { throw .tables(error) }
    }
    return isMade
  }

  private func rewindTables(
    to pointInTime: PointInTime, _ records: [RecordKey], at path: String
  ) throws(NodeError) -> Bool {
    let omissions = Omissions()
    return try reading { reader in
      guard try reader.token() == log.token else { return false }
      try reader.rewind(into: path, to: pointInTime.filter) { rewinding in
        var streams = ShortenedStreams()
        try forEach(records, around: omissions) { record, events in
          var included: [Event] = []
          for stored in events {
            if pointInTime.includes(stored) {
              included.append(stored.event)
            } else {
              streams.remove(stored.event)
            }
          }
          try rewinding.replace(record, by: included)
        }
        try streams.forEach { stream, removed in
          let head = try reader.head(stream.partition, stream.origin)
          try rewinding.replace(stream.partition, stream.origin, by: removed.taken(from: head))
        }
      }
      return omissions.isEmpty
    }
  }
}

/// The events to remove from streams that end earlier.
private struct ShortenedStreams {
  struct Removed {
    var hash = StreamHash.zero
    var sequences: Set<SequenceNumber> = []

    /// The remaining head: the last event that is not removed.
    func taken(from head: StreamHead) -> StreamHead {
      var left = StreamHead(sequence: head.sequence, hash: head.hash - hash)
      while sequences.contains(left.sequence) { left.sequence = SequenceNumber(left.sequence.rawValue - 1) }
      return left
    }
  }

  private var streams: [StreamID: Removed] = [:]
  private var digester = EventDigester()

  mutating func remove(_ event: Event) {
    let digest = digester.digest(of: event).hash
    let stream = StreamID(event)
    streams[stream, default: Removed()].hash += digest
    streams[stream, default: Removed()].sequences.insert(event.id.sequence)
  }

  func forEach(_ body: (StreamID, Removed) throws -> Void) rethrows {
    for (stream, removed) in streams { try body(stream, removed) }
  }
}

/// Events in key order, without records that may have lost any. Memory: the events of one record.
private struct WholeRecords {
  private var reader: EventReader
  private var doubt: Doubt
  /// The events of one record, and the number already returned.
  private var record: [StoredEvent] = []
  private var given = 0
  /// The first event of the next record.
  private var following: StoredEvent?

  init(_ reader: EventReader, _ doubt: Doubt) {
    self.reader = reader
    self.doubt = doubt
  }

  mutating func next() throws -> StoredEvent? {
    while given == record.count {
      guard let first = try following ?? reader.next() else { return nil }
      try gather(first)
      // Corruption that hides events of a record is met before the record's last readable event.
      if try doubt.concerns(RecordKey(first.event)) { record.removeAll(keepingCapacity: true) }
      assert(holds(checkInvariants))
    }
    given += 1
    return record[given - 1]
  }

  /// Traps if the gathered events are of two records. Runs in debug builds at each record.
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
