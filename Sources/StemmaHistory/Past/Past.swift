import Foundation
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaNode
import StemmaReplication
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

extension Node {
  /// Calls `body` with the states of each record at several points in time, ordered by partition,
  /// model and key. Skips records with the same events at all points in time. Reads the log once in
  /// key order. Memory: the events of one record.
  ///
  /// - Throws: `.missing` if corruption was met; records that may have lost events are left out.
  package func forEachRecord(
    asOf pointsInTime: [PointInTime], of model: Model? = nil,
    _ body: (Model, Key, MergeRules, [RecordState]) throws -> Void
  ) throws(NodeError) {
    var filter = LogFilter()
    filter.model = model
    try readingAround(partitions: filter.partitions) { omissions in
      var reader = try log.eventsByKey(partitions: filter.partitions, around: omissions)
      var doubt = Doubt(self, omissions)
      let description = description
      var rules: [String: MergeRules] = [:]
      var record: [StoredEvent] = []
      func finish() throws {
        guard let event = record.first?.event, let found = description.model(of: event),
          model == nil || found.name == model?.name
        else { return }
        let modelRules = rules[found.name] ?? MergeRules(found)
        rules[found.name] = modelRules
        guard let parts = Self.parts(of: record, asOf: pointsInTime) else { return }
        if try doubt.concerns(RecordKey(event)) { return }
        let states = try parts.map { try RecordHistory($0, modelRules).state() }
        try body(found, event.key, modelRules, states)
      }
      while let stored = try reader.next() {
        if let first = record.first, RecordKey(first.event) != RecordKey(stored.event) {
          try finish()
          record.removeAll(keepingCapacity: true)
        }
        record.append(stored)
      }
      try finish()
    }
  }

  /// The events of one record at each point in time; nil if they are the same.
  private static func parts(of record: [StoredEvent], asOf pointsInTime: [PointInTime]) -> [[Event]]? {
    let parts = pointsInTime.map { pointInTime in record.filter { pointInTime.includes($0) }.map(\.event) }
    let isSame = areNested(pointsInTime) && parts.allSatisfy { $0.count == parts[0].count }
    return isSame ? nil : parts
  }

  /// Whether of any two points in time, one includes all events of the other. Equal counts are then
  /// equal sets.
  private static func areNested(_ pointsInTime: [PointInTime]) -> Bool {
    let times = pointsInTime.contains { if case .time = $0 { true } else { false } }
    let positions = pointsInTime.contains { if case .position = $0 { true } else { false } }
    return !(times && positions)
  }

  /// Calls `body` with the differences between two points in time, ordered by partition, model and
  /// key. Finds the changed records by position or by time. Up to `touchedLimit` records, reads
  /// only the blocks that may contain them, otherwise the log in key order.
  ///
  /// - Throws: `.missing` if corruption was met; records that may have lost events are left out.
  package func forEachDifference(
    from old: PointInTime, to new: PointInTime, of model: Model? = nil,
    _ body: (RecordDifference) throws -> Void
  ) throws(NodeError) {
    func give(_ model: Model, _ key: Key, _ rules: MergeRules, _ states: [RecordState]) throws {
      if let difference = RecordDifference(model, key, from: states[0], to: states[1], rules) {
        try body(difference)
      }
    }
    let touched = try recordsTouched(between: old, and: new, of: model)
    guard let records = touched.records else {
      return try forEachRecord(asOf: [old, new], of: model, give)
    }
    let missing = try forEachRecord(records, asOf: [old, new], of: model, give)
    if let missing = touched.missing ?? missing { throw .missing(missing) }
  }

  /// As `forEachRecord(asOf:)`, for given records in order. Memory: the events of `recordsAtOnce`.
  ///
  /// - Returns: the losses that may concern them. The affected records are left out.
  private func forEachRecord(
    _ records: [RecordKey], asOf pointsInTime: [PointInTime], of model: Model?,
    _ body: (Model, Key, MergeRules, [RecordState]) throws -> Void
  ) throws(NodeError) -> MissingEvents? {
    let omissions = Omissions()
    var doubt = Doubt(self, omissions)
    var isAnyMissing = false
    let description = description
    try Self.wrapping {
      try forEach(records, around: omissions) { record, events in
        guard let found = description.model(storedName: record.model),
          model == nil || found.name == model?.name
        else { return }
        if try doubt.concerns(record) {
          isAnyMissing = true
          return
        }
        guard let parts = Self.parts(of: events, asOf: pointsInTime) else { return }
        let rules = MergeRules(found)
        let states = try parts.map { part in
          do throws(MergeError) { return try RecordHistory(part, rules).state() } catch {
            throw NodeError.merge(error, found, record.key)
          }
        }
        try body(found, record.key, rules, states)
      }
    }
    guard isAnyMissing else { return nil }
    var filter = LogFilter()
    filter.model = model
    return try missingEvents(omissions, partitions: filter.partitions)
  }

  /// Calls `body` with each record's events in position order. Memory: events of `recordsAtOnce`.
  func forEach(
    _ records: [RecordKey], around omissions: Omissions, _ body: (RecordKey, [StoredEvent]) throws -> Void
  ) throws {
    var rest = records[...]
    while !rest.isEmpty {
      let some = rest.prefix(Self.recordsAtOnce)
      rest = rest.dropFirst(some.count)
      var events: [RecordKey: [StoredEvent]] = [:]
      var reader = log.events(of: Array(some), around: omissions)
      while let stored = try reader.next() { events[RecordKey(stored.event), default: []].append(stored) }
      for record in some { try body(record, events[record] ?? []) }
    }
  }

  /// The difference of one record between two points in time.
  ///
  /// - Throws: `.missing` if its events may be lost.
  package func difference(
    of key: Key, in model: Model, from old: PointInTime, to new: PointInTime
  ) throws(NodeError) -> RecordDifference? {
    let before = try life(of: key, in: model, asOf: old)
    return RecordDifference(
      model, key, from: try before.state(), to: try life(of: key, in: model, asOf: new).state(),
      before.rules)
  }

  /// The most records to look up. For more, the whole log is read in key order.
  private static let touchedLimit = 1 << 14
  /// The number of records to look up together.
  private static let recordsAtOnce = 1 << 12

  /// The sorted records with events that only one of two points in time includes; nil if there are
  /// too many. Also returns the unreadable events among them.
  func recordsTouched(
    between a: PointInTime, and b: PointInTime, of model: Model?
  ) throws(NodeError) -> (records: [RecordKey]?, missing: MissingEvents?) {
    var filter = LogFilter()
    filter.model = model
    let omissions = Omissions()
    let records = try Self.wrapping { () throws -> [RecordKey]? in
      var touched = Set<RecordKey>()
      for (one, other) in [(a, b), (b, a)] {
        guard let span = one.span(without: other, end: log.end) else { continue }
        var scan = log.scan(
          from: span.positions.lowerBound, to: span.positions.upperBound, partitions: filter.partitions,
          times: span.times, around: omissions)
        try scan.forEach { event in
          let (block, index) = (event.block, event.index)
          guard span.times.contains(block.timestamp(index)) else { return true }
          touched.insert(RecordKey(block.reader.record(block.key(index))))
          return touched.count <= Self.touchedLimit
        }
      }
      return touched.count <= Self.touchedLimit ? touched.sorted() : nil
    }
    return (records, records == nil ? nil : try missingEvents(omissions, partitions: filter.partitions))
  }

  /// Calls `body` with the differences between the present rows of this node and another. Records
  /// outside of either scope are left out.
  ///
  /// - Throws: `.missing` at the end, if the tables of one of them lack lost events.
  package func forEachDifference(
    to other: Node, of model: Model? = nil, _ body: (RecordDifference) throws -> Void
  ) throws(NodeError) {
    try reading { reader in
      try other.reading { theirs in
        let foreign = other.schema.models.filter { schema.model(named: $0.name) == nil }
        for model in model.map({ [$0] }) ?? schema.models + foreign {
          func rows(_ node: Node, _ reader: TablesReader) throws -> RowCursor? {
            guard node.schema.model(named: model.name) != nil else { return nil }
            return try reader.list(Listing(model.name))
          }
          var (old, new) = (try rows(self, reader), try rows(other, theirs))
          var (left, right) = (try old?.next(), try new?.next())
          while left != nil || right != nil {
            let isLeft = left.map { row in right.map { !($0.key < row.key) } ?? true } ?? false
            let isRight = right.map { row in left.map { !($0.key < row.key) } ?? true } ?? false
            if let found = RecordDifference(model, from: isLeft ? left : nil, to: isRight ? right : nil),
              isShared(found, with: other)
            {
              try body(found)
            }
            if isLeft { left = try old?.next() }
            if isRight { right = try new?.next() }
          }
        }
      }
    }
    for node in [self, other] { try node.checkTablesAreWhole() }
  }

  /// Whether a record is in the scope of both nodes.
  private func isShared(_ difference: RecordDifference, with other: Node) -> Bool {
    if metadata.scope.isEverything, other.metadata.scope.isEverything { return true }
    let partition = Partition(model: difference.model, key: difference.key)
    return metadata.scope.contains(partition) && other.metadata.scope.contains(partition)
  }
}
