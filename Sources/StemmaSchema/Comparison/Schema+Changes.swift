extension Schema {
  /// The changes from this schema to `new`, and the refusals of those that the log rules out.
  ///
  /// Additive changes are valid for any log: new models, enums, cases, indexes, relationships; new
  /// fields that are optional or have a default. The same holds for required → optional, renames
  /// with `@mapsTo`, and removals of models and fields, which hide them. All others are refused
  /// once there are events whose meaning they would change.
  ///
  /// Models and fields are the same if their stored names are. `modelsWithEvents` gets stored
  /// names.
  package func changes(
    to new: Schema, modelsWithEvents: (String) -> Bool
  ) -> SchemaComparison {
    var comparison = SchemaComparison()
    var used = UsedTypes(schema: self)
    for model in models where modelsWithEvents(model.storedName) { used.add(model) }
    compareEnums(with: new, used, &comparison)
    compareEmbeddedTypes(with: new, used, &comparison)
    for model in new.models {
      guard let old = models.first(where: { $0.storedName == model.storedName }) else {
        comparison.add(.modelAdded(model.name))
        continue
      }
      old.compare(with: model, hasEvents: modelsWithEvents(model.storedName), &comparison)
    }
    for old in models where !new.models.contains(where: { $0.storedName == old.storedName }) {
      comparison.add(.modelRemoved(old.name))
    }
    return comparison
  }

  private func compareEnums(with new: Schema, _ used: UsedTypes, _ comparison: inout SchemaComparison) {
    for type in new.enums {
      guard let old = enumType(named: type.name) else {
        comparison.add(.enumAdded(type.name))
        continue
      }
      for name in type.cases where !old.cases.contains(name) {
        comparison.add(.caseAdded(enumeration: type.name, name: name))
      }
      for name in old.cases where !type.cases.contains(name) {
        comparison.add(
          .caseRemoved(enumeration: type.name, name: name), unless: used.names.contains(type.name),
          type.name, nil, "case \(name) is gone, but events may hold it", "keep the case")
      }
    }
    for old in enums where new.enumType(named: old.name) == nil { comparison.add(.enumRemoved(old.name)) }
  }

  private func compareEmbeddedTypes(
    with new: Schema, _ used: UsedTypes, _ comparison: inout SchemaComparison
  ) {
    for type in new.embeddedTypes {
      guard let old = embeddedType(named: type.name) else {
        comparison.add(.embeddedTypeAdded(type.name))
        continue
      }
      FieldComparison(type: type.name, hasEvents: used.names.contains(type.name))
        .compare(old.fields, type.fields, &comparison)
    }
    for old in embeddedTypes where new.embeddedType(named: old.name) == nil {
      comparison.add(.embeddedTypeRemoved(old.name))
    }
  }
}

/// The advice that gives older records a value in a new field.
private let givingDefault = "give it a `@default`; in Swift a number, text or Boolean as its literal value"

/// The enums and embedded types that may have values in events.
private struct UsedTypes {
  let schema: Schema
  var names: Set<String> = []

  mutating func add(_ model: Model) {
    var open = model.fields
    while let field = open.popLast() {
      switch field.type.base {
      case .scalar: break
      case .enumeration(let name): names.insert(name)
      case .embedded(let name):
        if names.insert(name).inserted { open += schema.embeddedType(named: name)?.fields ?? [] }
      }
    }
  }

  init(schema: Schema) { self.schema = schema }
}

extension Model {
  fileprivate func compare(with new: Model, hasEvents: Bool, _ comparison: inout SchemaComparison) {
    if name != new.name { comparison.add(.modelRenamed(from: name, to: new.name)) }
    if tableName != new.tableName {
      comparison.add(.tableRenamed(model: new.name, from: tableName, to: new.tableName))
    }
    comparePermanent(with: new, hasEvents: hasEvents, &comparison)
    if createdAt.map(stored) != new.createdAt.map(new.stored)
      || updatedAt.map(stored) != new.updatedAt.map(new.stored)
    {
      comparison.add(.timestampsChanged(model: new.name))
    }
    FieldComparison(type: new.name, hasEvents: hasEvents, key: storedKey + new.storedKey)
      .compare(fields, new.fields, &comparison)
    compareRelationships(with: new, hasEvents: hasEvents, &comparison)
    for index in new.indexes where !indexes.contains(index) {
      comparison.add(.indexAdded(model: new.name, name: index.name))
    }
    for index in indexes where !new.indexes.contains(index) {
      comparison.add(.indexRemoved(model: new.name, name: index.name))
    }
  }

  /// ⚑ Key, partition rule and conflict policy are permanent: events refer to keys and partitions,
  /// and every node must merge them by the same rules.
  private func comparePermanent(with new: Model, hasEvents: Bool, _ comparison: inout SchemaComparison) {
    if keyText != new.keyText {
      comparison.add(
        .keyChanged(model: new.name), unless: hasEvents, new.name, nil,
        "the key changes from \(keyText) to \(new.keyText), but the log has events of it",
        "declare a new model with that key, and import the records into it")
    } else if partitionDepth != new.partitionDepth {
      comparison.add(
        .partitionRuleChanged(model: new.name), unless: hasEvents, new.name, nil,
        "the partition rule changes from \(partitionText) to \(new.partitionText), but the log has events of it",
        "keep the rule, or declare a new model")
    }
    if conflictText != new.conflictText {
      comparison.add(
        .conflictPolicyChanged(model: new.name), unless: hasEvents, new.name, nil,
        "the conflict policy changes from \(conflictText) to \(new.conflictText), but the log has events of it",
        "keep the policy, or declare a new model")
    }
  }

  private func compareRelationships(
    with new: Model, hasEvents: Bool, _ comparison: inout SchemaComparison
  ) {
    for relationship in new.relationships {
      guard let old = self.relationship(named: relationship.name) else {
        comparison.add(.relationshipAdded(model: new.name, name: relationship.name))
        continue
      }
      var same = old
      same.target = relationship.target
      // Renames of fields or of the model do not change a relationship.
      if old.storesReference && relationship.storesReference
        && old.referenceFields.map(stored) == relationship.referenceFields.map(new.stored)
      {
        same.referenceFields = relationship.referenceFields
      }
      if same == relationship && old.target == relationship.target { continue }
      let change = SchemaChange.relationshipChanged(model: new.name, name: relationship.name)
      // A reference field that becomes required is refused already.
      let isTightened =
        !old.isRequired && relationship.isRequired && old.referenceFields == relationship.referenceFields
        && fields.map(\.isRequired) == new.fields.map(\.isRequired)
      comparison.add(
        change, unless: hasEvents && isTightened, new.name, relationship.name,
        "the relationship becomes required, but the log may have records without it", "keep it optional")
    }
    for old in relationships where new.relationship(named: old.name) == nil {
      comparison.add(.relationshipRemoved(model: new.name, name: old.name))
    }
  }

  private func stored(_ name: String) -> String { field(named: name)?.storedName ?? name }

  private var storedKey: [String] { keyFields.map { fields[$0].storedName } }

  /// `(partition: String, path: String)`, with stored names, so that a rename does not change it.
  package var keyText: String {
    let parts = keyFields.map { "\(fields[$0].storedName): \(SDL.typeText(fields[$0].type))" }
    return "(\(parts.joined(separator: ", ")))"
  }

  package var partitionText: String {
    partitionDepth == 0
      ? "one of all records" : "one for each \(storedKey.prefix(partitionDepth).joined(separator: ", "))"
  }

  fileprivate var conflictText: String { "\(conflictPolicy.rawValue), deletes \(deletePolicy.rawValue)" }
}

/// Compares the fields of one model or embedded type.
private struct FieldComparison {
  var type: String
  var hasEvents: Bool
  /// Stored names of key parts, whose changes are reported with the key.
  var key: [String] = []

  func compare(_ old: [Field], _ new: [Field], _ comparison: inout SchemaComparison) {
    for field in new where !key.contains(field.storedName) {
      if let before = old.first(where: { $0.storedName == field.storedName }) {
        compare(before, field, &comparison)
      } else {
        comparison.add(
          .fieldAdded(type: type, field: field.name),
          unless: hasEvents && field.isRequired && field.defaultValue == nil, type, field.name,
          "the new field is required, but the log has records without it",
          "make it optional, or \(givingDefault)")
      }
    }
    for field in new where key.contains(field.storedName) {
      if let before = old.first(where: { $0.storedName == field.storedName }), before.name != field.name {
        comparison.add(.fieldRenamed(type: type, from: before.name, to: field.name))
      }
    }
    for field in old
    where !key.contains(field.storedName) && !new.contains(where: { $0.storedName == field.storedName }) {
      comparison.add(.fieldRemoved(type: type, field: field.name))
    }
  }

  private func compare(_ old: Field, _ new: Field, _ comparison: inout SchemaComparison) {
    if old.name != new.name { comparison.add(.fieldRenamed(type: type, from: old.name, to: new.name)) }
    var loosened = old.type
    if !new.type.elementsRequired { loosened.elementsRequired = false }
    if loosened != new.type {
      let (before, after) = (SDL.typeText(old.type), SDL.typeText(new.type))
      comparison.add(
        .fieldTypeChanged(type: type, field: new.name, from: before, to: after), unless: hasEvents, type,
        new.name, "the type changes from \(before) to \(after), but events may hold a \(before)",
        "declare a new field, and remove or keep the old one")
    } else if old.type != new.type {
      comparison.add(
        .fieldTypeChanged(
          type: type, field: new.name, from: SDL.typeText(old.type), to: SDL.typeText(new.type)))
    }
    if old.isRequired && !new.isRequired {
      comparison.add(.fieldBecameOptional(type: type, field: new.name))
    } else if !old.isRequired && new.isRequired {
      comparison.add(
        .fieldBecameRequired(type: type, field: new.name), unless: hasEvents && new.defaultValue == nil, type,
        new.name, "the field becomes required, but the log may have records without it",
        "keep it optional, or \(givingDefault)")
    } else if new.isRequired && old.defaultValue != nil && new.defaultValue == nil {
      comparison.add(
        .defaultChanged(type: type, field: new.name), unless: hasEvents, type, new.name,
        "the required field loses its default, but the log may have records that need it", "keep the default")
      return
    }
    if old.defaultValue != new.defaultValue {
      comparison.add(.defaultChanged(type: type, field: new.name))
    }
  }
}

/// A difference that prevents two nodes from exchanging events of a model.
package struct PeerConflict: Sendable, Equatable, CustomStringConvertible {
  package enum Subject: String, Sendable {
    case key
    case partitionRule = "partition rule"
    case conflictPolicy = "conflict policy"
  }

  /// The stored name.
  package var model: String
  package var subject: Subject
  package var ours: String
  package var theirs: String

  package var description: String {
    "the \(subject.rawValue) of \(model) is \(ours) here and \(theirs) there"
  }
}

extension Schema {
  /// ⚑ The differences of a peer's schema in key, partition rule or conflict policy of a common
  /// model. Any of them makes a session fail at its start. All other differences are accepted.
  package func conflictsWithPeer(_ other: Schema) -> [PeerConflict] {
    models.flatMap { ours -> [PeerConflict] in
      guard let theirs = other.models.first(where: { $0.storedName == ours.storedName }) else { return [] }
      let pairs: [(PeerConflict.Subject, String, String)] = [
        (.key, ours.keyText, theirs.keyText),
        (.partitionRule, ours.partitionText, theirs.partitionText),
        (.conflictPolicy, ours.conflictText, theirs.conflictText),
      ]
      return pairs.filter { $0.1 != $0.2 }
        .map { PeerConflict(model: ours.storedName, subject: $0.0, ours: $0.1, theirs: $0.2) }
    }
  }
}
