import StemmaEvents
import StemmaMerge
import StemmaSchema

/// The resolution of one conflict.
package enum Resolution: Sendable {
  /// The candidate with this number in the list of `conflicts`; 1 is the shown one.
  case take(Int)
  /// The candidate that this event wrote.
  case takeEvent(EventID)
  case set(JSON)
  /// Keeps the record despite a concurrent deletion.
  case keep
  case delete
  case shown
  /// The candidate with the latest timestamp.
  case newest
}

extension WriteTransaction {
  /// Resolves the conflict of one register: writes an event that has seen all candidates.
  ///
  /// - Parameter field: the name of a field or of a reference's relationship. Nil selects the only
  ///   conflict, or the only one of `kind`.
  package func resolve(
    _ modelName: String, _ keyJSON: JSON, field: String?, kind: RegisterConflict.Kind? = nil,
    _ resolution: Resolution
  ) throws(NodeError) {
    let model = try model(modelName)
    let key = try key(keyJSON, of: model)
    let state = try state(model, key)
    let rules = self.rules(model)
    let conflicts = state.conflicts(rules).filter { kind == nil || $0.kind == kind }
    let conflict: RegisterConflict
    switch resolution {
    case .keep, .delete:
      guard let found = conflicts.first(where: { $0.kind == .delete }) else {
        throw .mutation(
          .noConflict(
            model: model.name, key: text(key, model), field: nil,
            kind: RegisterConflict.Kind.delete.rawValue))
      }
      conflict = found
    default:
      let stored = field.map { model.field(named: $0)?.storedName ?? $0 }
      let relationship = field.flatMap { model.relationship(named: $0) }
      let matching = conflicts.filter { conflict in
        guard let stored else { return true }
        if let relationship {
          let free = storedNames(model, model.freeReferenceFields(of: relationship))
          return conflict.fields.contains { free.contains($0) }
        }
        return conflict.fields.contains(stored)
      }
      guard let first = matching.first else {
        throw .mutation(
          .noConflict(model: model.name, key: text(key, model), field: field, kind: kind?.rawValue))
      }
      guard matching.count == 1 else {
        throw .mutation(
          .severalConflicts(
            model: model.name, key: text(key, model),
            names: matching.map { name(of: $0, model) }))
      }
      conflict = first
    }
    try resolve(conflict, resolution, field, model, key, state)
  }

  /// The open value and delete conflicts of a record.
  package func conflicts(_ model: Model, _ key: Key) throws(NodeError) -> [RegisterConflict] {
    try state(model, key).conflicts(rules(model))
  }

  /// Resolves all conflicts of a record.
  package func resolveAll(_ model: Model, _ key: Key, _ resolution: Resolution) throws(NodeError) {
    // Each resolution changes the state for the next one.
    while let conflict = try conflicts(model, key).first {
      try resolve(conflict, resolution, nil, model, key, try state(model, key))
    }
  }

  /// Resolves one known conflict.
  package func resolve(
    _ conflict: RegisterConflict, _ resolution: Resolution, _ field: String?, _ model: Model, _ key: Key,
    _ state: RecordState
  ) throws(NodeError) {
    let rules = self.rules(model)
    let outcome: (operation: EventOperation, assignments: [Assignment])
    switch (conflict.kind, resolution) {
    case (.delete, .keep), (.delete, .set(.bool(true))):
      outcome = (.resolve, [Assignment(Event.existenceField, .bool(true))])
    case (.delete, .delete), (.delete, .set(.bool(false))):
      return try remove(model, key, seen: state, decides: true, milliseconds: nil)
    case (.delete, .set):
      throw .mutation(.wrongShape("whether the record exists is decided by --keep, --delete or --take N"))
    case (.value, .set(let json)):
      outcome = (.resolve, state.completed(try given(json, conflict, field, model, key), rules))
    default:
      let candidate = try candidate(conflict, resolution, field, model, key)
      // A chosen deletion also treats the record's children, like any other.
      if conflict.kind == .delete, !candidate.exists {
        return try remove(model, key, seen: state, decides: true, milliseconds: nil)
      }
      outcome = state.resolution(of: conflict, taking: candidate, rules)
    }
    try record(
      outcome.operation, model, key, state: state, assignments: outcome.assignments, milliseconds: nil)
  }

  /// The assignments of a value that a person supplies, for a field or a reference.
  private func given(
    _ json: JSON, _ conflict: RegisterConflict, _ field: String?, _ model: Model, _ key: Key
  ) throws(NodeError) -> [Assignment] {
    guard let name = field ?? (conflict.fields.count == 1 ? declaredName(conflict.fields[0], model) : nil)
    else {
      throw .mutation(
        .severalConflicts(
          model: model.name, key: text(key, model), names: conflict.fields.map { declaredName($0, model) }))
    }
    if let declared = model.field(named: name) {
      do {
        return [Assignment(declared.storedName, try schema.value(json, for: declared, of: model.name))]
      } catch {
        throw .mutation(.value(error.named(by: text(key, model))))
      }
    }
    guard let relationship = model.relationship(named: name), relationship.storesReference else {
      guard conflict.fields.contains(name), let value = Value(json, like: conflict.values(of: name)) else {
        throw .mutation(.unknownField(model: model.name, field: name, known: model.fields.map(\.name)))
      }
      return [Assignment(name, value)]
    }
    let target = json.isNull ? nil : try self.key(json, of: try self.model(relationship.target))
    return try reference(model, key, relationship, target)
  }

  /// The name that distinguishes a conflict from others of its record.
  private func name(of conflict: RegisterConflict, _ model: Model) -> String {
    if conflict.kind == .delete { return ExistenceName.name(in: model) }
    // A whole-record conflict has no name.
    if model.conflictPolicy == .optimistic { return "--kind \(conflict.kind.rawValue)" }
    let names = conflict.fields.map { declaredName($0, model) }
    let reference = model.relationships.first { relationship in
      relationship.storesReference && names.contains { relationship.referenceFields.contains($0) }
    }
    return (names.count > 1 ? reference?.name : nil) ?? names.joined(separator: ", ")
  }

  private func declaredName(_ stored: String, _ model: Model) -> String {
    model.fields.first { $0.storedName == stored }?.name ?? stored
  }

  private func candidate(
    _ conflict: RegisterConflict, _ resolution: Resolution, _ field: String?, _ model: Model, _ key: Key
  ) throws(NodeError) -> Candidate {
    let found: Candidate?
    let asked: String
    switch resolution {
    case .take(let number):
      found = conflict.candidates.indices.contains(number - 1) ? conflict.candidates[number - 1] : nil
      asked = String(number)
    case .takeEvent(let id):
      found = conflict.candidates.first { $0.id == id }
      asked = id.description
    case .newest:
      found = conflict.candidates.max { ($0.timestamp, $0.id) < ($1.timestamp, $1.id) }
      asked = "newest"
    case .shown, .set, .keep, .delete:
      found = conflict.candidates.first
      asked = "shown"
    }
    guard let found else {
      throw .mutation(
        .noCandidate(
          model: model.name, key: text(key, model), field: field, asked: asked,
          count: conflict.candidates.count))
    }
    return found
  }
}

extension RegisterConflict {
  /// The candidates' values of a field, by its stored name.
  fileprivate func values(of field: String) -> [Value] {
    candidates.compactMap { candidate in candidate.values.first { $0.field == field }?.value }
  }
}

extension Value {
  /// Converts a value for a field outside of the schema to the type of the other written values;
  /// nil if the types differ.
  fileprivate init?(_ json: JSON, like others: [Value]) {
    switch (others.first { !$0.isNull }, json) {
    case (_, .null): self = .null
    case (.bool, .bool(let flag)): self = .bool(flag)
    case (.int, .int(let number)): self = .int(number)
    // Large integers may arrive as text, because not every reader keeps them exact.
    case (.int, .string(let text)):
      guard let number = Int64(text) else { return nil }
      self = .int(number)
    case (.double, .int(let number)): self = .double(Double(number))
    case (.double, .number(let text)):
      guard let number = Double(text), number.isFinite else { return nil }
      self = .double(number)
    case (.string, .string(let text)): self = .string(text)
    case (.json, _): self = .json(json.canonicalText)
    default: return nil
    }
  }
}
