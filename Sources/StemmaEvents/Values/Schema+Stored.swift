import StemmaSchema

extension Schema {
  /// Whether a stored value could have been written to this field. Null fits: other code checks
  /// required fields. Unknown members of embedded values fit too; they are hidden.
  package func fits(_ value: Value, _ field: Field, of model: Model) -> Bool {
    if value.isNull { return true }
    guard field.type.isList || field.type.base.isEmbedded else {
      do { return try self.value(value.json, for: field, of: model.name) == value } catch { return false }
    }
    guard case .json = value else { return false }
    return fits(value.json, field.type, ValueReader(schema: self, model: model.name, field: field.name))
  }

  /// Whether a stored key is of this model.
  package func fits(_ key: Key, of model: Model) -> Bool {
    // Parts beyond those of the model are left out of the JSON.
    do { return try self.key(json(of: key, model: model), of: model) == key } catch { return false }
  }

  private func fits(_ json: JSON, _ type: FieldType, _ reader: ValueReader) -> Bool {
    guard type.isList else { return fits(json, type.base, reader) }
    guard case .array(let elements) = json else { return false }
    return elements.allSatisfy { $0.isNull ? !type.elementsRequired : fits($0, type.base, reader) }
  }

  private func fits(_ json: JSON, _ base: FieldType.Base, _ reader: ValueReader) -> Bool {
    do {
      switch base {
      case .scalar(let scalar): _ = try reader.scalar(json, scalar)
      case .enumeration(let name): _ = try reader.enumeration(json, name)
      case .embedded(let name):
        guard case .object = json, let type = embeddedType(named: name) else { return false }
        return type.fields.allSatisfy { field in
          guard let member = json[field.name], !member.isNull else {
            return !field.isRequired || field.defaultValue != nil
          }
          return fits(member, field.type, reader)
        }
      }
      return true
    } catch { return false }
  }
}
