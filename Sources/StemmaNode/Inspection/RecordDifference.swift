import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaReplication
import StemmaSchema
import StemmaTables

/// The difference of one record between two states of a node, or between two nodes.
package struct RecordDifference: Sendable {
  package enum Kind: String, Sendable { case added, removed, changed }

  package var kind: Kind
  package var model: Model
  package var key: Key
  /// Stored names in schema order. An added or removed record lists all fields with a value.
  package var changes: [FieldChange]
  /// Whether a conflicting deletion is undone, which is visible only if it had won.
  package var keeps = false

  /// A record that stays although it was deleted.
  init(keeping key: Key, of model: Model, _ kind: Kind, _ changes: [FieldChange]) {
    (self.key, self.model, self.kind, self.changes) = (key, model, kind, changes)
    keeps = true
  }

  /// Nil if both states show the same.
  package init?(_ model: Model, _ key: Key, from old: RecordState, to new: RecordState, _ rules: MergeRules) {
    let (existed, exists) = (old.exists(rules), new.exists(rules))
    guard existed || exists else { return nil }
    kind = existed && exists ? .changed : exists ? .added : .removed
    self.model = model
    self.key = key
    changes = model.fields.indices.compactMap { index in
      if model.isKeyField(index) { return nil }
      let name = model.fields[index].storedName
      let from = existed ? old.value(of: name, rules) : .null
      let to = exists ? new.value(of: name, rules) : .null
      return from == to ? nil : FieldChange(field: name, from: from, to: to)
    }
    if kind == .changed && changes.isEmpty { return nil }
  }

  /// Nil if the rows are equal. One of them must exist.
  init?(_ model: Model, from old: Row?, to new: Row?) {
    guard let key = new?.key ?? old?.key else { return nil }
    kind = old != nil && new != nil ? .changed : new != nil ? .added : .removed
    self.model = model
    self.key = key
    changes = []
    for (index, field) in model.fields.enumerated() where !model.isKeyField(index) {
      func value(_ row: Row?) -> Value { row?.fields.first { $0.field == field.name }?.value ?? .null }
      let (from, to) = (value(old), value(new))
      if from != to { changes.append(FieldChange(field: field.storedName, from: from, to: to)) }
    }
    if kind == .changed && changes.isEmpty { return nil }
  }

  package func descriptions(_ description: EventDescription) -> [ChangeDescription] {
    changes.map {
      ChangeDescription(field: description.fieldName($0.field, model), from: $0.from.json, to: $0.to.json)
    }
  }

  package func json(_ description: EventDescription) -> JSON {
    .object(members(description) + (keeps ? [("kept", .bool(true))] : []))
  }

  private func members(_ description: EventDescription) -> [(name: String, value: JSON)] {
    [
      ("change", .string(kind.rawValue)), ("model", .string(model.name)),
      ("key", description.schema.json(of: key, model: model)),
      (
        "fields",
        .object(
          descriptions(description).map { ($0.field, .object([("from", $0.from), ("to", $0.to)])) })
      ),
    ]
  }
}

extension RecordDifference: Equatable {
  package static func == (a: RecordDifference, b: RecordDifference) -> Bool {
    a.kind == b.kind && a.model.name == b.model.name && a.key == b.key && a.changes == b.changes
      && a.keeps == b.keeps
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
