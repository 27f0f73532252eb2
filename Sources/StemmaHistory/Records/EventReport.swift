import StemmaEvents
import StemmaNode

/// Everything about one event: its effects, and the places where it is durable.
package struct EventReport: Sendable {
  package let noted: LoggedEvent
  /// Nil if the schema lacks the model, or if events of the record are lost.
  package let account: EventAccount?
  package let places: EventPlaces
  /// The losses that may concern the record.
  package let missing: MissingEvents?

  package init(_ noted: LoggedEvent, in node: Node) throws(NodeError) {
    self.noted = noted
    var account: EventAccount?
    var missing: MissingEvents?
    if let model = node.description.model(of: noted.event) {
      let life = try node.readableLife(of: noted.event.key, in: model)
      missing = life.missing
      // The outcome may depend on missing events.
      if missing == nil { account = try node.account(of: noted.event.id, in: life) }
    }
    (self.account, self.missing) = (account, missing)
    places = try EventPlaces(of: noted.event.id, in: noted.event.partition, node)
  }

  /// The form of `show --json`. `withPlaces`: whether the reader may know the peers.
  package func json(_ description: EventDescription, withPlaces: Bool = true) -> JSON {
    let event = description.json(noted.stored, noted.message)
      .adding(withPlaces ? [("durability", places.json)] : [])
    guard let account else { return event }
    func names(_ ids: [EventID]) -> JSON { .array(ids.map { .string(description.name($0)) }) }
    return event.adding([
      ("changes", .array(account.changes.map(\.json))), ("parents", names(account.parents)),
      ("concurrent", names(account.concurrent)),
      ("outcomes", .array(account.outcomes.map(\.json))),
    ])
  }
}
