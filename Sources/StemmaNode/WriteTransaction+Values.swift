import StemmaEvents
import StemmaSchema

/// Generated key parts, and checks of typed values. (JSON is checked when it is read.)
extension WriteTransaction {
  /// Prepares `mintedPart` for a model. The caller runs this first.
  func prepareMinting(_ model: Model) throws(NodeError) {
    guard integers == nil, let part = model.autoPopulatedField, model.fields[part].type.scalar == .int else {
      return
    }
    do {
      integers = IntegerIdentifiers(origin: origin, eventCount: try tables.eventCount(of: origin))
    } catch { throw .tables(error) }
  }

  /// A new value for the key part named `id`: a UUIDv7 as text, or an integer that no other node
  /// generates.
  func mintedPart(of model: Model) -> Value {
    guard let part = model.autoPopulatedField, model.fields[part].type.scalar == .int,
      let number = integers?.mint()
    else { return .string(identifiers.mint(clock: wallClock, random: random)) }
    return .int(number)
  }

  /// The key of a record to write. Checks its parts and generates the one named `id` if it is nil.
  ///
  /// - Throws: `missingKey` if another part is nil; `value` if the type does not allow a part, or
  ///   if the key is too long.
  package func key(_ parts: [KeyPart?], of model: Model) throws(NodeError) -> Key {
    var encoded: [UInt8] = []
    encoded.reserveCapacity(parts.count * 40)
    for (position, part) in zip(model.keyFields, parts) {
      let value: Value
      if let part {
        do { value = try checked(part.value, model.fields[position], model) } catch {
          throw .mutation(.value(error))
        }
      } else if position == model.autoPopulatedField {
        try prepareMinting(model)
        value = mintedPart(of: model)
      } else {
        throw .mutation(
          .missingKey(model: model.name, parts: model.keyFields.map { model.fields[$0].name }))
      }
      guard let whole = KeyPart(value) else {
        throw .mutation(
          .missingKey(model: model.name, parts: model.keyFields.map { model.fields[$0].name }))
      }
      Key.encode(whole, into: &encoded)
    }
    let key = Key(trusted: encoded)
    // A short key is within every limit: a byte becomes three of a partition's name at most.
    if encoded.count > Limits.partition / 4 {
      do { _ = try schema.key(schema.json(of: key, model: model), of: model) } catch {
        throw .mutation(.value(error))
      }
    }
    return key
  }

  /// Values in the canonical form of their fields.
  ///
  /// - Throws: `value` for a value that its field's type does not allow. Null passes; the operation
  ///   decides whether it is allowed.
  func checked(_ values: [Assignment], _ model: Model, _ key: Key) throws(NodeError) -> [Assignment] {
    var values = values
    // Values mostly come in the order of the fields.
    var next = 0
    for index in values.indices {
      let name = values[index].field
      if !(next < model.fields.count && model.fields[next].storedName == name) {
        guard let place = model.fields.firstIndex(where: { $0.storedName == name }) else { continue }
        next = place
      }
      let field = model.fields[next]
      next += 1
      do { values[index].value = try checked(values[index].value, field, model) } catch {
        throw .mutation(.value(error.named(by: text(key, model))))
      }
    }
    return values
  }

  func checked(_ value: Value, _ field: Field, _ model: Model) throws(ValueError) -> Value {
    switch (value, field.type.scalar) {
    case (.null, _), (.bool, .boolean), (.int, .int), (.int, .awsTimestamp): return value
    case (.string(let text), .string) where text.utf8.count <= Limits.value: return value
    case (.string(let text), .id) where text.utf8.count <= Limits.value && !text.isUUIDShaped: return value
    case (.double(let number), .float) where number.isFinite: return value
    case (.double(let number), _) where !number.isFinite:
      throw ValueError(
        model: model.name, field: field.name, value: .string(number.description),
        rule: "a number that is neither infinite nor NaN")
    default: break
    }
    // Embedded values arrive as JSON text.
    guard field.type.scalar == nil, case .string(let text) = value else {
      return try schema.value(value.json, for: field, of: model.name)
    }
    let json: JSON
    do { json = try JSON.parse(text) } catch { json = .string(text) }
    return try schema.value(json, for: field, of: model.name)
  }
}
