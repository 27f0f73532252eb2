import ArgumentParser
import Foundation
import StemmaEvents
import StemmaNode
import StemmaSchema

/// Parses the arguments after a model's name: a key, then `field=value` words.
struct RecordWords {
  let schema: Schema
  let model: Model

  init(_ node: Node, model name: String) throws {
    schema = node.schema
    guard let model = schema.model(named: name) else {
      throw MutationError.unknownModel(name, known: schema.models.map(\.name))
    }
    self.model = model
  }

  /// Splits words into the key and the rest. A key is a JSON object, the leading `part=value`
  /// words, or the bare value of a one-part key.
  func key(_ words: [String]) throws -> (key: JSON, rest: ArraySlice<String>) {
    guard let first = words.first else { throw missingKey() }
    try checkInput(words)
    if first.hasPrefix("{") { return (try json(first, "key"), words.dropFirst()) }
    let names = model.keyFields.map { model.fields[$0].name }
    var members: [(name: String, value: JSON)] = []
    var rest = words[...]
    // A bare value may contain a `=`.
    while let word = rest.first,
      names.contains(where: { word.hasPrefix($0 + "=") || word.hasPrefix($0 + ":=") }),
      let (name, value) = try assignment(word)
    {
      members.append((name, value))
      rest = rest.dropFirst()
    }
    try checkNames(members)
    if !members.isEmpty { return (.object(members), rest) }
    guard model.keyFields.count == 1 else { throw missingKey() }
    let field = model.fields[model.keyFields[0]]
    return (try value(first, of: field), words.dropFirst())
  }

  /// A key without further words.
  func onlyKey(_ words: [String]) throws -> JSON {
    let (key, rest) = try key(words)
    if let word = rest.first { throw Failure("`\(word)` is more than the key", .usage) }
    return key
  }

  private func missingKey() -> Failure {
    let parts = model.keyFields.map { model.fields[$0].name }
    let form =
      parts.count == 1 ? "a value, or \(parts[0])=VALUE" : parts.map { "\($0)=VALUE" }.joined(separator: " ")
    return Failure("\(model.name) needs a key: \(form)", .usage)
  }

  /// The key of a relationship's target. Only the other model may declare the relationship.
  func target(_ text: String, of relationship: String) throws -> JSON {
    if model.relationship(named: relationship) == nil, let parent = parent(ofReference: relationship) {
      return try key(text, of: parent, relationship)
    }
    guard let declared = model.relationship(named: relationship),
      let target = schema.model(named: declared.target)
    else { throw unknownField(relationship) }
    return try key(text, of: target, relationship)
  }

  /// Whether the model has a field or relationship of this name, or stores a reference that another
  /// model names so.
  func isKnown(_ name: String) -> Bool {
    model.field(named: name) != nil || model.relationship(named: name) != nil
      || parent(ofReference: name) != nil
  }

  /// The target model of a stored reference.
  private func parent(ofReference name: String) -> Model? {
    schema.models.first {
      schema.inverseReferences(to: $0).contains {
        $0.child.name == model.name && $0.relationship.name == name
      }
    }
  }

  private func key(_ text: String, of target: Model, _ name: String) throws -> JSON {
    if text.hasPrefix("{") { return try json(text, name) }
    guard target.keyFields.count == 1 else {
      throw Failure(
        "\(target.name) has a key of \(target.keyFields.count) parts: write \(name):={…}", .usage)
    }
    return try value(text, of: target.fields[target.keyFields[0]])
  }

  /// All words as `field=value`.
  func fields(_ words: some Sequence<String>) throws -> [(name: String, value: JSON)] {
    try checkInput(words)
    let assignments = try words.map { word in
      guard let assignment = try assignment(word) else {
        let part = model.fields[model.keyFields[0]].name
        throw Failure(
          "`\(word)` is not field=value, field:=JSON or field=@FILE (a part of the key would be \(part)=VALUE)",
          .usage)
      }
      return assignment
    }
    try checkNames(assignments)
    return assignments
  }

  private func checkNames(_ members: [(name: String, value: JSON)]) throws {
    var names: Set<String> = []
    for (name, _) in members where !names.insert(name).inserted {
      throw Failure("`\(name)` is given twice", .usage)
    }
  }

  /// Standard input can be read once: a second read is empty.
  private func checkInput(_ words: some Sequence<String>) throws {
    let inputs = words.count { word in
      guard let equals = word.firstIndex(of: "="), !word[..<equals].hasSuffix(":") else { return false }
      return ["@-", "@/dev/stdin"].contains(word[word.index(after: equals)...])
    }
    if inputs > 1 { throw Failure("standard input can be read for one field only", .usage) }
  }

  /// `f=v`, parsed by the type of the field or of the other model's key; `f:=JSON`; `f=@FILE`. Nil
  /// for a word without `=`.
  private func assignment(_ word: String) throws -> (name: String, value: JSON)? {
    guard let equals = word.firstIndex(of: "=") else { return nil }
    var name = String(word[..<equals])
    let text = String(word[word.index(after: equals)...])
    if name.hasSuffix(":") {
      name.removeLast()
      return (name, try json(text, name))
    }
    if let field = model.field(named: name) {
      return (name, try value(isKey(name) ? Self.givenKey(text) : Self.given(text), of: field))
    }
    if let relationship = model.relationship(named: name),
      let target = schema.model(named: relationship.target)
    {
      return (name, try key(Self.givenKey(text), of: target, name))
    }
    throw unknownField(name)
  }

  /// The text after `=`, or the content of the file or standard input that `@` names.
  static func given(_ text: String) throws -> String {
    text.hasPrefix("@") ? try readText(String(text.dropFirst()), limit: Limits.value) : text
  }

  /// The same for a key or a part of one, without the final line feed that `echo` writes.
  static func givenKey(_ text: String) throws -> String {
    var given = try given(text)
    if text.hasPrefix("@"), given.utf8.last == UInt8(ascii: "\n") { given.removeLast() }
    return given
  }

  /// Whether a field is part of the key, or refers to the key of another record.
  private func isKey(_ name: String) -> Bool {
    model.keyFields.contains { model.fields[$0].name == name }
      || model.relationships.contains { $0.storesReference && $0.referenceFields.contains(name) }
  }

  func unknownField(_ name: String) -> MutationError {
    .unknownField(
      model: model.name, field: name, known: model.fields.map(\.name) + model.relationships.map(\.name))
  }

  func value(_ text: String, of field: Field) throws -> JSON { try stored(text, of: field).json }

  func stored(_ text: String, of field: Field) throws -> Value {
    do { return try schema.value(text: text, for: field, of: model.name) } catch {
      throw MutationError.value(error)
    }
  }

  private func json(_ text: String, _ name: String) throws -> JSON {
    do { return try JSON.parse(Array(text.utf8)) } catch {
      throw Failure("the JSON of `\(name)` is wrong: \(Explanations.text(of: error))", .badData)
    }
  }
}
