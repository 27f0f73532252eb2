import StemmaEvents
import StemmaMerge
import StemmaSchema
import StemmaTables

/// A row of a source, as stored values.
package struct SourceRow {
  package var model: Model
  package var key: Key
  package var values: [Assignment]
}

/// The result of deleting records whose rows are gone from their source.
package struct VanishedRows {
  /// Rows whose records are deleted.
  package var done: [Key] = []
  package var deleted = 0
  package var events = 0
  /// The reason why a record could not be deleted.
  package var refusal: NodeError?
}

extension WriteTransaction {
  package func sourceRow(_ mutation: Mutation) throws(NodeError) -> SourceRow {
    let model = try model(mutation.model)
    let key = try key(mutation.key, of: model)
    return SourceRow(model: model, key: key, values: try assignments(model, key, mutation.fields))
  }

  /// Writes the fields of a row whose digests are not in `last`; all fields if `last` is nil or the
  /// node never held the record. Recreates a deleted record if its row has changed since.
  ///
  /// - Parameter fields: the digests of the row's values.
  /// - Returns: the operation that was written; nil if nothing was.
  package func follow(
    _ row: SourceRow, _ last: [UInt64]?, _ fields: [UInt64], _ milliseconds: UInt64?
  ) throws(NodeError) -> EventOperation? {
    let state = try state(row.model, row.key)
    var changed = row.values
    if let last, !state.isEmpty {
      changed = zip(row.values, fields).filter { !last.contains($1) }.map(\.0)
      if changed.isEmpty { return nil }
    }
    let before = events.count
    if state.exists(rules(row.model)) {
      try update(row.model, row.key, state, changed, milliseconds)
    } else {
      try create(row.model, row.key, state, row.values, milliseconds: milliseconds)
    }
    return events.count > before ? events[before].operation : nil
  }

  package func deleteVanished(_ keys: [Key], _ model: Model) throws(NodeError) -> VanishedRows {
    var deletion = VanishedRows()
    let before = events.count
    for key in keys {
      guard key.parts.count == model.keyFields.count, isInScope(Partition(model: model, key: key)) else {
        continue
      }
      do throws(NodeError) {
        if try exists(model, key) { try delete(model, key, milliseconds: nil) }
        deletion.done.append(key)
      } catch {
        // The refusal comes before any event is recorded.
        guard case .mutation(.restricted) = error else { throw error }
        deletion.refusal = deletion.refusal ?? error
      }
    }
    deletion.events = events.count - before
    deletion.deleted = events[before...].count { $0.operation == .delete }
    return deletion
  }
}

/// A reference to no record in a line that is being written.
package struct DanglingReference {
  package var model: Model
  package var key: Key
  /// The index of the reference among those of its model.
  package var place: Int
  package var target: Key
}

extension WriteTransaction {
  /// With `refusesDangling`, requires that every written reference leads to an existing record or
  /// to the new one; others go to `dangling`. Key fields count as written only in a new record.
  /// `changed` is the set of values written for their own sake; nil: all.
  func checkReferences(
    _ model: Model, _ key: Key, _ values: [Assignment], changed: [Assignment]? = nil, isNew: Bool = false
  ) throws(NodeError) {
    guard refusesDangling else { return }
    let written = Set((changed ?? values).map(\.field))
    for (place, reference) in model.references.enumerated() {
      var isWritten = isNew
      let target = target(of: reference, model, key) { field in
        guard let value = values.first(where: { $0.field == field })?.value else { return nil }
        isWritten = isWritten || !value.isNull && written.contains(field)
        return value
      }
      guard isWritten, let target, try !leads(to: target, reference, isNew ? key : nil, model) else {
        continue
      }
      let found = DanglingReference(model: model, key: key, place: place, target: target)
      guard dangling != nil else { throw .mutation(try refusal(of: found)) }
      dangling?.append(found)
    }
  }

  /// The key that a reference leads to; nil if a part of it is null or absent.
  private func target(
    of reference: Reference, _ model: Model, _ key: Key, value: (String) -> Value?
  ) -> Key? {
    let own = key.parts
    var parts: [KeyPart] = []
    for name in reference.fields {
      guard let index = model.index(ofField: name) else { continue }
      if let place = model.keyFields.firstIndex(of: index) {
        parts.append(own[place])
      } else if let value = value(model.fields[index].storedName), let part = KeyPart(value) {
        parts.append(part)
      }
    }
    return parts.count == reference.fields.count ? Key(parts) : nil
  }

  /// Whether the target exists or is out of scope. `new` is the key of the record in creation.
  private func leads(
    to key: Key, _ reference: Reference, _ new: Key?, _ model: Model
  ) throws(NodeError) -> Bool {
    let target = try self.model(reference.target)
    if target.name == model.name, key == new { return true }
    guard isInScope(Partition(model: target, key: key)) else { return true }
    return try state(target, key).exists(rules(target))
  }

  private func refusal(of found: DanglingReference) throws(NodeError) -> MutationError {
    let (model, reference) = (found.model, found.model.references[found.place])
    return .danglingReference(
      model: model.name, key: text(found.key, model),
      relationship: reference.relationship ?? inverseName(reference, of: model)
        ?? reference.fields.joined(separator: ", "),
      target: text(found.target, try self.model(reference.target)))
  }

  /// The reason to refuse a noted reference at the end; nil if its target exists or it has changed.
  package func refusal(of pending: PendingReferences.Reference) throws(NodeError) -> MutationError? {
    guard let model = schema.models.first(where: { $0.storedName == pending.model }),
      model.references.indices.contains(pending.place)
    else { return nil }
    let (state, rules) = (try state(model, pending.key), rules(model))
    let reference = model.references[pending.place]
    guard state.exists(rules),
      target(of: reference, model, pending.key, value: { state.value(of: $0, rules) }) == pending.target,
      try !leads(to: pending.target, reference, nil, model)
    else { return nil }
    return try refusal(
      of: DanglingReference(model: model, key: pending.key, place: pending.place, target: pending.target))
  }
}
