import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema

/// What many events changed and on what they build, found out for as many of them at once as may be.
///
/// To know what an event met, all of its record's life before it is needed.
package struct EventAccounts {
  private struct Step {
    var changes: [ChangeDescription]
    var parents: [NotedEvent]
  }

  private let description: EventDescription
  /// By partition, because a dot names an event of one only.
  private var steps: [Partition: [Dot: Step]] = [:]

  /// Accounts for those of some events whose records the schema knows. Goes around damage: who reads the events says
  /// what is missing.
  package init(of events: [Event], in node: Node) throws(NodeError) {
    description = node.description
    var wanted: [RecordKey: Set<Dot>] = [:]
    for event in events where description.model(of: event) != nil {
      wanted[RecordKey(event), default: []].insert(event.dot)
    }
    try node.forEachReadableLife(of: Array(wanted.keys)) { (record, life) throws(NodeError) in
      try add(wanted[record, default: []], of: life, in: record.partition, node)
    }
  }

  private mutating func add(
    _ dots: Set<Dot>, of life: RecordLife, in partition: Partition, _ node: Node
  ) throws(NodeError) {
    let history = life.history
    var found: [(Dot, Step)] = []
    try history.forEachStep({ NodeError.merge($0, life.model, life.key) }) {
      (index, seen) throws(NodeError) in
      let dot = history.events[index].dot
      guard dots.contains(dot) else { return }
      found.append(
        (
          dot,
          Step(
            changes: node.changes(of: index, in: life, from: seen),
            parents: history.parents(of: index).compactMap { life.event(history.events[$0].dot) })
        ))
    }
    for (dot, step) in found { steps[partition, default: [:]][dot] = step }
  }

  /// What an event changed: of a model that the schema does not know from null. Nil if that cannot be told, as
  /// damage took a cause of it.
  package func changes(of event: Event) -> [ChangeDescription]? {
    if let step = steps[event.partition]?[event.dot] { return step.changes }
    if description.model(of: event) != nil { return nil }
    return event.assignments.map { ChangeDescription(field: $0.field, from: .null, to: $0.value.json) }
  }

  /// Whether the event alone does not tell on what it builds.
  package static func isNeeded(forParentsOf event: Event) -> Bool { event.context.entries.count > 1 }

  /// The events on which it builds directly, the latest first.
  package func parents(of event: Event) -> [Dot] {
    // A writer that knew of nobody else builds on its own last event.
    if !Self.isNeeded(forParentsOf: event) {
      return event.context.entries.map { Dot($0.origin, $0.sequence) }
    }
    return (knownParents(of: event) ?? []).map(\.event.dot)
  }

  /// The same as they stand in the log. Nil of an event that was not accounted for, or of which damage took a cause.
  package func knownParents(of event: Event) -> [NotedEvent]? {
    steps[event.partition]?[event.dot]?.parents
  }
}
