import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaNode
import StemmaReplication
import StemmaSchema
import StemmaTables

/// The difference of one record between two states of a node, or between two nodes.
package struct RecordDifference: Sendable {
  package enum Kind: String, Sendable { case added, removed, changed }

  package var kind: Kind
  package var model: Model
  package var key: Key
  /// Stored names in schema order. An added or removed record lists all fields with a value.
  package var changes: [FieldChange]
  /// Whether a conflicting deletion is undone, which is visible only if it had won.
  package var keeps = false

  /// A record that stays although it was deleted.
  init(keeping key: Key, of model: Model, _ kind: Kind, _ changes: [FieldChange]) {
    (self.key, self.model, self.kind, self.changes) = (key, model, kind, changes)
    keeps = true
  }

  /// Nil if both states show the same.
  package init?(_ model: Model, _ key: Key, from old: RecordState, to new: RecordState, _ rules: MergeRules) {
    let (existed, exists) = (old.exists(rules), new.exists(rules))
    guard existed || exists else { return nil }
    kind = existed && exists ? .changed : exists ? .added : .removed
    self.model = model
    self.key = key
    changes = model.fields.indices.compactMap { index in
      if model.isKeyField(index) { return nil }
      let name = model.fields[index].storedName
      let from = existed ? old.value(of: name, rules) : .null
      let to = exists ? new.value(of: name, rules) : .null
      return from == to ? nil : FieldChange(field: name, from: from, to: to)
    }
    if kind == .changed && changes.isEmpty { return nil }
  }

  /// Nil if the rows are equal. One of them must exist.
  init?(_ model: Model, from old: Row?, to new: Row?) {
    guard let key = new?.key ?? old?.key else { return nil }
    kind = old != nil && new != nil ? .changed : new != nil ? .added : .removed
    self.model = model
    self.key = key
    changes = []
    for (index, field) in model.fields.enumerated() where !model.isKeyField(index) {
      func value(_ row: Row?) -> Value { row?.fields.first { $0.field == field.name }?.value ?? .null }
      let (from, to) = (value(old), value(new))
      if from != to { changes.append(FieldChange(field: field.storedName, from: from, to: to)) }
    }
    if kind == .changed && changes.isEmpty { return nil }
  }

  package func descriptions(_ description: EventDescription) -> [ChangeDescription] {
    changes.map {
      ChangeDescription(field: description.fieldName($0.field, model), from: $0.from.json, to: $0.to.json)
    }
  }

  package func json(_ description: EventDescription) -> JSON {
    .object(members(description) + (keeps ? [("kept", .bool(true))] : []))
  }

  private func members(_ description: EventDescription) -> [(name: String, value: JSON)] {
    [
      ("change", .string(kind.rawValue)), ("model", .string(model.name)),
      ("key", description.schema.json(of: key, model: model)),
      (
        "fields",
        .object(
          descriptions(description).map { ($0.field, .object([("from", $0.from), ("to", $0.to)])) })
      ),
    ]
  }
}

extension RecordDifference: Equatable {
  package static func == (a: RecordDifference, b: RecordDifference) -> Bool {
    a.kind == b.kind && a.model.name == b.model.name && a.key == b.key && a.changes == b.changes
      && a.keeps == b.keeps
  }
}
