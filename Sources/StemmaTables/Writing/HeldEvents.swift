import StemmaEvents
import StemmaMerge

/// Events of one record that arrived before an event that they depend on, and wait for it.
///
/// A log's files have the events of each stream in order, but one stream may be ahead of another
/// that it builds on. If an event waits, all later events of its stream wait too: a state ignores
/// events before its stream's last event as repetitions.
struct HeldEvents {
  private var events: [Event] = []

  var isEmpty: Bool { events.isEmpty }

  /// Traps if an event could be applied before an earlier one of its stream.
  func checkInvariants() {
    var last: [Origin: SequenceNumber] = [:]
    for event in events {
      precondition(event.id.sequence > last[event.id.origin] ?? .zero, "each stream stays in its order")
      last[event.id.origin] = event.id.sequence
    }
  }

  /// Applies the event, or keeps it for later.
  mutating func apply(
    _ event: Event, to state: inout RecordState, _ rules: MergeRules
  ) throws(MergeError) {
    if try !canBeApplied(event, to: &state, rules, behind: events) { events.append(event) }
  }

  /// Applies the waiting events. `leavesOut`: skips events that lack another one, or else throws.
  mutating func applyAll(
    to state: inout RecordState, _ rules: MergeRules, leavesOut: Bool
  ) throws(MergeError) {
    while !events.isEmpty {
      var waiting: [Event] = []
      for event in events where try !canBeApplied(event, to: &state, rules, behind: waiting) {
        waiting.append(event)
      }
      if waiting.count == events.count {
        if !leavesOut { _ = try state.apply(waiting[0], rules) }
        waiting.removeFirst()
      }
      events = waiting
    }
  }

  /// Applies the event if no dependency is missing. False if it has to wait.
  private func canBeApplied(
    _ event: Event, to state: inout RecordState, _ rules: MergeRules, behind waiting: [Event]
  ) throws(MergeError) -> Bool {
    if waiting.contains(where: { $0.id.origin == event.id.origin }) { return false }
    do { _ = try state.apply(event, rules) } catch {
      switch error {
      // The highest permitted version rises with the missing events.
      case .gap, .wrongVersion: return false
      case .coversItself, .fork, .malformed: throw error
      }
    }
    return true
  }
}
