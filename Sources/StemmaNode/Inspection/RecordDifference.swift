import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaReplication
import StemmaSchema
import StemmaTables

/// How one record differs between two states of a node, or between two nodes.
package struct RecordDifference: Sendable {
  package enum Kind: String, Sendable { case added, removed, changed }

  package var kind: Kind
  package var model: Model
  package var key: Key
  /// Stored names, in the order of the schema. Of a record that was added or removed all fields with a value.
  package var changes: [FieldChange]
  /// Whether a deletion that is in conflict is taken back, which shows only if it had won.
  package var keeps = false

  /// A record that stays, although it was deleted.
  init(keeping key: Key, of model: Model, _ kind: Kind, _ changes: [FieldChange]) {
    (self.key, self.model, self.kind, self.changes) = (key, model, kind, changes)
    keeps = true
  }

  /// Nil if the states show the same.
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

  /// Nil if the rows are equal; one of them must be there.
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
  /// Gives the states of each record as of several moments, record by record in the order of partition, model and
  /// key; only of records that differ between two of them in the events that they are made of. One pass over the
  /// log in key order; memory: the events of one record.
  ///
  /// - Throws: `.missing` if damage was met; records that may have lost events were left out then.
  package func forEachRecord(
    asOf moments: [Moment], of model: Model? = nil,
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
        let parts = moments.map { moment in record.filter { moment.includes($0) }.map(\.event) }
        guard parts.contains(where: { $0.count != parts[0].count }) || !Self.areNested(moments) else {
          return
        }
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

  /// Whether of any two of the moments one includes all events that the other does; then equal counts are equal
  /// sets.
  private static func areNested(_ moments: [Moment]) -> Bool {
    let times = moments.contains { if case .time = $0 { true } else { false } }
    let positions = moments.contains { if case .position = $0 { true } else { false } }
    return !(times && positions)
  }

  /// Gives what differs between two moments. Between two positions with few records touched between them only the
  /// blocks of those are read, otherwise the log in key order.
  ///
  /// - Throws: `.missing` if damage was met; records that may have lost events were left out then.
  package func forEachDifference(
    from old: Moment, to new: Moment, of model: Model? = nil, _ body: (RecordDifference) throws -> Void
  ) throws(NodeError) {
    let touched = try recordsTouched(between: old, and: new, of: model)
    if let records = touched.records {
      var missing = touched.missing
      try Self.wrapping {
        for (model, key) in records {
          var found: RecordDifference?
          do throws(NodeError) { found = try difference(of: key, in: model, from: old, to: new) } catch {
            guard case .missing(var here) = error else { throw error }
            here.record = nil
            missing = missing ?? here
          }
          if let found { try body(found) }
        }
      }
      if let missing { throw .missing(missing) }
      return
    }
    try forEachRecord(asOf: [old, new], of: model) { model, key, rules, states in
      if let difference = RecordDifference(model, key, from: states[0], to: states[1], rules) {
        try body(difference)
      }
    }
  }

  /// How one record differs between two moments.
  ///
  /// - Throws: `.missing` if damage may have taken events of it.
  package func difference(
    of key: Key, in model: Model, from old: Moment, to new: Moment
  ) throws(NodeError) -> RecordDifference? {
    let before = try life(of: key, in: model, asOf: old)
    return RecordDifference(
      model, key, from: try before.state(), to: try life(of: key, in: model, asOf: new).state(),
      before.rules)
  }

  /// Records that are looked up one by one at most.
  private static let touchedLimit = 256

  /// The records with events between two positions, sorted; nil if there are many, or the moments are times. And what
  /// of those events cannot be read.
  private func recordsTouched(
    between a: Moment, and b: Moment, of model: Model?
  ) throws(NodeError) -> (records: [(Model, Key)]?, missing: MissingEvents?) {
    let ends: [Position?] = [a, b].map { moment in moment == .now ? log.end : moment.end }
    guard let one = ends[0], let other = ends[1] else { return (nil, nil) }
    var filter = LogFilter()
    filter.model = model
    let omissions = Omissions()
    let records = try Self.wrapping { () throws -> [(Model, Key)]? in
      var touched = Set<RecordKey>()
      var reader = log.events(
        from: min(one, other), to: max(one, other), partitions: filter.partitions, around: omissions)
      while let stored = try reader.next() {
        touched.insert(RecordKey(stored.event))
        if touched.count > Self.touchedLimit { return nil }
      }
      return touched.sorted().compactMap { record in
        guard let found = schema.models.first(where: { $0.storedName == record.model }),
          model == nil || found.name == model?.name
        else { return nil }
        return (found, record.key)
      }
    }
    return (records, records == nil ? nil : try missingEvents(omissions, partitions: filter.partitions))
  }

  /// Gives what differs between the rows of this node and those of another one, as both are now. What lies outside
  /// of the scope of one of them is not missing there, and left out.
  ///
  /// - Throws: at the end `.missing`, if the tables of one of them lack what damage took.
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
    if mark.scope.isEverything, other.mark.scope.isEverything { return true }
    let partition = Partition(model: difference.model, key: difference.key)
    return mark.scope.contains(partition) && other.mark.scope.contains(partition)
  }
}
