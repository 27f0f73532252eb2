import SwiftDiagnostics
import SwiftSyntax

/// Checks of a column's source. The compiler reports errors that depend on its type's declaration.
extension TableDeclaration {
  /// A column has one name.
  static func checkPattern(_ binding: PatternBindingSyntax, _ variable: VariableDeclSyntax) throws {
    guard let pattern = binding.pattern.as(TuplePatternSyntax.self) else { return }
    let names = pattern.elements.map(\.pattern.trimmedDescription)
    var fix: FixIt?
    if let types = binding.typeAnnotation?.type.as(TupleTypeSyntax.self)?.elements,
      types.count == names.count, binding.initializer == nil, variable.bindings.count == 1
    {
      fix = .oneByOne(variable, zip(names, types).map { "\($0): \($1.type.trimmedDescription)" })
    }
    throw Misuses.error(
      "tuplePattern",
      "a column has one name; declare \(names.map { "`\($0)`" }.joined(separator: " and ")) one by one",
      at: pattern, fix: fix)
  }

  /// Whether the source is this library's `Related<Model>`; without arguments, it is another type.
  private static func isRelated(_ type: TypeSyntax) -> Bool {
    let member = type.as(MemberTypeSyntax.self)
    guard let name = type.as(IdentifierTypeSyntax.self) ?? member?.lastName else { return false }
    return name.name.text == "Related" && name.genericArgumentClause != nil
      && (member == nil || member?.baseType.trimmedDescription == "Stemma")
  }

  /// Refuses types that no column can have. `isOfGroup`: in a `@Selection`, without relationships.
  static func check(_ type: TypeSyntax, of name: String, isOfGroup: Bool) throws {
    let bare = type.bare
    if isRelated(bare) {
      throw Misuses.error(
        "unmarkedRelationship",
        isOfGroup
          ? "`\(name)` leads to other records, and so belongs in the model: a group of columns has no relationships"
          : "`\(name)` leads to other records: put @HasMany(\"…\") with their reference field, or "
            + "@ManyToMany(through: …), in front of it", at: type)
    }
    if bare.is(SomeOrAnyTypeSyntax.self) {
      throw Misuses.error(
        "existential",
        "a column has a type of its own; store `\(name)` as JSON of one, or mark it @Ephemeral",
        at: type)
    }
    if bare.is(FunctionTypeSyntax.self) {
      throw Misuses.error("function", "a function is no column; mark `\(name)` @Ephemeral", at: type)
    }
    if bare.is(TupleTypeSyntax.self) {
      throw Misuses.error(
        "tuple", "a tuple is no column; make it a nested @Selection struct, or mark `\(name)` @Ephemeral",
        at: type)
    }
  }

  /// Refuses lists of lists, dictionaries and sets, which no column stores; JSON can store them.
  static func checkDepth(_ type: TypeSyntax, of name: String, _ variable: VariableDeclSyntax) throws {
    let column = variable.attributes.named("Column")
    guard column?.expression("as") == nil, let what = collection(type.bare) else { return }
    let representation = "\(type.trimmedDescription).JSONRepresentation"
    throw Misuses.error(
      "collection", "\(what) is no column; store `\(name)` as JSON", at: type,
      fix: column != nil || type.isOddOptional
        ? nil
        : .replace(
          "store it as JSON", variable, by: variable.marked("@Column(as: \(representation).self)")))
  }

  private static func collection(_ type: TypeSyntax) -> String? {
    if type.is(DictionaryTypeSyntax.self) { return "a dictionary" }
    if let list = type.as(ArrayTypeSyntax.self) {
      return list.element.bare.is(ArrayTypeSyntax.self) ? "a list of lists" : nil
    }
    let generic = type.as(IdentifierTypeSyntax.self)
    guard generic?.genericArgumentClause != nil else { return nil }
    return ["Set": "a set", "Dictionary": "a dictionary"][generic?.name.text ?? ""]
  }

  /// Refuses attributes of columns, and a second relationship, beside that of a relationship.
  static func checkMetadata(_ variable: VariableDeclSyntax, _ misuses: inout Misuses) {
    let marks = Relationship.Kind.allCases.map(\.rawValue)
    let relationships = marks.filter { variable.attributes.named($0) != nil }
    guard let kind = relationships.first else { return }
    for name in ["Column", "Index", "Ephemeral"] + relationships.dropFirst() {
      guard let attribute = variable.attributes.named(name) else { continue }
      misuses.add(
        "markedRelationship",
        "what @\(kind) leads to is no column, and one relationship; leave out @\(name), or @\(kind)",
        at: attribute, fix: .leaveOut(attribute, of: variable))
    }
  }

  /// Reports members of a model or a group that are neither columns nor excluded from them.
  static func checkMember(_ member: DeclSyntax, _ misuses: inout Misuses) {
    if let conditional = member.as(IfConfigDeclSyntax.self) { checkConditional(conditional, &misuses) }
    guard let variable = member.as(VariableDeclSyntax.self) else { return }
    misuses.checkConditional(variable.attributes)
    checkStatic(variable, &misuses)
    checkLazy(variable, &misuses)
    checkAttributes(variable, &misuses)
    if variable.isInstance { checkEphemeral(variable, &misuses) }
  }

  /// The columns and relationships must not depend on the build.
  private static func checkConditional(_ conditional: IfConfigDeclSyntax, _ misuses: inout Misuses) {
    for clause in conditional.clauses {
      guard case .decls(let members) = clause.elements else { continue }
      for member in members {
        checkMember(member.decl, &misuses)
        if let nested = member.decl.as(StructDeclSyntax.self), nested.attributes.named("Selection") != nil {
          misuses.add(
            "conditional", "a @Selection of a model cannot stand inside of #if; take it out", at: nested.name)
        }
        guard let variable = member.decl.as(VariableDeclSyntax.self) else { continue }
        if variable.isRelationship {
          misuses.add(
            "conditional", "a relationship cannot stand inside of #if; take it out", at: variable)
        } else if variable.isInstance, variable.attributes.named("Ephemeral") == nil,
          variable.bindings.contains(where: \.isStored)
        {
          misuses.add(
            "conditional", "a column cannot stand inside of #if; take it out, or mark it @Ephemeral",
            at: variable)
        }
      }
    }
  }

  /// A relationship belongs to a record, so it is not static.
  private static func checkStatic(_ variable: VariableDeclSyntax, _ misuses: inout Misuses) {
    guard variable.isRelationship,
      let modifier = variable.modifiers.first(where: { $0.name.tokenKind == .keyword(.static) })
    else { return }
    misuses.add(
      "staticRelationship", "a relationship is one of each record; leave out `static`", at: modifier,
      fix: .replace("leave out `static`", [.leavingOut(modifier)]))
  }

  /// A record that is read has all values at once, so a column is not lazy.
  private static func checkLazy(_ variable: VariableDeclSyntax, _ misuses: inout Misuses) {
    guard variable.attributes.named("Ephemeral") == nil, !variable.isRelationship,
      let modifier = variable.modifiers.first(where: { $0.name.tokenKind == .keyword(.lazy) }),
      let name = variable.bindings.first?.name
    else { return }
    misuses.add(
      "lazy", "a column is not lazy: leave that out, or mark `\(name)` @Ephemeral", at: modifier,
      fix: .replace(
        "mark it @Ephemeral", variable,
        by: variable.without(["Column", "Index"].flatMap(variable.attributes.all)).marked("@Ephemeral")))
  }

  /// Checks `@Ephemeral`: a record that is read has the property, too. It needs a default, and has
  /// no attributes about storage.
  private static func checkEphemeral(_ variable: VariableDeclSyntax, _ misuses: inout Misuses) {
    guard variable.attributes.named("Ephemeral") != nil, !variable.isRelationship else { return }
    for name in ["Column", "Index"] {
      if let attribute = variable.attributes.named(name) {
        misuses.add(
          "storedEphemeral", "what is @Ephemeral is not stored; leave out @\(name), or @Ephemeral",
          at: attribute, fix: .leaveOut(attribute, of: variable))
      }
    }
    for binding in variable.bindings {
      guard binding.isStored, binding.initializer == nil, let name = binding.name else { continue }
      let isVariable = variable.bindingSpecifier.tokenKind == .keyword(.var)
      let type = binding.typeAnnotation?.type.trimmedDescription ?? ""
      if isVariable, type.isOptionalType || type.hasSuffix("!") { continue }
      let value = InitializerClauseSyntax(
        equal: .equalToken(leadingTrivia: .space, trailingTrivia: .space),
        value: ExprSyntax(stringLiteral: type.isOptionalType ? "nil" : "<#value#>"))
      misuses.add(
        "ephemeralDefault",
        "`\(name)` is not stored, so a record that is read needs a value for it: give a default",
        at: binding,
        fix: .replace(
          "add a default", binding, by: binding.with(\.trailingTrivia, []).with(\.initializer, value)))
    }
  }
}

extension MemberReader {
  /// Reports a column that is optional in a redundant way. (A key and a group cannot be optional.)
  /// For a possible key part, the advice covers both cases.
  static func checkOptional(
    _ column: TableDeclaration.Column, mayBeKey: Bool = false, _ misuses: inout Misuses
  ) {
    guard let type = column.annotation, type.isOddOptional else { return }
    if mayBeKey {
      let plain = type.bare.trimmedDescription
      misuses.add(
        "optionalPart",
        "the type of `\(column.property)` is `\(plain)`, as in a key; or, where it can be null and is in none, `\(plain)?`",
        at: type, fix: column.required)
      return
    }
    let isImplicit = type.is(ImplicitlyUnwrappedOptionalTypeSyntax.self)
    misuses.add(
      isImplicit ? "implicitlyUnwrapped" : "twiceOptional",
      "\(isImplicit ? "a column that may be null is an optional" : "a column is null or not"): the type of "
        + "`\(column.property)` is `\(column.type)`",
      at: type, fix: .replace("write `\(column.type)`", type, by: TypeSyntax(stringLiteral: column.type)))
  }

  /// Reports a constant with a value: as a key it must lose the value, otherwise be a variable.
  static func checkConstant(_ column: TableDeclaration.Column, _ isKey: Bool, _ misuses: inout Misuses) {
    guard !column.isVariable, column.defaultValue != nil,
      let binding = column.place.as(PatternBindingSyntax.self)
    else { return }
    if isKey {
      misuses.add(
        "constant", "`\(column.property)` would be the same in every record; leave out its value",
        at: binding, fix: .replace("leave out the value", binding, by: column.withoutValue))
    } else {
      misuses.add(
        "constant", "`\(column.property)` is the same in every row; make it a `var`, or mark it @Ephemeral",
        at: binding,
        fix: .replace("make it a `var`", column.variable.bindingSpecifier, by: TokenSyntax.keyword(.var)))
    }
  }

  /// Reports types that no key can have, and optional keys and key parts (`what`).
  static func checkKeyType(_ part: TableDeclaration.Column, _ what: String, _ misuses: inout Misuses) {
    if let type = part.annotation, let reason = part.unfitForKey {
      misuses.add(
        "keyType",
        "`\(part.property)` cannot be a part of a key, as it is \(reason.what); make it \(reason.instead)",
        at: type)
    } else if part.isOptional {
      misuses.add(
        "optionalKey", "the \(what) `\(part.property)` cannot be nil", at: part.place, fix: part.required)
    }
  }

  /// Reports attributes on a group's property that only a model can have.
  static func checkMetadata(ofPart part: TableDeclaration.Column, _ misuses: inout Misuses) {
    for index in part.variable.attributes.all("Index") {
      let fields = ([part.property] + index.strings).map { "\"\($0)\"" }.joined(separator: ", ")
      misuses.add(
        "partIndex", "an index is one of the model: write @Index(\(fields)) on the struct with @Table",
        at: index)
    }
    if let column = part.variable.attributes.named("Column"), column.flag("primaryKey") {
      misuses.add(
        "partKey", "the key is a property of the model, not one of a @Selection: mark the model's", at: column
      )
    }
  }

  /// Reports a name or a representation for a group of columns.
  static func checkGroup(_ group: TableDeclaration.Column, _ misuses: inout Misuses) {
    guard let column = group.variable.attributes.named("Column"),
      !column.unlabelled.isEmpty || column.expression("as") != nil
    else { return }
    misuses.add(
      "groupColumn",
      "the columns of `\(group.property)` are the properties of `\(group.type)`: mark these with @Column",
      at: column)
  }

  /// Reports a group inside of a group.
  func checkPart(
    _ part: TableDeclaration.Column, of group: StructDeclSyntax, _ misuses: inout Misuses
  ) {
    guard selections[part.type.withoutMetadata] != nil,
      let type = part.annotation
    else { return }
    misuses.add(
      "innerSelection",
      "a @Selection holds values, no other @Selection; declare the properties of `\(part.type.withoutMetadata)` in its place",
      at: type)
  }

  /// Checks a nested struct as a column's type: a group with `@Selection` cannot be optional, and a
  /// struct without conformances is no column.
  ///
  /// - Returns: whether an error was reported.
  static func checkNested(
    _ column: TableDeclaration.Column, isKey: Bool, selections: Set<String>,
    plain: [String: StructDeclSyntax], _ misuses: inout Misuses
  ) -> Bool {
    guard column.representation == nil,
      let type = column.annotation
    else { return false }
    let wrapped = column.isOptional ? type.bare.trimmedDescription : nil
    if let wrapped, selections.contains(wrapped) {
      misuses.add(
        "optionalGroup",
        "the columns of a group are always there; make properties of `\(wrapped)` optional instead",
        at: type,
        fix: .replace("write `\(wrapped)`", [.required(TypeSyntax(stringLiteral: wrapped), column.place)]))
      return true
    }
    guard let nested = plain[wrapped ?? type.trimmedDescription], !nested.canBeColumn else { return false }
    let selection = isKey ? nested.hashable : nested
    var changes = [
      FixIt.Change.replacement(of: nested, by: DeclSyntax(stringLiteral: "@Selection \(selection.trimmed)"))
    ]
    if let wrapped { changes.append(.required(TypeSyntax(stringLiteral: wrapped), column.place)) }
    misuses.add(
      "plainNested",
      "`\(nested.name.text)` is no type of a column: mark it @Selection, and its properties are columns, or declare it "
        + "as a ColumnValue", at: type, fix: .replace("mark it @Selection", changes))
    return true
  }
}

extension TableDeclaration.Column {
  var annotation: TypeSyntax? { place.as(PatternBindingSyntax.self)?.typeAnnotation?.type }

  /// Why it cannot be a key part, which must have the same text on every machine, and an
  /// alternative; nil if it can.
  var unfitForKey: (what: String, instead: String)? {
    guard let type = annotation?.bare else { return nil }
    let name = type.trimmedDescription
    if type.is(ArrayTypeSyntax.self) || name.hasPrefix("Array<") {
      return ("a list", "a model of its own, or a nested @Selection of its parts")
    }
    switch name {
    case "Decimal", "Float": return ("a number that can be written in several ways", "an Int or a String")
    case "Data": return ("bytes", "a String")
    default: return nil
    }
  }

  /// The advice to remove the question mark.
  var required: FixIt? {
    guard let type = annotation, type.bare != type else { return nil }
    let bare = type.bare
    return .replace("write `\(bare.trimmedDescription)`", [.required(bare, place)])
  }

  /// Its declaration without the value.
  var withoutValue: PatternBindingSyntax {
    PatternBindingSyntax(pattern: PatternSyntax(stringLiteral: "\(property.inCode): \(type)"))
  }
}

extension StructDeclSyntax {
  /// Whether it may be a ColumnValue: it has more conformances than groups and keys need.
  fileprivate var canBeColumn: Bool {
    let common: Set = ["Hashable", "Equatable", "Sendable"]
    return inheritanceClause?.inheritedTypes.contains { !common.contains($0.type.trimmedDescription) }
      ?? false
  }
}
