import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@Selection`: a struct of values whose properties are columns of the table that it is nested in. One that is
/// Hashable, and has no optional property, can be the table's key.
struct SelectionMacro {
  /// Its stored properties.
  static func parts(of declaration: some DeclGroupSyntax) throws -> [TableDeclaration.Column] {
    try declaration.memberBlock.members.flatMap { member -> [TableDeclaration.Column] in
      guard let variable = member.decl.as(VariableDeclSyntax.self), variable.isInstance else { return [] }
      return try TableDeclaration.columns(variable)
    }
  }
}

extension SelectionMacro: MemberMacro {
  /// The memberwise initialiser that Swift gives is internal at most.
  static func expansion(
    of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    let access = declaration.modifiers.accessPrefix
    let hasOwn = declaration.memberBlock.members.contains { $0.decl.is(InitializerDeclSyntax.self) }
    guard !access.isEmpty, !hasOwn else { return [] }
    return [
      TableDeclaration.memberwise(access, try parts(of: declaration).map(TableDeclaration.Stored.column))
    ]
  }
}

extension SelectionMacro: ExtensionMacro {
  static func expansion(
    of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
    providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    let access = declaration.modifiers.accessPrefix
    let parts = try Self.parts(of: declaration)
    guard declaration.as(StructDeclSyntax.self)?.isHashable ?? false,
      !parts.isEmpty, parts.allSatisfy({ !$0.isOptional && $0.representation == nil })
    else { return [] }
    let types = parts.map(\.type).joined(separator: ", ")
    let optionalTypes = parts.map { "\($0.type)?" }.joined(separator: ", ")
    let values = parts.map { "self.\($0.property)" }.joined(separator: ", ")
    let unwrapped = parts.indices.map {
      "let part\($0) = optionalParts\(parts.count == 1 ? "" : ".\($0)")"
    }
    let assigned = parts.enumerated().map { "self.\($1.property) = part\($0)" }
    let written = parts.map { "record.key(self.\($0.property))" }
    return [
      try ExtensionDeclSyntax(
        """
        extension \(type.trimmed): Stemma.TableKey {
          \(raw: access)init?(optionalParts: (\(raw: optionalTypes))) {
            guard \(raw: unwrapped.joined(separator: ", ")) else {
              return nil
            }
            \(raw: TableDeclaration.lines(assigned, 4))
          }
          \(raw: access)var parts: (\(raw: types)) { (\(raw: values)) }
          \(raw: access)func write(to record: inout Stemma.RecordWriter) {
            \(raw: TableDeclaration.lines(written, 4))
          }
        }
        """)
    ]
  }
}
