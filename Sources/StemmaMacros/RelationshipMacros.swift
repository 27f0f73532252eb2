import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// `@BelongsTo`, `@HasMany`, `@HasOne` and `@ManyToMany` turn a property into a way to another record. What goes wrong
/// with them is said by `@Table`, which sees all properties.
private func relationship(
  _ node: AttributeSyntax, _ declaration: some DeclSyntaxProtocol, _ context: some MacroExpansionContext
) -> TableDeclaration.Relationship? {
  guard let variable = declaration.as(VariableDeclSyntax.self) else { return nil }
  guard context.lexicalContext.first?.asProtocol(DeclGroupSyntax.self)?.attributes.named("Table") != nil
  else {
    let kind = node.attributeName.trimmedDescription
    context.diagnose(
      Diagnostic(
        node: node,
        message: Misuse(
          "relationshipPlace",
          "@\(kind) stands in the struct with @Table itself, beside its reference fields; a group of columns and other "
            + "types have no relationships")))
    return nil
  }
  do { return try TableDeclaration.Relationship(variable) } catch { return nil }
}

/// Of a property that is refused: without any accessor there would be one more error.
private let refused: [AccessorDeclSyntax] = ["get { Swift.preconditionFailure() }"]

extension TableDeclaration.Relationship {
  /// The reference fields of the other side, for the compiler to compare with this side's key.
  fileprivate var reference: String {
    let fields = fields.map { "$0.\($0)" }
    return " { \(fields.count == 1 ? fields[0] : "(\(fields.joined(separator: ", ")))") }"
  }
}

struct BelongsToMacro: AccessorMacro {
  static func expansion(
    of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    guard let relationship = relationship(node, declaration, context) else { return refused }
    let fields = relationship.fields.map { "self.\($0)" }.joined(separator: ", ")
    let parts = relationship.fields.count == 1 ? fields : "(\(fields))"
    return [
      """
      get async throws {
        try await self._record.\(raw: relationship.isOptional ? "parent" : "requiredParent")(
          \(raw: relationship.target).self, "\(raw: relationship.property)", of: Self.modelName, \(raw: parts))
      }
      """
    ]
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
