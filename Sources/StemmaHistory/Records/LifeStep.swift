import StemmaEvents
import StemmaNode

/// One event of a record's life, with its effects.
package struct LifeStep: Sendable {
  package var noted: LoggedEvent
  /// Nil, like `parents`, if corruption destroyed a cause of the event.
  package var changes: [ChangeDescription]?
  package var parents: [EventID]?

  package var event: Event { noted.event }

  /// The form of `history --json`.
  package func json(_ description: EventDescription) -> JSON {
    description.json(noted.stored, noted.message).adding([
      ("changes", changes.map { .array($0.map(\.json)) } ?? .null),
      ("parents", parents.map { .array($0.map { .string(description.name($0)) }) } ?? .null),
    ])
  }
}

extension RecordLife {
  /// All readable events, by position.
  package func steps(_ node: Node) throws(NodeError) -> [LifeStep] {
    // The steps have the order of the history.
    var steps: [LifeStep] = []
    try node.forEachStep(of: self) { noted, changes in
      let parents = history.parents(of: steps.count).map { history.events[$0].id }
      steps.append(LifeStep(noted: noted, changes: changes, parents: parents))
    }
    steps += unexplained.map { LifeStep(noted: $0) }
    return steps.sorted { $0.noted.stored.position < $1.noted.stored.position }
  }
}
