import StemmaSchema

/// Checks the parts of one field's value. Errors name the model and the field.
struct ValueReader {
  let schema: Schema
  let model: String
  let field: String

  func failure(_ json: JSON, _ rule: String, path: String? = nil) -> ValueError {
    ValueError(model: model, field: path ?? field, value: json, rule: rule)
  }

  func tooLong(_ json: JSON) -> ValueError { failure(json, "a value has at most \(Limits.value) bytes") }

  static func rule(of scalar: Scalar?) -> String {
    switch scalar {
    case .int, .awsTimestamp: "a whole number from -2^63 to 2^63-1"
    case .float: "a number that is not too large for a double"
    case .boolean: "true or false"
    case .awsJSON: "a string that holds JSON, or JSON itself"
    case .id: "a string"
    default: "a string"
    }
  }

  // MARK: Scalars

  func scalar(_ json: JSON, _ scalar: Scalar, path: String? = nil) throws(ValueError) -> Value {
    switch scalar {
    case .int, .awsTimestamp:
      switch json {
      case .int(let number): return .int(number)
      // The JSON parser keeps -0 as text.
      case .number("-0"): return .int(0)
      case .string(let text):
        if let number = Int64(text), String(number) == text { return .int(number) }
      default: break
      }
    case .float:
      switch json {
      case .int(let number): return .double(Double(number))
      case .number(let text):
        if let number = Double(text), number.isFinite { return .double(number == 0 ? 0 : number) }
      default: break
      }
    case .boolean:
      if case .bool(let flag) = json { return .bool(flag) }
    case .awsJSON: return .string(try jsonText(json, path))
    case .id:
      switch json {
      case .string(let text): return .string(try bounded(text.isUUIDShaped ? text.lowercased() : text, path))
      case .int(let number): return .string(String(number))
      default: break
      }
    default:
      if case .string(let text) = json {
        if let rule = scalar.rule(brokenBy: text) { throw failure(json, rule, path: path) }
        return .string(try bounded(text, path))
      }
    }
    throw failure(json, Self.rule(of: scalar), path: path)
  }

  private func bounded(_ text: String, _ path: String?) throws(ValueError) -> String {
    guard text.utf8.count <= Limits.value else { throw tooLong(.string(text)) }
    return text
  }

  private func jsonText(_ json: JSON, _ path: String?) throws(ValueError) -> String {
    guard case .string(let text) = json else { return json.canonicalText }
    do { return try JSON.parse(text).canonicalText } catch {
      throw failure(json, Self.rule(of: .awsJSON), path: path)
    }
  }

  /// An AWSDateTime in its form in keys.
  func inUTC(_ value: Value) throws(ValueError) -> Value {
    guard case .string(let text) = value else { return value }
    guard let utc = DateText(dateTime: text)?.utcText else {
      throw failure(.string(text), "a time in a key lies in the years 0000 to 9999 of UTC")
    }
    return .string(utc)
  }

  func enumeration(_ json: JSON, _ name: String, path: String? = nil) throws(ValueError) -> String {
    let cases = schema.enumType(named: name)?.cases ?? []
    guard case .string(let text) = json, cases.contains(where: { $0.hasSameBytes(as: text) }) else {
      throw failure(json, "one of \(cases.joined(separator: ", "))", path: path)
    }
    return text
  }

  // MARK: Lists and embedded types

  /// Maximum nesting of embedded values, below the parser's limit, so that all can be read.
  static let depthLimit = JSON.depthLimit / 2

  /// The value in its form in stored JSON text: whole numbers beyond ±(2^53-1) as strings.
  func structured(_ json: JSON, _ type: FieldType, path: String, depth: Int) throws(ValueError) -> JSON {
    guard type.isList else { return try single(json, type.base, path: path, depth: depth) }
    guard case .array(let elements) = json else {
      throw failure(json, "a list, \(SDL.typeText(type))", path: path)
    }
    var stored: [JSON] = []
    stored.reserveCapacity(elements.count)
    for (position, element) in elements.enumerated() {
      let place = "\(path)[\(position)]"
      if case .null = element {
        if type.elementsRequired {
          throw failure(element, "\(SDL.typeText(type)) takes no null", path: place)
        }
        stored.append(.null)
      } else {
        stored.append(try single(element, type.base, path: place, depth: depth))
      }
    }
    return .array(stored)
  }

  private func single(
    _ json: JSON, _ base: FieldType.Base, path: String, depth: Int
  ) throws(ValueError) -> JSON {
    switch base {
    case .scalar(let scalar): return try self.scalar(json, scalar, path: path).json
    case .enumeration(let name): return .string(try enumeration(json, name, path: path))
    case .embedded(let name): return try embedded(json, name, path: path, depth: depth + 1)
    }
  }

  private func embedded(
    _ json: JSON, _ name: String, path: String, depth: Int
  ) throws(ValueError) -> JSON {
    guard depth <= Self.depthLimit else {
      throw failure(json, "embedded values are nested at most \(Self.depthLimit) deep", path: path)
    }
    guard case .object(let members) = json, let type = schema.embeddedType(named: name) else {
      throw failure(json, "a JSON object, \(name)", path: path)
    }
    for member in members where !type.fields.contains(where: { $0.name.hasSameBytes(as: member.name) }) {
      let names = type.fields.map(\.name).joined(separator: ", ")
      throw failure(member.value, "\(name) has the fields \(names)", path: "\(path).\(member.name)")
    }
    var stored: [(name: String, value: JSON)] = []
    for field in type.fields {
      let place = "\(path).\(field.name)"
      var value = json[field.name] ?? .null
      if value == .null, let text = field.defaultValue, json[field.name] == nil {
        do { value = try JSON.parse(text) } catch { value = .string(text) }
      }
      if case .null = value {
        if field.isRequired { throw failure(value, "a required field takes no null", path: place) }
        continue
      }
      stored.append((field.name, try structured(value, field.type, path: place, depth: depth)))
    }
    return .object(stored)
  }
}
