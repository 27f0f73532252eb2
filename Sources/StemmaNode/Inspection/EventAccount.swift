import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema

/// The value of one field before and after, under its declared name.
package struct ChangeDescription: Sendable {
  package var field: String
  package var from: JSON
  package var to: JSON

  package var json: JSON { .object([("field", .string(field)), ("from", from), ("to", to)]) }
}

/// The effects of an event, derived from the history of its record.
package struct EventAccount: Sendable {
  /// A deletion concurrent with a change, or the reverse.
  package struct ConcurrentWrite: Sendable {
    package var event: String
    /// Whether this event had seen the other, or the reverse. An update cannot undo a deletion.
    package var wasSeen: Bool
    package var hasSeen: Bool
  }

  /// The result of one write of the event.
  package struct Outcome: Sendable {
    /// Nil for the record's existence.
    package var field: String?
    package var fate: Fate
    /// The event that won over it or superseded it.
    package var by: String?
    /// For existence: the concurrent events of the opposite kind.
    package var concurrentWrites: [ConcurrentWrite] = []

    package var json: JSON {
      let state: String
      var rule: String?
      switch fate {
      case .shown: state = "shown"
      case .outdone(_, let decision):
        state = "outdone"
        rule = decision.name
      case .superseded: state = "superseded"
      }
      return .object(
        [
          ("field", field.map { .string($0) } ?? .null), ("state", .string(state)),
          ("by", by.map { .string($0) } ?? .null), ("rule", rule.map { .string($0) } ?? .null),
        ]
          + (concurrentWrites.isEmpty
            ? [] : [("against", .array(concurrentWrites.map { .string($0.event) }))]))
    }
  }

  package var changes: [ChangeDescription]
  /// The events that this one directly depends on.
  package var parents: [EventID]
  /// The concurrent events: neither had seen the other.
  package var concurrent: [EventID]
  package var outcomes: [Outcome]
}

extension Node {
  /// Returns the effects of an event in a record's life.
  package func account(of id: EventID, in life: RecordLife) throws(NodeError) -> EventAccount? {
    let history = life.history
    guard let index = history.index(of: id) else { return nil }
    let description = description
    do throws(MergeError) {
      let event = history.events[index]
      let seen = try history.stateSeen(by: index)
      let state = try history.state()
      let fields: [String?] = event.operation == .delete ? [nil] : [nil] + event.assignments.map(\.field)
      return EventAccount(
        changes: changes(of: index, in: life, from: seen),
        parents: history.parents(of: index).map { history.events[$0].id },
        concurrent: history.events.filter {
          $0.id != id && !event.hasSeen($0) && !$0.hasSeen(event)
        }.map(\.id),
        outcomes: fields.compactMap { field in
          guard let fate = history.fate(of: index, field: field, in: state) else { return nil }
          var by: EventID?
          switch fate {
          case .shown: break
          case .outdone(let winner, _): by = winner
          case .superseded(let later): by = later
          }
          return EventAccount.Outcome(
            field: field.map { description.fieldName($0, life.model) }, fate: fate,
            by: by.map(description.name),
            concurrentWrites: field == nil ? concurrentWrites(of: index, in: history, state) : [])
        })
    } catch { throw .merge(error, life.model, life.key) }
  }

  private func concurrentWrites(
    of index: Int, in history: RecordHistory, _ state: RecordState
  ) -> [EventAccount.ConcurrentWrite] {
    let event = history.events[index]
    return history.concurrentWrites(of: index, field: nil, in: state).map { id in
      let other = history.index(of: id).map { history.events[$0] }
      return EventAccount.ConcurrentWrite(
        event: description.name(id), wasSeen: other.map(event.hasSeen) ?? false,
        hasSeen: other?.hasSeen(event) ?? false)
    }
  }

  /// Calls `body` with each event of a life and its changes, in order.
  package func forEachStep(
    of life: RecordLife, _ body: (LoggedEvent, [ChangeDescription]) throws -> Void
  ) throws(NodeError) {
    try Self.wrapping {
      try life.history.forEachStep({ NodeError.merge($0, life.model, life.key) as any Error }) {
        (index, seen) throws(any Error) in
        guard let noted = life.event(life.history.events[index].id) else { return }
        try body(noted, changes(of: index, in: life, from: seen))
      }
    }
  }

  func changes(of index: Int, in life: RecordLife, from seen: RecordState) -> [ChangeDescription] {
    let description = description
    // An event may write an unchanged value; if the whole record is one register, it always does.
    return life.history.changes(of: index, from: seen).filter { $0.from != $0.to }.map {
      ChangeDescription(
        field: description.fieldName($0.field, life.model), from: $0.from.json, to: $0.to.json)
    }
  }
}
