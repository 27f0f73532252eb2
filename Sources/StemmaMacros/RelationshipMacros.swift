import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// `@BelongsTo`, `@HasMany`, `@HasOne` and `@ManyToMany` make a property lead to other records.
/// Errors are reported by `@Table`, which sees all properties.
private func relationship(
  _ node: AttributeSyntax, _ declaration: some DeclSyntaxProtocol, _ context: some MacroExpansionContext
) -> TableDeclaration.Relationship? {
  guard let variable = declaration.as(VariableDeclSyntax.self) else { return nil }
  let attributes = context.lexicalContext.first?.asProtocol(DeclGroupSyntax.self)?.attributes ?? []
  guard attributes.named("Table") != nil else {
    let kind = node.attributeName.trimmedDescription
    if attributes.hasConditional("Table") {
      let message = "@\(kind) belongs in a struct whose @Table is not inside of #if"
      context.diagnose(Diagnostic(node: node, message: Misuse("conditional", message)))
      return nil
    }
    context.diagnose(
      Diagnostic(
        node: node,
        message: Misuse(
          "relationshipPlace",
          "@\(kind) belongs in the struct with @Table itself, beside its reference fields; "
            + "a group of columns and other types have no relationships")))
    return nil
  }
  guard TableDeclaration.misplacement(in: context.lexicalContext) == nil else { return nil }
  do {
    guard let relationship = try TableDeclaration.Relationship(variable) else { return nil }
    return variable.isInstance && relationship.isExpandable ? relationship : nil
  } catch { return nil }
}

/// The accessor of a refused property: without one, there would be a further error.
private let refused: [AccessorDeclSyntax] = ["get { Swift.preconditionFailure() }"]

extension TableDeclaration.Relationship {
  /// Whether it has all that an accessor needs; `@Table` reports missing parts.
  fileprivate var isExpandable: Bool {
    guard attribute.unreadable.isEmpty else { return false }
    return switch kind {
    case .belongsTo, .hasMany: !fields.isEmpty
    case .hasOne: !fields.isEmpty && isOptional
    case .manyToMany: join != nil
    }
  }

  /// The reference fields, which the compiler compares with the key on the other side.
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

/// Also of `@ManyToMany`: both return related records without reading them.
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
