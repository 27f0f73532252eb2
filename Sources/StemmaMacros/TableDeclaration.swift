import SwiftDiagnostics
import SwiftSyntax

/// The declaration of a struct with `@Table`.
struct TableDeclaration {
  /// The primary key: one column, or the columns of a nested struct.
  struct Key {
    /// The property that holds it.
    var property: String
    var columns: [Column]
    /// The nested struct's name.
    var selection: String?

    var type: String { selection ?? columns[0].type }
  }

  struct Relationship {
    enum Kind: String, CaseIterable {
      case belongsTo = "BelongsTo"
      case hasMany = "HasMany"
      case hasOne = "HasOne"
      case manyToMany = "ManyToMany"

      var isList: Bool { self == .hasMany || self == .manyToMany }
      /// The case of `ModelDescription.Relationship`.
      var caseName: String { rawValue.prefix(1).lowercased() + rawValue.dropFirst() }
    }

    var property: String
    var kind: Kind
    var target: String
    var isOptional: Bool
    var fields: [String]
    /// `restrict`, for example, if the attribute has a rule.
    var deleteRule: String?
    /// The join model of a many-to-many relationship, and its named relationship to this side.
    var join: String?
    var joinRelationship: String?

    var attribute: AttributeSyntax
    var variable: VariableDeclSyntax

    /// The type of the records that are read along.
    var value: String { kind.isList ? "[\(target)]" : "\(target)?" }
  }

  /// An index on columns, identified by their properties.
  struct Index {
    var name: String?
    var fields: [String]
    var attribute: AttributeSyntax
  }

  let name: String
  /// The model's name in the schema: `model:`, or the type's without backticks.
  let modelName: String
  let access: String
  let tableName: String?
  /// The policy arguments of `@Table`, as written.
  let policies: [String]
  let partition: [String]?
  let key: Key
  /// The stored properties without the key, in order of declaration.
  let stored: [Stored]
  /// All stored properties.
  let declared: [Stored]
  let relationships: [Relationship]
  let indexes: [Index]
  /// All named members of the struct, with their places.
  let members: [String: Syntax]
  let declaration: StructDeclSyntax
  /// Whether it is nested in another type, whose short names an extension does not see.
  let isNested: Bool
  /// Warnings about valid declarations.
  private(set) var warnings: [Diagnostic] = []

  /// The columns without the key, in the order of their numbers.
  var columns: [Column] { stored.flatMap(\.columns) }

  func column(ofProperty property: String) -> Column? {
    columns.first { $0.property == property } ?? key.columns.first { $0.property == property }
  }

  /// Reads a declaration.
  ///
  /// - Throws: `Refusal` with all errors; `DiagnosticsError` if it is no struct.
  init(_ node: AttributeSyntax, _ group: some DeclGroupSyntax, isNested: Bool = false) throws {
    let declaration = try Self.structure(node, group)
    self.declaration = declaration
    self.isNested = isNested
    name = declaration.name.text
    modelName = node.label("model") ?? name.withoutTicks
    access = declaration.modifiers.accessPrefix
    tableName = node.strings.first
    policies = ["policy", "deletes"].compactMap { label in
      node.expression(label).map { "\(label): \($0.trimmedDescription)" }
    }
    partition = node.expression("partition")?.as(ArrayExprSyntax.self)?.elements.compactMap {
      $0.expression.fieldName
    }
    var misuses = Misuses()
    misuses.checkArguments(of: node)
    misuses.checkArguments(of: declaration.attributes)
    misuses.checkConditional(declaration.attributes)
    var reader = MemberReader(declaration)
    try reader.read(&misuses)
    members = reader.members
    relationships = reader.relationships
    indexes =
      declaration.attributes.all("Index").map {
        Index(name: $0.label("name"), fields: $0.strings, attribute: $0)
      } + reader.indexes
    var key = reader.key(&misuses)
    for index in key.columns.indices { key.columns[index].isIdentity = true }
    self.key = key
    let references = Set(relationships.filter { $0.kind == .belongsTo }.flatMap(\.fields))
    declared = reader.stored.map { $0.referring(references) }
    stored = declared.filter { $0.property != key.property }
    check(node, &misuses)
    warnings = misuses.hasErrors ? [] : misuses.diagnostics
    if misuses.hasErrors { throw Refusal(diagnostics: misuses.diagnostics) }
  }

  private static func structure(
    _ node: AttributeSyntax, _ group: some DeclGroupSyntax
  ) throws -> StructDeclSyntax {
    if let declaration = group.as(StructDeclSyntax.self) { return declaration }
    var fix: FixIt?
    if let type = group.as(ClassDeclSyntax.self) {
      fix = structured(type.modifiers, type.classKeyword)
    } else if let type = group.as(ActorDeclSyntax.self) {
      fix = structured(type.modifiers, type.actorKeyword)
    }
    throw Misuses.error("struct", "@Table requires a struct: a record is a value", at: node, fix: fix)
  }

  /// The advice to make a type a struct, which is never final.
  private static func structured(_ modifiers: DeclModifierListSyntax, _ keyword: TokenSyntax) -> FixIt {
    let change = FixIt.Change.replacement(of: keyword, by: TokenSyntax.keyword(.struct))
    let final = modifiers.first { $0.name.tokenKind == .keyword(.final) }
    return .replace("make it a struct", (final.map { [.leavingOut($0)] } ?? []) + [change])
  }
}

extension TableDeclaration.Relationship {
  /// Nil for a property that is no relationship. `owner`: the spelling of the enclosing type.
  init?(_ variable: VariableDeclSyntax, of owner: String = "Self") throws {
    for kind in [Kind.belongsTo, .hasMany, .hasOne, .manyToMany] {
      guard let attribute = variable.attributes.named(kind.rawValue) else { continue }
      guard let binding = variable.bindings.first, let name = binding.name,
        let type = binding.typeAnnotation?.type
      else { throw Misuse("type", "a relationship's property has a type").error(at: variable) }
      property = name
      self.attribute = attribute
      self.variable = variable
      self.kind = kind
      fields = attribute.strings
      deleteRule = attribute.expression("onDelete")?.deleteRule
      join = attribute.expression("through")?.metatypeName(in: owner)
      joinRelationship = attribute.label("by")
      isOptional = type.wrapped != nil
      let isOptional = kind != .belongsTo || variable.hasOptional(fields)
      let target = try Self.target(type, kind, isOptional: isOptional)
      self.target = target == "Self" ? owner : target
      return
    }
    return nil
  }

  /// The model that a type names. `isOptional`: whether a single record is optional.
  private static func target(_ type: TypeSyntax, _ kind: Kind, isOptional: Bool) throws -> String {
    guard let model = type.model?.trimmedDescription else {
      throw Misuses.error(
        "modelType",
        kind.isList
          ? "@\(kind.rawValue) leads to models: its type is Related<Model>"
          : "@\(kind.rawValue) leads to a model: its type is the name of one, or that with a question mark",
        at: type)
    }
    if kind.isList {
      let related = type.as(IdentifierTypeSyntax.self) ?? type.as(MemberTypeSyntax.self)?.lastName
      let argument = related?.genericArgumentClause?.arguments.first?.argument.trimmedDescription
      guard related?.name.text == "Related", argument == model else {
        throw Misuses.error(
          "related", "the type of a @\(kind.rawValue) property is Related<Model>", at: type,
          fix: .replace(
            "write `Related<\(model)>`", type, by: TypeSyntax(stringLiteral: "Related<\(model)>")))
      }
    } else if model != (type.wrapped ?? type).plain.trimmedDescription {
      let one = isOptional ? "\(model)?" : model
      throw Misuses.error(
        "oneRecord",
        "@\(kind.rawValue) leads to one record: its type is `\(one)`; many are a @HasMany of Related<\(model)>",
        at: type, fix: .replace("write `\(one)`", type, by: TypeSyntax(stringLiteral: one)))
    }
    return model
  }
}

extension VariableDeclSyntax {
  /// Whether one of some properties of the same struct is optional, or none is named.
  fileprivate func hasOptional(_ properties: [String]) -> Bool {
    let members = parent?.parent?.as(MemberBlockItemListSyntax.self) ?? []
    let types = members.compactMap { $0.decl.as(VariableDeclSyntax.self) }.flatMap(\.bindings)
      .filter { properties.contains($0.name ?? "") }.compactMap { $0.typeAnnotation?.type }
    return properties.isEmpty || types.contains { $0.wrapped != nil }
  }
}
