extension SchemaReader {
  /// Reads the names of models, embedded types and enums. Duplicate names are errors.
  mutating func readTypeNames() {
    let count = document.types.count + document.enums.count
    let last = [document.types.last?.name.place, document.enums.last?.name.place].compactMap(\.self).max()
    if count > SchemaLimits.types, let place = last {
      error(place, "the schema has \(count) types", "use at most \(SchemaLimits.types)")
      return
    }
    var places: [String: Place] = [:]
    func declare(_ name: NameSyntax, _ reader: inout SchemaReader) -> Bool {
      if Scalar(rawValue: name.text) != nil {
        reader.error(name.place, "`\(name.text)` is a scalar", "choose another name")
      } else if name.text.hasPrefix("_") {
        reader.error(
          name.place, "`\(name.text)` begins with `_`", "such names are Stemma's own; choose another")
      } else if let other = places[name.text] {
        reader.error(
          name.place, "`\(name.text)` is declared twice, first in line \(other.line)", "choose another name")
      } else {
        places[name.text] = name.place
        return true
      }
      return false
    }
    for syntax in document.enums where declare(syntax.name, &self) {
      readEnum(syntax)
    }
    for syntax in document.types where declare(syntax.name, &self) {
      if syntax.directives.contains(where: { $0.name.text == "model" }) {
        modelNames[syntax.name.text] = models.count
        var draft = ModelDraft(name: syntax.name.text, place: syntax.name.place)
        draft.directives = syntax.directives
        draft.syntax = syntax.fields
        models.append(draft)
      } else {
        embeddedNames.insert(syntax.name.text)
      }
    }
  }

  private mutating func readEnum(_ syntax: EnumSyntax) {
    var cases: [String] = []
    var seen: Set<String> = []
    for name in syntax.cases {
      if !seen.insert(name.text).inserted {
        error(name.place, "case `\(name.text)` stands twice in `\(syntax.name.text)`", "keep one of them")
      } else if ["true", "false", "null"].contains(name.text) {
        error(name.place, "`\(name.text)` cannot be a case", "choose another name")
      } else {
        cases.append(name.text)
      }
    }
    if syntax.cases.isEmpty {
      error(syntax.name.place, "enum `\(syntax.name.text)` has no case", "write at least one")
    }
    enums[syntax.name.text] = EnumType(name: syntax.name.text, cases: cases)
  }

  /// The type of a stored field. Nil with an error for models and unknown names.
  private mutating func fieldType(_ syntax: TypeReferenceSyntax) -> FieldType? {
    let name = syntax.name.text
    let base: FieldType.Base
    if let scalar = Scalar(rawValue: name) {
      base = .scalar(scalar)
    } else if enums[name] != nil {
      base = .enumeration(name)
    } else if embeddedNames.contains(name) {
      base = .embedded(name)
    } else if modelNames[name] != nil {
      let directive = syntax.isList ? "@hasMany" : "@belongsTo` or `@hasOne"
      error(
        syntax.name.place, "`\(name)` is a model and needs a relationship", "write `\(directive)` behind it")
      return nil
    } else {
      error(syntax.name.place, "unknown type `\(name)`", suggestion(forType: name))
      return nil
    }
    return FieldType(base, isList: syntax.isList, elementsRequired: syntax.elementsRequired)
  }

  private func suggestion(forType name: String) -> String {
    let all =
      Scalar.allCases.map(\.rawValue) + enums.keys.sorted() + embeddedNames.sorted()
      + modelNames.keys.sorted()
    let known = [
      "Date": "AWSDate", "DateTime": "AWSDateTime", "Time": "AWSTime", "JSON": "AWSJSON",
      "Long": "Int", "Double": "Float", "Bool": "Boolean", "Text": "String", "UUID": "ID", "URL": "AWSURL",
    ]
    if let other = known[name] { return "write `\(other)`" }
    if let near = Spelling.nearest(to: name, among: all) { return "did you mean `\(near)`?" }
    return "declare it, or use one of \(Scalar.allCases.map(\.rawValue).joined(separator: ", "))"
  }

  // MARK: Embedded types

  mutating func readEmbeddedTypes() {
    var places: [String: Place] = [:]
    for syntax in document.types where embeddedNames.contains(syntax.name.text) {
      if places[syntax.name.text] != nil { continue }
      guard fits(syntax.fields.count, syntax.name.place, syntax.name.text) else { continue }
      places[syntax.name.text] = syntax.name.place
      for directive in known(syntax.directives, [:], on: "a type without `@model`") {
        error(directive.name.place, "`@\(directive.name.text)` is not allowed here")
      }
      var fields: [Field] = []
      var seen: Set<String> = []
      for field in syntax.fields {
        let directives = known(
          field.directives, DirectiveRules.onEmbeddedFields, on: "a field of a type without `@model`")
        if !seen.insert(field.name.text).inserted {
          error(field.name.place, "field `\(field.name.text)` stands twice", "keep one of them")
          continue
        }
        if modelNames[field.type.name.text] != nil {
          error(
            field.type.name.place, "`\(field.type.name.text)` is a model and cannot be embedded",
            "add `@model` to `\(syntax.name.text)`, or store the key of the \(field.type.name.text)")
          continue
        }
        guard let type = fieldType(field.type) else { continue }
        fields.append(
          Field(
            name: field.name.text, type: type, isRequired: field.type.isRequired,
            defaultValue: readDefault(directives, type)))
      }
      if syntax.fields.isEmpty {
        error(syntax.name.place, "type `\(syntax.name.text)` has no field", "write at least one")
      }
      embeddedTypes.append(EmbeddedType(name: syntax.name.text, fields: fields))
    }
    checkForEndlessTypes(places)
  }

  /// Reports types that require a value of themselves, and so have no value.
  private mutating func checkForEndlessTypes(_ places: [String: Place]) {
    let needs: [String: [String]] = Dictionary(
      uniqueKeysWithValues: embeddedTypes.map { type in
        let names = type.fields.compactMap { field -> String? in
          guard field.isRequired, !field.type.isList, case .embedded(let name) = field.type.base else {
            return nil
          }
          return name
        }
        return (type.name, names)
      })
    for type in embeddedTypes {
      var reached: Set<String> = []
      var open = needs[type.name] ?? []
      while let name = open.popLast() {
        if reached.insert(name).inserted { open += needs[name] ?? [] }
      }
      if reached.contains(type.name), let place = places[type.name] {
        error(
          place, "a `\(type.name)` would need another `\(type.name)` inside, without end",
          "make one of the fields on the way optional")
      }
    }
  }

  private mutating func fits(_ count: Int, _ place: Place, _ type: String) -> Bool {
    if count <= SchemaLimits.fields { return true }
    error(place, "`\(type)` has \(count) fields", "use at most \(SchemaLimits.fields)")
    return false
  }

  // MARK: Models' fields

  mutating func readFields(ofModel index: Int) {
    let name = models[index].name
    models[index].directives = known(
      models[index].directives, DirectiveRules.onModels, on: "a type with `@model`")
    for directive in models[index].directives {
      switch directive.name.text {
      case "mapsTo": if let stored = storedName(directive) { models[index].storedName = stored }
      case "table":
        if let table = string("name", of: directive) {
          models[index].tableName = table
          models[index].tablePlace = directive.name.place
        }
      default: break
      }
    }
    guard fits(models[index].syntax.count, models[index].place, name) else { return }
    var seen: Set<String> = []
    for field in models[index].syntax {
      if !seen.insert(field.name.text).inserted {
        error(field.name.place, "field `\(field.name.text)` stands twice in `\(name)`", "keep one of them")
        continue
      }
      if field.name.text.hasPrefix("_") {
        error(
          field.name.place, "field `\(field.name.text)` begins with `_`",
          "such columns are Stemma's own; write `\(field.name.text.drop { $0 == "_" })`")
        continue
      }
      let directives = known(field.directives, DirectiveRules.onFields, on: "a field")
      let relations = directives.filter { DirectiveRules.relationships[$0.name.text] != nil }
      if let directive = relations.first {
        readRelationshipField(field, directives, directive, ofModel: index)
      } else if let type = fieldType(field.type) {
        var stored = Field(
          name: field.name.text, type: type, isRequired: field.type.isRequired,
          defaultValue: readDefault(directives, type))
        if let directive = directives.first(where: { $0.name.text == "mapsTo" }),
          let name = storedName(directive)
        {
          stored.storedName = name
        }
        models[index].fields.append(
          FieldDraft(field: stored, place: field.name.place, directives: directives))
      }
    }
  }

  private mutating func readRelationshipField(
    _ field: FieldSyntax, _ directives: [DirectiveSyntax], _ directive: DirectiveSyntax, ofModel index: Int
  ) {
    guard let kind = DirectiveRules.relationships[directive.name.text] else { return }
    var draft = RelationshipDraft(
      name: field.name.text, place: field.name.place, kind: kind, directive: directive,
      target: field.type.name.text, isMarkedRequired: field.type.isRequired)
    for other in directives where other.name != directive.name {
      error(
        other.name.place, "`@\(other.name.text)` is not allowed beside `@\(directive.name.text)`",
        "put it on the reference field, or leave it out")
      draft.isBroken = true
    }
    let isMany = kind == .hasMany || kind == .manyToMany
    if modelNames[draft.target] == nil {
      let isKnown =
        enums[draft.target] != nil || embeddedNames.contains(draft.target)
        || Scalar(rawValue: draft.target) != nil
      error(
        field.type.name.place,
        isKnown ? "`\(draft.target)` is not a model" : "unknown model `\(draft.target)`",
        isKnown
          ? "leave `@\(directive.name.text)` out, or add `@model` to the type"
          : "declare `type \(draft.target) @model`")
      draft.isBroken = true
    } else if field.type.isList != isMany {
      error(
        field.type.name.place,
        "`@\(directive.name.text)` needs \(isMany ? "a list" : "a single model, not a list")",
        isMany
          ? "write `\(field.name.text): [\(draft.target)]`" : "write `\(field.name.text): \(draft.target)`")
      draft.isBroken = true
    }
    if let rule = word("onDelete", of: directive, as: Relationship.DeleteRule.self) {
      draft.deleteRule = rule
    }
    models[index].relationships.append(draft)
  }

  private mutating func storedName(_ directive: DirectiveSyntax) -> String? {
    guard let name = string("name", of: directive) else { return nil }
    guard let first = name.unicodeScalars.first, first.startsName, first != "_",
      name.unicodeScalars.allSatisfy(\.continuesName), name.utf8.count <= SchemaLimits.name
    else {
      error(
        directive.argument("name")?.value.place ?? directive.name.place,
        "`\(name)` is not a name", "write the old name: letters, digits and _, a letter first")
      return nil
    }
    return name
  }

  // MARK: Defaults

  /// The value of `@default` as JSON text. Amplify writes strings only; literals are read, too.
  private mutating func readDefault(_ directives: [DirectiveSyntax], _ type: FieldType) -> String? {
    guard let directive = directives.first(where: { $0.name.text == "default" }) else { return nil }
    guard let argument = directive.argument("value") else {
      error(directive.name.place, "`@default` needs the argument `value`", "write `@default(value: \"…\")`")
      return nil
    }
    let place = argument.value.place
    let text: String
    switch argument.value.kind {
    case .string(let value), .int(let value), .float(let value), .name(let value): text = value
    case .bool(let value): text = value ? "true" : "false"
    case .null, .list, .object:
      error(place, "`value` of `@default` must be a string", "write the value in quotes")
      return nil
    }
    if type.isList {
      error(place, "a list has no default", "`@default` is allowed on scalars and enums")
      return nil
    }
    switch type.base {
    case .embedded(let name):
      error(place, "`\(name)` has no default", "`@default` is allowed on scalars and enums")
      return nil
    case .enumeration(let name):
      guard let cases = enums[name]?.cases, cases.contains(text) else {
        let cases = enums[name]?.cases.joined(separator: ", ") ?? ""
        error(place, "`\(text)` is no case of `\(name)`", "write one of \(cases)")
        return nil
      }
      return JSONText.quoted(text)
    case .scalar(let scalar):
      guard let json = scalar.defaultValue(text) else {
        error(
          place, "`\(text)` is not \(scalar.phrase)",
          scalar.rule(brokenBy: text) ?? "write \(scalar.example)")
        return nil
      }
      return json
    }
  }
}

extension Scalar {
  /// A default as JSON text; nil if the text is not a value of this scalar.
  fileprivate func defaultValue(_ text: String) -> String? {
    switch self {
    case .int, .awsTimestamp: Int64(text).map(String.init)
    case .float: Double(text).flatMap { $0.isFinite ? ($0 == 0 ? 0 : $0).description : nil }
    case .boolean: ["true", "false"].contains(text) ? text : nil
    default: rule(brokenBy: text) == nil ? JSONText.quoted(text) : nil
    }
  }

  fileprivate var phrase: String { ["A", "I"].contains(rawValue.first) ? "an \(rawValue)" : "a \(rawValue)" }

  fileprivate var example: String {
    switch self {
    case .int, .awsTimestamp: "a whole number of 64 bits"
    case .float: "a number"
    case .boolean: "true or false"
    default: "another text"
    }
  }
}
