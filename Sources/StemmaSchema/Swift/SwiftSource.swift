/// Writes a schema as the Swift structs that an app declares it with.
///
/// Types are those of docs/TYPES.md. An `ID` that is minted, and what refers to it, is a `UUID`; other `ID`s are
/// `String.ID`, which takes any text. A key of several parts becomes a nested `@Selection`.
package struct SwiftSource {
  private let schema: Schema

  /// The text of a source file, in the order of the schema: enums, embedded types, models.
  package static func text(of schema: Schema) -> String {
    let source = SwiftSource(schema: schema)
    let parts =
      schema.enums.map(source.declaration) + schema.embeddedTypes.map(source.declaration)
      + schema.models.map(source.declaration)
    return (["import Stemma\n"] + parts).joined(separator: "\n")
  }

  private func declaration(_ type: EnumType) -> String {
    var names: Set<String> = []
    let cases = type.cases.map { value -> String in
      let camel = Self.caseName(value)
      let name = names.insert(camel).inserted ? camel : value
      names.insert(name)
      return name == value
        ? "  case \(Self.quoted(name))\n" : "  case \(Self.quoted(name)) = \"\(value)\"\n"
    }
    return "enum \(type.name): String, Codable, CaseIterable, KeyValue {\n\(cases.joined())}\n"
  }

  private func declaration(_ type: EmbeddedType) -> String {
    let fields = type.fields.map { field in
      "  var \(Self.quoted(field.name)): \(plainType(field.type))\(field.isRequired ? "" : "?")\n"
    }
    return "struct \(type.name): Codable, Hashable, Sendable {\n\(fields.joined())}\n"
  }

  private func declaration(_ model: Model) -> String {
    var text = ""
    for index in model.indexes {
      let fields = index.fields.map { "\"\($0)\"" }.joined(separator: ", ")
      let name = index.name == Naming.index(on: index.fields) ? "" : ", name: \"\(index.name)\""
      text += "@Index(\(fields)\(name))\n"
    }
    text = "@Table\(arguments(model))\n\(text)struct \(model.name) {\n\(key(model))"
    for (position, field) in model.fields.enumerated() where !model.isKeyField(position) {
      text += "  \(property(field, model))\n"
    }
    for relationship in model.relationships {
      if let line = self.relationship(relationship, model) { text += "  \(line)\n" }
    }
    return text + "}\n"
  }

  private func arguments(_ model: Model) -> String {
    var arguments: [String] = []
    if model.tableName != Naming.tableName(ofModel: model.name) { arguments.append("\"\(model.tableName)\"") }
    if model.conflictPolicy != .automerge { arguments.append("policy: .\(model.conflictPolicy)") }
    if model.deletePolicy != .byVersion { arguments.append("deletes: .\(model.deletePolicy)") }
    let key = model.keyFields.map { model.fields[$0] }
    if model.partitionDepth != SchemaReader.standardPartitionDepth(key: key) {
      let names = key.prefix(model.partitionDepth).map { "\"\($0.name)\"" }.joined(separator: ", ")
      arguments.append("partition: [\(names)]")
    }
    return arguments.isEmpty ? "" : "(\(arguments.joined(separator: ", ")))"
  }

  // MARK: Keys

  private func key(_ model: Model) -> String {
    let parts = model.keyFields.map { model.fields[$0] }
    if parts.count == 1 {
      let mark = parts[0].name == "id" ? "" : "@Column(primaryKey: true) "
      return "  \(mark)let \(Self.quoted(parts[0].name)): \(keyType(parts[0], model))\n"
    }
    // Another property may be called `id`; a part may, too, inside of the key.
    let isTaken =
      model.fields.contains { field in field.name == "id" && !parts.contains { $0.name == "id" } }
      || model.relationships.contains { $0.name == "id" }
    let lines = parts.map { "    let \(Self.quoted($0.name)): \(keyType($0, model))\n" }.joined()
    let (type, property) = isTaken ? ("Key", "@Column(primaryKey: true) let key") : ("ID", "let id")
    return "  @Selection struct \(type): Hashable {\n\(lines)  }\n  \(property): \(type)\n"
  }

  /// The type of a key part. One that holds another record's key has the type of that.
  private func keyType(_ field: Field, _ model: Model, depth: Int = 0) -> String {
    switch field.type.base {
    case .scalar(.id):
      if depth < 8, let (target, part) = referred(field, model) {
        return keyType(part, target, depth: depth + 1)
      }
      let isMinted = model.keyFields.contains { model.fields[$0].name == field.name } && field.isMinted
      return isMinted ? "UUID" : "String.ID"
    case .scalar(let scalar): return Self.elementType(scalar)
    case .enumeration(let name), .embedded(let name): return name
    }
  }

  /// The key part of another model that a field holds.
  private func referred(_ field: Field, _ model: Model) -> (Model, Field)? {
    for reference in model.references {
      guard let place = reference.fields.firstIndex(of: field.name),
        let target = schema.model(named: reference.target), place < target.keyFields.count,
        target.name != model.name || !model.keyFields.contains(where: { model.fields[$0].name == field.name })
      else { continue }
      return (target, target.fields[target.keyFields[place]])
    }
    return nil
  }

  // MARK: Columns

  private func property(_ field: Field, _ model: Model) -> String {
    let name = Self.quoted(field.name)
    let mark = field.isRequired ? "" : "?"
    if referred(field, model) != nil, !field.type.isList {
      return "var \(name): \(keyType(field, model))\(mark)"
    }
    if field.name == model.createdAt || field.name == model.updatedAt, field.type.scalar == .awsDateTime {
      return "var \(name): Date?"
    }
    let type = plainType(field.type)
    guard let representation = representation(field.type) else {
      return "var \(name): \(type)\(mark)\(standard(field))"
    }
    return "@Column(as: \(representation.replacing("?", with: mark)).self) var \(name): \(type)\(mark)"
  }

  /// The type behind `as:`, with a question mark where that of an optional property stands.
  private func representation(_ type: FieldType) -> String? {
    if case .embedded = type.base { return "\(plainType(type))?.JSONRepresentation" }
    guard !type.isList, case .scalar(let scalar) = type.base else { return nil }
    switch scalar {
    case .id, .awsDate, .awsTime, .awsEmail, .awsPhone, .awsIPAddress, .awsJSON:
      return "\(Self.elementType(scalar))?"
    case .awsTimestamp: return "Date.UnixTimeRepresentation?"
    default: return nil
    }
  }

  private func plainType(_ type: FieldType) -> String {
    let element: String
    switch type.base {
    case .enumeration(let name), .embedded(let name): element = name
    case .scalar(let scalar):
      element = type.isList ? Self.elementType(scalar) : Self.propertyType(scalar)
    }
    return type.isList ? "[\(element)\(type.elementsRequired ? "" : "?")]" : element
  }

  /// The type of a property of its own.
  private static func propertyType(_ scalar: Scalar) -> String {
    switch scalar {
    case .id, .awsDate, .awsTime, .awsEmail, .awsPhone, .awsIPAddress, .awsJSON: "String"
    case .awsTimestamp: "Date"
    default: elementType(scalar)
    }
  }

  /// The type of an element of a list, or of a key part: one that is a column's by itself.
  private static func elementType(_ scalar: Scalar) -> String {
    switch scalar {
    case .id: "String.ID"
    case .string: "String"
    case .int: "Int"
    case .float: "Double"
    case .boolean: "Bool"
    case .awsDate, .awsTime, .awsEmail, .awsPhone, .awsIPAddress, .awsJSON: "String.\(scalar.rawValue)"
    case .awsDateTime: "Date"
    case .awsTimestamp: "Date.UnixTimeRepresentation"
    case .awsURL: "URL"
    }
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

  private func relationship(_ relationship: Relationship, _ model: Model) -> String? {
    let name = Self.quoted(relationship.name)
    let fields = relationship.referenceFields.map { "\"\($0)\"" }.joined(separator: ", ")
    let rule = relationship.deleteRule == .restrict ? ", onDelete: .restrict" : ""
    if let join = relationship.joinModel {
      let far = schema.model(named: join)?.relationships.filter { $0.target == model.name } ?? []
      let by = far.count < 2 ? nil : far.first { $0.referenceFields == relationship.referenceFields }?.name
      return "@ManyToMany(through: \(join).self\(by.map { ", by: \"\($0)\"" } ?? "")) "
        + "var \(name): Related<\(relationship.target)>"
    }
    if relationship.storesReference {
      let free = model.freeReferenceFields(of: relationship)
      let isRequired = free.allSatisfy { model.field(named: $0)?.isRequired == true }
      return "@BelongsTo(\(fields)) var \(name): \(relationship.target)\(isRequired ? "" : "?")"
    }
    if relationship.kind == .hasMany {
      return "@HasMany(\(fields)\(rule)) var \(name): Related<\(relationship.target)>"
    }
    return "@HasOne(\(fields)\(rule)) var \(name): \(relationship.target)?"
  }

  // MARK: Names

  /// `IN_PROGRESS` → `inProgress`.
  private static func caseName(_ value: String) -> String {
    guard value.contains("_") || value == value.uppercased() else { return Naming.small(value) }
    let words = value.lowercased().split(separator: "_").map(String.init)
    let name = words.enumerated().map { $0 == 0 ? $1 : Naming.capital($1) }.joined()
    return name.first?.isLetter == true ? name : value
  }

  /// Words that a Swift declaration cannot be called without quotes.
  private static let keywords: Set<String> = [
    "as", "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer", "deinit", "do",
    "else", "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if",
    "import",
    "in", "init", "inout", "internal", "is", "let", "nil", "operator", "precedencegroup", "private",
    "protocol",
    "public", "repeat", "rethrows", "return", "self", "static", "struct", "subscript", "super", "switch",
    "throw",
    "throws", "true", "try", "typealias", "var", "where", "while", "Any", "Self", "Type",
  ]

  private static func quoted(_ name: String) -> String { keywords.contains(name) ? "`\(name)`" : name }
}
