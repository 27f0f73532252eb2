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
  /// files, and removed afterwards. If few records have changed since, they are made from a copy of the present
  /// tables, in time in proportion to the size of these and to the changes. Otherwise they are made from the log: of
  /// one model's partitions if it is named.
  ///
  /// - Parameter rebuilds: in any case from the log.
  /// - Throws: `.missing` if the log is damaged, when `body` has run, on tables without the records that may have lost
  ///   events.
  package func withTables<Result>(
    asOf moment: Moment, of model: Model? = nil, rebuilds: Bool = false, _ body: (Node) throws -> Result
  ) throws -> Result {
    if moment == .now { return try body(self) }
    let folder = try TemporaryFolder()
    defer { withExtendedLifetime(folder) {} }
    let path = Self.tablesPath(in: folder.path)
    if !rebuilds, try rewindTables(to: moment, at: path) { return try body(try withTables(at: path)) }
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
      return try body(try withTables(at: path))
    }
  }

  /// This node with other tables.
  private func withTables(at path: String) throws -> Node {
    Node(
      directory: directory, mark: mark, schema: schema, options: options, log: log,
      tables: try Tables.openForReading(at: path, schema: schema))
  }

  /// Makes tables of the past from a copy of the present ones. False, and there is no file, where too many records have
  /// changed since, where the present tables do not show the whole log, and where damage may have taken events.
  func rewindTables(to moment: Moment, at path: String) throws(NodeError) -> Bool {
    guard mark.damage == nil, !areTablesPartial else { return false }
    let touched = try recordsTouched(between: moment, and: .now, of: nil)
    guard let records = touched.records, touched.missing == nil else { return false }
    var isMade = false
    do throws(NodeError) {
      isMade = try rewindTables(to: moment, records, at: path)
    } catch .tables(.needsRebuild) {
      // The log has it all.
    }
    if !isMade {
      do { try Tables.remove(at: path) } catch { throw .tables(error) }
    }
    return isMade
  }

  private func rewindTables(
    to moment: Moment, _ records: [RecordKey], at path: String
  ) throws(NodeError) -> Bool {
    let omissions = Omissions()
    return try reading { reader in
      guard try reader.token() == log.token else { return false }
      try reader.rewind(into: path, to: moment.filter) { rewinding in
        var streams = ShortenedStreams()
        try forEach(records, around: omissions) { record, events in
          var included: [Event] = []
          for stored in events {
            if moment.includes(stored) { included.append(stored.event) } else { streams.remove(stored.event) }
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

/// The events that streams lose where they end earlier.
private struct ShortenedStreams {
  struct Stream: Hashable {
    let partition: Partition
    let origin: Origin
  }

  struct Removed {
    var hash = StreamHash.zero
    var sequences: Set<Sequence> = []

    /// The head that is left: at the last event that is not among them.
    func taken(from head: StreamHead) -> StreamHead {
      var left = StreamHead(sequence: head.sequence, hash: head.hash - hash)
      while sequences.contains(left.sequence) { left.sequence = Sequence(left.sequence.rawValue - 1) }
      return left
    }
  }

  private var streams: [Stream: Removed] = [:]
  private var digester = EventDigester()

  mutating func remove(_ event: Event) {
    let digest = digester.digest(of: event).hash
    let stream = Stream(partition: event.partition, origin: event.dot.origin)
    streams[stream, default: Removed()].hash += digest
    streams[stream, default: Removed()].sequences.insert(event.dot.sequence)
  }

  func forEach(_ body: (Stream, Removed) throws -> Void) rethrows {
    for (stream, removed) in streams { try body(stream, removed) }
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
