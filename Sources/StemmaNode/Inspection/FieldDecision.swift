import StemmaEvents
import StemmaMerge
import StemmaSchema

/// The reason why a field or a record's existence has the shown value, in words for people.
package struct FieldDecision: Sendable {
  package typealias Candidate = ConflictDescription.Candidate

  /// The name of the register that holds a record's existence, where a field is expected. A field
  /// or relationship of the model with this name takes precedence.
  package static let existence = "existence"

  /// Returns its name beside the fields of a model: `_exists` if one of them is named `existence`.
  package static func existence(in model: Model?) -> String {
    isExistence(existence, in: model) ? existence : Event.existenceField
  }

  /// Whether a name means existence. `_exists` always does, because no field can have that name.
  package static func isExistence(_ name: String, in model: Model?) -> Bool {
    if name == Event.existenceField { return true }
    return name == existence && model?.field(named: name) == nil && model?.relationship(named: name) == nil
  }

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

extension Node {
  /// The decisions about existence and, unless the record is deleted without conflict, about all
  /// fields in schema order. If events of the record may be lost, uses the state in the tables.
  package func decisions(about life: RecordLife) throws(NodeError) -> [FieldDecision] {
    var state = try life.state()
    if life.missing != nil {
      state = try reading { try $0.state(of: life.key, in: life.model) } ?? state
    }
    return decisions(life.model, state, life.rules) { life.event($0) }
  }

  /// As above, from the tables alone, without commit authors. Nil if the record never existed.
  package func decisions(about key: Key, in model: Model) throws(NodeError) -> [FieldDecision]? {
    try reading { reader in
      guard let state = try reader.state(of: key, in: model) else { return nil }
      return decisions(model, state, MergeRules(model)) { _ in nil }
    }
  }

  private func decisions(
    _ model: Model, _ state: RecordState, _ rules: MergeRules, _ event: (EventID) -> LoggedEvent?
  ) -> [FieldDecision] {
    let conflicts = state.conflicts(rules)
    var decisions = [
      decision(on: nil, state, rules, isConflict: conflicts.contains { $0.kind == .delete }, event)
    ]
    guard state.exists(rules) || state.existenceIsInConflict else { return decisions }
    for (index, field) in model.fields.enumerated() where !model.isKeyField(index) {
      let isConflict = conflicts.contains { $0.differing.contains(field.storedName) }
      decisions.append(decision(on: field, state, rules, isConflict: isConflict, event))
    }
    return decisions
  }

  private func decision(
    on field: Field?, _ state: RecordState, _ rules: MergeRules, isConflict: Bool,
    _ event: (EventID) -> LoggedEvent?
  ) -> FieldDecision {
    let decision = state.decision(on: field?.storedName, rules)
    let description = description
    func value(_ candidate: StemmaMerge.Candidate) -> Value {
      guard let field else { return .bool(candidate.exists) }
      return candidate.values.first { $0.field == field.storedName }?.value ?? .null
    }
    var candidates = decision.candidates
    // Times that merge automatically are shown from the write that holds the shown value.
    if let shown = candidates.firstIndex(where: { value($0) == decision.shown }), shown > 0 {
      candidates.insert(candidates.remove(at: shown), at: 0)
    }
    let deletions = field == nil ? candidates.filter { !$0.exists }.map { ($0.id, $0.version) } : []
    return FieldDecision(
      field: field?.name, shown: decision.shown.json, rule: decision.rule,
      candidates: candidates.enumerated().map { index, candidate in
        FieldDecision.Candidate(
          number: index + 1, value: value(candidate).json, id: candidate.id,
          isResolution: event(candidate.id)?.event.isDecision ?? (candidate.operation == .resolve),
          event: description.name(candidate.id),
          version: candidate.version.rawValue, timestamp: candidate.timestamp,
          time: description.time(candidate.timestamp),
          origin: metadata.displayName(of: candidate.id.origin), author: event(candidate.id)?.message.author,
          saw: candidate.exists
            ? (event(candidate.id)?.event.seen(of: deletions) ?? []).map(description.name) : [])
      }, isConflict: isConflict)
  }
}
