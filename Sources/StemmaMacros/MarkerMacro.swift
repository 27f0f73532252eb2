import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxMacros

/// `@Column`, `@Ephemeral` and `@Index`, which `@Table` and `@Selection` read, and which make nothing by themselves. Where
/// neither reads them they would be passed over.
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
        message: Misuse("markPlace", "@\(name) stands on \(place); leave it out here"),
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

  /// Of an attribute inside of `#if`, `@Table` says what is wrong with it, in the builds that have it.
  private static func has(_ name: String, _ group: (any DeclGroupSyntax)?) -> Bool {
    guard let attributes = group?.attributes else { return false }
    return attributes.named(name) != nil || attributes.hasConditional(name)
  }
}
