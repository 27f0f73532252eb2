import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaNode
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
