import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaNode
import StemmaSchema

/// The changes and parents of many events, determined in batches.
///
/// The effect of an event depends on the whole earlier life of its record.
package struct EventAccounts {
  private struct Step {
    var changes: [ChangeDescription]
    var parents: [LoggedEvent]
  }

  private let description: EventDescription
  /// By partition, because event ids are unique only within one.
  private var steps: [Partition: [EventID: Step]] = [:]

  /// Accounts for the events of models in the schema. Skips corruption; the reader of the events
  /// reports missing ones.
  package init(of events: [Event], in node: Node) throws(NodeError) {
    description = node.description
    var wanted: [RecordKey: Set<EventID>] = [:]
    for event in events where description.model(of: event) != nil {
      wanted[RecordKey(event), default: []].insert(event.id)
    }
    try node.forEachReadableLife(of: Array(wanted.keys)) { (record, life) throws(NodeError) in
      try add(wanted[record, default: []], of: life, in: record.partition, node)
    }
  }

  private mutating func add(
    _ ids: Set<EventID>, of life: RecordLife, in partition: Partition, _ node: Node
  ) throws(NodeError) {
    let history = life.history
    var found: [(EventID, Step)] = []
    try history.forEachStep({ NodeError.merge($0, life.model, life.key) }) {
      (index, seen) throws(NodeError) in
      let id = history.events[index].id
      guard ids.contains(id) else { return }
      found.append(
        (
          id,
          Step(
            changes: node.changes(of: index, in: life, from: seen),
            parents: history.parents(of: index).compactMap { life.event(history.events[$0].id) })
        ))
    }
    for (id, step) in found { steps[partition, default: [:]][id] = step }
  }

  /// The changes of an event; from null for a model outside of the schema. Nil if corruption took
  /// one of its causes.
  package func changes(of event: Event) -> [ChangeDescription]? {
    if let step = steps[event.partition]?[event.id] { return step.changes }
    if description.model(of: event) != nil { return nil }
    return event.assignments.map { ChangeDescription(field: $0.field, from: .null, to: $0.value.json) }
  }

  /// Whether the event's own context does not determine its parents.
  package static func isNeeded(forParentsOf event: Event) -> Bool { event.context.entries.count > 1 }

  /// The events that it directly depends on, the latest first.
  package func parents(of event: Event) -> [EventID] {
    // A context with one entry names the only parent.
    if !Self.isNeeded(forParentsOf: event) {
      return event.context.entries.map { EventID($0.origin, $0.sequence) }
    }
    return (knownParents(of: event) ?? []).map(\.event.id)
  }

  /// The same, as stored in the log. Nil if the event has no account, or lost a cause.
  package func knownParents(of event: Event) -> [LoggedEvent]? {
    steps[event.partition]?[event.id]?.parents
  }
}
