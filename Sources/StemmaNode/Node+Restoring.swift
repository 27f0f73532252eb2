import StemmaEvents
import StemmaMerge
import StemmaSchema

// Going back never takes anything out of the log: it appends events that make records what they were. What is to be
// changed is worked out first, so that it can be shown, and then written in one commit.

extension Node {
  /// What has to change for one record, or all of a model, to be what they were; of `fields` only, if any are
  /// named: then records that are there now and were there then. Times that the node maintains itself are left.
  package func restoration(
    of model: Model, key: Key?, asOf moment: Moment, fields: [Field]
  ) throws(NodeError) -> Reversal {
    try Reversal(self) { present throws(NodeError) in
      let plan = try self.changes(restoring: model, key, asOf: moment, fields)
      return try self.consequences(of: plan, present).changes
    }
  }

  private func changes(
    restoring model: Model, _ key: Key?, asOf moment: Moment, _ fields: [Field]
  ) throws(NodeError) -> [RecordDifference] {
    var plan: [RecordDifference] = []
    if let key {
      if let difference = try difference(of: key, in: model, from: .now, to: moment) { plan = [difference] }
    } else {
      try forEachDifference(from: .now, to: moment, of: model) { plan.append($0) }
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

  /// What has to change for some events to be as if they had not been made: each of their records gets the values
  /// that their writers had read. What they wrote and others outdid needs no undoing.
  ///
  /// - Throws: unless `isForced`, `.inspection(.overwritten)` if what another event has written since would go, and
  ///   `.inspection(.takesAlong)` if a deletion would take records along that none of the events has made.
  package func undoing(_ events: [NotedEvent], isForced: Bool) throws(NodeError) -> Reversal {
    try Reversal(self) { present throws(NodeError) in
      let plan = try self.changes(undoing: events, isForced: isForced)
      let consequences = try self.consequences(of: plan, present)
      if !isForced, consequences.goBeyond {
        throw .inspection(.takesAlong(consequences.changes[consequences.planned...].map { self.text($0) }))
      }
      return consequences.changes
    }
  }

  private func consequences(
    of plan: [RecordDifference], _ present: PresentRecords
  ) throws(NodeError) -> Consequences {
    try Consequences(of: plan, schema, present, in: mark.scope)
  }

  private func text(_ difference: RecordDifference) -> String {
    "\(difference.model.name) \(description.keyText(difference.key, difference.model))"
  }

  private func changes(
    undoing events: [NotedEvent], isForced: Bool
  ) throws(NodeError) -> [RecordDifference] {
    var plan: [RecordDifference] = []
    var done = Set<[UInt8]>()
    for noted in events.reversed() {
      guard let model = description.model(of: noted.event) else { continue }
      let key = noted.event.key
      guard done.insert(Array(model.storedName.utf8) + [0] + key.bytes).inserted else { continue }
      let life = try life(of: key, in: model)
      let own = Set(
        events.filter { $0.event.model == model.storedName && $0.event.key == key }.map(\.event.dot))
      if let difference = try undoing(own, in: life, isForced: isForced) {
        plan.append(withoutMaintainedTimes(difference))
      }
    }
    return plan
  }

  private func undoing(
    _ own: Set<Dot>, in life: RecordLife, isForced: Bool
  ) throws(NodeError) -> RecordDifference? {
    let history = life.history
    let indices = history.events.indices.filter { own.contains(history.events[$0].dot) }
    guard let first = indices.first else { return nil }
    let before: RecordState
    do throws(MergeError) { before = try history.stateSeen(by: first) } catch {
      throw .merge(error, life.model, life.key)
    }
    let now = try life.state()
    if now.existenceIsInConflict { throw .inspection(.existenceInConflict(text(life))) }
    guard var difference = RecordDifference(life.model, life.key, from: now, to: before, life.rules) else {
      return nil
    }
    let written = Set(indices.flatMap { history.events[$0].assignments.map(\.field) })
    if difference.kind == .changed { difference.changes.removeAll { !written.contains($0.field) } }
    if !isForced {
      let subjects: [String?] = difference.kind == .changed ? difference.changes.map(\.field) : [nil]
      for subject in subjects {
        for index in indices {
          if case .superseded(let later) = history.fate(of: index, field: subject, in: now),
            !own.contains(later), try !isBack(subject, history, index, now, life)
          {
            throw overwritten(history.events[index], life, subject, by: later)
          }
        }
      }
    }
    if difference.kind == .changed {
      difference.changes = difference.changes.compactMap { remaining($0, own, in: now, life.rules) }
      if difference.changes.isEmpty { return nil }
    }
    return difference
  }

  /// Whether a field, or for nil the whole record, is again as an event had left it, so that whatever was written
  /// in between is lost by nobody: as after another undo.
  private func isBack(
    _ field: String?, _ history: RecordHistory, _ index: Int, _ now: RecordState, _ life: RecordLife
  ) throws(NodeError) -> Bool {
    do {
      var after = try history.stateSeen(by: index)
      _ = try after.apply(history.events[index], life.rules)
      guard let field else {
        let difference = RecordDifference(life.model, life.key, from: after, to: now, life.rules)
        return difference.map { withoutMaintainedTimes($0) }.map { $0.kind == .changed && $0.changes.isEmpty }
          ?? true
      }
      return after.value(of: field, life.rules) == now.value(of: field, life.rules)
    } catch { throw .merge(error, life.model, life.key) }
  }

  /// What is to be written to a field: what stands beside the writes that are taken back, if anything does, else
  /// what their writers had read. Nil if something else is shown anyway.
  private func remaining(
    _ change: FieldChange, _ own: Set<Dot>, in now: RecordState, _ rules: MergeRules
  ) -> FieldChange? {
    let candidates = now.decision(on: change.field, rules).candidates
    guard candidates.contains(where: { own.contains($0.dot) }) else { return change }
    if let winner = candidates.first, candidates.count > 1, !own.contains(winner.dot) { return nil }
    guard let other = candidates.first(where: { !own.contains($0.dot) }) else { return change }
    var change = change
    change.to = other.values.first { $0.field == change.field }?.value ?? .null
    return change.to == change.from ? nil : change
  }

  private func text(_ life: RecordLife) -> String {
    "\(life.model.name) \(description.keyText(life.key, life.model))"
  }

  private func overwritten(_ event: Event, _ life: RecordLife, _ field: String?, by later: Dot) -> NodeError {
    let description = description
    return .inspection(
      .overwritten(
        event: description.name(event.dot),
        record: text(life),
        field: field.map { description.fieldName($0, life.model) } ?? "existence",
        later: description.name(later)))
  }

  /// Appends the events that go back, in one commit.
  ///
  /// - Returns: how many events were made.
  /// - Throws: `.inspection(.changedMeanwhile)` if what others have appended since makes the changes other than
  ///   those that were shown; nothing is written then.
  package func write(_ reversal: Reversal, _ note: CommitNote) throws(NodeError) -> Int {
    let description = description
    return try write(note) { transaction throws(NodeError) in
      // The writer lock is held: what is worked out here stays true until it is appended.
      if log.end != reversal.end, try reversal.workOut(transaction.presentRecords) != reversal.changes {
        throw .inspection(.changedMeanwhile)
      }
      for difference in reversal.changes {
        let (model, key) = (difference.model, difference.key)
        let state = try transaction.state(model, key)
        let exists = state.exists(transaction.rules(model))
        if difference.kind == .removed {
          // Alone: what it takes along stands among the changes.
          if exists { try transaction.record(.delete, model, key, state: state, milliseconds: nil) }
          continue
        }
        let fields = difference.descriptions(description).map { ($0.field, $0.to) }
        try transaction.perform(
          Mutation(
            exists ? .update : .create, model: model.name, key: schema.json(of: key, model: model),
            fields: fields))
      }
      return transaction.events.count
    }
  }
}
