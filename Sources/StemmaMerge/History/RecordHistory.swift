import StemmaEvents

/// The life of one record: its events in an order that keeps causes before effects, and what each of them met.
///
/// The order is that of the fold, (version, origin, sequence). An event is left out if its context names an event
/// that is not there: a state of the past may lack a cause whose clock was ahead of its effect's, and nothing
/// was known then that could show the effect.
package struct RecordHistory: Sendable {
  package let events: [Event]
  let rules: MergeRules

  /// Takes the events of one record in any order, each as often as it likes. O(n log n).
  package init(_ events: [Event], _ rules: MergeRules) {
    self.rules = rules
    let ordered = events.sorted { ($0.version, $0.dot) < ($1.version, $1.dot) }
    var complete: [Event] = []
    var present = Set<Dot>()
    for event in ordered where !present.contains(event.dot) {
      guard event.context.entries.allSatisfy({ present.contains(Dot($0.origin, $0.sequence)) }) else {
        continue
      }
      present.insert(event.dot)
      complete.append(event)
    }
    self.events = complete
  }

  package var isEmpty: Bool { events.isEmpty }

  /// The place of an event in `events`. O(n).
  package func index(of dot: Dot) -> Int? { events.firstIndex { $0.dot == dot } }

  /// What all events together give.
  package func state() throws(MergeError) -> RecordState { try RecordState.fold(events, rules) }

  /// The events that this one has seen and that no other one that it has seen had seen: its parents in the graph
  /// of the record's branches, the latest first. O(1) where the history is linear, O(n) at most.
  package func parents(of index: Int) -> [Int] {
    let context = events[index].context
    var parents: [Int] = []
    var explained = Context.empty
    var place = index - 1
    while place >= 0, !explained.covers(context) {
      let event = events[place]
      if events[index].hasSeen(event), !explained.covers(event.dot) {
        parents.append(place)
        explained.formUnion(event.context)
        explained.insert(event.dot)
      }
      place -= 1
    }
    return parents
  }

  /// The state that the writer of an event had read. O(n).
  package func stateSeen(by index: Int) throws(MergeError) -> RecordState {
    try RecordState.fold(events[..<index].filter(events[index].hasSeen), rules)
  }

  /// Gives every event with the state that its writer had read, in order. O(n log n) where there are few branches
  /// (`SeenStates`).
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

  /// What an event did to each field that it assigns: the value that its writer had read, and the new one. A
  /// deletion takes every value that was shown.
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
