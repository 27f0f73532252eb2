import SwiftSyntax
import SwiftSyntaxBuilder

// Default values of properties become those of parameters. A public initializer's can use public
// names only, so a public type keeps default values in `enum _Defaults` for that.

extension TableDeclaration.Stored {
  private var defaultValue: ExprSyntax? {
    switch self {
    case .column(let column): column.defaultValue
    case .group(let group): group.defaultValue
    }
  }

  private func isKept(_ value: ExprSyntax, _ access: String) -> Bool {
    self.access(access) == "public " && !value.isNameless
  }

  /// A parameter's default value. `owner`: the type with the property, of visibility `access`.
  func parameterDefault(_ owner: String, _ access: String) -> String? {
    guard let defaultValue else { return nil }
    return isKept(defaultValue, access) ? "\(owner)._Defaults.\(property.inCode)" : defaultValue.description
  }

  /// The static property for the default value, if it needs one.
  private func keptDefault(_ access: String) -> String? {
    guard let defaultValue, isKept(defaultValue, access) else { return nil }
    return "\(access)static var \(property.inCode): \(type) { \(defaultValue) }"
  }

  /// The default values that parameters name.
  static func keptDefaults(_ stored: [Self], _ access: String) -> [DeclSyntax] {
    let values = stored.compactMap { $0.keptDefault(access) }
    guard !values.isEmpty else { return [] }
    return [
      """
      \(raw: access)enum _Defaults {
        \(raw: TableDeclaration.lines(values, 2))
      }
      """
    ]
  }
}

extension ExprSyntax {
  /// Whether it has no names.
  fileprivate var isNameless: Bool {
    if let list = self.as(ArrayExprSyntax.self) { return list.elements.allSatisfy(\.expression.isNameless) }
    return isLiteral || self.is(NilLiteralExprSyntax.self)
  }
}
