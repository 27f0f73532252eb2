extension SchemaReader {
  /// The primary key: `@primaryKey`, else the field `id`, which is implied when absent.
  mutating func readKey(ofModel index: Int) {
    let marked = models[index].fields.indices.filter { position in
      models[index].fields[position].directives.contains { $0.name.text == "primaryKey" }
    }
    guard let first = marked.first else {
      readDefaultKey(ofModel: index)
      return
    }
    for other in marked.dropFirst() {
      let field = models[index].fields[other]
      error(
        field.place, "`\(models[index].name)` has a second `@primaryKey`",
        "write `@primaryKey(sortKeyFields: [\"\(field.field.name)\"])` behind "
          + "`\(models[index].fields[first].field.name)`")
    }
    let leading = models[index].fields[first]
    guard let directive = leading.directives.first(where: { $0.name.text == "primaryKey" }) else { return }
    let names = [leading.field.name] + (strings("sortKeyFields", of: directive) ?? [])
    var parts: [Int] = []
    for name in names {
      guard let part = scalarField(name, ofModel: index, of: directive) else { return }
      if parts.contains(part) {
        error(directive.name.place, "`\(name)` stands twice in the key", "name each field once")
        return
      }
      let field = models[index].fields[part]
      guard field.field.isRequired else {
        let type = SDL.typeText(field.field.type)
        error(
          field.place, "key part `\(name)` of `\(models[index].name)` is not required",
          "write `\(name): \(type)!`")
        return
      }
      parts.append(part)
    }
    models[index].keyFields = parts
  }

  private mutating func readDefaultKey(ofModel index: Int) {
    if let relationship = models[index].relationship("id") {
      error(relationship.place, "`id` is a relationship", "rename it, or mark the key with `@primaryKey`")
      return
    }
    guard let position = models[index].fieldIndex("id") else {
      let field = Field(name: "id", type: FieldType(.scalar(.id)), isRequired: true)
      models[index].fields.insert(FieldDraft(field: field, place: models[index].place), at: 0)
      models[index].keyFields = [0]
      return
    }
    let draft = models[index].fields[position]
    if draft.field.type.isList || draft.field.type.isEmbedded {
      error(draft.place, "`id` of `\(models[index].name)` cannot be a key", "write `id: ID!`")
    } else if !draft.field.isRequired {
      error(
        draft.place, "`id` of `\(models[index].name)` is the key and not required",
        "write `id: \(SDL.typeText(draft.field.type))!`")
    } else {
      models[index].keyFields = [position]
    }
  }

  /// The position of a field that can be in a key or an index. Nil with an error for others.
  private mutating func scalarField(
    _ name: String, ofModel index: Int, of directive: DirectiveSyntax
  ) -> Int? {
    let place = directive.argument("sortKeyFields")?.value.place ?? directive.name.place
    let model = models[index].name
    guard let position = models[index].fieldIndex(name) else {
      if let relationship = models[index].relationship(name) {
        error(
          place, "`\(name)` is a relationship and cannot be part of `@\(directive.name.text)`",
          relationship.kind == .belongsTo
            ? "name its reference fields" : "name stored fields of `\(model)`")
      } else {
        error(
          place, "`\(model)` has no field `\(name)` for `@\(directive.name.text)`",
          "declare it, or name one of \(models[index].fields.map(\.field.name).joined(separator: ", "))")
      }
      return nil
    }
    let field = models[index].fields[position]
    guard !field.field.type.isList, !field.field.type.isEmbedded else {
      error(
        place == directive.name.place ? field.place : place,
        "`\(name)` is \(field.field.type.isList ? "a list" : "an embedded type") "
          + "and cannot be part of `@\(directive.name.text)`", "use a field with a scalar or an enum")
      return nil
    }
    return position
  }

  // MARK: Partition

  mutating func readPartition(ofModel index: Int) {
    let key = models[index].key
    guard !key.isEmpty else { return }
    models[index].partitionDepth = Self.standardPartitionDepth(key: key)
    guard let directive = models[index].directive("partition") else { return }
    guard directive.argument("fields") != nil else {
      error(
        directive.name.place, "`@partition` needs the argument `fields`",
        "write `@partition(fields: [\"\(key[0].name)\"])`, or `[]` for one partition of all records")
      return
    }
    guard let names = strings("fields", of: directive) else { return }
    guard names.count <= key.count, names.elementsEqual(key.prefix(names.count).map(\.name)) else {
      let parts = key.map { "\"\($0.name)\"" }.joined(separator: ", ")
      error(
        directive.name.place,
        "`@partition` does not name the first parts of the key of `\(models[index].name)`",
        "write a beginning of [\(parts)], in this order")
      return
    }
    models[index].partitionDepth = names.count
    if names.count == key.count {
      warn(
        directive.name.place, "every record of `\(models[index].name)` is a partition of its own",
        "name fewer parts of the key")
    }
  }

  /// The rule without `@partition`: the first part of a composite key, unless it is minted.
  static func standardPartitionDepth(key: [Field]) -> Int {
    guard key.count > 1 else { return 0 }
    return key[0].isMinted ? 0 : 1
  }

  // MARK: Policies

  mutating func readConflictPolicy(ofModel index: Int) {
    guard let directive = models[index].directive("conflict") else { return }
    if let policy = word("policy", of: directive, as: ConflictPolicy.self) {
      models[index].conflictPolicy = policy
    }
    if let policy = word("deletes", of: directive, as: DeletePolicy.self) {
      models[index].deletePolicy = policy
    }
  }

  // MARK: Timestamps

  /// The fields `createdAt` and `updatedAt`, if declared, or those that `@model(timestamps:)`
  /// names. A name given there becomes a field, if it is not declared.
  mutating func readTimestamps(ofModel index: Int) {
    var names: [String: String?] = ["createdAt": "createdAt", "updatedAt": "updatedAt"]
    var given: Set<String> = []
    let argument = models[index].directive("model")?.argument("timestamps")
    switch argument?.value.kind {
    case nil: break
    case .null: names = [:]
    case .object(let members):
      for member in members {
        guard names[member.name.text] != nil else {
          error(
            member.name.place, "`timestamps` has no `\(member.name.text)`", "it takes createdAt and updatedAt"
          )
          return
        }
        switch member.value.kind {
        case .null: names[member.name.text] = .some(nil)
        case .string(let name):
          names[member.name.text] = name
          given.insert(name)
        default:
          error(
            member.value.place, "`\(member.name.text)` must be a string", "write the field's name in quotes")
          return
        }
      }
    default:
      error(
        argument?.value.place ?? models[index].place, "`timestamps` must be an object or null",
        "write `timestamps: { createdAt: \"…\", updatedAt: \"…\" }`")
      return
    }
    models[index].createdAt = names["createdAt"].flatMap { $0 }.flatMap {
      timestampField($0, isGiven: given.contains($0), argument, ofModel: index)
    }
    models[index].updatedAt = names["updatedAt"].flatMap { $0 }.flatMap {
      timestampField($0, isGiven: given.contains($0), argument, ofModel: index)
    }
  }

  private mutating func timestampField(
    _ name: String, isGiven: Bool, _ argument: ArgumentSyntax?, ofModel index: Int
  ) -> String? {
    if let field = models[index].fields.first(where: { $0.field.name == name }) {
      if field.field.type.scalar == .awsDateTime && !models[index].isKeyPart(name) { return name }
      let place = isGiven ? argument?.value.place ?? field.place : field.place
      let message = "`\(name)` of `\(models[index].name)` is not maintained"
      if isGiven {
        error(place, message, "write `\(name): AWSDateTime`")
      } else {
        warn(place, message, "write `\(name): AWSDateTime`, outside of the key")
      }
      return nil
    }
    guard isGiven, let place = argument?.value.place else { return nil }
    guard isName(name), models[index].relationship(name) == nil else {
      error(
        place, "`\(name)` cannot be a field", "write a name of letters and digits that is not used otherwise")
      return nil
    }
    let field = Field(name: name, type: FieldType(.scalar(.awsDateTime)), isRequired: false)
    models[index].fields.append(FieldDraft(field: field, place: place))
    return name
  }

  /// Whether a text can be the name of a stored field.
  func isName(_ text: String) -> Bool {
    guard let first = text.unicodeScalars.first, first.startsName, first != "_" else { return false }
    return text.unicodeScalars.allSatisfy(\.continuesName) && text.utf8.count <= SchemaLimits.name
  }

  // MARK: Indexes

  mutating func readIndexes(ofModel index: Int) {
    for position in models[index].fields.indices {
      for directive in models[index].fields[position].directives where directive.name.text == "index" {
        readIndex(directive, onField: position, ofModel: index)
      }
    }
  }

  private mutating func readIndex(_ directive: DirectiveSyntax, onField position: Int, ofModel index: Int) {
    let leading = models[index].fields[position].field.name
    guard scalarField(leading, ofModel: index, of: directive) != nil else { return }
    let others = strings("sortKeyFields", of: directive) ?? []
    for name in others where scalarField(name, ofModel: index, of: directive) == nil { return }
    let fields = [leading] + others
    if others.contains(leading) {
      error(directive.name.place, "`\(leading)` stands twice in the index", "name each field once")
      return
    }
    var name = Naming.index(on: fields)
    var place = directive.name.place
    if directive.argument("name") != nil {
      guard let given = string("name", of: directive) else { return }
      name = given
      place = directive.argument("name")?.value.place ?? place
    }
    let signs = "-_.".unicodeScalars
    guard !name.isEmpty, name.utf8.count <= SchemaLimits.name,
      name.unicodeScalars.allSatisfy({ $0.continuesName || signs.contains($0) })
    else {
      error(place, "`\(name)` cannot name an index", "use letters, digits, - _ and .")
      return
    }
    if let other = models[index].indexes.first(where: { $0.name.lowercased() == name.lowercased() }) {
      error(
        place,
        "`\(models[index].name)` has two indexes named `\(other.name)`"
          + (other.name == name ? "" : " except for case"), "give each a name of its own")
      return
    }
    models[index].indexes.append(Index(name: name, fields: fields))
  }
}

extension FieldType {
  var isEmbedded: Bool { if case .embedded = base { true } else { false } }
}
