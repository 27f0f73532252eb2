import SwiftSyntax

extension DeclModifierListSyntax {
  /// `public ` or `package `, to be carried over to what is generated. Anything less is what Swift gives by itself.
  var accessPrefix: String {
    for modifier in self where ["public", "package", "open"].contains(modifier.name.text) {
      return modifier.name.text == "open" ? "public " : modifier.name.text + " "
    }
    return ""
  }
}

extension AttributeListSyntax {
  func named(_ name: String) -> AttributeSyntax? {
    for element in self {
      guard let attribute = element.as(AttributeSyntax.self) else { continue }
      let text = attribute.attributeName.trimmedDescription
      if text == name || text == "Stemma.\(name)" { return attribute }
    }
    return nil
  }
}

extension AttributeSyntax {
  private var expressions: LabeledExprListSyntax { arguments?.as(LabeledExprListSyntax.self) ?? [] }

  /// The arguments without a label: string literals, or the last names of key paths.
  var strings: [String] {
    expressions.filter { $0.label == nil }.compactMap { argument in
      if let literal = argument.expression.as(StringLiteralExprSyntax.self) {
        return literal.representedLiteralValue
      }
      return argument.expression.as(KeyPathExprSyntax.self)?.components.last?.component.trimmedDescription
    }
  }

  func flag(_ label: String) -> Bool {
    expressions.contains { $0.label?.text == label && $0.expression.trimmedDescription == "true" }
  }
}

extension VariableDeclSyntax {
  var isInstance: Bool {
    !modifiers.contains { ["static", "class", "lazy"].contains($0.name.text) }
  }
}

extension PatternBindingSyntax {
  var name: String? { pattern.as(IdentifierPatternSyntax.self)?.identifier.text }

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
  /// The type of a literal, or of a call of an initialiser.
  var literalType: String? {
    if self.is(BooleanLiteralExprSyntax.self) { return "Bool" }
    if self.is(IntegerLiteralExprSyntax.self) { return "Int" }
    if self.is(FloatLiteralExprSyntax.self) { return "Double" }
    if self.is(StringLiteralExprSyntax.self) { return "String" }
    if let call = self.as(FunctionCallExprSyntax.self),
      let callee = call.calledExpression.as(DeclReferenceExprSyntax.self),
      callee.baseName.text.first?.isUppercase == true
    {
      return callee.baseName.text
    }
    return nil
  }
}
