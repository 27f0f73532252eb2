import StemmaEvents
import StemmaMerge
import StemmaNode
import StemmaSchema

/// The reason why a field or a record's existence has the shown value, in words for people.
package struct FieldDecision: Sendable {
  package typealias Candidate = ConflictDescription.Candidate

  /// The declared name; nil for the record's existence.
  package var field: String?
  package var shown: JSON
  package var rule: Decision.Rule
  /// The writes of the field that no other write has seen; the shown one first.
  package var candidates: [Candidate]
  /// Whether a person must resolve it.
  package var isConflict: Bool

  package var json: JSON {
    .object([
      ("field", field.map { .string($0) } ?? .null), ("value", shown), ("rule", .string(rule.name)),
      ("conflict", .bool(isConflict)), ("candidates", .array(candidates.map(\.json))),
    ])
  }
}

extension Decision.Rule {
  /// The name in JSON and for people.
  package var name: String {
    switch self {
    case .deleteWins: "delete wins"
    case .updateWins: "update wins"
    default: rawValue
    }
  }

  /// Whether the values are times that merge automatically and never conflict.
  package var mergesTimes: Bool { self == .earliest || self == .latest }
}
