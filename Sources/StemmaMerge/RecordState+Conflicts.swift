import StemmaEvents
import StemmaSchema

/// A register with differing siblings, which needs a decision.
package struct RegisterConflict: Hashable, Sendable {
  package enum Kind: String, Sendable {
    /// Concurrent writes to fields differ.
    case value
    /// The record was deleted, and concurrently changed or recreated.
    case delete
  }

  package var kind: Kind
  /// The stored names of all fields of the register, in the rules' order; empty for existence.
  package var fields: [String]
  /// The `fields` in which the siblings differ.
  package var differing: [String]
  /// The siblings, the shown one first, then from the strongest to the weakest.
  package var candidates: [Candidate]
}

/// One sibling of a register.
package struct Candidate: Hashable, Sendable {
  package var id: EventID
  package var version: Version
  package var timestamp: Timestamp
  package var operation: EventOperation
  /// Whether the record exists after the event.
  package var exists: Bool
  /// A value for each field of the register; the default or null if the event assigns none.
  package var values: [Assignment]
}

extension RecordState {
  /// The open conflicts: existence first, then fields in the rules' order, then fields that the
  /// schema lacks. Fields are included if the record exists or its existence is in conflict.
  package func conflicts(_ rules: MergeRules) -> [RegisterConflict] {
    guard hasSeveralSiblings else { return [] }
    var conflicts: [RegisterConflict] = []
    if existenceIsInConflict {
      let candidates = candidates(of: MergeRules.existence, fields: [], rules)
      conflicts.append(RegisterConflict(kind: .delete, fields: [], differing: [], candidates: candidates))
    } else if !exists(rules) {
      return []
    }
    for (register, fields) in fieldsByRegister(rules) where siblings(of: register).count > 1 {
      let differing = fields.filter { differs($0, in: register, rules) }
      if differing.isEmpty { continue }
      conflicts.append(
        RegisterConflict(
          kind: .value, fields: fields.map { name(of: $0, rules) },
          differing: differing.map { name(of: $0, rules) },
          candidates: candidates(of: register, fields: fields, rules)))
    }
    return conflicts
  }

  /// The stored names of the fields whose values differ in an open conflict. `Event.existenceField`
  /// comes first if the existence of the record is in conflict.
  package func fieldsInConflict(_ rules: MergeRules) -> [String] {
    conflicts(rules).flatMap { $0.kind == .delete ? [Event.existenceField] : $0.differing }
  }

  /// The siblings of the register of a field, as in a conflict; even if they agree.
  package func siblings(of field: String, _ rules: MergeRules) -> [Candidate] {
    let unnamed = rules.isOptimistic ? MergeRules.firstRegister : MergeRules.base
    let register = index(of: field, rules).map { rules.register(of: $0) } ?? unnamed
    let fields = fieldsByRegister(rules).first { $0.register == register }?.fields ?? []
    return candidates(of: register, fields: fields, rules)
  }

  /// The value of one field in each sibling, sorted by event id; cheaper than `siblings(of:)`.
  package func valuesBySibling(of field: String, _ rules: MergeRules) -> [(id: EventID, value: Value)] {
    let index = index(of: field, rules)
    let unnamed = rules.isOptimistic ? MergeRules.firstRegister : MergeRules.base
    return siblings[siblings(of: index.map { rules.register(of: $0) } ?? unnamed)].map { sibling in
      (writes[Int(sibling.write)].id, index.map { value(field: $0, write: sibling.write, rules) } ?? .null)
    }
  }

  package func existenceSiblings(_ rules: MergeRules) -> [Candidate] {
    candidates(of: MergeRules.existence, fields: [], rules)
  }

  private var hasSeveralSiblings: Bool {
    zip(siblings, siblings.dropFirst()).contains { $0.register == $1.register }
  }

  /// Every register of fields, ordered by its first field.
  func fieldsByRegister(_ rules: MergeRules) -> [(register: UInt32, fields: [UInt32])] {
    var groups: [(register: UInt32, fields: [UInt32])] = []
    for field in 0..<UInt32(rules.fields.count + names.count) {
      let register = rules.register(of: field)
      // The first field numbers its register.
      let place = Int(register - MergeRules.firstRegister)
      if place < groups.count {
        groups[place].fields.append(field)
      } else {
        groups.append((register, [field]))
      }
    }
    return groups
  }

  private func differs(_ field: UInt32, in register: UInt32, _ rules: MergeRules) -> Bool {
    if rules.mergesByTime(Int(field)) { return false }
    let group = siblings(of: register)
    let first = value(field: field, write: siblings[group.lowerBound].write, rules)
    return siblings[group].dropFirst().contains { value(field: field, write: $0.write, rules) != first }
  }

  private func candidates(of register: UInt32, fields: [UInt32], _ rules: MergeRules) -> [Candidate] {
    siblings[siblings(of: register)].map(\.write)
      .sorted { isOutdone($1, by: $0, in: register, rules) }
      .map { index in
        let write = writes[Int(index)]
        return Candidate(
          id: write.id, version: write.version, timestamp: write.timestamp, operation: write.operation,
          exists: write.exists,
          values: fields.map { Assignment(name(of: $0, rules), value(field: $0, write: index, rules)) })
      }
  }
}
