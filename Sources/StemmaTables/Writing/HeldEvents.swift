import StemmaEvents
import StemmaMerge

/// Events of one record that came before one that they need, and wait for it.
///
/// The files of a log give the events of each stream in its order, but one stream may come ahead of another that it
/// builds on. An event behind one of its own stream that waits has to wait too: a state takes what stands before
/// its stream's last event for a repetition.
struct HeldEvents {
  private var events: [Event] = []

  var isEmpty: Bool { events.isEmpty }

  /// Traps if an event would be taken in before one of its own stream.
  func checkInvariants() {
    var last: [Origin: Sequence] = [:]
    for event in events {
      precondition(event.dot.sequence > last[event.dot.origin] ?? .zero, "each stream stays in its order")
      last[event.dot.origin] = event.dot.sequence
    }
  }

  /// Takes the next event in, or keeps it for later.
  mutating func apply(
    _ event: Event, to state: inout RecordState, _ rules: MergeRules
  ) throws(MergeError) {
    if try !canBeApplied(event, to: &state, rules, behind: events) { events.append(event) }
  }

  /// Takes in what has waited. `leavesOut`: what still lacks another event is left out, or else it is an error.
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

  /// Applies it if nothing is missing; false if it has to wait.
  private func canBeApplied(
    _ event: Event, to state: inout RecordState, _ rules: MergeRules, behind waiting: [Event]
  ) throws(MergeError) -> Bool {
    if waiting.contains(where: { $0.dot.origin == event.dot.origin }) { return false }
    do { _ = try state.apply(event, rules) } catch {
      switch error {
      // The highest version that there can be rises with what is missing.
      case .gap, .wrongVersion: return false
      case .coversItself, .fork, .malformedState: throw error
      }
    }
    return true
  }
}
