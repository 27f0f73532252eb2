import SwiftSyntax
import SwiftSyntaxBuilder

/// Aliases for the types that a nested declaration uses.
///
/// A conformance is an extension at file level, which does not see the short names of types beside
/// a nested type. So the type itself declares aliases for them in an `enum _Types`, which its
/// extensions see. Types that are visible everywhere keep their names.
enum SpelledTypes {
  private static let common: Set = [
    "String", "Int", "Int64", "Int32", "Bool", "Double", "Float", "UUID", "Date", "Data", "Decimal", "URL",
  ]

  /// Whether the type is visible everywhere, and can be a column's.
  static func isCommon(_ type: String) -> Bool { common.contains(unwrapped(type).type) }

  /// Whether the type consists of types that are visible everywhere.
  static func isEverybodys(_ type: String) -> Bool {
    var type = unwrapped(type).type
    while type.hasPrefix("["), type.hasSuffix("]") {
      type = unwrapped(String(type.dropFirst().dropLast())).type
    }
    type = short(type)
    return common.contains(type) || type == "String.ID" || type.hasPrefix("String.AWS")
  }

  /// Shortens a type visible everywhere, as `UUID` for `Foundation.UUID`; returns others unchanged.
  static func short(_ type: String) -> String {
    let words = type.split(separator: ".", maxSplits: 1).map(String.init)
    guard words.count == 2, ["Swift", "Foundation", "FoundationEssentials", "Stemma"].contains(words[0]),
      common.contains(words[1]) || words[1] == "String.ID"
    else { return type }
    return words[1]
  }

  /// The type without an optional around it, by its short name, and whether there is one.
  static func plain(_ type: String) -> (type: String, isOptional: Bool) {
    let (inner, isOptional) = unwrapped(type)
    return (short(inner), isOptional)
  }

  /// The type without an optional around it, and whether there is one.
  static func unwrapped(_ type: String) -> (type: String, isOptional: Bool) {
    if type.hasSuffix("?") { return (String(type.dropLast()), true) }
    if type.hasPrefix("Optional<"), type.hasSuffix(">") {
      return (String(type.dropFirst("Optional<".count).dropLast()), true)
    }
    return (type, false)
  }

  /// The spelling of a type in an extension, with the alias `name`.
  static func outside(_ type: String, as name: String) -> String {
    let (inner, isOptional) = unwrapped(type)
    guard !common.contains(inner) else { return type }
    return "_Types.\(name.inCode)\(isOptional ? "?" : "")"
  }

  /// The alias of a column's type.
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

  /// `typealias level = Level`; nil for a type that is visible everywhere.
  static func alias(_ type: String, as name: String) -> String? {
    let inner = unwrapped(type).type
    return common.contains(inner) ? nil : "typealias \(name.inCode) = \(inner)"
  }

  static func aliases(of columns: [TableDeclaration.Column]) -> [String] {
    columns.compactMap { alias($0.representation ?? $0.type, as: name($0)) }
  }

  /// The aliases, for a declaration in another type, where `_Types` has the visibility `access`.
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

  /// The aliases for a `@Selection`.
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

  /// The other side of a relationship, or a join model, in the conformance's spelling.
  func outside(_ model: String) -> String {
    guard isNested, let name = modelNames[model] else { return model }
    return "_Types.\(name.inCode)"
  }

  /// The models of relationships, with their aliases in `_Types`.
  private var modelNames: [String: String] {
    var names: [String: String] = [:]
    for relationship in relationships {
      names[relationship.target] = names[relationship.target] ?? relationship.property
      if let join = relationship.join { names[join] = names[join] ?? "\(relationship.property)__join" }
    }
    return names
  }

  /// Aliases for the types that the conformance of a nested model uses.
  var types: [DeclSyntax] {
    guard isNested else { return [] }
    let models = modelNames.sorted { $0.value < $1.value }.map { "typealias \($0.value.inCode) = \($0.key)" }
    return SpelledTypes.declaration(
      of: SpelledTypes.aliases(of: key.columns + columns) + models, "private ")
  }
}
