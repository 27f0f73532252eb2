import SwiftDiagnostics
import SwiftSyntax

// The visibility of generated members is that of their type. A less visible property can have a
// type that is equally hidden, so its members are narrowed, unless that type is visible everywhere.

extension DeclModifierListSyntax {
  /// The visibility of a member with these modifiers, of a type with the visibility `access`.
  func narrowing(_ access: String) -> String {
    let isPrivate = contains { ["private", "fileprivate"].contains($0.name.text) && $0.detail == nil }
    return [isPrivate ? "fileprivate " : accessPrefix, access].narrowest(access)
  }
}

extension Sequence<String> {
  /// The lowest visibility; `widest` if there is none.
  func narrowest(_ widest: String) -> String {
    let order = ["fileprivate ", "", "package ", "public "]
    return order.first { contains($0) } ?? widest
  }
}

extension TableDeclaration.Column {
  /// The visibility of the code generated for the column.
  func access(_ access: String) -> String {
    // Below `package`, everything is visible in the module.
    guard !access.isEmpty, !SpelledTypes.isEverybodys(representation ?? type) else { return access }
    return variable.modifiers.narrowing(access)
  }
}

extension TableDeclaration.Stored {
  func access(_ access: String) -> String {
    switch self {
    case .column(let column): column.access(access)
    case .group(let group): access.isEmpty ? access : group.variable?.modifiers.narrowing(access) ?? access
    }
  }
}

extension TableDeclaration.Relationship {
  func access(_ access: String) -> String {
    access.isEmpty ? access : variable.modifiers.narrowing(access)
  }
}

extension TableDeclaration {
  /// Reports a key that is less visible than its model, and nested types that are less visible than
  /// their properties.
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

/// A type declared inside another one.
typealias NestedTypeSyntax = DeclSyntaxProtocol & NamedDeclSyntax & WithAttributesSyntax & WithModifiersSyntax

extension StructDeclSyntax {
  /// A type declared in this one that is less visible than `access`, for a property of that type.
  func hiddenType(_ type: String, _ access: String) -> (any NestedTypeSyntax)? {
    let name = SpelledTypes.unwrapped(type).type
    for member in memberBlock.members {
      let nested = member.decl.asProtocol(NamedDeclSyntax.self) as? any NestedTypeSyntax
      guard let nested, nested.name.text == name else { continue }
      return nested.modifiers.narrowing(access) == access ? nil : nested
    }
    return nil
  }

  /// Whether a property or its type is less visible than the struct.
  func isHidden(_ stored: TableDeclaration.Stored) -> Bool {
    let access = modifiers.accessPrefix
    return stored.access(access) != access || hiddenType(stored.type, access) != nil
  }
}
