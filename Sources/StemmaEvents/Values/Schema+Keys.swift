import StemmaSchema

extension Schema {
  /// Reads a key: the bare value of a one-part key, or an object with exactly the key's parts.
  ///
  /// Normalizes parts for comparison: AWSDateTime in UTC, UUIDs in lower case. `mint` gives the
  /// auto-populated part if it, or all of `json`, is absent. Otherwise all parts are required.
  package func key(
    _ json: JSON?, of model: Model, mint: (() -> Value)? = nil
  ) throws(ValueError) -> Key {
    var given: [(name: String, value: JSON)] = []
    switch json {
    case nil: break
    case .object(let members): given = members
    case .some(let bare):
      guard model.keyFields.count == 1 else { throw shapeError(bare, model) }
      given = [(model.fields[model.keyFields[0]].name, bare)]
    }
    for member in given
    where !model.keyFields.contains(where: { model.fields[$0].name.hasSameBytes(as: member.name) }) {
      throw shapeError(json ?? .null, model)
    }
    var encoded: [UInt8] = []
    encoded.reserveCapacity(model.keyFields.count * 40)
    for position in model.keyFields {
      let value: Value
      if let member = given.first(where: { $0.name.hasSameBytes(as: model.fields[position].name) }) {
        value = try self.value(member.value, for: model.fields[position], of: model.name)
      } else if let mint, position == model.autoPopulatedField {
        value = mint()
      } else {
        throw shapeError(json ?? .object([]), model)
      }
      guard let keyPart = KeyPart(value) else { throw shapeError(json ?? .null, model) }
      Key.encode(keyPart, into: &encoded)
    }
    let key = Key(trusted: encoded)
    guard encoded.count <= Limits.key else {
      throw ValueError(
        model: model.name, field: nil, value: json ?? .null, rule: "a key has at most \(Limits.key) bytes")
    }
    // Names are seldom near the limit, and a bound is cheap: escapes at most triple a value.
    let names = model.keyFields.prefix(model.partitionDepth).reduce(0) {
      $0 + model.fields[$1].storedName.utf8.count + 8
    }
    if encoded.count * 3 + names > Limits.partition, model.partitionDepth > 0,
      Partition(model: model, key: key).bytes.count > Limits.partition
    {
      throw ValueError(
        model: model.name, field: nil, value: json ?? .null,
        rule: "the first part of the key names a partition, in at most \(Limits.partition) bytes")
    }
    return key
  }

  /// Reads a key from one word: the bare value of a one-part key, or a JSON object.
  package func key(text: String, of model: Model) throws(ValueError) -> Key {
    if text.utf8.first == UInt8(ascii: "{") {
      do { return try key(JSON.parse(text), of: model) } catch let error as ValueError { throw error } catch {
        throw shapeError(.string(text), model)
      }
    }
    guard model.keyFields.count == 1 else { throw shapeError(.string(text), model) }
    let part = model.fields[model.keyFields[0]]
    return try key(.object([(part.name, try value(text: text, for: part, of: model.name).json)]), of: model)
  }

  /// Reads a key from `part=value` words, in any order.
  package func key(
    parts words: [(name: String, text: String)], of model: Model, mint: (() -> Value)? = nil
  ) throws(ValueError) -> Key {
    var members: [(name: String, value: JSON)] = []
    for word in words {
      guard let part = model.keyFields.map({ model.fields[$0] }).first(where: { $0.name == word.name }),
        !members.contains(where: { $0.name == word.name })
      else { throw shapeError(.object(words.map { ($0.name, .string($0.text)) }), model) }
      members.append((word.name, try value(text: word.text, for: part, of: model.name).json))
    }
    return try key(.object(members), of: model, mint: mint)
  }

  /// A key as the object that `key` reads. Omits parts beyond those of the model.
  package func json(of key: Key, model: Model) -> JSON {
    .object(zip(model.keyFields, key.parts).map { (model.fields[$0].name, $1.value.json) })
  }

  private func shapeError(_ json: JSON, _ model: Model) -> ValueError {
    let parts = model.keyFields.map { model.fields[$0] }
    let shape = parts.map { "\"\($0.name)\": \(SDL.typeText($0.type))" }.joined(separator: ", ")
    let bare = parts.count == 1 ? ", or its value alone" : ""
    return ValueError(
      model: model.name, field: nil, value: json, rule: "a key of \(model.name) is {\(shape)}\(bare)")
  }
}
