import SwiftDiagnostics
import SwiftSyntax

// The declarations of fix-its, which pass the checks.

extension Trivia {
  /// The last line break and indentation in it; nil on one line.
  var lastLine: Trivia? {
    guard let line = pieces.lastIndex(where: \.isNewline) else { return nil }
    return Trivia(pieces: [.newlines(1)] + pieces[line...].filter(\.isSpaceOrTab))
  }
}

extension FixIt {
  /// Declares properties one by one, as `p: Int`. Nil with attributes, which apply to one property.
  static func oneByOne(_ variable: VariableDeclSyntax, _ properties: [String]) -> FixIt? {
    guard variable.attributes.isEmpty else { return nil }
    let head = variable.modifiers.map { "\($0.trimmed) " }.joined() + variable.bindingSpecifier.text
    let line = variable.leadingTrivia.lastLine
    let declarations = properties.enumerated().map { index, property in
      let isLast = index == properties.count - 1
      return MemberBlockItemSyntax(
        leadingTrivia: index == 0 ? [] : line ?? .space,
        decl: DeclSyntax(stringLiteral: "\(head) \(property)"),
        semicolon: line == nil && !isLast ? .semicolonToken() : nil)
    }
    return .replace("declare them one by one", variable, by: MemberBlockItemListSyntax(declarations))
  }

  /// Removes an attribute from a declaration.
  static func leaveOut(_ attribute: AttributeSyntax, of declaration: some WithAttributesSyntax) -> FixIt {
    let name = attribute.attributeName.trimmedDescription
    return .replace("leave out @\(name)", declaration, by: declaration.without([attribute]))
  }
}

extension FixIt.Change {
  /// Removes a modifier. A line break before it stays, as the first modifier of a line owns it.
  static func leavingOut(_ modifier: DeclModifierSyntax) -> Self {
    let nothing = DeclModifierSyntax(name: .identifier("", leadingTrivia: modifier.leadingTrivia))
    return .replace(oldNode: Syntax(modifier), newNode: Syntax(nothing))
  }

  /// Replaces an optional type by a required one, and removes a `nil` value.
  static func required(_ type: TypeSyntax, _ place: Syntax) -> Self {
    guard var binding = place.as(PatternBindingSyntax.self), let optional = binding.typeAnnotation?.type
    else { return .replacement(of: place, by: type) }
    guard binding.initializer?.value.is(NilLiteralExprSyntax.self) ?? false else {
      return .replacement(of: optional, by: type)
    }
    binding.initializer = nil
    binding.typeAnnotation?.type = type.trimmed
    return .replacement(of: place, by: binding)
  }
}

/// Replaces `Self` by a type's name, because `Self` means another type elsewhere.
private final class SelfRewriter: SyntaxRewriter {
  private let owner: String

  init(owner: String) {
    self.owner = owner
    super.init()
  }

  override func visit(_ token: TokenSyntax) -> TokenSyntax {
    token.tokenKind == .keyword(.Self) ? token.with(\.tokenKind, .identifier(owner)) : token
  }
}

extension SyntaxProtocol {
  /// The same, spelled for use in another type. The result belongs to no file.
  func spelled(outside owner: String) -> Syntax { SelfRewriter(owner: owner).rewrite(self) }
}

extension WithAttributesSyntax {
  /// The same without some of its attributes.
  func without(_ attributes: [AttributeSyntax]) -> Self {
    // The attributes are compared by text, because an expanded one has no position.
    let texts = attributes.map(\.trimmedDescription)
    return with(\.attributes, self.attributes.filter { !texts.contains($0.trimmedDescription) })
  }
}

extension VariableDeclSyntax {
  /// The same with another attribute before it.
  func marked(_ attribute: String) -> DeclSyntax { DeclSyntax(stringLiteral: "\(attribute) \(trimmed)") }
}

extension AttributeSyntax {
  /// The same with other properties instead of those that it names.
  func naming(_ fields: [String]) -> AttributeSyntax {
    let labelled = expressions.filter { $0.label != nil }
      .map { $0.with(\.trailingComma, nil).trimmedDescription }
    let arguments = (fields + labelled).joined(separator: ", ")
    return AttributeSyntax(
      stringLiteral: "@\(attributeName.trimmedDescription)\(arguments.isEmpty ? "" : "(\(arguments))")")
  }

  /// The same without a labelled argument; nil if it had no other.
  func without(_ label: String) -> AttributeSyntax? {
    let rest = expressions.filter { $0.label?.text != label }
      .map { $0.with(\.trailingComma, nil).trimmedDescription }
    guard !rest.isEmpty else { return nil }
    return AttributeSyntax(
      stringLiteral: "@\(attributeName.trimmedDescription)(\(rest.joined(separator: ", ")))")
  }
}

extension DeclSyntaxProtocol where Self: WithModifiersSyntax & WithAttributesSyntax {
  /// The same with the visibility `access`.
  func seen(_ access: String) -> DeclSyntax {
    let levels = ["public", "package", "internal", "fileprivate", "private", "open"]
    let kept = modifiers.filter { !levels.contains($0.name.text) || $0.detail != nil }
    var bare = self
    bare.attributes = []
    let line = bare.leadingTrivia.lastLine ?? .space
    bare.modifiers = []
    let words = access + kept.map { "\($0.trimmed) " }.joined() + bare.trimmedDescription
    return DeclSyntax(stringLiteral: attributes.isEmpty ? words : "\(attributes.trimmed)\(line)\(words)")
  }
}
