import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@_Tracked`, which `@Table` puts on its columns: each copy of a row remembers which of its properties were set, so that
/// a copy that was read earlier does not take back what another copy has recorded since.
struct TrackedMacro: AccessorMacro {
  static func expansion(
    of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    guard let columns = node.arguments?.as(LabeledExprListSyntax.self) else { return [] }
    let type = checkedType(of: declaration, isGroup: columns.count > 1)
    return ["didSet { self._record.noteSet(\(columns)\(raw: type.map { ", as: \($0).self" } ?? "")) }"]
  }

  /// A type that may be none of a column: the compiler looks at it here, where the property stands.
  private static func checkedType(of declaration: some DeclSyntaxProtocol, isGroup: Bool) -> String? {
    guard let variable = declaration.as(VariableDeclSyntax.self), !isGroup,
      variable.attributes.named("Column")?.expression("as") == nil,
      let type = variable.bindings.first?.typeAnnotation?.type.trimmedDescription,
      !SpelledTypes.isCommon(type)
    else { return nil }
    return type.isOptionalType ? "(\(type))" : type
  }
}

extension TableMacro: MemberAttributeMacro {
  static func expansion(
    of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
    providingAttributesFor member: some DeclSyntaxProtocol, in context: some MacroExpansionContext
  ) throws -> [AttributeSyntax] {
    guard let variable = member.as(VariableDeclSyntax.self), variable.canBeTracked,
      let name = variable.bindings.first?.name
    else { return [] }
    // The member role of the same attribute says what is wrong.
    do {
      let places = try TableDeclaration(node, declaration).places(ofProperty: name)
      guard let first = places.first else { return [] }
      return ["@Stemma._Tracked(\(raw: first)\(raw: places.count == 1 ? "" : ", count: \(places.count)"))"]
    } catch { return [] }
  }
}

extension TableDeclaration {
  /// The numbers of a stored property's columns, without the key; none if it is no column.
  func places(ofProperty property: String) -> Range<Int> {
    var places = 0..<0
    for stored in stored {
      places = places.upperBound..<(places.upperBound + stored.columns.count)
      if stored.property == property { return places }
    }
    return 0..<0
  }

  /// The columns that can be set without being noted: `var a, b: Int`, and what has an observer of its own.
  var untracked: [Int] {
    declaration.memberBlock.members.compactMap { $0.decl.as(VariableDeclSyntax.self) }
      .filter { $0.isInstance && $0.bindingSpecifier.tokenKind == .keyword(.var) && !$0.canBeTracked }
      .flatMap(\.bindings).compactMap(\.name).flatMap(places(ofProperty:))
  }
}

extension VariableDeclSyntax {
  /// Whether an observer can be added.
  fileprivate var canBeTracked: Bool {
    isInstance && bindingSpecifier.tokenKind == .keyword(.var) && bindings.count == 1
      && bindings.first?.accessorBlock == nil
  }
}
