import SwiftSyntax

/// What `@Table` reads from the struct that it stands on.
struct TableDeclaration {
  /// A stored property that is a column.
  struct Column {
    var property: String
    /// The column's name, which differs where `@Column("name")` says so.
    var name: String
    var type: String
    var defaultValue: String?
    var isVariable: Bool

    var isOptional: Bool { type.hasSuffix("?") || type.hasPrefix("Optional<") }
  }

  /// The primary key: one column, or the columns of a nested struct.
  struct Key {
    /// The property that holds it.
    var property: String
    var columns: [Column]
    /// The nested struct's name.
    var selection: String?
  }

  struct Relationship {
    enum Kind: String {
      case belongsTo = "BelongsTo"
      case hasMany = "HasMany"
      case hasOne = "HasOne"
    }

    var property: String
    var kind: Kind
    var target: String
    var isOptional: Bool
    var fields: [String]

    /// The type of what the relationship gives when it is read along.
    var value: String { kind == .hasMany ? "[\(target)]" : "\(target)?" }
  }

  let name: String
  let access: String
  let tableName: String?
  let key: Key
  let columns: [Column]
  let relationships: [Relationship]

  init(_ node: AttributeSyntax, _ group: some DeclGroupSyntax) throws {
    guard let declaration = group.as(StructDeclSyntax.self) else {
      throw Misuse("struct", "@Table stands on a struct").error(at: node)
    }
    name = declaration.name.text
    access = declaration.modifiers.accessPrefix
    tableName = node.strings.first
    var selections: [String: StructDeclSyntax] = [:]
    for member in declaration.memberBlock.members {
      if let nested = member.decl.as(StructDeclSyntax.self), nested.attributes.named("Selection") != nil {
        selections[nested.name.text] = nested
      }
    }
    var keys: [(column: Column, isMarked: Bool)] = []
    var columns: [Column] = []
    var relationships: [Relationship] = []
    for member in declaration.memberBlock.members {
      guard let variable = member.decl.as(VariableDeclSyntax.self), variable.isInstance else { continue }
      if let relationship = try Relationship(variable) {
        relationships.append(relationship)
        continue
      }
      for column in try Self.columns(variable) {
        let isMarked = variable.attributes.named("Column")?.flag("primaryKey") ?? false
        if isMarked || column.property == "id" { keys.append((column, isMarked)) }
        columns.append(column)
      }
    }
    guard let key = keys.first(where: \.isMarked)?.column ?? keys.first?.column else {
      throw Misuse(
        "noPrimaryKey",
        "\(name) has no primary key: name a property `id`, or mark one with @Column(primaryKey: true)"
      ).error(at: declaration.name)
    }
    columns.removeAll { $0.property == key.property }
    if let selection = selections[key.type] {
      let parts = try selection.memberBlock.members.flatMap { member -> [Column] in
        guard let variable = member.decl.as(VariableDeclSyntax.self), variable.isInstance else { return [] }
        return try Self.columns(variable)
      }
      self.key = Key(property: key.property, columns: parts, selection: key.type)
    } else {
      self.key = Key(property: key.property, columns: [key], selection: nil)
    }
    self.columns = columns
    self.relationships = relationships
  }

  /// The stored properties of one declaration; none if it is computed.
  static func columns(_ variable: VariableDeclSyntax) throws -> [Column] {
    var columns: [Column] = []
    for binding in variable.bindings where binding.isStored {
      guard let name = binding.name else { continue }
      guard
        let type = binding.typeAnnotation?.type.trimmedDescription ?? binding.initializer?.value.literalType
      else {
        throw Misuse("type", "write the type of `\(name)`: it cannot be told from its value")
          .error(at: binding)
      }
      columns.append(
        Column(
          property: name, name: variable.attributes.named("Column")?.strings.first ?? name, type: type,
          defaultValue: binding.initializer?.value.trimmedDescription,
          isVariable: variable.bindingSpecifier.tokenKind == .keyword(.var)))
    }
    return columns
  }

  func column(ofProperty property: String) -> Column? {
    columns.first { $0.property == property } ?? key.columns.first { $0.property == property }
  }
}

extension TableDeclaration.Relationship {
  /// Nil for a property that is no relationship.
  init?(_ variable: VariableDeclSyntax) throws {
    for kind in [Kind.belongsTo, .hasMany, .hasOne] {
      guard let attribute = variable.attributes.named(kind.rawValue) else { continue }
      guard let binding = variable.bindings.first, let name = binding.name,
        let type = binding.typeAnnotation?.type
      else { throw Misuse("type", "a relationship's property has a type").error(at: variable) }
      property = name
      self.kind = kind
      fields = attribute.strings
      isOptional = type.is(OptionalTypeSyntax.self)
      target = try Self.target(type, kind)
      return
    }
    return nil
  }

  private static func target(_ type: TypeSyntax, _ kind: Kind) throws -> String {
    guard kind == .hasMany else {
      return (type.as(OptionalTypeSyntax.self)?.wrappedType ?? type).trimmedDescription
    }
    guard let related = type.as(IdentifierTypeSyntax.self), related.name.text == "Related",
      let argument = related.genericArgumentClause?.arguments.first
    else { throw Misuse("related", "the type of a @HasMany property is Related<Model>").error(at: type) }
    return argument.argument.trimmedDescription
  }
}
