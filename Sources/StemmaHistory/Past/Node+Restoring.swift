import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaNode
import StemmaSchema

// A restore never removes events: it appends events that bring records back to an earlier state.
// The changes are planned first, so that they can be shown, and then written in one commit.

/// The changes of a restore or undo, with the data to detect that they are outdated.
package struct Reversal {
  /// All resulting differences, including records and links that a deletion removes as well.
  package let changes: [RecordDifference]
  /// The requested changes, without their consequences.
  fileprivate let plan: [RecordDifference]
  /// The end of the log when the plan was made.
  fileprivate let end: Position
  fileprivate let workOut: () throws(NodeError) -> [RecordDifference]

  /// Plans and rehearses the changes, so that their consequences are known.
  fileprivate init(
    _ node: Node, _ workOut: @escaping () throws(NodeError) -> [RecordDifference]
  ) throws(NodeError) {
    end = node.log.end
    let plan = try workOut()
    var changes: [RecordDifference] = []
    if !plan.isEmpty {
      try node.rehearse { transaction throws(NodeError) in changes = try node.goBack(plan, transaction) }
    }
    self.plan = plan
    self.changes = changes
    self.workOut = workOut
  }
}

extension Node {
  /// The changes that restore one record or all records of a model. With `fields`, restores only
  /// those fields of records that exist at both times. Times that the node maintains are skipped.
  ///
  /// - Throws: `.mutation(.notFound)` if the record never existed; `.inspection(.emptyPast)` if
  ///   this node held no event at that point in time, unless `isForced`.
  package func restoration(
    of model: Model, key: Key?, asOf pointInTime: PointInTime, fields: [Field], isForced: Bool = false
  ) throws(NodeError) -> Reversal {
    let reversal = try Reversal(self) { () throws(NodeError) in
      try self.changes(restoring: model, key, asOf: pointInTime, fields)
    }
    if !isForced, !reversal.changes.isEmpty, try isEmpty(asOf: pointInTime) {
      throw .inspection(.emptyPast(records: reversal.changes.count))
    }
    return reversal
  }

  /// Whether this node held no event at a point in time. Reads up to the first event that it held.
  private func isEmpty(asOf pointInTime: PointInTime) throws(NodeError) -> Bool {
    try Self.wrapping {
      var isEmpty = true
      var scan = log.scan(to: pointInTime.end, around: Omissions())
      try scan.forEach { event in
        isEmpty = !pointInTime.includes(event.block.timestamp(event.index), event.position)
        return isEmpty
      }
      return isEmpty
    }
  }

  private func changes(
    restoring model: Model, _ key: Key?, asOf pointInTime: PointInTime, _ fields: [Field]
  ) throws(NodeError) -> [RecordDifference] {
    var plan: [RecordDifference] = []
    if let key {
      _ = try existingLife(of: key, in: model)
      if let difference = try difference(of: key, in: model, from: .now, to: pointInTime) {
        plan = [difference]
      }
    } else {
      try forEachDifference(from: .now, to: pointInTime, of: model) { plan.append($0) }
    }
    return plan.compactMap { difference in
      var difference = withoutMaintainedTimes(difference)
      if !fields.isEmpty {
        guard difference.kind == .changed else { return nil }
        difference.changes.removeAll { change in !fields.contains { $0.storedName == change.field } }
      }
      return difference.kind == .changed && difference.changes.isEmpty ? nil : difference
    }
  }

  private func withoutMaintainedTimes(_ difference: RecordDifference) -> RecordDifference {
    var difference = difference
    let model = difference.model
    let maintained = [model.createdAt, model.updatedAt].compactMap {
      $0.flatMap { model.field(named: $0)?.storedName }
    }
    difference.changes.removeAll { maintained.contains($0.field) }
    return difference
  }

  /// The changes that undo some events: each of their records gets the values that their writers
  /// had read. Losing values need no undo.
  ///
  /// - Throws: `.inspection(.overwritten)` if a later event, itself not undone, wrote the same
  ///   field; `.inspection(.takesAlong)` if a deletion would affect other records. With `isForced`,
  ///   neither.
  package func undoing(_ events: [LoggedEvent], isForced: Bool) throws(NodeError) -> Reversal {
    let reversal = try Reversal(self) { () throws(NodeError) in
      try self.changes(undoing: events, isForced: isForced)
    }
    let planned = Set(reversal.plan.map { RecordKey($0) })
    let others = reversal.changes.filter { !planned.contains(RecordKey($0)) }
    if !isForced, !others.isEmpty {
      throw .inspection(
        .takesAlong(records: others.map { "\($0.model.name) \(description.keyText($0.key, $0.model))" }))
    }
    return reversal
  }

  /// The open conflicts in which a value of some events is a losing value. Undoing the events has
  /// no effect there.
  package func conflicts(lostBy events: [LoggedEvent]) throws(NodeError) -> [ConflictDescription] {
    let description = description
    let own = Dictionary(grouping: events.map(\.event), by: { RecordKey($0) })
    var seen = Set<RecordKey>()
    var lost: [ConflictDescription] = []
    for event in events.map(\.event) where seen.insert(RecordKey(event)).inserted {
      guard let model = description.model(of: event) else { continue }
      let ids = Set((own[RecordKey(event)] ?? []).map(\.id))
      var filter = ConflictFilter(model: model)
      filter.key = event.key
      filter.kinds = [.value]
      try conflicts(filter) { conflict in
        let isShown = conflict.candidates.first.map { ids.contains($0.id) } ?? false
        if !isShown, conflict.candidates.contains(where: { ids.contains($0.id) }) { lost.append(conflict) }
      }
    }
    return lost
  }

  private func changes(
    undoing events: [LoggedEvent], isForced: Bool
  ) throws(NodeError) -> [RecordDifference] {
    let description = description
    // The record that was written last comes first.
    var records: [RecordKey] = []
    var own: [RecordKey: Set<EventID>] = [:]
    for noted in events.reversed() where description.model(of: noted.event) != nil {
      let record = RecordKey(noted.event)
      if own[record] == nil { records.append(record) }
      own[record, default: []].insert(noted.event.id)
    }
    var lives: [RecordKey: RecordLife] = [:]
    try forEachReadableLife(of: records) { (record, life) throws(NodeError) in
      if let missing = life.missing { throw .missing(missing) }
      lives[record] = life
    }
    var plan: [RecordDifference] = []
    for record in records {
      guard let life = lives[record], let ids = own[record],
        let difference = try undoing(ids, in: life, isForced: isForced)
      else { continue }
      let shown = withoutMaintainedTimes(difference)
      if shown.kind != .changed || shown.keeps || !shown.changes.isEmpty { plan.append(shown) }
    }
    return plan
  }

  private func undoing(
    _ own: Set<EventID>, in life: RecordLife, isForced: Bool
  ) throws(NodeError) -> RecordDifference? {
    let history = life.history
    let indices = history.events.indices.filter { own.contains(history.events[$0].id) }
    guard let first = indices.first else { return nil }
    let before: RecordState
    do throws(MergeError) { before = try history.stateSeen(by: first) } catch {
      throw .merge(error, life.model, life.key)
    }
    let now = try life.state()
    guard var difference = try difference(from: now, to: before, without: own, life) else { return nil }
    let written = Set(indices.flatMap { history.events[$0].assignments.map(\.field) })
    if difference.kind == .changed { difference.changes.removeAll { !written.contains($0.field) } }
    if !isForced {
      let isOfFields = difference.kind == .changed || difference.keeps
      let subjects: [String?] = isOfFields ? difference.changes.map(\.field) : [nil]
      for subject in subjects {
        for index in indices {
          if case .superseded(let later) = history.fate(of: index, field: subject, in: now),
            !own.contains(later), try !isAgain(index, subject, in: life, now)
          {
            throw overwritten(history.events[index], life, subject, by: later)
          }
        }
      }
    }
    if difference.kind == .changed {
      difference.changes = difference.changes.compactMap { remaining($0, own, in: now, life.rules) }
      if difference.changes.isEmpty && !difference.keeps { return nil }
    }
    return difference
  }

  /// The difference of a record between the present and its state before some events.
  ///
  /// Undoing a conflicting deletion keeps the record as it is without the deletion; fields that the
  /// same events wrote get their values back. Undoing a conflicting change leaves the existence in
  /// conflict, as an ordinary update does.
  ///
  /// - Throws: `.inspection(.existenceInConflict)` if another deletion remains or has won.
  private func difference(
    from now: RecordState, to before: RecordState, without own: Set<EventID>, _ life: RecordLife
  ) throws(NodeError) -> RecordDifference? {
    let (model, key, rules) = (life.model, life.key, life.rules)
    guard now.existenceIsInConflict, before.exists(rules) else {
      return RecordDifference(model, key, from: now, to: before, rules)
    }
    let deletions = now.existenceSiblings(rules).filter { !$0.exists }.map(\.id)
    let isShown = now.exists(rules)
    guard deletions.contains(where: own.contains) else {
      if isShown { return RecordDifference(model, key, from: now, to: before, rules) }
      throw .inspection(.existenceInConflict(text(life)))
    }
    if !deletions.allSatisfy(own.contains) { throw .inspection(.existenceInConflict(text(life))) }
    let changes = model.fields.indices.compactMap { index -> FieldChange? in
      let field = model.fields[index].storedName
      let (from, to) = (now.value(of: field, rules), before.value(of: field, rules))
      return model.isKeyField(index) || from == to ? nil : FieldChange(field: field, from: from, to: to)
    }
    return RecordDifference(keeping: key, of: model, .changed, changes)
  }

  /// Whether a field or the whole record has the state that the event at `index` produced. The
  /// event that overwrote it has then been undone.
  private func isAgain(
    _ index: Int, _ field: String?, in life: RecordLife, _ now: RecordState
  ) throws(NodeError) -> Bool {
    var after: RecordState
    do throws(MergeError) {
      after = try life.history.stateSeen(by: index)
      _ = try after.apply(life.history.events[index], life.rules)
    } catch { throw .merge(error, life.model, life.key) }
    if let field { return after.value(of: field, life.rules) == now.value(of: field, life.rules) }
    guard let difference = RecordDifference(life.model, life.key, from: after, to: now, life.rules) else {
      return true
    }
    return difference.kind == .changed && withoutMaintainedTimes(difference).changes.isEmpty
  }

  /// The value to write to a field: the best concurrent write that is not undone, otherwise the
  /// value that the writers had read. Nil if another value is shown anyway.
  private func remaining(
    _ change: FieldChange, _ own: Set<EventID>, in now: RecordState, _ rules: MergeRules
  ) -> FieldChange? {
    let candidates = now.decision(on: change.field, rules).candidates
    guard candidates.contains(where: { own.contains($0.id) }) else { return change }
    if let winner = candidates.first, candidates.count > 1, !own.contains(winner.id) { return nil }
    guard let other = candidates.first(where: { !own.contains($0.id) }) else { return change }
    var change = change
    change.to = other.values.first { $0.field == change.field }?.value ?? .null
    return change.to == change.from ? nil : change
  }

  private func text(_ life: RecordLife) -> String {
    "\(life.model.name) \(description.keyText(life.key, life.model))"
  }

  private func overwritten(_ event: Event, _ life: RecordLife, _ field: String?, by later: EventID)
    -> NodeError
  {
    let description = description
    return .inspection(
      .overwritten(
        event: description.name(event.id),
        record: text(life),
        field: field.map { description.fieldName($0, life.model) } ?? ExistenceName.name(in: life.model),
        later: description.name(later)))
  }

  /// Appends the events of a restore in one commit.
  ///
  /// - Returns: the number of events, and their commit; nil if there are none.
  /// - Throws: `.inspection(.changedMeanwhile)`, before any write, if events appended since then
  ///   change the result that was shown.
  package func write(
    _ reversal: Reversal, _ message: CommitMessage
  ) throws(NodeError) -> (events: Int, commit: CommitID?) {
    try write(message) { transaction throws(NodeError) in
      // The caller holds the writer lock, so the plan stays valid until it is written.
      let isStale = log.end != reversal.end
      if isStale, try reversal.workOut() != reversal.plan { throw .inspection(.changedMeanwhile) }
      let changes = try goBack(reversal.plan, transaction)
      if isStale, changes != reversal.changes { throw .inspection(.changedMeanwhile) }
      return (transaction.events.count, transaction.madeCommit)
    }
  }

  /// Executes a plan. Deletions come last: earlier changes may detach a record from a deleted one.
  ///
  /// - Returns: the differences, in the order in which the records were changed.
  fileprivate func goBack(
    _ plan: [RecordDifference], _ transaction: WriteTransaction
  ) throws(NodeError) -> [RecordDifference] {
    var before: [RecordKey: RecordState] = [:]
    for difference in plan {
      before[RecordKey(difference)] = try transaction.state(difference.model, difference.key)
    }
    for difference in plan.filter({ $0.kind != .removed }) + plan.filter({ $0.kind == .removed }) {
      let model = difference.model
      let key = schema.json(of: difference.key, model: model)
      let state = try transaction.state(model, difference.key)
      let exists = difference.keeps || state.exists(transaction.rules(model))
      var fields = difference.descriptions(description).map { ($0.field, $0.to) }
      switch difference.kind {
      case .removed where exists: try transaction.perform(Mutation(.delete, model: model.name, key: key))
      // An earlier deletion has deleted it already.
      case .removed: break
      case .added, .changed:
        if difference.keeps { try transaction.resolve(model.name, key, field: nil, .keep) }
        if difference.keeps && fields.isEmpty { break }
        let links = exists ? try links(difference, state, transaction) : []
        fields = zip(difference.changes, fields).filter { change, _ in
          !links.contains { $0.fields.contains(change.field) }
        }.map(\.1)
        if !fields.isEmpty || links.isEmpty {
          let operation: Mutation.Operation = exists ? .update : .create
          try transaction.perform(Mutation(operation, model: model.name, key: key, fields: fields))
        }
        for link in links { try transaction.perform(link.mutation) }
      }
    }
    return try differences(from: before, transaction)
  }

  /// The links and unlinks in a difference. Excludes fields that relationships share, and
  /// incomplete references.
  private func links(
    _ difference: RecordDifference, _ state: RecordState, _ transaction: WriteTransaction
  ) throws(NodeError) -> [(fields: [String], mutation: Mutation)] {
    let (model, key) = (difference.model, difference.key)
    let rules = transaction.rules(model)
    func free(_ relationship: Relationship) -> [String] {
      relationship.storesReference
        ? transaction.storedNames(model, model.freeReferenceFields(of: relationship)) : []
    }
    func value(_ field: String) -> Value {
      difference.changes.first { $0.field == field }?.to ?? state.value(of: field, rules)
    }
    var links: [(fields: [String], mutation: Mutation)] = []
    for relationship in model.relationships {
      let fields = free(relationship)
      let isShared = model.relationships.contains {
        $0.name != relationship.name && !Set(free($0)).isDisjoint(with: fields)
      }
      guard !isShared, difference.changes.contains(where: { fields.contains($0.field) }) else { continue }
      let target = try transaction.model(relationship.target)
      let parts = relationship.referenceFields.compactMap { name -> KeyPart? in
        guard let index = model.index(ofField: name) else { return nil }
        if let place = model.keyFields.firstIndex(of: index) { return key.parts[place] }
        return KeyPart(value(model.fields[index].storedName))
      }
      let json: JSON
      if fields.allSatisfy({ value($0).isNull }) {
        json = .null
      } else if parts.count == relationship.referenceFields.count {
        json = schema.json(of: Key(parts), model: target)
      } else {
        continue
      }
      links.append(
        (
          fields,
          Mutation(
            json.isNull ? .unlink : .link, model: model.name, key: schema.json(of: key, model: model),
            fields: [(relationship.name, json)])
        ))
    }
    return links
  }

  /// The differences of the records in a transaction. `known` has the earlier states of some.
  private func differences(
    from known: [RecordKey: RecordState], _ transaction: WriteTransaction
  ) throws(NodeError) -> [RecordDifference] {
    var differences: [RecordDifference] = []
    var seen = Set<RecordKey>()
    for event in transaction.events where seen.insert(RecordKey(event)).inserted {
      guard let model = description.model(of: event) else { continue }
      var old = known[RecordKey(event)]
      if old == nil { old = try life(of: event.key, in: model).state() }
      guard let old else { continue }
      let new = try transaction.state(model, event.key)
      let rules = transaction.rules(model)
      var difference = RecordDifference(model, event.key, from: old, to: new, rules)
      if old.existenceIsInConflict, !new.existenceIsInConflict, new.exists(rules) {
        difference = RecordDifference(
          keeping: event.key, of: model, difference?.kind ?? .changed, difference?.changes ?? [])
      }
      if let difference { differences.append(withoutMaintainedTimes(difference)) }
    }
    return differences
  }
}

extension RecordKey {
  fileprivate init(_ difference: RecordDifference) {
    let model = difference.model
    self.init(
      partition: Partition(model: model, key: difference.key), model: model.storedName, key: difference.key)
  }
}
