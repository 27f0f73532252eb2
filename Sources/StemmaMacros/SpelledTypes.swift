import SwiftSyntax
import SwiftSyntaxBuilder

/// Names for the types that a nested declaration names.
///
/// A conformance is written in an extension, which stands in the file and does not see the short names of what is declared
/// beside a nested type. So the type itself, which sees them, gives each a name that its extensions see: those of
/// `enum _Types`. The types that everybody has keep their own.
enum SpelledTypes {
  private static let common: Set = [
    "String", "Int", "Int64", "Int32", "Bool", "Double", "Float", "UUID", "Date", "Data", "Decimal", "URL",
  ]

  /// Whether everybody has the type, and it is one of columns.
  static func isCommon(_ type: String) -> Bool { common.contains(unwrapped(type).type) }

  /// Whether everybody has what the type is made of.
  static func isEverybodys(_ type: String) -> Bool {
    var type = unwrapped(type).type
    while type.hasPrefix("["), type.hasSuffix("]") {
      type = unwrapped(String(type.dropFirst().dropLast())).type
    }
    type = short(type)
    return common.contains(type) || type == "String.ID" || type.hasPrefix("String.AWS")
  }

  /// The short name of a type that everybody has, `UUID` of `Foundation.UUID`; other types as they are spelled.
  static func short(_ type: String) -> String {
    let words = type.split(separator: ".", maxSplits: 1).map(String.init)
    guard words.count == 2, ["Swift", "Foundation", "FoundationEssentials", "Stemma"].contains(words[0]),
      common.contains(words[1]) || words[1] == "String.ID"
    else { return type }
    return words[1]
  }

  /// What a type is or wraps, by its short name, and whether it wraps it.
  static func plain(_ type: String) -> (type: String, isOptional: Bool) {
    let (inner, isOptional) = unwrapped(type)
    return (short(inner), isOptional)
  }

  /// What stands in an optional, and what is around it.
  static func unwrapped(_ type: String) -> (type: String, isOptional: Bool) {
    if type.hasSuffix("?") { return (String(type.dropLast()), true) }
    if type.hasPrefix("Optional<"), type.hasSuffix(">") {
      return (String(type.dropFirst("Optional<".count).dropLast()), true)
    }
    return (type, false)
  }

  /// How an extension spells a type, by a name of its own for it.
  static func outside(_ type: String, as name: String) -> String {
    let (inner, isOptional) = unwrapped(type)
    guard !common.contains(inner) else { return type }
    return "_Types.\(name.inCode)\(isOptional ? "?" : "")"
  }

  /// The name for a column's type.
  private static func name(_ column: TableDeclaration.Column) -> String {
    (column.group.map { "\($0)__" } ?? "") + column.property
  }

  /// The column as an extension spells it.
  static func outside(_ column: TableDeclaration.Column) -> TableDeclaration.Column {
    var column = column
    let name = name(column)
    if let representation = column.representation {
      column.representation = outside(representation, as: name)
    }
    if column.representation == nil { column.type = outside(column.type, as: name) }
    return column
  }

  /// `typealias level = Level`; nil for a type that everybody has.
  static func alias(_ type: String, as name: String) -> String? {
    let inner = unwrapped(type).type
    return common.contains(inner) ? nil : "typealias \(name.inCode) = \(inner)"
  }

  static func aliases(of columns: [TableDeclaration.Column]) -> [String] {
    columns.compactMap { alias($0.representation ?? $0.type, as: name($0)) }
  }

  /// The names, for a declaration in another type, where `_Types` is seen as far as `access` says.
  static func declaration(of aliases: [String], _ access: String) -> [DeclSyntax] {
    guard !aliases.isEmpty else { return [] }
    return [
      """
      \(raw: access)enum _Types {
        \(raw: TableDeclaration.lines(aliases, 2))
      }
      """
    ]
  }

  /// Those of a `@Selection`.
  static func declaration(
    of parts: [TableDeclaration.Column], nested: Bool, _ access: String
  ) -> [DeclSyntax] {
    guard nested else { return [] }
    let aliases = parts.compactMap { part in
      alias(part.representation ?? part.type, as: name(part)).map { part.access(access) + $0 }
    }
    return declaration(of: aliases, access)
  }
}

extension TableDeclaration {
  /// A column as the conformance spells it.
  func outside(_ column: Column) -> Column { isNested ? SpelledTypes.outside(column) : column }

  /// The other side of a relationship, or a join model, as the conformance spells it.
  func outside(_ model: String) -> String {
    guard isNested, let name = modelNames[model] else { return model }
    return "_Types.\(name.inCode)"
  }

  /// The models that relationships name, and what `_Types` calls them.
  private var modelNames: [String: String] {
    var names: [String: String] = [:]
    for relationship in relationships {
      names[relationship.target] = names[relationship.target] ?? relationship.property
      if let join = relationship.join { names[join] = names[join] ?? "\(relationship.property)__join" }
    }
    return names
  }

  /// Names for the types that the conformance of a nested model names.
  var types: [DeclSyntax] {
    guard isNested else { return [] }
    let models = modelNames.sorted { $0.value < $1.value }.map { "typealias \($0.value.inCode) = \($0.key)" }
    return SpelledTypes.declaration(
      of: SpelledTypes.aliases(of: key.columns + columns) + models, "private ")
  }
}
