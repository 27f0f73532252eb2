import SwiftSyntax
import SwiftSyntaxBuilder

// Default values of properties are written again as those of parameters. In a public initialiser these name nothing that is
// seen less far, as a property's value may. So a public type has its values in an `enum _Defaults`, and parameters name that.

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

  /// The default value of a parameter for it. `owner`: the type that has the property, which is seen as far as `access` says.
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
  /// Whether it names nothing.
  fileprivate var isNameless: Bool {
    if let list = self.as(ArrayExprSyntax.self) { return list.elements.allSatisfy(\.expression.isNameless) }
    return isLiteral || self.is(NilLiteralExprSyntax.self)
  }
}
