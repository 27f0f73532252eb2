import SwiftDiagnostics
import SwiftSyntax

/// Compares a relationship's fields with the key they refer to, as far as one declaration shows it.
/// The compiler compares the rest in the expansion of the relationship's attribute.
extension TableDeclaration {
  /// The key path of a reference field must begin at the model that has the field.
  func checkRoots(_ relationship: Relationship, _ misuses: inout Misuses) {
    let owner = relationship.kind == .belongsTo ? name : relationship.target
    for argument in relationship.attribute.unlabelled {
      guard let path = argument.as(KeyPathExprSyntax.self), let root = path.root,
        let field = argument.fieldName,
        root.lastName != owner.lastName
      else { continue }
      misuses.add(
        "foreignField",
        "the reference fields of `\(relationship.property)` are fields of \(owner), not of \(root.trimmedDescription)",
        at: relationship.attribute,
        fix: .replace(
          "write `\\\(owner).\(field)`", argument, by: ExprSyntax(stringLiteral: "\\\(owner).\(field)")))
    }
  }

  /// A field of this model must be a property or a key part, because a group's property has another
  /// path in a record.
  ///
  /// - Returns: whether each is.
  func checkGroups(_ relationship: Relationship, _ misuses: inout Misuses) -> Bool {
    guard relationship.kind == .belongsTo || relationship.target == name else { return true }
    var areOwn = true
    for field in relationship.fields {
      guard let column = column(ofProperty: field), column.group != nil,
        !key.columns.contains(where: { $0.property == field }),
        let group = stored.first(where: { $0.columns.contains { $0.path == column.path } })
      else { continue }
      misuses.add(
        "fieldInGroup",
        "`\(field)` belongs to the group `\(group.property)`; a reference field is a property of "
          + "\(name) itself, or a part of its key", at: relationship.attribute)
      areOwn = false
    }
    return areOwn
  }

  /// Compares the fields with this model's key: their number, and for a model that refers to
  /// itself, their types and order.
  func checkKey(_ relationship: Relationship, _ misuses: inout Misuses) {
    guard !key.columns.isEmpty else { return }
    let parts = key.columns.map { "`\($0.property)`" }.joined(separator: ", ")
    guard relationship.fields.count == key.columns.count else {
      misuses.add(
        "fieldCount",
        "the key of \(name) has \(Self.counted(key.columns.count, "part")), \(parts), but the relationship "
          + "has \(Self.counted(relationship.fields.count, "reference field")) of \(relationship.target); "
          + "name one for each, in this order", at: relationship.attribute)
      return
    }
    guard relationship.target == name else { return }
    let fields = relationship.fields.compactMap { column(ofProperty: $0) }
    guard fields.count == relationship.fields.count else {
      for field in relationship.fields where column(ofProperty: field) == nil {
        addUnknown(field, relationship.attribute, besides: relationship.fields, &misuses)
      }
      return
    }
    let types = key.columns.map { SpelledTypes.short($0.type) }
    let known = zip(fields.map(\.wrappedType), types).allSatisfy {
      SpelledTypes.isCommon($0) && SpelledTypes.isCommon($1)
    }
    // Other types may have aliases; the compiler compares these.
    guard known, fields.map(\.wrappedType) != types else { return }
    misuses.add(
      "fieldTypes",
      "the key of \(name) is \(parts) of the types \(types.joined(separator: ", ")); the reference fields are of "
        + fields.map(\.wrappedType).joined(separator: ", "), at: relationship.attribute,
      fix: Self.reordered(relationship, fields, types))
  }

  private static func counted(_ count: Int, _ noun: String) -> String {
    "\(count) \(noun)\(count == 1 ? "" : "s")"
  }

  /// The order in which the fields have the types of the key, if there is one.
  private static func reordered(
    _ relationship: Relationship, _ fields: [Column], _ types: [String]
  ) -> FixIt? {
    var rest = Array(zip(fields, relationship.attribute.unlabelled))
    var ordered: [String] = []
    for type in types {
      guard let index = rest.firstIndex(where: { $0.0.wrappedType == type }) else { return nil }
      ordered.append(rest.remove(at: index).1.trimmedDescription)
    }
    return .replace(
      "write them in the key's order", relationship.attribute, by: relationship.attribute.naming(ordered))
  }
}

extension TableDeclaration.Column {
  fileprivate var wrappedType: String { SpelledTypes.plain(type).type }
}

extension TypeSyntax {
  fileprivate var lastName: String { trimmedDescription.lastName }
}

extension String {
  /// `Member` of `Team.Member`.
  fileprivate var lastName: String { split(separator: ".").last.map(String.init) ?? self }
}
