import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaNode
import StemmaSchema

/// The history of one record with the data that only this node has: positions and commit notes.
package struct RecordLife: Sendable {
  package let model: Model
  package let key: Key
  package let rules: MergeRules
  /// The events whose causes are all present.
  package let history: RecordHistory
  /// The losses that may concern this record.
  package internal(set) var missing: MissingEvents?
  private let noted: [EventID: LoggedEvent]

  init(_ model: Model, _ key: Key, _ events: [LoggedEvent]) {
    self.model = model
    self.key = key
    rules = MergeRules(model)
    history = RecordHistory(events.map(\.event), rules)
    noted = Dictionary(events.map { ($0.event.id, $0) }, uniquingKeysWith: { first, _ in first })
  }

  package var isEmpty: Bool { noted.isEmpty }

  /// The events with a missing cause, in the order of the others. Their effects are unknown.
  package var unexplained: [LoggedEvent] {
    let explained = Set(history.events.map(\.id))
    return noted.values.filter { !explained.contains($0.event.id) }.sorted {
      ($0.event.version, $0.event.id) < ($1.event.version, $1.event.id)
    }
  }

  package func event(_ id: EventID) -> LoggedEvent? { noted[id] }

  package func state() throws(NodeError) -> RecordState {
    do throws(MergeError) { return try history.state() } catch { throw .merge(error, model, key) }
  }

  /// The fields outside of the key, in schema order.
  package var fields: [Field] {
    model.fields.indices.filter { !model.isKeyField($0) }.map { model.fields[$0] }
  }
}

extension NodeError {
  /// An impossible history is corruption that no checksum detects.
  static func merge(_ error: MergeError, _ model: Model, _ key: Key) -> NodeError {
    .tables(.merge(model: model.name, key, error))
  }
}

extension Node {
  /// The revision of a record at a causal context; nil: the present one.
  ///
  /// - Throws: `notFound`; `.missing` if its events may be lost.
  package func revision(of key: Key, in model: Model, readAt read: Context?) throws(NodeError) -> String {
    guard let current = try state(of: key, in: model) else {
      throw .mutation(.notFound(model: model.name, key: KeyWords.text(key, of: model)))
    }
    guard let read, read != current.context else { return current.revision }
    let life = try life(of: key, in: model)
    let known = life.history.events.filter { read.covers($0.id) }
    do throws(MergeError) { return try RecordState.fold(known, life.rules).revision } catch {
      throw .merge(error, model, key)
    }
  }

  /// The events of one record that this node held at a point in time. Reads the blocks that may
  /// have any.
  ///
  /// - Throws: `.missing` if some of them may be lost.
  package func life(
    of key: Key, in model: Model, asOf pointInTime: PointInTime = .now
  ) throws(NodeError) -> RecordLife {
    let life = try readableLife(of: key, in: model, asOf: pointInTime)
    if let missing = life.missing { throw .missing(missing) }
    return life
  }

  /// As `life`, for the readable events. `missing` lists the losses.
  package func readableLife(
    of key: Key, in model: Model, asOf pointInTime: PointInTime = .now
  ) throws(NodeError) -> RecordLife {
    let record = RecordKey(
      partition: Partition(model: model, key: key), model: model.storedName, key: key)
    let omissions = Omissions()
    var life = try Self.wrapping {
      var events: [LoggedEvent] = []
      var reader = log.events(of: record, to: pointInTime.end, around: omissions)
      while let stored = try reader.next() {
        guard pointInTime.includes(stored) else { continue }
        events.append(LoggedEvent(stored: stored, message: reader.message ?? CommitMessage()))
      }
      return RecordLife(model, key, events)
    }
    var doubt = Doubt(self, omissions)
    if try doubt.concerns(record) {
      life.missing = try missing(omissions, of: life, in: record.partition)
    }
    return life
  }

  /// Calls `body` with the readable lives of records in the schema, in no particular order. Reads
  /// each block once for all records. Memory: their events.
  func forEachReadableLife(
    of records: [RecordKey], _ body: (RecordKey, RecordLife) throws(NodeError) -> Void
  ) throws(NodeError) {
    let omissions = Omissions()
    let found = try Self.wrapping {
      var found: [RecordKey: [LoggedEvent]] = [:]
      var reader = log.events(of: records, around: omissions)
      while let stored = try reader.next() {
        found[RecordKey(stored.event), default: []].append(
          LoggedEvent(stored: stored, message: reader.message ?? CommitMessage()))
      }
      return found
    }
    var doubt = Doubt(self, omissions)
    for record in records {
      guard let model = description.model(storedName: record.model) else { continue }
      var life = RecordLife(model, record.key, found[record] ?? [])
      if try doubt.concerns(record) {
        life.missing = try missing(omissions, of: life, in: record.partition)
      }
      try body(record, life)
    }
  }

  private func missing(
    _ omissions: Omissions, of life: RecordLife, in partition: Partition
  ) throws(NodeError) -> MissingEvents? {
    var missing = try missingEvents(omissions, partitions: PartitionFilter(named: [partition]))
    missing?.record = "\(life.model.name) \(description.keyText(life.key, life.model))"
    return missing
  }

  /// The readable life of a record with at least one event.
  package func existingLife(of key: Key, in model: Model) throws(NodeError) -> RecordLife {
    let life = try readableLife(of: key, in: model)
    if life.isEmpty {
      if let missing = life.missing { throw .missing(missing) }
      throw .mutation(.notFound(model: model.name, key: KeyWords.text(key, of: model)))
    }
    return life
  }
}

extension Node {
  /// Returns the effects of an event in a record's life.
  package func account(of id: EventID, in life: RecordLife) throws(NodeError) -> EventAccount? {
    let history = life.history
    guard let index = history.index(of: id) else { return nil }
    let description = description
    do throws(MergeError) {
      let event = history.events[index]
      let seen = try history.stateSeen(by: index)
      let state = try history.state()
      let fields: [String?] = event.operation == .delete ? [nil] : [nil] + event.assignments.map(\.field)
      return EventAccount(
        changes: changes(of: index, in: life, from: seen),
        parents: history.parents(of: index).map { history.events[$0].id },
        concurrent: history.events.filter {
          $0.id != id && !event.hasSeen($0) && !$0.hasSeen(event)
        }.map(\.id),
        outcomes: fields.compactMap { field in
          guard let fate = history.fate(of: index, field: field, in: state) else { return nil }
          var by: EventID?
          switch fate {
          case .shown: break
          case .outdone(let winner, _): by = winner
          case .superseded(let later): by = later
          }
          return EventAccount.Outcome(
            field: field.map { description.fieldName($0, life.model) }, fate: fate,
            by: by.map(description.name),
            concurrentWrites: field == nil ? concurrentWrites(of: index, in: history, state) : [])
        })
    } catch { throw .merge(error, life.model, life.key) }
  }

  private func concurrentWrites(
    of index: Int, in history: RecordHistory, _ state: RecordState
  ) -> [EventAccount.ConcurrentWrite] {
    let event = history.events[index]
    return history.concurrentWrites(of: index, field: nil, in: state).map { id in
      let other = history.index(of: id).map { history.events[$0] }
      return EventAccount.ConcurrentWrite(
        event: description.name(id), wasSeen: other.map(event.hasSeen) ?? false,
        hasSeen: other?.hasSeen(event) ?? false)
    }
  }

  /// Calls `body` with each event of a life and its changes, in order.
  package func forEachStep(
    of life: RecordLife, _ body: (LoggedEvent, [ChangeDescription]) throws -> Void
  ) throws(NodeError) {
    try Self.wrapping {
      try life.history.forEachStep({ NodeError.merge($0, life.model, life.key) as any Error }) {
        (index, seen) throws(any Error) in
        guard let noted = life.event(life.history.events[index].id) else { return }
        try body(noted, changes(of: index, in: life, from: seen))
      }
    }
  }

  func changes(of index: Int, in life: RecordLife, from seen: RecordState) -> [ChangeDescription] {
    let description = description
    // An event may write an unchanged value; if the whole record is one register, it always does.
    return life.history.changes(of: index, from: seen).filter { $0.from != $0.to }.map {
      ChangeDescription(
        field: description.fieldName($0.field, life.model), from: $0.from.json, to: $0.to.json)
    }
  }
}

extension Node {
  /// The decisions about existence and, unless the record is deleted without conflict, about all
  /// fields in schema order. If events of the record may be lost, uses the state in the tables.
  package func decisions(about life: RecordLife) throws(NodeError) -> [FieldDecision] {
    var state = try life.state()
    if life.missing != nil {
      state = try reading { try $0.state(of: life.key, in: life.model) } ?? state
    }
    return decisions(life.model, state, life.rules) { life.event($0) }
  }

  /// As above, from the tables alone, without commit authors. Nil if the record never existed.
  package func decisions(about key: Key, in model: Model) throws(NodeError) -> [FieldDecision]? {
    try reading { reader in
      guard let state = try reader.state(of: key, in: model) else { return nil }
      return decisions(model, state, MergeRules(model)) { _ in nil }
    }
  }

  private func decisions(
    _ model: Model, _ state: RecordState, _ rules: MergeRules, _ event: (EventID) -> LoggedEvent?
  ) -> [FieldDecision] {
    let conflicts = state.conflicts(rules)
    var decisions = [
      decision(on: nil, state, rules, isConflict: conflicts.contains { $0.kind == .delete }, event)
    ]
    guard state.exists(rules) || state.existenceIsInConflict else { return decisions }
    for (index, field) in model.fields.enumerated() where !model.isKeyField(index) {
      let isConflict = conflicts.contains { $0.differing.contains(field.storedName) }
      decisions.append(decision(on: field, state, rules, isConflict: isConflict, event))
    }
    return decisions
  }

  private func decision(
    on field: Field?, _ state: RecordState, _ rules: MergeRules, isConflict: Bool,
    _ event: (EventID) -> LoggedEvent?
  ) -> FieldDecision {
    let decision = state.decision(on: field?.storedName, rules)
    let description = description
    func value(_ candidate: StemmaMerge.Candidate) -> Value {
      guard let field else { return .bool(candidate.exists) }
      return candidate.values.first { $0.field == field.storedName }?.value ?? .null
    }
    var candidates = decision.candidates
    // Times that merge automatically are shown from the write that holds the shown value.
    if let shown = candidates.firstIndex(where: { value($0) == decision.shown }), shown > 0 {
      candidates.insert(candidates.remove(at: shown), at: 0)
    }
    let deletions = field == nil ? candidates.filter { !$0.exists }.map { ($0.id, $0.version) } : []
    return FieldDecision(
      field: field?.name, shown: decision.shown.json, rule: decision.rule,
      candidates: candidates.enumerated().map { index, candidate in
        FieldDecision.Candidate(
          number: index + 1, value: value(candidate).json, id: candidate.id,
          isResolution: event(candidate.id)?.event.isDecision ?? (candidate.operation == .resolve),
          event: description.name(candidate.id),
          version: candidate.version.rawValue, timestamp: candidate.timestamp,
          time: description.time(candidate.timestamp),
          origin: metadata.displayName(of: candidate.id.origin), author: event(candidate.id)?.message.author,
          saw: candidate.exists
            ? (event(candidate.id)?.event.seen(of: deletions) ?? []).map(description.name) : [])
      }, isConflict: isConflict)
  }
}
