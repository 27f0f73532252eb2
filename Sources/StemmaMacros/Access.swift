import SwiftDiagnostics
import SwiftSyntax

// How far what the macros write can be seen: as far as the type that they stand on. A property that is seen less far may have
// a type that is seen no further than itself; only what everybody has is seen further.

extension DeclModifierListSyntax {
  /// How far a member with these modifiers is seen of a type that is seen as far as `access` says.
  func narrowing(_ access: String) -> String {
    let isPrivate = contains { ["private", "fileprivate"].contains($0.name.text) && $0.detail == nil }
    return [isPrivate ? "fileprivate " : accessPrefix, access].narrowest(access)
  }
}

extension Sequence<String> {
  /// The one that is seen least far; `widest` if there is none.
  func narrowest(_ widest: String) -> String {
    let order = ["fileprivate ", "", "package ", "public "]
    return order.first { contains($0) } ?? widest
  }
}

extension TableDeclaration.Column {
  /// How far what is written for the column can be seen.
  func access(_ access: String) -> String {
    // Of less than `package`, everything is seen in the module.
    guard !access.isEmpty, !SpelledTypes.isEverybodys(representation ?? type) else { return access }
    return variable.modifiers.narrowing(access)
  }
}

extension TableDeclaration.Stored {
  /// How far what is written for the property can be seen.
  func access(_ access: String) -> String {
    switch self {
    case .column(let column): column.access(access)
    case .group(let group): access.isEmpty ? access : group.variable?.modifiers.narrowing(access) ?? access
    }
  }
}

extension TableDeclaration.Relationship {
  /// How far what is written for the relationship can be seen.
  func access(_ access: String) -> String {
    access.isEmpty ? access : variable.modifiers.narrowing(access)
  }
}

extension TableDeclaration {
  /// A key that is seen less far than its model, and types of properties that are declared beside them and seen less far than
  /// they.
  func checkAccess(_ misuses: inout Misuses) {
    guard !access.isEmpty else { return }
    let word = String(access.dropLast())
    for stored in declared {
      let isKey = stored.property == key.property
      if isKey, stored.access(access) != access, let variable = stored.variable {
        misuses.add(
          "hiddenKey", "the key of a \(word) model is \(word), and so is its type", at: variable.bindings,
          fix: .replace("make it \(word)", variable, by: variable.seen(access)))
      }
      guard isKey || stored.access(access) == access,
        let hidden = declaration.hiddenType(stored.type, access)
      else { continue }
      misuses.add(
        "hiddenType", "`\(stored.property)` is \(word), so its type is", at: hidden.name,
        fix: .replace("make it \(word)", hidden, by: hidden.seen(access)))
    }
  }
}

/// A declaration of a type in another.
typealias NestedTypeSyntax = DeclSyntaxProtocol & NamedDeclSyntax & WithAttributesSyntax & WithModifiersSyntax

extension StructDeclSyntax {
  /// A type that is declared in this one and seen less far than `access` says, of a property that has it.
  func hiddenType(_ type: String, _ access: String) -> (any NestedTypeSyntax)? {
    let name = SpelledTypes.unwrapped(type).type
    for member in memberBlock.members {
      let nested = member.decl.asProtocol(NamedDeclSyntax.self) as? any NestedTypeSyntax
      guard let nested, nested.name.text == name else { continue }
      return nested.modifiers.narrowing(access) == access ? nil : nested
    }
    return nil
  }

  /// Whether a property, or its type, is seen less far than the struct.
  func isHidden(_ stored: TableDeclaration.Stored) -> Bool {
    let access = modifiers.accessPrefix
    return stored.access(access) != access || hiddenType(stored.type, access) != nil
  }
}
