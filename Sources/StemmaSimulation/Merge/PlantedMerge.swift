import StemmaEvents
import StemmaSchema

/// Bugs that a merge could have; the laws must find each of them.
package enum PlantedBug: String, CaseIterable, Sendable {
  /// Only the strongest two of three siblings are kept.
  case dropsSibling
  /// The last of equal versions to arrive is shown.
  case breaksTiesByPosition
  /// An ordinary update that has seen a deletion supersedes it.
  case updateBuriesDeletion
  /// A higher version supersedes a lower one, even if it has not seen it.
  case supersedesByVersion
  /// A create writes only the fields that it names.
  case createKeepsFields
  /// The fields of a reference merge separately.
  case splitsReference
  /// A resolve closes all conflicts, even those that it has not seen.
  case resolveClosesAll
}

/// An incremental merge that keeps siblings as whole events, correct except for the planted bug.
package struct PlantedMerge: MergeSubject {
  package struct State: Hashable {
    var seen: [Event] = []
    var existence: [Event] = []
    /// In the order of `LawModel.fields`.
    var fields = [[Event]](repeating: [], count: LawModel.fields.count)
    /// Event ids in position order; empty unless the bug needs them.
    var relativePosition: [EventID] = []
  }

  package let policies: [Model]
  private let bug: PlantedBug?

  package init(_ policies: [Model], bug: PlantedBug?) {
    self.policies = policies
    self.bug = bug
  }

  package var empty: State { State() }

  package func apply(_ event: Event, to state: inout State) throws -> Bool {
    if state.seen.contains(event) { return false }
    let place = state.seen.firstIndex { event.id < $0.id } ?? state.seen.count
    state.seen.insert(event, at: place)
    if bug == .breaksTiesByPosition { state.relativePosition.append(event.id) }
    let settles =
      event.operation == .delete || event.operation == .create
      || event.assignments.contains { $0.field == Event.existenceField } || bug == .updateBuriesDeletion
    merge(event, into: &state.existence) { $0.operation == .delete && !settles }
    for field in LawModel.fields.indices where writes(event, field) {
      merge(event, into: &state.fields[field]) { _ in false }
    }
    return true
  }

  private func writes(_ event: Event, _ field: Int) -> Bool {
    if bug == .createKeepsFields || bug == .splitsReference && event.operation != .create {
      return event.assignments.contains { $0.field == LawModel.fields[field] }
    }
    return NaiveMerge(policies[0]).fieldsWritten(event).contains(field)
  }

  private func merge(_ event: Event, into siblings: inout [Event], keeps: (Event) -> Bool) {
    siblings.removeAll { other in
      if keeps(other) { return false }
      if bug == .supersedesByVersion { return other.version < event.version }
      if bug == .resolveClosesAll, event.operation == .resolve { return true }
      return event.hasSeen(other)
    }
    siblings.append(event)
    siblings.sort { $0.id < $1.id }
    if bug == .dropsSibling, siblings.count > 2,
      let weakest = siblings.min(by: { ($0.version, $0.id) < ($1.version, $1.id) })
    {
      siblings.removeAll { $0 == weakest }
    }
  }

  package func fold(_ events: [Event]) throws -> State? { nil }

  package func restored(_ state: State, policy: Int) throws -> State? { state }

  package func outcome(_ state: State, policy: Int) -> MergeOutcome {
    let places = { (siblings: [Event]) in siblings.compactMap(state.seen.firstIndex(of:)) }
    let arrivedLater = { (a: Event, b: Event) in
      let turn = { (event: Event) in state.relativePosition.firstIndex(of: event.id) ?? 0 }
      return (a.version.rawValue, turn(a)) > (b.version.rawValue, turn(b))
    }
    return NaiveMerge(policies[policy])
      .outcome(
        of: state.seen, existence: places(state.existence), fields: state.fields.map(places),
        wins: bug == .breaksTiesByPosition ? arrivedLater : nil)
  }
}
