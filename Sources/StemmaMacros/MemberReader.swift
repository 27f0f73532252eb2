import SwiftDiagnostics
import SwiftSyntax

/// Reads the members of a struct that is to be a table.
struct MemberReader {
  private let declaration: StructDeclSyntax
  /// The nested structs with `@Selection`, by name.
  let selections: [String: StructDeclSyntax]
  /// The other nested structs.
  private let plain: [String: StructDeclSyntax]
  private(set) var stored: [TableDeclaration.Stored] = []
  private(set) var relationships: [TableDeclaration.Relationship] = []
  private(set) var indexes: [TableDeclaration.Index] = []
  private(set) var members: [String: Syntax] = [:]
  /// The properties that are marked as the key.
  private var marked: [TableDeclaration.Column] = []
  private var all: [TableDeclaration.Column] = []

  init(_ declaration: StructDeclSyntax) {
    self.declaration = declaration
    var selections: [String: StructDeclSyntax] = [:]
    var plain: [String: StructDeclSyntax] = [:]
    for member in declaration.memberBlock.members {
      guard let nested = member.decl.as(StructDeclSyntax.self) else { continue }
      if nested.attributes.named("Selection") != nil {
        selections[nested.name.text] = nested
      } else {
        plain[nested.name.text] = nested
      }
    }
    self.selections = selections
    self.plain = plain
  }

  mutating func read(_ misuses: inout Misuses) throws {
    for member in declaration.memberBlock.members {
      note(member.decl)
      TableDeclaration.checkMember(member.decl, &misuses)
      guard let variable = member.decl.as(VariableDeclSyntax.self), variable.isInstance else { continue }
      misuses.checkArguments(of: variable.attributes)
      TableDeclaration.checkMarks(variable, &misuses)
      let relationship = try misuses.collect { try TableDeclaration.Relationship(variable) }
      if let relationship { relationships.append(relationship) }
      if variable.isRelationship { continue }
      TableDeclaration.checkTracking(variable, &misuses)
      let columns = try misuses.collect { try TableDeclaration.columns(variable) } ?? []
      for column in columns { try add(column, variable, &misuses) }
    }
  }

  private mutating func add(
    _ column: TableDeclaration.Column, _ variable: VariableDeclSyntax, _ misuses: inout Misuses
  ) throws {
    let isMarked = variable.attributes.named("Column")?.flag("primaryKey") ?? false
    if isMarked { marked.append(column) }
    Self.checkConstant(column, isMarked || column.property == "id", &misuses)
    Self.checkNested(column, selections: Set(selections.keys), plain: plain, &misuses)
    for attribute in variable.attributes.all("Index") {
      indexes.append(
        TableDeclaration.Index(
          name: attribute.label("name"), fields: [column.property] + attribute.strings, attribute: attribute))
    }
    all.append(column)
    guard let selection = selections[column.type] else {
      stored.append(.column(column))
      return
    }
    Self.checkGroup(column, &misuses)
    var inner = Misuses()
    let parts = try SelectionMacro.parts(of: selection, &inner)
    // Its own attribute says them.
    misuses.follow(inner)
    for part in parts { checkPart(part, of: selection, &misuses) }
    stored.append(
      .group(
        TableDeclaration.Group(
          property: column.property, selection: column.type,
          columns: parts.map { part in
            var part = part
            part.path = "\(column.property).\(part.property)"
            return part
          }, defaultValue: column.defaultValue, isVariable: column.isVariable, variable: variable)))
  }

  /// The primary key: the marked property, else the one named `id`.
  ///
  /// With an error, and in its place some key to go on with, if there is none or more than one.
  mutating func key(_ misuses: inout Misuses) -> TableDeclaration.Key {
    for other in marked.dropFirst() {
      misuses.add(
        "twoPrimaryKeys",
        "\(declaration.name.text) has a primary key already, `\(marked[0].property)`; a key of several parts is a "
          + "nested @Selection struct",
        at: other.place)
    }
    guard let property = (marked.first ?? all.first { $0.property == "id" }) else {
      misuses.add(
        "noPrimaryKey",
        "\(declaration.name.text) has no primary key: name a property `id`, or mark one with @Column(primaryKey: true)",
        at: declaration.name, fix: identified)
      return TableDeclaration.Key(property: "", columns: [], selection: nil)
    }
    if property.isVariable {
      misuses.warn(
        "variableKey", "the key of a record never changes; make `\(property.property)` a `let`",
        at: property.variable.bindingSpecifier,
        fix: .replace("make it a `let`", property.variable.bindingSpecifier, by: TokenSyntax.keyword(.let)))
    }
    if property.isOptional {
      misuses.add("optionalKey", "the primary key `\(property.property)` cannot be nil", at: property.place)
    }
    Self.checkKeyType(property, &misuses)
    if property.representation != nil {
      misuses.add(
        "representedKey", "the primary key `\(property.property)` is stored as it is; leave out `as:`",
        at: property.place)
    }
    for case .group(let group) in stored where group.property == property.property {
      checkKey(group, &misuses)
      return TableDeclaration.Key(
        property: group.property, columns: group.columns, selection: group.selection)
    }
    return TableDeclaration.Key(property: property.property, columns: [property], selection: nil)
  }

  private func checkKey(_ group: TableDeclaration.Group, _ misuses: inout Misuses) {
    guard let nested = selections[group.selection] else { return }
    for part in group.columns where part.isOptional {
      misuses.add("optionalKey", "the key part `\(part.property)` cannot be nil", at: part.place)
    }
    for part in group.columns {
      Self.checkKeyType(part, &misuses)
      if part.representation != nil {
        misuses.add(
          "representedKey", "the key part `\(part.property)` is stored as it is; leave out `as:`",
          at: part.place)
      }
      if part.property == "primaryKey", group.property != "primaryKey" {
        misuses.add("clash", "@Table writes `primaryKey`; call this one otherwise", at: part.place)
      }
    }
    guard !nested.isHashable else { return }
    let name = nested.name.trimmed
    let hashable = name.with(\.trailingTrivia, []).text + ": Hashable"
    misuses.add(
      "hashableKey", "a primary key is Hashable", at: nested.name,
      fix: nested.inheritanceClause == nil
        ? .replace("make it Hashable", nested.name, by: TokenSyntax.identifier(hashable)) : nil)
  }

  /// The advice to add `let id: UUID`.
  private var identified: FixIt {
    let members = declaration.memberBlock.members
    let before = members.first?.leadingTrivia.description ?? ""
    // On one line, the next member begins behind a semicolon.
    let text =
      members.isEmpty
      ? " let id: UUID " : before.contains("\n") ? "\(before)let id: UUID" : "\(before)let id: UUID; "
    let id = MemberBlockItemSyntax(decl: DeclSyntax(stringLiteral: text))
    return .replace(
      "add `let id: UUID`", members, by: MemberBlockItemListSyntax([id] + Array(members)))
  }

  // MARK: Names

  /// What a declaration's members are called.
  static func declaredNames(_ declaration: some DeclGroupSyntax) -> Set<String> {
    Set(declaredMembers(declaration).keys)
  }

  /// The same, and where each stands.
  static func declaredMembers(_ declaration: some DeclGroupSyntax) -> [String: Syntax] {
    guard let declaration = declaration.as(StructDeclSyntax.self) else { return [:] }
    var reader = MemberReader(declaration)
    for member in declaration.memberBlock.members { reader.note(member.decl) }
    return reader.members
  }

  private mutating func note(_ declaration: DeclSyntax) {
    if let variable = declaration.as(VariableDeclSyntax.self) {
      let prefix = variable.isInstance ? "" : "static "
      for binding in variable.bindings {
        if let name = binding.name { members[prefix + name] = Syntax(binding) }
      }
    } else if let function = declaration.as(FunctionDeclSyntax.self) {
      members[function.fullName] = Syntax(function.name)
    } else if let initializer = declaration.as(InitializerDeclSyntax.self) {
      members["init"] = Syntax(declaration)
      let parameters = initializer.signature.parameterClause.parameters
      if parameters.count == 1, let only = parameters.first, only.firstName.text == "_",
        ["RowReader", "Stemma.RowReader"].contains(only.type.trimmedDescription)
      {
        members["init(_: RowReader)"] = Syntax(initializer.initKeyword)
      }
    } else if let name = declaration.asProtocol(NamedDeclSyntax.self)?.name {
      members[name.text] = Syntax(name)
    }
  }
}

extension StructDeclSyntax {
  /// Whether it says that it is Hashable.
  var isHashable: Bool {
    inheritanceClause?.inheritedTypes.contains {
      ["Hashable", "Swift.Hashable"].contains($0.type.trimmedDescription)
    }
      ?? false
  }
}
