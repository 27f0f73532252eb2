import Foundation
import Testing

/// `openapi.json`, and whether an answer is one that it describes.
struct APIDescription {
  private let document: [String: Any]

  init() throws {
    let url = ConsolePage.root.appendingPathComponent("Sources/StemmaHTTP/openapi.json")
    let object = try JSONSerialization.jsonObject(with: Data(contentsOf: url))
    document = try #require(object as? [String: Any])
  }

  /// A contradiction to the description; nil: none.
  func contradiction(_ answer: ServedNode.Answer, to method: String, _ path: String) -> String? {
    let resource = "/" + path.prefix { $0 != "?" }.split(separator: "/").joined(separator: "/")
    let status = "\(answer.status)"
    guard let operation = template(of: resource).flatMap({ at("paths", $0, method.lowercased()) }) else {
      return answer.status == 404 && answer.type == "application/problem+json"
        ? nil : "\(method) \(resource) is not described"
    }
    guard let responses = operation["responses"] as? [String: Any],
      let response = resolved(responses[status])
    else { return "\(resource) has no status \(status)" }
    guard let content = response["content"] as? [String: Any] else {
      return answer.body.isEmpty ? nil : "\(resource) \(status) has a body"
    }
    guard let media = content[answer.type] as? [String: Any] else {
      return "\(resource) \(status) has no type \(answer.type)"
    }
    guard answer.type.hasSuffix("json"), let schema = media["schema"] else { return nil }
    do {
      let value = try JSONSerialization.jsonObject(
        with: Data(answer.body.utf8), options: .fragmentsAllowed)
      return contradiction(value, schema, at: "\(resource) \(status)")
    } catch { return "\(resource) \(status): \(error)" }
  }

  /// The described path, which may have parameters such as `{model}`.
  private func template(of resource: String) -> String? {
    guard let paths = at("paths"), paths[resource] == nil else { return resource }
    let parts = resource.split(separator: "/")
    return paths.keys.first { template in
      let names = template.split(separator: "/")
      return names.count == parts.count
        && zip(names, parts).allSatisfy { $0 == $1 || $0.hasPrefix("{") }
    }
  }

  private func at(_ names: String...) -> [String: Any]? {
    names.reduce(document) { ($0 ?? [:])[$1] as? [String: Any] }
  }

  private func resolved(_ value: Any?) -> [String: Any]? {
    guard let object = value as? [String: Any] else { return nil }
    guard let reference = object["$ref"] as? String else { return object }
    return reference.split(separator: "/").dropFirst().reduce(document) {
      ($0 ?? [:])[String($1)] as? [String: Any]
    }
  }

  /// The keywords of JSON Schema that the description uses.
  private func contradiction(_ value: Any, _ schema: Any, at place: String) -> String? {
    guard let schema = resolved(schema) else { return "\(place): the schema is unreadable" }
    if let constant = schema["const"] as? String, value as? String != constant {
      return "\(place) is not \(constant)"
    }
    switch schema["type"] as? String {
    case "string":
      guard let text = value as? String else { return "\(place) is no string" }
      if let pattern = schema["pattern"] as? String,
        text.range(of: pattern, options: .regularExpression) == nil
      {
        return "\(place) does not match \(pattern)"
      }
    case "integer":
      guard let number = value as? NSNumber, number.doubleValue == number.doubleValue.rounded() else {
        return "\(place) is no integer"
      }
    case "boolean": if !(value is Bool) { return "\(place) is no boolean" }
    case "array":
      guard let array = value as? [Any] else { return "\(place) is no array" }
      guard let items = schema["items"] else { return nil }
      for (index, item) in array.enumerated() {
        if let found = contradiction(item, items, at: "\(place)[\(index)]") { return found }
      }
    case "object":
      guard let object = value as? [String: Any] else { return "\(place) is no object" }
      let properties = schema["properties"] as? [String: Any] ?? [:]
      for name in schema["required"] as? [String] ?? [] where object[name] == nil {
        return "\(place) has no \(name)"
      }
      for (name, member) in object {
        if let property = properties[name] {
          if let found = contradiction(member, property, at: "\(place).\(name)") { return found }
        } else if schema["additionalProperties"] as? Bool == false {
          return "\(place) has an undescribed \(name)"
        }
      }
    default: break
    }
    return nil
  }
}
