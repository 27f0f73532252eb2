import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@Selection`: a struct of values that is a key of several parts.
struct SelectionMacro: ExtensionMacro {
  static func expansion(
    of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
    providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    let access = declaration.modifiers.accessPrefix
    let parts = try declaration.memberBlock.members.flatMap { member -> [TableDeclaration.Column] in
      guard let variable = member.decl.as(VariableDeclSyntax.self), variable.isInstance else { return [] }
      return try TableDeclaration.columns(variable)
    }
    let types = parts.map(\.type).joined(separator: ", ")
    let optionalTypes = parts.map { "\($0.type)?" }.joined(separator: ", ")
    let values = parts.map { "self.\($0.property)" }.joined(separator: ", ")
    let unwrapped = parts.indices.map { "let part\($0) = optionalParts.\($0)" }
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
