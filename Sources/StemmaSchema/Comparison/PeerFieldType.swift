/// A field with another type at a peer. Both nodes exchange events, and show values as written.
package struct PeerFieldType: Sendable, Hashable {
  /// The stored name of the model, or the name of the embedded type.
  package var type: String
  /// The field's stored name.
  package var field: String
  /// The peer's type in SDL.
  package var fieldType: String

  package init(type: String, field: String, fieldType: String) {
    self.type = type
    self.field = field
    self.fieldType = fieldType
  }
}

extension Schema {
  /// Fields outside of keys that have another type in a peer's schema.
  package func differingFieldTypes(of other: Schema) -> [PeerFieldType] {
    let own = valueFields
    return other.valueFields.flatMap { type, fields in
      fields.compactMap { stored, theirs -> PeerFieldType? in
        guard let ours = own[type]?[stored], ours.text != theirs.text else { return nil }
        return PeerFieldType(type: type, field: stored, fieldType: theirs.text)
      }
    }.sorted { ($0.type, $0.field) < ($1.type, $1.field) }
  }

  /// This schema's declaration of a field with another type at a peer: `Note.color`, with its SDL
  /// type. Nil if the types are equal, or there is no such field.
  package func ownField(of theirs: PeerFieldType) -> (name: String, type: String)? {
    guard let own = valueFields[theirs.type]?[theirs.field], own.text != theirs.fieldType else { return nil }
    return (own.name, own.text)
  }

  /// Name and type of all fields outside of keys, by the stored names of type and field. Required
  /// markers are left out, because they do not affect existing values.
  private var valueFields: [String: [String: (name: String, text: String)]] {
    func entry(_ type: String, _ field: Field) -> (name: String, text: String) {
      var fieldType = field.type
      fieldType.elementsRequired = false
      return ("\(type).\(field.name)", SDL.typeText(fieldType))
    }
    var found: [String: [String: (name: String, text: String)]] = [:]
    for type in embeddedTypes {
      for field in type.fields { found[type.name, default: [:]][field.name] = entry(type.name, field) }
    }
    for model in models {
      found[model.storedName] = [:]
      for (index, field) in model.fields.enumerated() where !model.isKeyField(index) {
        found[model.storedName, default: [:]][field.storedName] = entry(model.name, field)
      }
    }
    return found
  }
}
