import StemmaEvents
import StemmaSchema

/// A second merge, derived only from the definition: it keeps all events and compares every pair.
///
/// A sibling is a write that no other write of its register has seen. Shares no code with
/// `RecordState`. Siblings are indexes of the list of events.
package final class NaiveMerge: Sendable {
  package let model: Model

  package init(_ model: Model) { self.model = model }

  package func outcome(of events: [Event]) -> MergeOutcome {
    // Sets of events are bit masks.
    let all = events.indices
    precondition(all.count <= UInt32.bitWidth, "a history is small")
    func those(_ isOne: (Int) -> Bool) -> UInt32 { all.reduce(0) { isOne($1) ? $0 | 1 << $1 : $0 } }
    let seers = events.map { a in those { events[$0].context.covers(a.id) } }
    let settling = those { settlesExistence(events[$0]) }
    let existence = all.filter {
      (events[$0].operation == .delete ? seers[$0] & settling : seers[$0]) == 0
    }
    let written = events.map(fieldsWritten)
    let fields = LawModel.fields.indices.map { field in
      let writers = those { written[$0].contains(field) }
      return all.filter { writers & 1 << $0 != 0 && seers[$0] & writers == 0 }
    }
    return outcome(of: events, existence: existence, fields: fields)
  }

  private func settlesExistence(_ event: Event) -> Bool {
    event.operation == .delete || event.operation == .create
      || event.operation == .resolve && event.assignments.contains { $0.field == "_exists" }
  }

  /// The fields that are written together with this one, as indexes of `LawModel.fields`.
  func group(_ field: Int) -> Range<Int> {
    if model.conflictPolicy == .optimistic { return LawModel.fields.indices }
    return LawModel.reference.contains(field) ? LawModel.reference : field..<field + 1
  }

  func fieldsWritten(_ event: Event) -> [Int] {
    if event.operation == .create { return Array(LawModel.fields.indices) }
    return event.assignments.flatMap { given in
      LawModel.fields.firstIndex(of: given.field).map { Array(group($0)) } ?? []
    }
  }

  private func value(_ event: Event, _ field: Int) -> Value {
    for given in event.assignments where given.field == LawModel.fields[field] { return given.value }
    return .null
  }

  /// The outcome of given siblings. `wins`: another order, for merges with a planted bug.
  func outcome(
    of events: [Event], existence: [Int], fields: [[Int]], wins: ((Event, Event) -> Bool)? = nil
  ) -> MergeOutcome {
    let ranked = existence.sorted { a, b in
      if model.deletePolicy != .byVersion, isDeletion(events[a]) != isDeletion(events[b]) {
        return isDeletion(events[a]) == (model.deletePolicy == .deleteWins)
      }
      return wins?(events[a], events[b]) ?? isAbove(events[a], events[b])
    }
    var outcome = MergeOutcome(
      context: Context(), version: .zero, latest: .zero,
      exists: ranked.first.map { !isDeletion(events[$0]) } ?? false,
      existence: siblings(existence, events) { .bool(!isDeletion($0)) }, fields: [], conflicts: [])
    for event in events {
      outcome.context.insert(event.id)
      outcome.version = max(outcome.version, event.version)
      outcome.latest = max(outcome.latest, event.timestamp)
    }
    let isInConflict =
      existence.contains { isDeletion(events[$0]) } && existence.contains { !isDeletion(events[$0]) }
    if isInConflict { outcome.conflicts.append(.init(fields: [], candidates: ranked.map { events[$0].id })) }
    for field in fields.indices {
      let ranked = fields[field].sorted {
        wins?(events[$0], events[$1]) ?? isFieldAbove(events[$0], events[$1])
      }
      let shown =
        isTime(field)
        ? timeShown(field, ranked.map { value(events[$0], field) })
        : ranked.first.map { value(events[$0], field) } ?? .null
      outcome.fields.append(
        .init(
          name: LawModel.fields[field], siblings: siblings(ranked, events) { value($0, field) }, shown: shown)
      )
      guard outcome.exists || isInConflict, ranked.count > 1, group(field).lowerBound == field else {
        continue
      }
      let differing = group(field).filter { other in
        !isTime(other) && ranked.contains { value(events[$0], other) != value(events[ranked[0]], other) }
      }
      if differing.isEmpty { continue }
      outcome.conflicts.append(
        .init(fields: differing.map { LawModel.fields[$0] }, candidates: ranked.map { events[$0].id }))
    }
    return outcome
  }

  private func siblings(
    _ places: [Int], _ events: [Event], _ value: (Event) -> Value
  ) -> [MergeOutcome.Sibling] {
    places.map { .init(id: events[$0].id, value: value(events[$0])) }.sorted { $0.id < $1.id }
  }

  private func isDeletion(_ event: Event) -> Bool { event.operation == .delete }

  private func isAbove(_ a: Event, _ b: Event) -> Bool {
    (a.version, a.timestamp, a.id) > (b.version, b.timestamp, b.id)
  }

  private func isFieldAbove(_ a: Event, _ b: Event) -> Bool {
    model.conflictPolicy == .latest
      ? (a.timestamp, a.version, a.id) > (b.timestamp, b.version, b.id) : isAbove(a, b)
  }

  private func isTime(_ field: Int) -> Bool { field == LawModel.createdAt || field == LawModel.updatedAt }

  private func timeShown(_ field: Int, _ values: [Value]) -> Value {
    let ranked = values.compactMap { if case .string(let text) = $0 { text } else { nil } }
      .sorted { (LawModel.times[$0] ?? 0, $0) < (LawModel.times[$1] ?? 0, $1) }
    return (field == LawModel.createdAt ? ranked.first : ranked.last).map(Value.string) ?? .null
  }
}
