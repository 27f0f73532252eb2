/// The Swift types of a schema's fields, by docs/TYPES.md.
struct SwiftTypes {
  let names: SwiftNames

  /// The type of a key part, and of a field that holds one of another record.
  func keyType(_ field: Field) -> String {
    switch field.type.base {
    // A `Date` has no fractions of a millisecond.
    case .scalar(.awsDateTime): "String.AWSDateTime"
    case .scalar(let scalar): Self.element(scalar)
    case .enumeration(let name), .embedded(let name): names.type(name)
    }
  }

  /// Whether a field holds a part of another record's key.
  func isReference(_ field: Field, _ model: Model) -> Bool {
    !field.type.isList && model.references.contains { $0.fields.contains(field.name) }
  }

  /// The type of a property.
  func property(_ type: FieldType) -> String {
    switch type.base {
    case .enumeration(let name), .embedded(let name): list(type, names.type(name))
    case .scalar(let scalar): list(type, type.isList ? Self.element(scalar) : Self.property(scalar))
    }
  }

  /// The type of a property of an embedded type. Those are coded as JSON, where a date is a text or a number of seconds.
  func embedded(_ type: FieldType) -> String {
    switch type.base {
    case .enumeration(let name), .embedded(let name): list(type, names.type(name))
    case .scalar(.awsDateTime): list(type, "String")
    case .scalar(.awsTimestamp): list(type, "Int")
    case .scalar(let scalar): list(type, Self.property(scalar))
    }
  }

  private func list(_ type: FieldType, _ element: String) -> String {
    type.isList ? "[\(element)\(type.elementsRequired ? "" : "?")]" : element
  }

  /// The type behind `as:`, with a question mark where that of an optional property stands.
  func representation(_ type: FieldType) -> String? {
    if case .embedded = type.base { return "\(property(type))?.JSONRepresentation" }
    guard !type.isList, case .scalar(let scalar) = type.base, Self.property(scalar) != Self.element(scalar)
    else { return nil }
    return "\(Self.element(scalar))?"
  }

  /// The type of a property of its own.
  private static func property(_ scalar: Scalar) -> String {
    switch scalar {
    case .id, .awsDate, .awsTime, .awsEmail, .awsPhone, .awsURL, .awsIPAddress, .awsJSON: "String"
    case .awsTimestamp: "Date"
    default: element(scalar)
    }
  }

  /// The type of an element of a list, or of a key part: one that is a column's by itself.
  private static func element(_ scalar: Scalar) -> String {
    switch scalar {
    case .id: "String.ID"
    case .string: "String"
    case .int: "Int"
    case .float: "Double"
    case .boolean: "Bool"
    case .awsDate, .awsTime, .awsEmail, .awsPhone, .awsURL, .awsIPAddress, .awsJSON:
      "String.\(scalar.rawValue)"
    case .awsDateTime: "Date"
    case .awsTimestamp: "Date.UnixTimeRepresentation"
    }
  }
}
