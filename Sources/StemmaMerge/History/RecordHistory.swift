import StemmaEvents

/// The history of one record: its events with causes before effects, and the state before each.
///
/// The order is (version, origin, sequence) if versions exceed those of the seen events, as every
/// writer ensures. An event is omitted if its context names a missing event. A past state may lack
/// a cause whose clock was ahead of its effect's; the node could not show the effect then.
package struct RecordHistory: Sendable {
  package let events: [Event]
  let rules: MergeRules

  /// Accepts the events of one record in any order, and repeatedly. O(n log n).
  package init(_ events: [Event], _ rules: MergeRules) {
    self.rules = rules
    var ids = Set<EventID>()
    let ordered = events.sorted { ($0.version, $0.id) < ($1.version, $1.id) }
      .filter { ids.insert($0.id).inserted }
    var complete: [Event] = []
    var present = Set<EventID>()
    for place in CausalOrder(ordered, Array(ordered.indices)).places {
      let event = ordered[place]
      guard event.context.entries.allSatisfy({ present.contains(EventID($0.origin, $0.sequence)) }) else {
        continue
      }
      present.insert(event.id)
      complete.append(event)
    }
    self.events = complete
  }

  package var isEmpty: Bool { events.isEmpty }

  /// The index of an event in `events`. O(n).
  package func index(of id: EventID) -> Int? { events.firstIndex { $0.id == id } }

  /// The state after all events.
  package func state() throws(MergeError) -> RecordState { try RecordState.fold(events, rules) }

  /// The parents of an event in the graph of branches, the latest first: the seen events that no
  /// other seen event has seen. O(1) for a linear history, at most O(n).
  package func parents(of index: Int) -> [Int] {
    let context = events[index].context
    var parents: [Int] = []
    var explained = Context.empty
    var place = index - 1
    while place >= 0, !explained.covers(context) {
      let event = events[place]
      if events[index].hasSeen(event), !explained.covers(event.id) {
        parents.append(place)
        explained.formUnion(event.context)
        explained.insert(event.id)
      }
      place -= 1
    }
    return parents
  }

  /// The state that the writer of an event had read. O(n).
  package func stateSeen(by index: Int) throws(MergeError) -> RecordState {
    try RecordState.fold(events[..<index].filter(events[index].hasSeen), rules)
  }

  /// Passes every event to `body`, in order, with the state that its writer had read. O(n log n)
  /// with few branches (`SeenStates`).
  package func forEachStep<Failure: Error>(
    _ wrap: (MergeError) -> Failure, _ body: (Int, RecordState) throws(Failure) -> Void
  ) throws(Failure) {
    var states = SeenStates(self)
    for index in events.indices {
      let seen: RecordState
      do throws(MergeError) { seen = try states.next() } catch { throw wrap(error) }
      try body(index, seen)
    }
  }

  /// The change of each field that an event assigns: the value that its writer had read, and the
  /// new one. A deletion removes every shown value.
  package func changes(of index: Int, from seen: RecordState) -> [FieldChange] {
    let event = events[index]
    if event.operation == .delete {
      return seen.values(rules).map { FieldChange(field: $0.field, from: $0.value, to: .null) }
    }
    return event.assignments.compactMap { assignment in
      if rules.isIgnored(assignment.field) { return nil }
      let before = seen.exists(rules) ? seen.value(of: assignment.field, rules) : .null
      return FieldChange(field: assignment.field, from: before, to: assignment.value)
    }
  }
}

/// One field before and after an event, or between two states.
package struct FieldChange: Hashable, Sendable {
  /// The field's stored name.
  package var field: String
  package var from: Value
  package var to: Value

  package init(field: String, from: Value, to: Value) {
    self.field = field
    self.from = from
    self.to = to
  }
}
