import SwiftSyntax

extension DeclModifierListSyntax {
  /// `public ` or `package `, for generated members. Lower visibility needs no modifier.
  var accessPrefix: String {
    for modifier in self where ["public", "package", "open"].contains(modifier.name.text) {
      return modifier.name.text == "open" ? "public " : modifier.name.text + " "
    }
    return ""
  }

  /// Whether it is visible in one file at most.
  var isPrivate: Bool { contains { ["private", "fileprivate"].contains($0.name.text) } }
}

extension AttributeListSyntax {
  func all(_ name: String) -> [AttributeSyntax] {
    compactMap { $0.as(AttributeSyntax.self) }.filter { attribute in
      let text = attribute.attributeName.trimmedDescription
      return text == name || text == "Stemma.\(name)"
    }
  }

  func named(_ name: String) -> AttributeSyntax? { all(name).first }

  /// Whether the attribute is present inside of `#if`.
  func hasConditional(_ name: String) -> Bool {
    contains { element in
      guard case .ifConfigDecl(let conditional) = element else { return false }
      return conditional.clauses.contains { clause in
        guard case .attributes(let inner) = clause.elements else { return false }
        return inner.named(name) != nil || inner.hasConditional(name)
      }
    }
  }
}

extension MemberTypeSyntax {
  /// `Related<A>` of `Stemma.Related<A>`.
  var lastName: IdentifierTypeSyntax? {
    IdentifierTypeSyntax(name: name, genericArgumentClause: genericArgumentClause)
  }
}

extension TypeSyntax {
  /// The model of `Model?` and `Optional<Model>`; nil for other types.
  var wrapped: TypeSyntax? {
    if let optional = self.as(OptionalTypeSyntax.self) { return optional.wrappedType }
    guard let name = self.as(IdentifierTypeSyntax.self) ?? self.as(MemberTypeSyntax.self)?.lastName,
      name.name.text == "Optional", let arguments = name.genericArgumentClause?.arguments,
      arguments.count == 1
    else { return nil }
    return arguments.first.flatMap { TypeSyntax($0.argument) }
  }

  /// The type without attributes, parentheses and optional markers.
  var bare: TypeSyntax {
    if let attributed = self.as(AttributedTypeSyntax.self) { return attributed.baseType.bare }
    if let implicit = self.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) { return implicit.wrappedType.bare }
    return (wrapped ?? unparenthesized)?.bare ?? self
  }

  /// The type inside of parentheses; nil without them.
  private var unparenthesized: TypeSyntax? {
    guard let tuple = self.as(TupleTypeSyntax.self), tuple.elements.count == 1 else { return nil }
    return tuple.elements.first?.type
  }

  /// Whether it is a nested or an implicitly unwrapped optional.
  var isOddOptional: Bool {
    self.is(ImplicitlyUnwrappedOptionalTypeSyntax.self) || plain.wrapped?.plain.wrapped != nil
  }

  /// Without parentheses around it.
  var plain: TypeSyntax { unparenthesized?.plain ?? self }

  /// The spelling without parentheses around a name, also in an optional: `Size?` for `(Size)?`.
  var plainText: String {
    guard let wrapped = plain.wrapped, wrapped.plain.is(IdentifierTypeSyntax.self), wrapped != wrapped.plain
    else { return plain.trimmedDescription }
    return "\(wrapped.plain.trimmedDescription)?"
  }

  /// The model's name inside of any wrapper: `Pet` for `[Pet]?` and `Related<Pet>`; nil without a
  /// name. A model is not generic, so a generic type contains models.
  var model: TypeSyntax? {
    if let wrapped { return wrapped.model }
    if let implicit = self.as(ImplicitlyUnwrappedOptionalTypeSyntax.self) {
      return implicit.wrappedType.model
    }
    if let list = self.as(ArrayTypeSyntax.self) { return list.element.model }
    if self.is(TupleTypeSyntax.self) { return unparenthesized?.model }
    guard let name = self.as(IdentifierTypeSyntax.self) ?? self.as(MemberTypeSyntax.self)?.lastName else {
      return nil
    }
    guard let arguments = name.genericArgumentClause?.arguments else { return self }
    return arguments.count == 1 ? arguments.first.flatMap { TypeSyntax($0.argument) }?.model : nil
  }
}

extension AttributeSyntax {
  var expressions: LabeledExprListSyntax { arguments?.as(LabeledExprListSyntax.self) ?? [] }

  /// The arguments without a label.
  var unlabelled: [ExprSyntax] { expressions.filter { $0.label == nil }.map(\.expression) }

  /// The arguments without a label: string literals, or the last names of key paths.
  var strings: [String] { unlabelled.compactMap(\.fieldName) }

  /// The text of a labelled argument.
  func label(_ label: String) -> String? { expression(label)?.fieldName }

  func expression(_ label: String) -> ExprSyntax? {
    expressions.first { $0.label?.text == label }?.expression
  }

  /// Whether a labelled argument is anything but `false`.
  func flag(_ label: String) -> Bool { expression(label).map { $0.trimmedDescription != "false" } ?? false }
}

extension FunctionDeclSyntax {
  /// As `write(to:)`.
  var fullName: String {
    let labels = signature.parameterClause.parameters.map { "\($0.firstName.text):" }
    return "\(name.text)(\(labels.joined()))"
  }
}

extension VariableDeclSyntax {
  var isInstance: Bool {
    !modifiers.contains { ["static", "class", "lazy"].contains($0.name.text) }
  }

  var isRelationship: Bool {
    TableDeclaration.Relationship.Kind.allCases.contains { attributes.named($0.rawValue) != nil }
  }
}

extension PatternBindingSyntax {
  /// The declared name, without backticks.
  var name: String? { pattern.as(IdentifierPatternSyntax.self)?.identifier.text.withoutTicks }

  /// Whether it has storage: no accessors, or only observers.
  var isStored: Bool {
    switch accessorBlock?.accessors {
    case nil: true
    case .getter: false
    case .accessors(let accessors):
      accessors.allSatisfy { ["willSet", "didSet"].contains($0.accessorSpecifier.text) }
    }
  }
}

extension ExprSyntax {
  /// The text of a string literal, or the last name of a key path.
  var fieldName: String? {
    if let literal = self.as(StringLiteralExprSyntax.self) { return literal.representedLiteralValue }
    return self.as(KeyPathExprSyntax.self)?.components.last?.component.trimmedDescription.withoutTicks
  }

  /// The type of a literal, or of an initializer call.
  var literalType: String? {
    if self.is(BooleanLiteralExprSyntax.self) { return "Bool" }
    if self.is(IntegerLiteralExprSyntax.self) { return "Int" }
    if self.is(FloatLiteralExprSyntax.self) { return "Double" }
    if self.is(StringLiteralExprSyntax.self) { return "String" }
    if let signed = self.as(PrefixOperatorExprSyntax.self) {
      return signed.expression.literalType.flatMap { ["Int", "Double"].contains($0) ? $0 : nil }
    }
    if let call = self.as(FunctionCallExprSyntax.self),
      let callee = call.calledExpression.as(DeclReferenceExprSyntax.self),
      callee.baseName.text.first?.isUppercase == true
    {
      return callee.baseName.text
    }
    return nil
  }
}
