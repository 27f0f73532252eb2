/// A new schema's additions to one model. The log can have events of them already: from a time
/// before an earlier schema hid them, or from a peer.
package struct ModelAddition: Sendable, Equatable {
  /// The model in the new schema.
  package var model: Model
  /// Whether no model of the old schema has its stored name.
  package var isNewModel: Bool
  /// Fields outside of the key that are new, or whose embedded type has a new field.
  package var fields: [Field]
}

extension Schema {
  /// The additions of `new` to this schema; for models in both, only if they have events. The
  /// closure `modelsWithEvents` gets stored names.
  package func additions(to new: Schema, modelsWithEvents: (String) -> Bool) -> [ModelAddition] {
    let changed = embeddedTypesWithNewFields(in: new)
    var additions: [ModelAddition] = []
    for model in new.models {
      let fields = model.fields.indices.filter { !model.isKeyField($0) }.map { model.fields[$0] }
      guard let old = models.first(where: { $0.storedName == model.storedName }) else {
        additions.append(ModelAddition(model: model, isNewModel: true, fields: fields))
        continue
      }
      guard modelsWithEvents(model.storedName) else { continue }
      let added = fields.filter { field in
        if case .embedded(let name) = field.type.base, changed.contains(name) { return true }
        return !old.fields.contains { $0.storedName == field.storedName }
      }
      if !added.isEmpty {
        additions.append(ModelAddition(model: model, isNewModel: false, fields: added))
      }
    }
    return additions
  }

  /// The embedded types with a field that this schema lacks, directly or in another such type.
  private func embeddedTypesWithNewFields(in new: Schema) -> Set<String> {
    var changed: Set<String> = []
    for type in new.embeddedTypes {
      let old = embeddedType(named: type.name)?.fields ?? []
      if type.fields.contains(where: { field in !old.contains { $0.name == field.name } }) {
        changed.insert(type.name)
      }
    }
    var count = -1
    while count != changed.count {
      count = changed.count
      for type in new.embeddedTypes
      where type.fields.contains(where: {
        if case .embedded(let name) = $0.type.base { changed.contains(name) } else { false }
      }) { changed.insert(type.name) }
    }
    return changed
  }
}
