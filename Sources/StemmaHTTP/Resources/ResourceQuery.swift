import Foundation
import HTTPTypes
import Hummingbird
import StemmaEvents
import StemmaNode
import StemmaReplication
import StemmaSchema

/// The query parameters of a request, in the encoding of forms. A parameter that the resource does
/// not have is an error.
struct ResourceQuery: Sendable {
  /// Elements of a list: those of an answer without `limit`, and the most of one.
  static let defaultLimit = 100
  static let mostLimit = 1000

  private let path: String
  private let parameters: [(name: String, value: String)]

  /// - Parameter known: the parameters of the resource.
  init(_ request: Request, _ known: String...) throws(Problem) {
    path = request.uri.path
    // As in forms, where a `+` is a space.
    let text: String = request.uri.query ?? ""
    parameters = try text.split(separator: "&").map { pair throws(Problem) in
      let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        .map { String($0).replacing("+", with: " ") }
      return (try halves[0].percentDecoded, halves.count == 2 ? try halves[1].percentDecoded : "")
    }
    for (name, _) in parameters where !known.contains(name) {
      throw .unusable(
        "there is no parameter `\(name)`"
          + (known.isEmpty ? "" : "; there are \(known.joined(separator: ", "))"))
    }
  }

  /// The values of a repeatable parameter.
  func all(_ name: String) -> [String] { parameters.filter { $0.name == name }.map(\.value) }

  /// The value of a parameter that is given at most once.
  func one(_ name: String) throws(Problem) -> String? {
    let values = all(name)
    guard values.count < 2 else { throw .unusable("`\(name)` is given \(values.count) times") }
    return values.first
  }

  func required(_ name: String) throws(Problem) -> String {
    guard let value = try one(name) else { throw .unusable("`\(name)` is missing") }
    return value
  }

  /// A number from 0 to `most`.
  func number(_ name: String, default other: Int, most: Int) throws(Problem) -> Int {
    guard let text = try one(name) else { return other }
    guard let number = Int(text), (0...most).contains(number) else {
      throw .unusable("`\(name)` is a number from 0 to \(most), not `\(text)`")
    }
    return number
  }

  func limit() throws(Problem) -> Int {
    try number("limit", default: Self.defaultLimit, most: Self.mostLimit)
  }

  func offset() throws(Problem) -> Int { try number("offset", default: 0, most: 1 << 53) }

  func isSet(_ name: String) throws(Problem) -> Bool {
    switch try one(name) {
    case nil, "false": false
    case "", "true": true
    case .some(let text): throw .unusable("`\(name)` is true or false, not `\(text)`")
    }
  }

  /// The same request with other values of some parameters.
  func address(with values: (name: String, value: String)...) -> String {
    let others = parameters.filter { parameter in !values.contains { $0.name == parameter.name } }
    let pairs = (others + values).map { "\($0.name.percentEncoded)=\($0.value.percentEncoded)" }
    return path + "?" + pairs.joined(separator: "&")
  }
}

extension Request {
  /// The entity tag of `If-Match`, without quotes; nil without the field.
  var revisionToMatch: String? {
    get throws(Problem) {
      guard let tag = headers[.ifMatch] else { return nil }
      guard tag.count > 2, tag.hasPrefix("\""), tag.hasSuffix("\"") else {
        throw .unusable("If-Match is one revision in quotes, not `\(tag)`")
      }
      return String(tag.dropFirst().dropLast())
    }
  }
}

extension String {
  /// All bytes but unreserved characters (RFC 3986) as `%XX`.
  var percentEncoded: String {
    let unreserved = CharacterSet(
      charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
    return addingPercentEncoding(withAllowedCharacters: unreserved) ?? self
  }

  /// - Throws: `.unusable` if it is not percent-encoded UTF-8.
  var percentDecoded: String {
    get throws(Problem) {
      guard let decoded = removingPercentEncoding else {
        throw .unusable("`\(self)` is not percent-encoded UTF-8")
      }
      return decoded
    }
  }
}

/// A record that a path or a parameter names.
struct RecordName: Sendable {
  let model: Model
  let key: Key

  var partition: Partition { Partition(model: model, key: key) }

  /// - Parameter form: the parts as `name=value` with `&` between, both percent-encoded; or the
  ///   value of a key's only part.
  init(_ model: Model, _ form: String, in node: Node) throws {
    self.model = model
    var members: [(name: String, value: JSON)] = []
    let names = model.keyFields.map { model.fields[$0].name }
    for pair in form.split(separator: "&", omittingEmptySubsequences: false) {
      let halves = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let name = try String(halves[0]).percentDecoded
      if halves.count == 2, let part = model.field(named: name), names.contains(name) {
        members.append((name, try Self.value(try String(halves[1]).percentDecoded, of: part, model, node)))
      } else if names.count == 1, members.isEmpty {
        let part = model.fields[model.keyFields[0]]
        members = [(part.name, try Self.value(try form.percentDecoded, of: part, model, node))]
        break
      } else {
        throw Problem.unusable(
          "the key of \(model.name) is \(names.map { "\($0)=VALUE" }.joined(separator: "&"))")
      }
    }
    key = try node.key(.object(members), of: model)
  }

  /// - Throws: `unknownModel`.
  static func model(_ name: String, in node: Node) throws(NodeError) -> Model {
    guard let model = node.schema.model(named: name) else {
      throw .mutation(.unknownModel(name, known: node.schema.models.map(\.name)))
    }
    return model
  }

  /// - Parameter path: `MODEL/KEY`.
  init(path: String, in node: Node) throws {
    let parts = path.split(separator: "/", maxSplits: 1)
    guard parts.count == 2 else { throw Problem.unusable("`\(path)` is not MODEL/KEY") }
    let model = try Self.model(try String(parts[0]).percentDecoded, in: node)
    try self.init(model, String(parts[1]), in: node)
  }

  static func path(_ model: String, _ key: JSON) -> String {
    guard case .object(let members) = key else { return model.percentEncoded }
    let parts = members.map { "\($0.name.percentEncoded)=\($0.value.plainText.percentEncoded)" }
    return "\(model.percentEncoded)/\(parts.joined(separator: "&"))"
  }

  /// The record of a path `…/MODEL/KEY`.
  init(_ context: ServerContext, in node: Node) throws {
    try self.init(
      try Self.model(try context.parameters.require("model").percentDecoded, in: node),
      try context.parameters.require("key"), in: node)
  }

  private static func value(
    _ text: String, of field: Field, _ model: Model, _ node: Node
  ) throws(NodeError) -> JSON {
    do { return try node.schema.value(text: text, for: field, of: model.name).json } catch {
      throw .mutation(.value(error))
    }
  }
}
