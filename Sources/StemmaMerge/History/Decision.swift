import StemmaEvents
import StemmaSchema

/// Why a field, or existence, is shown as it is.
package struct Decision: Hashable, Sendable {
  /// What decided between the siblings. The order of the cases is the order in which the rules are asked.
  package enum Rule: String, Sendable, CaseIterable {
    /// Nobody has written it.
    case unwritten
    /// There is one write that no other has superseded.
    case only
    /// There are several, of equal values.
    case agree
    /// `createdAt` and `updatedAt` merge by the time that they mean.
    case earliest
    case latest
    /// The model's policy for deletions.
    case deleteWins
    case updateWins
    /// The longer history.
    case version
    /// The later time, between equal versions; before them under LATEST.
    case timestamp
    /// The higher origin: arbitrary, and the same everywhere.
    case origin
    /// The later of two writes of one node that had not seen each other.
    case sequence
  }

  package var rule: Rule
  /// The siblings, the winner first. Their values are those of all fields of the register.
  package var candidates: [Candidate]
  /// The value that is shown; of existence a Boolean.
  package var shown: Value
}

extension RecordState {
  /// Why a field (stored name), or existence (nil), is shown as it is.
  package func decision(on field: String?, _ rules: MergeRules) -> Decision {
    let shown = field.map { value(of: $0, rules) } ?? .bool(exists(rules))
    if let field, showsDefault(field, rules) {
      return Decision(rule: .unwritten, candidates: [], shown: shown)
    }
    let candidates = field.map { siblings(of: $0, rules) } ?? existenceSiblings(rules)
    return Decision(rule: rule(of: field, candidates, rules), candidates: candidates, shown: shown)
  }

  /// Whether a field shows its default because no event that counts has written it.
  private func showsDefault(_ field: String, _ rules: MergeRules) -> Bool {
    guard let index = index(of: field, rules), rules.defaultValue(ofField: Int(index)) != nil else {
      return false
    }
    return siblings[siblings(of: rules.register(of: index))].allSatisfy {
      written(field: index, write: $0.write) == nil
    }
  }

  /// What decided between some siblings, the winner first.
  func rule(of field: String?, _ candidates: [Candidate], _ rules: MergeRules) -> Decision.Rule {
    guard let winner = candidates.first else { return .unwritten }
    guard candidates.count > 1 else { return .only }
    func value(_ candidate: Candidate) -> Value {
      guard let field else { return .bool(candidate.exists) }
      return candidate.values.first { $0.field.hasSameBytes(as: field) }?.value ?? .null
    }
    // What the winner had to be better than: the best of those that say something else.
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
    return winner.dot.origin != other.dot.origin ? .origin : .sequence
  }
}
