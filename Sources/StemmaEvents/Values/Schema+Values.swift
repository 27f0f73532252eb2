import StemmaSchema

extension Schema {
  /// Reads and checks a field's value, and normalizes it to its stored form.
  ///
  /// - `ID`: a UUID becomes lower case; a whole number becomes its digits.
  /// - `Int`, `AWSTimestamp`: a number or its digits in a string.
  /// - `Float`: never NaN or infinite; -0 becomes 0.
  /// - `AWSDateTime`: keeps its text, but in fields that hold key parts it becomes UTC.
  /// - `AWSJSON`: a string with JSON text, or any other JSON value except null; stored canonically.
  /// - enums: one of the cases. (Unknown cases of received events are kept, but not written here.)
  /// - lists, embedded types: canonical JSON text; null members of embedded values are left out.
  ///
  /// Throws for null in a required field. Callers apply `defaultValue` first.
  package func value(_ json: JSON, for field: Field, of model: String) throws(ValueError) -> Value {
    if case .null = json {
      guard !field.isRequired else {
        throw ValueError(model: model, field: field.name, value: json, rule: "a required field takes no null")
      }
      return .null
    }
    let subject = ValueReader(schema: self, model: model, field: field.name)
    if !field.type.isList, case .scalar(let scalar) = field.type.base {
      let value = try subject.scalar(json, scalar)
      if scalar == .awsDateTime, self.model(named: model)?.holdsKeyPart(field.name) == true {
        return try subject.inUTC(value)
      }
      return value
    }
    if !field.type.isList, case .enumeration(let name) = field.type.base {
      return .string(try subject.enumeration(json, name))
    }
    let text = try subject.structured(json, field.type, path: field.name, depth: 0).canonicalText
    guard text.utf8.count <= Limits.value else { throw subject.tooLong(json) }
    return .json(text)
  }

  /// Reads the text that a person types after `field=`: text, digits, true or false. Lists and
  /// embedded types are JSON, and AWSJSON is the JSON text itself.
  package func value(text: String, for field: Field, of model: String) throws(ValueError) -> Value {
    try value(try json(text: text, for: field, of: model), for: field, of: model)
  }

  /// The text after `field=` as JSON. `value` decides whether it is a value of the field.
  package func json(text: String, for field: Field, of model: String) throws(ValueError) -> JSON {
    let isStructured = field.type.isList || field.type.base.isEmbedded
    let isRead: Bool
    switch field.type.scalar {
    case .float, .boolean, .int, .awsTimestamp: isRead = true
    default: isRead = isStructured
    }
    guard isRead else { return .string(text) }
    do {
      let json = try JSON.parse(text)
      guard json != .null else { throw JSONError(.expected("a value"), at: 0) }
      return json
    } catch {
      let rule =
        isStructured
        ? "\(SDL.typeText(field.type)) is written as JSON" : ValueReader.rule(of: field.type.scalar)
      throw ValueError(model: model, field: field.name, value: .string(text), rule: rule)
    }
  }

}

extension Model {
  /// The value of `@default` in its stored form; nil if the field has none.
  package func defaultValue(of field: Field) -> Value? {
    guard let text = field.defaultValue, !field.type.isList else { return nil }
    let json: JSON
    do { json = try JSON.parse(text) } catch { json = .string(text) }
    switch field.type.base {
    case .embedded: return nil
    case .enumeration:
      guard case .string(let text) = json else { return nil }
      return .string(text)
    case .scalar(let scalar):
      let reader = ValueReader(schema: Schema(), model: name, field: field.name)
      do throws(ValueError) {
        let value = try reader.scalar(json, scalar)
        return scalar == .awsDateTime && holdsKeyPart(field.name) ? try reader.inUTC(value) : value
      } catch {
        // Schema readers refuse a default that is not a value of its field.
        return nil
      }
    }
  }
}

extension FieldType.Base {
  var isEmbedded: Bool { if case .embedded = self { true } else { false } }
}
