import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// `@Column`, `@Ephemeral` and `@Index` generate nothing; `@Table` and `@Selection` read them. They
/// are errors where neither reads them.
struct MarkerMacro: PeerMacro {
  static func expansion(
    of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    let name = node.attributeName.trimmedDescription.split(separator: ".").last ?? ""
    guard !isRead(name == "Index", declaration, context.lexicalContext.first) else { return [] }
    let place =
      name == "Index"
      ? "the struct with @Table, or on a property of it" : "a property of a struct with @Table or @Selection"
    context.diagnose(
      Diagnostic(
        node: node,
        message: Misuse("markPlace", "@\(name) belongs on \(place); leave it out here"),
        fixIts: declaration.asProtocol(WithAttributesSyntax.self).map { [.leaveOut(node, of: $0)] } ?? []))
    return []
  }

  private static func isRead(
    _ isIndex: Bool, _ declaration: some DeclSyntaxProtocol, _ surrounding: Syntax?
  ) -> Bool {
    guard declaration.is(VariableDeclSyntax.self) else {
      return isIndex && has("Table", declaration.asProtocol(DeclGroupSyntax.self))
    }
    let group = surrounding?.asProtocol(DeclGroupSyntax.self)
    return ["Table", "Selection"].contains { has($0, group) }
  }

  /// Inside of `#if` counts, too: `@Table` reports that, in the builds that have it.
  private static func has(_ name: String, _ group: (any DeclGroupSyntax)?) -> Bool {
    guard let attributes = group?.attributes else { return false }
    return attributes.named(name) != nil || attributes.hasConditional(name)
  }
}
