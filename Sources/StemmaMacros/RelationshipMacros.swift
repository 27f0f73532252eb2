import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// `@BelongsTo`, `@HasMany`, `@HasOne` and `@ManyToMany` turn a property into a way to another record. What goes wrong
/// with them is said by `@Table`, which sees all properties.
private func relationship(
  _ node: AttributeSyntax, _ declaration: some DeclSyntaxProtocol, _ context: some MacroExpansionContext
) -> TableDeclaration.Relationship? {
  guard let variable = declaration.as(VariableDeclSyntax.self) else { return nil }
  let attributes = context.lexicalContext.first?.asProtocol(DeclGroupSyntax.self)?.attributes ?? []
  guard attributes.named("Table") != nil else {
    let kind = node.attributeName.trimmedDescription
    if attributes.hasConditional("Table") {
      let message = "@\(kind) stands in a struct whose @Table does not stand inside of #if"
      context.diagnose(Diagnostic(node: node, message: Misuse("conditional", message)))
      return nil
    }
    context.diagnose(
      Diagnostic(
        node: node,
        message: Misuse(
          "relationshipPlace",
          "@\(kind) stands in the struct with @Table itself, beside its reference fields; a group of columns and other "
            + "types have no relationships")))
    return nil
  }
  guard TableDeclaration.misplacement(in: context.lexicalContext) == nil else { return nil }
  do {
    guard let relationship = try TableDeclaration.Relationship(variable) else { return nil }
    return variable.isInstance && relationship.isExpandable ? relationship : nil
  } catch { return nil }
}

/// Of a property that is refused: without any accessor there would be one more error.
private let refused: [AccessorDeclSyntax] = ["get { Swift.preconditionFailure() }"]

extension TableDeclaration.Relationship {
  /// Whether it says what an accessor is made of; what is missing is said by `@Table`.
  fileprivate var isExpandable: Bool {
    guard attribute.unreadable.isEmpty else { return false }
    return switch kind {
    case .belongsTo, .hasMany: !fields.isEmpty
    case .hasOne: !fields.isEmpty && isOptional
    case .manyToMany: join != nil
    }
  }

  /// The reference fields, for the compiler to compare with the key on the other side.
  fileprivate var reference: String {
    let fields = fields.map { "$0.\($0.inCode)" }
    return " { \(fields.count == 1 ? fields[0] : "(\(fields.joined(separator: ", ")))") }"
  }
}

struct BelongsToMacro: AccessorMacro {
  static func expansion(
    of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    guard let relationship = relationship(node, declaration, context) else { return refused }
    let name = relationship.property
    let found =
      "self._record.parent(\(relationship.target).self, \"\(name)\", of: self)\(relationship.reference)"
    let read = relationship.isOptional ? found : "self._record.required(\(found), \"\(name)\", of: self)"
    return ["get async throws { try await \(raw: read) }"]
  }
}

/// Of `@ManyToMany` too: both give what is related without reading it.
struct HasManyMacro: AccessorMacro {
  static func expansion(
    of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    guard let relationship = relationship(node, declaration, context) else { return refused }
    let reference = relationship.kind == .hasMany ? relationship.reference : ""
    return [
      """
      get { Stemma.Related<\(raw: relationship.target)>(of: self, "\(raw: relationship.property)")\(raw: reference) }
      """
    ]
  }
}

struct HasOneMacro: AccessorMacro {
  static func expansion(
    of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    guard let relationship = relationship(node, declaration, context) else { return refused }
    return [
      """
      get async throws {
        try await self._record.child(\(raw: relationship.target).self, "\(raw: relationship.property)", of: self)\(raw: relationship.reference)
      }
      """
    ]
  }
}
