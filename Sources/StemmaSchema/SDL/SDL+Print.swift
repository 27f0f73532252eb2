extension SDL {
  /// The canonical text of a schema: enums, embedded types, models, each in the schema's order.
  /// Keys, reference fields and index names are explicit; join models of `@manyToMany` are implied.
  package static func print(_ schema: Schema) -> String {
    let implied = Set(schema.models.flatMap { $0.relationships.compactMap(\.joinModel) })
    var definitions = schema.enums.map { type in
      "enum \(type.name) {\n" + type.cases.map { "  \($0)\n" }.joined() + "}\n"
    }
    definitions += schema.embeddedTypes.map { type in
      "type \(type.name) {\n" + type.fields.map { "  \(head($0))\(standard($0))\n" }.joined() + "}\n"
    }
    definitions += schema.models.filter { !implied.contains($0.name) }.map(definition)
    // Distinguishes a schema without models from an empty file.
    return definitions.isEmpty ? "# no models\n" : definitions.joined(separator: "\n")
  }

  /// `[String!]`, without the type's own required marker.
  package static func typeText(_ type: FieldType) -> String {
    let name =
      switch type.base {
      case .scalar(let scalar): scalar.rawValue
      case .enumeration(let name), .embedded(let name): name
      }
    return type.isList ? "[\(name)\(type.elementsRequired ? "!" : "")]" : name
  }

  private static func head(_ field: Field) -> String {
    "\(field.name): \(typeText(field.type))\(field.isRequired ? "!" : "")"
  }

  /// Amplify writes every default as a string, whatever the field's type.
  private static func standard(_ field: Field) -> String {
    guard let value = field.defaultValue else { return "" }
    return " @default(value: \(value.hasPrefix("\"") ? value : "\"\(value)\""))"
  }

  private static func list(_ names: some Sequence<String>) -> String {
    "[" + names.map { "\"\($0)\"" }.joined(separator: ", ") + "]"
  }

  private static func definition(_ model: Model) -> String {
    var text = "type \(model.name) @model\(timestamps(model))"
    if model.storedName != model.name { text += " @mapsTo(name: \"\(model.storedName)\")" }
    if model.tableName != Naming.tableName(ofModel: model.name) {
      text += " @table(name: \"\(model.tableName)\")"
    }
    let key = model.keyFields.map { model.fields[$0] }
    if model.partitionDepth != SchemaReader.standardPartitionDepth(key: key) {
      text += " @partition(fields: \(list(key.prefix(model.partitionDepth).map(\.name))))"
    }
    var policies: [String] = []
    if model.conflictPolicy != .automerge { policies.append("policy: \(model.conflictPolicy.rawValue)") }
    if model.deletePolicy != .byVersion { policies.append("deletes: \(model.deletePolicy.rawValue)") }
    if !policies.isEmpty { text += " @conflict(\(policies.joined(separator: ", ")))" }
    text += " {\n"
    for (position, field) in model.fields.enumerated() {
      text += "  \(head(field))"
      if position == model.keyFields.first {
        text += " @primaryKey"
        if key.count > 1 { text += "(sortKeyFields: \(list(key.dropFirst().map(\.name))))" }
      }
      text += standard(field)
      if field.storedName != field.name { text += " @mapsTo(name: \"\(field.storedName)\")" }
      for index in model.indexes where index.fields.first == field.name {
        text += " @index(name: \"\(index.name)\""
        if index.fields.count > 1 { text += ", sortKeyFields: \(list(index.fields.dropFirst()))" }
        text += ")"
      }
      text += "\n"
    }
    for relationship in model.relationships { text += "  \(line(relationship))\n" }
    return text + "}\n"
  }

  private static func timestamps(_ model: Model) -> String {
    func entry(_ name: String, _ field: String?) -> String? {
      if field == name { return nil }
      if let field { return "\(name): \"\(field)\"" }
      // A default name needs no null unless a field has it.
      return model.field(named: name) == nil ? nil : "\(name): null"
    }
    let entries = [entry("createdAt", model.createdAt), entry("updatedAt", model.updatedAt)].compactMap(
      \.self)
    return entries.isEmpty ? "" : "(timestamps: { \(entries.joined(separator: ", ")) })"
  }

  private static func line(_ relationship: Relationship) -> String {
    let isList = relationship.kind == .hasMany || relationship.kind == .manyToMany
    let marker = relationship.isRequired ? "!" : ""
    let type = isList ? "[\(relationship.target)]" : relationship.target + marker
    var arguments: [String] = []
    if let join = relationship.joinModel {
      arguments.append("relationName: \"\(join)\"")
    } else {
      let name = relationship.storesReference ? "fields" : "references"
      arguments.append("\(name): \(list(relationship.referenceFields))")
    }
    if relationship.deleteRule != .standard {
      arguments.append("onDelete: \(relationship.deleteRule.rawValue)")
    }
    return
      "\(relationship.name): \(type) @\(relationship.kind.rawValue)(\(arguments.joined(separator: ", ")))"
  }
}
