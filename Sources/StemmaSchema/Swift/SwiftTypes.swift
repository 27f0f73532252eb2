/// The Swift types of a schema's fields, as in docs/SCHEMA.md.
struct SwiftTypes {
  let names: SwiftNames

  /// The type of a key part, or of a reference field.
  func keyType(_ field: Field) -> String {
    switch field.type.base {
    // A `Date` cannot hold fractions of a millisecond.
    case .scalar(.awsDateTime): "String.AWSDateTime"
    case .scalar(let scalar): Self.element(scalar)
    case .enumeration(let name), .embedded(let name): names.type(name)
    }
  }

  /// Whether it is a reference field.
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

  /// The type of a property of an embedded type. In JSON, a date is text or a number of seconds.
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

  /// The type for `as:`. Its `?` is a placeholder for the optional marker of the property.
  func representation(_ type: FieldType) -> String? {
    if case .embedded = type.base { return "\(property(type))?.JSONRepresentation" }
    guard !type.isList, case .scalar(let scalar) = type.base, Self.property(scalar) != Self.element(scalar)
    else { return nil }
    return "\(Self.element(scalar))?"
  }

  /// The type of a property that is not a list.
  private static func property(_ scalar: Scalar) -> String {
    switch scalar {
    case .id, .awsDate, .awsTime, .awsEmail, .awsPhone, .awsURL, .awsIPAddress, .awsJSON: "String"
    case .awsTimestamp: "Date"
    default: element(scalar)
    }
  }

  /// The type of a list's element or a key part, which is a column type by itself.
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
