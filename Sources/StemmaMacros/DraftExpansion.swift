import SwiftSyntax
import SwiftSyntaxBuilder

/// The nested `Draft`: the table's stored properties, with the parts of a nested key instead of it.
struct DraftExpansion {
  let table: TableDeclaration

  /// A property of the draft.
  private struct Field {
    var name: String
    var type: String
    var defaultValue: String?
    /// The property's path in a row.
    var source: String
    /// Its visibility, as a prefix.
    var access: String
    /// The statements that write it.
    var writing: [String]

    var parameter: String { "\(name.inCode): \(type)\(defaultValue.map { " = \($0)" } ?? "")" }
    var assignment: String { "self.\(name.inCode) = \(name.inCode)" }
  }

  /// A key part named `id` can be absent, and is minted then. For a type that may be an alias of a
  /// mintable one, the compiler decides when a draft omits the part.
  private func keyField(_ part: TableDeclaration.Column) -> Field {
    let owner = table.name + (table.key.selection.map { ".\($0)" } ?? "")
    var type = part.type
    var value = TableDeclaration.Stored.column(part).parameterDefault(owner, table.access)
    let short = SpelledTypes.short(type)
    if part.name == "id", ["UUID", "Int", "String", "String.ID"].contains(short) {
      (type, value) = ("\(type)?", "nil")
    } else if part.name == "id", value == nil, !SpelledTypes.isCommon(short),
      !type.contains(where: { "[<?(".contains($0) })
    {
      (type, value) = ("\(type).DraftPart", "#_minted")
    }
    return Field(
      name: part.property, type: type, defaultValue: value, source: part.pathInCode, access: table.access,
      writing: ["record.key(self.\(part.property.inCode))"])
  }

  private func field(_ stored: TableDeclaration.Stored) -> Field {
    let value = stored.parameterDefault(table.name, table.access)
    switch stored {
    case .group(let group):
      return Field(
        name: group.property, type: group.selection, defaultValue: value,
        source: group.property.inCode, access: stored.access(table.access),
        writing: group.columns.map { $0.writing($0.pathInCode) })
    case .column(let column):
      // Values that the node maintains can be absent, too.
      let type = column.isMaintained && !column.isOptional ? "\(column.type)?" : column.type
      return Field(
        name: column.property, type: type,
        defaultValue: value ?? (type.isOptionalType ? "nil" : nil),
        source: column.property.inCode, access: stored.access(table.access),
        writing: [column.writing(column.property.inCode)])
    }
  }

  /// The table's protocols that a draft has, too.
  private var conformances: String {
    let inherited = table.declaration.inheritanceClause?.inheritedTypes.map(\.type.trimmedDescription) ?? []
    let copied = inherited.filter {
      ["Equatable", "Hashable", "Codable", "Encodable", "Decodable"].contains($0)
    }
    return (["Stemma.TableDraft"] + copied).joined(separator: ", ")
  }

  var declaration: DeclSyntax {
    let access = table.access
    let key = table.key.columns.map(keyField)
    let others = table.stored.map(field)
    let fields = key + others
    return """
      \(raw: access)struct Draft: \(raw: conformances) {
        \(raw: TableDeclaration.lines(fields.map { "\($0.access)var \($0.name.inCode): \($0.type)" }, 2))
        \(raw: fields.map(\.access).narrowest(access))init(\(raw: fields.map(\.parameter).joined(separator: ", "))) {
          \(raw: TableDeclaration.lines(fields.map(\.assignment), 4))
        }
        \(raw: keyed(key, others))\(raw: related(fields))\(raw: relatedByKey(fields))\(raw: access)init(_ row: \(raw: table.name)) {
          \(raw: TableDeclaration.lines(fields.map { "self.\($0.name.inCode) = row.\($0.source)" }, 4))
        }
        \(raw: access)func write(to record: inout Stemma.RecordWriter) {
          \(raw: TableDeclaration.lines(fields.flatMap(\.writing), 4))
        }
      }
      """
  }

  /// The initializer with a nested key as a whole.
  private func keyed(_ key: [Field], _ others: [Field]) -> String {
    guard let selection = table.key.selection else { return "" }
    let parameters = ["\(table.key.property.inCode): \(selection)"] + others.map(\.parameter)
    let assignments = key.map { "self.\($0.name.inCode) = \($0.source)" } + others.map(\.assignment)
    return initializer("", others.map(\.access), parameters, assignments)
  }

  /// The initializer with related records instead of reference fields. Disfavored, because a call
  /// without records fits both.
  ///
  /// References that share a field must agree on it, as must an optional one and the key; otherwise
  /// it throws.
  private func related(_ fields: [Field]) -> String {
    related(fields, table.relationships.filter { $0.kind == .belongsTo })
  }

  /// The same if an optional relationship shares parts with the key: its record gives these parts.
  private func relatedByKey(_ fields: [Field]) -> String {
    let keyParts = Set(table.key.columns.map(\.property))
    let parents = table.relationships.filter { $0.kind == .belongsTo }
    let sharing = parents.filter { $0.isOptional && !keyParts.isDisjoint(with: $0.fields) }
    guard sharing.count == 1, let shared = sharing.first else { return "" }
    // A reference of key parts only always has a record.
    guard !keyParts.isSuperset(of: shared.fields) else { return "" }
    return related(
      fields,
      parents.map { parent in
        var parent = parent
        if parent.property == shared.property { parent.isOptional = false }
        return parent
      })
  }

  private func related(_ fields: [Field], _ parents: [TableDeclaration.Relationship]) -> String {
    guard !parents.isEmpty else { return "" }
    let keyParts = Set(table.key.columns.map(\.property))
    // A key part is always required, so only a required record can give it.
    var source: [String: String] = [:]
    var assignments: [String] = []
    var checks: [String] = []
    for parent in parents.sorted(by: { !$0.isOptional && $1.isOptional }) {
      for (index, field) in parent.fields.enumerated() {
        let part = parent.part(index)
        if source[field] == nil, !(parent.isOptional && keyParts.contains(field)) {
          source[field] = part
          assignments.append("self.\(field.inCode) = \(part)")
        } else {
          let other = source[field] ?? field.inCode
          checks += check(parent, part, other, field)
        }
      }
    }
    let free = fields.filter { source[$0.name] == nil }
    let parameters =
      free.map(\.parameter)
      + parents.map { "\($0.property.inCode): \($0.parameterType)\($0.isOptional ? " = nil" : "")" }
    return initializer(
      "@_disfavoredOverload\n  ", (free.map(\.access) + parents.map { $0.access(table.access) }), parameters,
      parents.map { table.parts(of: $0) } + checks + free.map(\.assignment) + assignments,
      throwing: !checks.isEmpty)
  }

  /// Lines that throw if a given record contradicts another value of a field.
  private func check(
    _ parent: TableDeclaration.Relationship, _ part: String, _ other: String, _ field: String
  ) -> [String] {
    let given = parent.isOptional ? "\(parent.property.inCode) != nil, " : ""
    return [
      "if \(given)\(part) != \(other) {",
      "  throw .fixedReference(model: \(table.name).modelName, relationship: \"\(parent.property)\", field: \"\(field)\")",
      "}",
    ]
  }

  private func initializer(
    _ attributes: String, _ access: [String], _ parameters: [String], _ body: [String], throwing: Bool = false
  ) -> String {
    """
    \(attributes)\(access.narrowest(table.access))init(\(parameters.joined(separator: ", ")))\(throwing ? " throws(Stemma.StoreError)" : "") {
        \(TableDeclaration.lines(body, 4))
      }

    """ + "  "
  }
}
