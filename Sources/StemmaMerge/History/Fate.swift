import StemmaEvents

/// The outcome of a write.
package enum Fate: Hashable, Sendable {
  /// Its value is shown.
  case shown
  /// A sibling of the shown write: the rule that the other won by, or that both agree.
  case outdone(by: EventID, Decision.Rule)
  /// A later event that had seen it wrote the same register: the first such event.
  case superseded(by: EventID)
}

extension RecordHistory {
  /// The outcome of an event's write to a field (stored name), or to existence (nil). `state` is
  /// that of the whole history. Nil if the event did not write it.
  package func fate(of index: Int, field: String?, in state: RecordState) -> Fate? {
    guard writes(index, field) else { return nil }
    let event = events[index]
    let decision = state.decision(on: field, rules)
    if decision.candidates.contains(where: { $0.id == event.id }) {
      guard let winner = decision.candidates.first, winner.id != event.id,
        let own = decision.candidates.first(where: { $0.id == event.id })
      else { return .shown }
      return .outdone(by: winner.id, state.rule(of: field, [winner, own], rules))
    }
    let successor = events[(index + 1)...].indices.first { supersedes($0, event, field) }
    return successor.map { .superseded(by: events[$0].id) }
  }

  /// The siblings of a write that have other values, the strongest first. Empty if it is
  /// superseded. A deletion and an update can be siblings although one has seen the other.
  package func concurrentWrites(of index: Int, field: String?, in state: RecordState) -> [EventID] {
    let candidates = state.decision(on: field, rules).candidates
    guard let own = candidates.first(where: { $0.id == events[index].id }) else { return [] }
    return candidates.filter { state.rule(of: field, [own, $0], rules) != .agree && $0.id != own.id }.map(
      \.id)
  }

  /// Whether an event writes a field, or existence (nil).
  private func writes(_ index: Int, _ field: String?) -> Bool {
    let event = events[index]
    guard let field, event.operation != .create else { return true }
    if event.operation == .delete { return false }
    return event.assignments.contains { assignment in
      assignment.field.hasSameBytes(as: field) || rules.areWrittenTogether(assignment.field, field)
    }
  }

  private func supersedes(_ index: Int, _ earlier: Event, _ field: String?) -> Bool {
    let event = events[index]
    guard event.hasSeen(earlier), writes(index, field) else { return false }
    guard field == nil, earlier.operation == .delete else { return true }
    switch event.operation {
    case .create, .delete: return true
    case .resolve: return event.assignments.contains { $0.field.hasSameBytes(as: Event.existenceField) }
    case .update, .link, .unlink: return false
    }
  }
}

extension MergeRules {
  /// Whether two fields belong to one register.
  func areWrittenTogether(_ a: String, _ b: String) -> Bool {
    if isIgnored(a) || isIgnored(b) { return false }
    var hint = 0
    guard let first = index(of: a, hint: &hint), let second = index(of: b, hint: &hint) else {
      return isOptimistic
    }
    return registers[first] == registers[second]
  }
}
