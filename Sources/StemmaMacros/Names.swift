import SwiftDiagnostics
import SwiftSyntax

/// The names that a schema allows. The schema reader (`SchemaReader+Names`) checks them when a
/// store opens; the macros check them where they are written.
enum Names {
  private static let limit = 255

  /// Letters of ASCII, digits and `_`, a letter first.
  static func isPlain(_ name: String) -> Bool {
    guard let first = name.utf8.first, isLetter(first), name.utf8.count <= limit else { return false }
    return name.utf8.allSatisfy { isLetter($0) || (48...57).contains($0) || $0 == 95 }
  }

  /// Tables with the prefix `sqlite_` are SQLite's own.
  static func isTable(_ name: String) -> Bool {
    isPlain(name) && !name.lowercased().hasPrefix("sqlite_")
  }

  /// Names that no property can have, with the reasons.
  static let takenProperties = [
    "self": "every value has a member `self`",
    "Stemma": "`Stemma` is the library in what the macro writes",
  ]

  private static func isLetter(_ byte: UInt8) -> Bool {
    (65...90).contains(byte) || (97...122).contains(byte)
  }

  /// The rule that messages give after an invalid name.
  static let rule = "a name is made of A-Z, a-z, 0-9 and _, begins with a letter, and has at most 255 of them"
}

extension TableDeclaration {
  /// Reports names that a schema refuses, and columns of one name.
  func checkNames(_ node: AttributeSyntax, _ misuses: inout Misuses) {
    if !Names.isPlain(modelName) {
      if modelName == name.withoutTicks {
        misuses.add("name", "`\(name)` cannot name a model: \(Names.rule)", at: declaration.name)
      } else {
        misuses.add("name", "`\(modelName)` cannot name a model: \(Names.rule)", at: node)
      }
    }
    if let tableName, !Names.isTable(tableName) {
      misuses.add(
        "name", "`\(tableName)` cannot name a table: \(Names.rule); `sqlite_` is SQLite's own",
        at: node)
    }
    for column in key.columns + columns { checkName(of: column, &misuses) }
    for relationship in relationships {
      guard let binding = relationship.variable.bindings.first else { continue }
      Self.checkTaken(relationship.property, binding.pattern, column: false, &misuses)
    }
    for relationship in relationships where !Names.isPlain(relationship.property) {
      guard let binding = relationship.variable.bindings.first else { continue }
      misuses.add(
        "name", "`\(relationship.property)` cannot name a relationship: \(Names.rule)", at: binding.pattern)
    }
    for index in indexes {
      guard let name = index.name, !Names.isPlain(name) else { continue }
      misuses.add("name", "`\(name)` cannot name an index: \(Names.rule)", at: index.attribute)
    }
    checkDifferent(&misuses)
  }

  /// Reports taken names: `value.self`, for example, is always the value.
  static func checkTaken(
    _ property: String, _ place: some SyntaxProtocol, column: Bool, _ misuses: inout Misuses
  ) {
    guard let reason = Names.takenProperties[property] else { return }
    let advice = column ? ", and its column with @Column(\"\(property)\")" : ""
    misuses.add("name", "\(reason); call this one otherwise\(advice)", at: place)
  }

  private func checkName(of column: Column, _ misuses: inout Misuses) {
    // A group reports its own.
    if column.group == nil {
      let isNamed = column.name == column.property
      Self.checkTaken(column.property, column.place, column: isNamed, &misuses)
    }
    guard !Names.isPlain(column.name) else { return }
    // At the attribute with the name: the compiler has no places inside of attributes.
    let attribute = column.variable.attributes.named("Column")
    let message = "`\(column.name)` cannot name a column: \(Names.rule)"
    if let attribute, column.name != column.property {
      misuses.add("name", message, at: attribute)
    } else {
      misuses.add(
        "name", message, at: column.place, fix: attribute == nil ? Self.naming(column.variable) : nil)
    }
  }

  private static func naming(_ variable: VariableDeclSyntax) -> FixIt {
    var plain = variable
    plain.leadingTrivia = []
    plain.trailingTrivia = []
    return .replace(
      "name the column", variable, by: DeclSyntax(stringLiteral: "@Column(\"<#name#>\") \(plain)"))
  }

  /// Reports columns and relationships of one name; SQLite ignores the case of ASCII letters.
  private func checkDifferent(_ misuses: inout Misuses) {
    var seen: [String: Column] = [:]
    for column in key.columns + columns {
      if let other = seen[column.name.lowercased()] {
        misuses.add(
          "sameName", "`\(column.path)` and `\(other.path)` would be one column, `\(column.name)`",
          at: column.place)
      }
      seen[column.name.lowercased()] = column
    }
    var others: [String: Relationship] = [:]
    for relationship in relationships {
      let name = relationship.property.lowercased()
      if let column = seen[name] {
        misuses.add(
          "sameName",
          "the relationship `\(relationship.property)` and the column `\(column.name)` of `\(column.path)` have one "
            + "name; call one of them otherwise",
          at: column.naming ?? Syntax(relationship.place))
      } else if let other = others[name], !relationship.hasSetter(of: other) {
        misuses.add(
          "sameName",
          "the relationships `\(relationship.property)` and `\(other.property)` differ only in case; "
            + "call one of them otherwise", at: relationship.place)
      }
      others[name] = relationship
    }
    checkParts(&misuses)
  }

  /// The parts of a nested key are members of the record, and of its draft, by their own names.
  private func checkParts(_ misuses: inout Misuses) {
    guard key.selection != nil else { return }
    let parts = Dictionary(key.columns.map { ($0.property, $0) }) { first, _ in first }
    let others =
      stored.map { ($0.property, $0.variable?.bindings, $0.columns.map(\.name)) }
      + relationships.map { ($0.property, $0.place, [$0.property]) }
    for (property, place, names) in others {
      // Properties that would be one column are reported already.
      guard let place, let part = parts[property],
        !names.contains(where: { $0.lowercased() == part.name.lowercased() })
      else { continue }
      misuses.add("clash", "`\(property)` is a part of the key already; call this one otherwise", at: place)
    }
  }
}

extension TableDeclaration.Column {
  /// The attribute that names it, if any.
  fileprivate var naming: Syntax? {
    let attribute = variable.attributes.named("Column")
    return attribute.flatMap { $0.unlabelled.isEmpty ? nil : Syntax($0) }
  }
}

extension TableDeclaration.Relationship {
  /// Whether both would have the same setter, which is reported instead.
  fileprivate func hasSetter(of other: Self) -> Bool {
    [kind, other.kind] == [.belongsTo, .belongsTo] && setterName == other.setterName
  }

  /// Its name and type.
  fileprivate var place: PatternBindingListSyntax { variable.bindings }
}
