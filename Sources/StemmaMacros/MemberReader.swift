import SwiftDiagnostics
import SwiftSyntax

/// Reads the members of a struct with `@Table`.
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

  private var name: String { declaration.name.text }

  mutating func read(_ misuses: inout Misuses) throws {
    for member in declaration.memberBlock.members {
      note(member.decl)
      TableDeclaration.checkMember(member.decl, &misuses)
      guard let variable = member.decl.as(VariableDeclSyntax.self), variable.isInstance else { continue }
      misuses.checkArguments(of: variable.attributes)
      TableDeclaration.checkMetadata(variable, &misuses)
      let relationship = try misuses.collect { try TableDeclaration.Relationship(variable, of: name) }
      if let relationship { relationships.append(relationship) }
      if variable.isRelationship { continue }
      TableDeclaration.checkTracking(variable, &misuses)
      let columns = try misuses.collect { try TableDeclaration.columns(variable, of: name) } ?? []
      for column in columns { try add(column, variable, &misuses) }
    }
  }

  private mutating func add(
    _ column: TableDeclaration.Column, _ variable: VariableDeclSyntax, _ misuses: inout Misuses
  ) throws {
    var column = column
    if let short = selections.keys.first(where: { column.type == "\(name).\($0)" }) { column.type = short }
    let isMarked = variable.attributes.named("Column")?.flag("primaryKey") ?? false
    if isMarked { marked.append(column) }
    let isKey = isMarked || column.isInferredKey
    Self.checkConstant(column, isKey, &misuses)
    let isNested = Self.checkNested(
      column, isKey: isKey, selections: Set(selections.keys), plain: plain, &misuses)
    if !isKey, !isNested { Self.checkOptional(column, &misuses) }
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
    let parts = try SelectionMacro.parts(of: selection, "\(name).\(column.type)", isOfTable: true, &inner)
    // The struct's own attribute reports them.
    misuses.follow(inner)
    for part in parts { checkPart(part, of: selection, &misuses) }
    stored.append(
      .group(
        TableDeclaration.Group(
          property: column.property, selection: column.type,
          columns: parts.map { part in
            var part = part
            part.group = column.property
            return part
          }, defaultValue: column.defaultValue, isVariable: column.isVariable, variable: variable)))
  }

  /// The primary key: the marked property, else the one named `id`.
  ///
  /// If there is none or more than one, reports an error and returns a substitute.
  mutating func key(_ misuses: inout Misuses) -> TableDeclaration.Key {
    for other in marked.dropFirst() {
      misuses.add(
        "twoPrimaryKeys",
        "\(declaration.name.text) has a primary key already, `\(marked[0].property)`; a key of several parts is a "
          + "nested @Selection struct",
        at: other.place)
    }
    guard let property = marked.first ?? all.first(where: \.isInferredKey) else {
      addNoKey(&misuses)
      return TableDeclaration.Key(property: "", columns: [], selection: nil)
    }
    if property.isVariable {
      let specifier = property.variable.bindingSpecifier
      var changes = property.variable.settersModifiers.map(FixIt.Change.leavingOut)
      changes.append(.replacement(of: specifier, by: TokenSyntax.keyword(.let)))
      let binding = property.place.as(PatternBindingSyntax.self)
      if property.defaultValue != nil || binding?.accessorBlock != nil {
        changes.append(.replacement(of: property.place, by: property.withoutValue))
      }
      misuses.warn(
        "variableKey", "the key of a record never changes; make `\(property.property)` a `let`",
        at: specifier, fix: .replace("make it a `let`", changes))
    }
    Self.checkKeyType(property, "primary key", &misuses)
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
    for part in group.columns {
      // A part with a redundant optional was reported with the group.
      if !(part.annotation?.isOddOptional ?? false) { Self.checkKeyType(part, "key part", &misuses) }
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
    misuses.add(
      "hashableKey", "a primary key is Hashable", at: nested.name,
      fix: .replace("make it Hashable", nested, by: nested.hashable))
  }

  /// Reports a model without a key; its property `id` may be excluded explicitly.
  private func addNoKey(_ misuses: inout Misuses) {
    let what = "\(declaration.name.text) has no primary key"
    if let denied = all.first(where: { $0.property == "id" }),
      let attribute = denied.variable.attributes.named("Column")
    {
      let fix: FixIt =
        attribute.without("primaryKey").map { .replace("leave it out", attribute, by: $0) }
        ?? .leaveOut(attribute, of: denied.variable)
      misuses.add(
        "noPrimaryKey",
        "\(what): leave out `primaryKey: false` at `id`, or mark another property with @Column(primaryKey: true)",
        at: attribute, fix: fix)
    } else {
      misuses.add(
        "noPrimaryKey", "\(what): name a property `id`, or mark one with @Column(primaryKey: true)",
        at: declaration.name, fix: identified)
    }
  }

  /// The advice to mark an `ID`, or else to add `let id: UUID`, if the name is free.
  private var identified: FixIt? {
    if let other = all.first(where: { $0.name.lowercased() == "id" }) {
      guard other.variable.attributes.named("Column") == nil, other.variable.bindings.count == 1,
        other.unfitForKey == nil
      else { return nil }
      return .replace(
        "mark `\(other.property)`", other.variable, by: other.constant.marked("@Column(primaryKey: true)"))
    }
    guard !members.keys.contains(where: { $0.lowercased() == "id" }) else { return nil }
    let id = "\(declaration.modifiers.accessPrefix)let id: UUID"
    let block = declaration.memberBlock
    let line: Trivia? =
      block.members.isEmpty
      ? block.rightBrace.leadingTrivia.lastLine.map { $0 + .spaces(2) }
      : block.members.leadingTrivia.lastLine
    // On one line, a semicolon precedes the next member.
    let item = MemberBlockItemSyntax(
      leadingTrivia: line ?? (block.leftBrace.trailingTrivia.isEmpty ? .space : []),
      decl: DeclSyntax(stringLiteral: id),
      semicolon: line != nil || block.members.isEmpty ? nil : .semicolonToken(),
      trailingTrivia: line == nil ? .space : [])
    let members = MemberBlockItemListSyntax([item] + Array(block.members))
    return FixIt.replace(
      "add `\(id)`", [.replace(oldNode: Syntax(block.members), newNode: Syntax(members))])
  }

  // MARK: Names

  static func declaredNames(_ declaration: some DeclGroupSyntax) -> Set<String> {
    Set(declaredMembers(declaration).keys)
  }

  /// The named members of a declaration, with their places.
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
      members[name.text.withoutTicks] = Syntax(name)
    }
  }
}

extension TableDeclaration.Column {
  /// Whether it is the key if no other property is marked.
  fileprivate var isInferredKey: Bool {
    let mark = variable.attributes.named("Column")?.expression("primaryKey")
    return property == "id" && mark?.trimmedDescription != "false"
  }

  /// Its declaration as a key: a constant without a value that cannot be nil.
  fileprivate var constant: VariableDeclSyntax {
    var column = self
    column.type = SpelledTypes.unwrapped(type).type
    let setters = variable.settersModifiers
    var declaration = variable
    declaration.modifiers = variable.modifiers.filter { !setters.contains($0) }
    declaration.bindingSpecifier.tokenKind = .keyword(.let)
    declaration.bindings = [column.withoutValue]
    return declaration
  }
}

extension VariableDeclSyntax {
  /// The setter's modifiers, as `private(set)`: a constant has none.
  fileprivate var settersModifiers: [DeclModifierSyntax] {
    modifiers.filter { $0.detail?.detail.text == "set" }
  }
}

extension StructDeclSyntax {
  /// The struct, declared as Hashable.
  var hashable: StructDeclSyntax {
    guard !isHashable else { return self }
    let inherited = inheritanceClause?.inheritedTypes.map { "\($0.type.trimmed)" } ?? []
    let types = (inherited + ["Hashable"]).joined(separator: ", ")
    let example = DeclSyntax(stringLiteral: "struct ID: \(types) {}").as(StructDeclSyntax.self)
    return with(\.name.trailingTrivia, []).with(\.inheritanceClause, example?.inheritanceClause)
  }

  var isHashable: Bool {
    inheritanceClause?.inheritedTypes.contains {
      ["Hashable", "Swift.Hashable"].contains($0.type.trimmedDescription)
    }
      ?? false
  }
}
