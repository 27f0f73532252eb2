import StemmaEvents
import StemmaSchema

/// Why the shown value of a field, or existence, was chosen.
package struct Decision: Hashable, Sendable {
  /// The rule that chose between the siblings. The cases are in the order in which the rules apply.
  package enum Rule: String, Sendable, CaseIterable {
    /// No event has written it.
    case unwritten
    /// Exactly one write is not superseded.
    case only
    /// Several siblings have equal values.
    case agree
    /// `createdAt` and `updatedAt` merge by the points in time of their values.
    case earliest
    case latest
    /// The model's policy for deletions.
    case deleteWins
    case updateWins
    /// The longer history.
    case version
    /// The later time, between equal versions; before versions under LATEST.
    case timestamp
    /// The higher origin: arbitrary, but the same on every node.
    case origin
    /// The later of two concurrent writes of one node.
    case sequence
  }

  package var rule: Rule
  /// The siblings, the winner first. Each has values for all fields of the register.
  package var candidates: [Candidate]
  /// The shown value; a Boolean for existence.
  package var shown: Value
}

extension RecordState {
  /// Why the shown value of a field (stored name), or existence (nil), was chosen.
  package func decision(on field: String?, _ rules: MergeRules) -> Decision {
    let shown = field.map { value(of: $0, rules) } ?? .bool(exists(rules))
    if let field, showsDefault(field, rules) {
      return Decision(rule: .unwritten, candidates: [], shown: shown)
    }
    let candidates = field.map { siblings(of: $0, rules) } ?? existenceSiblings(rules)
    return Decision(rule: rule(of: field, candidates, rules), candidates: candidates, shown: shown)
  }

  /// Whether a field shows its default because no sibling has a value for it.
  private func showsDefault(_ field: String, _ rules: MergeRules) -> Bool {
    guard let index = index(of: field, rules), rules.defaultValue(ofField: Int(index)) != nil else {
      return false
    }
    return siblings[siblings(of: rules.register(of: index))].allSatisfy {
      written(field: index, write: $0.write) == nil
    }
  }

  /// The rule that chose the first of some siblings, which is the winner.
  func rule(of field: String?, _ candidates: [Candidate], _ rules: MergeRules) -> Decision.Rule {
    guard let winner = candidates.first else { return .unwritten }
    guard candidates.count > 1 else { return .only }
    func value(_ candidate: Candidate) -> Value {
      guard let field else { return .bool(candidate.exists) }
      return candidate.values.first { $0.field.hasSameBytes(as: field) }?.value ?? .null
    }
    // The strongest sibling with another value than the winner.
    guard let other = candidates.first(where: { value($0) != value(winner) }) else { return .agree }
    if let field {
      var hint = 0
      let index = rules.index(of: field, hint: &hint)
      if index != nil, index == rules.createdAt { return .earliest }
      if index != nil, index == rules.updatedAt { return .latest }
      if rules.conflictPolicy == .latest, winner.timestamp != other.timestamp { return .timestamp }
    } else if rules.deletePolicy == .deleteWins {
      return .deleteWins
    } else if rules.deletePolicy == .updateWins {
      return .updateWins
    }
    if winner.version != other.version { return .version }
    if winner.timestamp != other.timestamp { return .timestamp }
    return winner.id.origin != other.id.origin ? .origin : .sequence
  }
}
