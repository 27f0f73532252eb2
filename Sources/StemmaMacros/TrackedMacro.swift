import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@_Tracked`, which `@Table` adds to columns: each copy of a row remembers which properties were
/// set in it. So an older copy does not revert what another copy has recorded since.
struct TrackedMacro: AccessorMacro {
  static func expansion(
    of node: AttributeSyntax, providingAccessorsOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [AccessorDeclSyntax] {
    guard let variable = declaration.as(VariableDeclSyntax.self), let binding = variable.bindings.first,
      let name = binding.name,
      let first = node.unlabelled.first.flatMap({ Int($0.trimmedDescription) })
    else { return [] }
    // A property with its own `didSet` cannot have another one, and may set itself again there.
    let observer = binding.observers.contains("didSet") ? "willSet" : "didSet"
    let old = observer == "didSet" ? "oldValue" : "self.\(name.inCode)"
    var notes = node.strings.enumerated().map { place, part in
      let words = part.split(separator: ":", maxSplits: 1)
      let representation = words.count > 1 ? String(words[1]) : nil
      return note(
        first + place, "\(old).\(String(words[0]).inCode)", representation,
        representation == nil ? "notePart" : "noteSet")
    }
    if notes.isEmpty {
      notes = [
        note(first, old, variable.attributes.named("Column")?.expression("as")?.metatypeName, "noteSet")
      ]
    }
    return ["\(raw: observer) { \(raw: notes.joined(separator: "; ")) }"]
  }

  private static func note(_ column: Int, _ old: String, _ representation: String?, _ call: String) -> String
  {
    let type = representation.map { ", as: \($0.isOptionalType ? "(\($0))" : $0).self" } ?? ""
    return "self._record.\(call)(\(column), from: \(old)\(type))"
  }
}

extension TableMacro: MemberAttributeMacro {
  static func expansion(
    of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
    providingAttributesFor member: some DeclSyntaxProtocol, in context: some MacroExpansionContext
  ) throws -> [AttributeSyntax] {
    guard let variable = member.as(VariableDeclSyntax.self), variable.isInstance,
      variable.bindingSpecifier.tokenKind == .keyword(.var), let name = variable.bindings.first?.name,
      declaration.attributes.all("Table").count == 1,
      TableDeclaration.misplacement(in: context.lexicalContext) == nil
    else { return [] }
    // The member role of the same attribute reports the errors.
    do {
      let arguments = try TableDeclaration(node, declaration).tracking(ofProperty: name)
      return arguments.map { ["@Stemma._Tracked(\(raw: $0))"] } ?? []
    } catch { return [] }
  }
}

extension TableDeclaration {
  /// The arguments of `@_Tracked`: the number of a property's first column, without the key, and
  /// the properties of a group. Nil if it is no column.
  fileprivate func tracking(ofProperty property: String) -> String? {
    var place = 0
    for stored in stored {
      if stored.property == property {
        guard case .group(let group) = stored else { return "\(place)" }
        let parts = group.columns.map { part in
          "\"\(part.property)\(part.representation.map { ":\($0)" } ?? "")\""
        }
        return ([String(place)] + parts).joined(separator: ", ")
      }
      place += stored.columns.count
    }
    return nil
  }

  /// Requires one declaration for each column, with at most one observer: `@Table` adds another.
  static func checkTracking(_ variable: VariableDeclSyntax, _ misuses: inout Misuses) {
    guard variable.bindingSpecifier.tokenKind == .keyword(.var), variable.attributes.named("Ephemeral") == nil
    else { return }
    // An array, because the elements of a filtered syntax list have no position.
    let stored = Array(variable.bindings).filter(\.isStored)
    if variable.bindings.count > 1, !stored.isEmpty {
      let names = stored.compactMap(\.name).map { "`\($0)`" }.joined(separator: " and ")
      misuses.add(
        "together", "declare the columns \(names) one by one", at: variable.bindings,
        fix: .oneByOne(variable, separate(variable.bindings)))
    }
    for binding in stored where binding.observers.isSuperset(of: ["willSet", "didSet"]) {
      misuses.add(
        "observers",
        "`\(binding.name ?? "")` can have one observer of its own, as @Table adds the other: leave out `willSet`, or "
          + "`didSet`", at: binding.pattern)
    }
  }
}

extension TableDeclaration {
  /// The properties of a declaration, each with its type: in `var a, b: Int`, both have one.
  private static func separate(_ bindings: PatternBindingListSyntax) -> [String] {
    var type: TypeAnnotationSyntax?
    var texts: [String] = []
    for binding in bindings.reversed() {
      type = binding.typeAnnotation ?? (binding.initializer == nil ? type : nil)
      let name = binding.pattern.trimmedDescription
      let typed = type.map { "\(name)\($0.trimmed)" } ?? name
      let rest = [binding.initializer.map { "\($0.trimmed)" }, binding.accessorBlock.map { "\($0.trimmed)" }]
      texts.append(([typed] + rest.compactMap { $0 }).joined(separator: " "))
    }
    return texts.reversed()
  }
}

extension PatternBindingSyntax {
  fileprivate var observers: Set<String> {
    guard case .accessors(let accessors) = accessorBlock?.accessors else { return [] }
    return Set(accessors.map(\.accessorSpecifier.text))
  }
}
