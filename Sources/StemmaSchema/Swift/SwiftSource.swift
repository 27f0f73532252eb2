/// Writes a schema as Swift structs for an app, which can read all values that the node has.
///
/// The types are those of docs/SCHEMA.md. An `ID`, minted or not, is any text: `String.ID`. A key
/// of several parts becomes a nested `@Selection`. A name that is invalid in Swift is changed; the
/// code has the schema's, too.
package struct SwiftSource {
  private let schema: Schema
  private let names: SwiftNames
  private let types: SwiftTypes

  private init(_ schema: Schema) {
    self.schema = schema
    names = SwiftNames(schema)
    types = SwiftTypes(names: names)
  }

  /// The text of a source file, in the order of the schema: enums, embedded types, models.
  package static func text(of schema: Schema) -> String {
    let source = SwiftSource(schema)
    let parts =
      schema.enums.map(source.declaration) + schema.embeddedTypes.map(source.declaration)
      + schema.models.map(source.declaration)
    return (["import Stemma\n"] + parts).joined(separator: "\n")
  }

  private func declaration(_ type: EnumType) -> String {
    let name = names.type(type.name)
    var lines = zip(SwiftNames.cases(type.cases), type.cases).map { name, value in
      name == value
        ? "  case \(SwiftNames.quoted(name))\n" : "  case \(SwiftNames.quoted(name)) = \"\(value)\"\n"
    }
    if name != type.name {
      lines.append(
        "  static var columnType: ColumnType { .enumeration(\"\(type.name)\", of: Self.self) }\n")
    }
    return "enum \(name): String, Codable, CaseIterable, KeyValue {\n\(lines.joined())}\n"
  }

  /// An embedded type, encoded as JSON under the schema's names.
  private func declaration(_ type: EmbeddedType) -> String {
    let fields = type.fields.map { field in
      "  var \(SwiftNames.quoted(field.name)): \(types.embedded(field.type))\(field.isRequired ? "" : "?")\n"
    }
    return "struct \(names.type(type.name)): Codable, Hashable, Sendable {\n\(fields.joined())}\n"
  }

  private func declaration(_ model: Model) -> String {
    var text = ""
    for index in model.indexes {
      let name = index.name == Naming.index(on: index.fields) ? "" : ", name: \"\(index.name)\""
      text += "@Index(\(properties(index.fields, model))\(name))\n"
    }
    text = "@Table\(arguments(model))\n\(text)struct \(names.type(model.name)) {\n\(key(model))"
    for (position, field) in model.fields.enumerated() where !model.isKeyField(position) {
      text += "  \(property(field, model))\n"
    }
    for relationship in model.relationships { text += "  \(self.relationship(relationship, model))\n" }
    return text + "}\n"
  }

  private func arguments(_ model: Model) -> String {
    var arguments: [String] = []
    if model.tableName != Naming.tableName(ofModel: model.name) { arguments.append("\"\(model.tableName)\"") }
    if names.type(model.name) != model.name { arguments.append("model: \"\(model.name)\"") }
    if model.conflictPolicy != .automerge { arguments.append("policy: .\(model.conflictPolicy)") }
    if model.deletePolicy != .byVersion { arguments.append("deletes: .\(model.deletePolicy)") }
    let key = model.keyFields.map { model.fields[$0] }
    if model.partitionDepth != SchemaReader.standardPartitionDepth(key: key) {
      let parts = key.prefix(model.partitionDepth).map(\.name)
      arguments.append("partition: [\(properties(parts, model))]")
    }
    return arguments.isEmpty ? "" : "(\(arguments.joined(separator: ", ")))"
  }

  // MARK: Names

  /// The property of a field.
  private func property(_ name: String, _ model: Model?) -> String {
    guard let model else { return name }
    return names.property(
      name, besides: model.fields.map(\.name) + model.relationships.map(\.name),
      isPart: model.keyFields.count > 1 && model.keyFields.contains { model.fields[$0].name == name })
  }

  /// Properties as arguments of macros.
  private func properties(_ fields: [String], _ model: Model?) -> String {
    fields.map { "\"\(property($0, model))\"" }.joined(separator: ", ")
  }

  /// The attribute of a property whose name or type differs from the stored one, or of a key.
  private func column(
    _ field: Field, _ model: Model, isKey: Bool = false, representation: String? = nil
  ) -> String {
    var arguments: [String] = []
    if property(field.name, model) != field.name { arguments.append("\"\(field.name)\"") }
    if isKey { arguments.append("primaryKey: true") }
    if let representation { arguments.append("as: \(representation).self") }
    return arguments.isEmpty ? "" : "@Column(\(arguments.joined(separator: ", "))) "
  }

  private func quoted(_ field: Field, _ model: Model) -> String {
    SwiftNames.quoted(property(field.name, model))
  }

  // MARK: Keys

  private func key(_ model: Model) -> String {
    let parts = model.keyFields.map { model.fields[$0] }
    if parts.count == 1 {
      let mark = column(parts[0], model, isKey: parts[0].name != "id")
      return "  \(mark)let \(quoted(parts[0], model)): \(types.keyType(parts[0]))\n"
    }
    let lines = parts.map {
      "    \(column($0, model))let \(quoted($0, model)): \(types.keyType($0))\n"
    }
    // Another property may be named `id`, and so may a part inside of the key.
    let others = model.fields.filter { field in !parts.contains { $0.name == field.name } }.map(\.name)
    let taken = Set(others + model.relationships.map(\.name))
    guard taken.contains("id") else {
      return "  @Selection struct ID: Hashable {\n\(lines.joined())  }\n  let id: ID\n"
    }
    let key = SwiftNames.free("key", taken.union(parts.map(\.name)))
    return "  @Selection struct Key: Hashable {\n\(lines.joined())  }\n"
      + "  @Column(primaryKey: true) let \(key): Key\n"
  }

  // MARK: Columns

  private func property(_ field: Field, _ model: Model) -> String {
    let mark = field.isRequired ? "" : "?"
    let head = "var \(quoted(field, model))"
    if types.isReference(field, model) {
      return "\(column(field, model))\(head): \(types.keyType(field))\(mark)"
    }
    let representation = types.representation(field.type)?.replacing("?", with: mark)
    let standard = representation == nil ? standard(field) : ""
    return column(field, model, representation: representation)
      + "\(head): \(types.property(field.type))\(mark)\(standard)"
  }

  /// The default of a column whose type has literals.
  private func standard(_ field: Field) -> String {
    guard !field.type.isList, case .scalar(let scalar) = field.type.base, let text = field.defaultValue else {
      return ""
    }
    let bare = text.hasPrefix("\"") ? String(text.dropFirst().dropLast()) : text
    switch scalar {
    case .int, .float, .boolean: return " = \(bare)"
    case .string where !bare.contains("\\"): return " = \"\(bare)\""
    default: return ""
    }
  }

  // MARK: Relationships

  private func relationship(_ relationship: Relationship, _ model: Model) -> String {
    let target = names.type(relationship.target)
    guard !names.isTaken(relationship.name) else {
      return "// `\(relationship.name)` leads to \(target); Swift has no property of that name."
    }
    let name = SwiftNames.quoted(relationship.name)
    let child = relationship.storesReference ? model : schema.model(named: relationship.target)
    let fields = properties(relationship.referenceFields, child)
    let rule =
      relationship.deleteRule == .standard
      ? "" : ", onDelete: .\(relationship.deleteRule.rawValue.lowercased())"
    if let join = relationship.joinModel {
      let far = schema.model(named: join)?.relationships.filter { $0.target == model.name } ?? []
      let by = far.count < 2 ? nil : far.first { $0.referenceFields == relationship.referenceFields }?.name
      return "@ManyToMany(through: \(names.type(join)).self\(by.map { ", by: \"\($0)\"" } ?? "")) "
        + "var \(name): Related<\(target)>"
    }
    if relationship.storesReference {
      let free = model.freeReferenceFields(of: relationship)
      let isRequired = free.allSatisfy { model.field(named: $0)?.isRequired == true }
      return "@BelongsTo(\(fields)) var \(name): \(target)\(isRequired ? "" : "?")"
    }
    if relationship.kind == .hasMany {
      return "@HasMany(\(fields)\(rule)) var \(name): Related<\(target)>"
    }
    return "@HasOne(\(fields)\(rule)) var \(name): \(target)?"
  }
}
