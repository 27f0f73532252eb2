import SwiftSyntax
import SwiftSyntaxMacros

/// `@BelongsTo`, `@HasMany`, `@HasOne` and `@ManyToMany` turn a property into a way to another record. What goes wrong
/// with them is said by `@Table`, which sees all properties.
private func relationship(
  _ declaration: some DeclSyntaxProtocol
) -> TableDeclaration.Relationship? {
  guard let variable = declaration.as(VariableDeclSyntax.self) else { return nil }
  do { return try TableDeclaration.Relationship(variable) } catch { return nil }
}

struct BelongsToMacro: AccessorMacro {
  static func expansion(
    of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    guard let relationship = relationship(declaration) else { return [] }
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
    guard let relationship = relationship(declaration) else { return [] }
    return [
      "get { Stemma.Related<\(raw: relationship.target)>(of: self, \"\(raw: relationship.property)\") }"
    ]
  }
}

struct HasOneMacro: AccessorMacro {
  static func expansion(
    of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    guard let relationship = relationship(declaration) else { return [] }
    return [
      """
      get async throws {
        try await self._record.child(\(raw: relationship.target).self, "\(raw: relationship.property)", of: self)
      }
      """
    ]
  }
}
