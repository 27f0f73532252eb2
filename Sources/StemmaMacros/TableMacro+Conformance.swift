import SwiftSyntax
import SwiftSyntaxBuilder

/// The extension that makes a struct a `Table`.
extension TableDeclaration {
  func conformance(of type: some TypeSyntaxProtocol) throws -> ExtensionDeclSyntax {
    try ExtensionDeclSyntax(
      """
      extension \(type.trimmed): Stemma.Table {
        \(raw: access)static var modelName: String { "\(raw: modelName)" }
        \(raw: access)static let description = Stemma.ModelDescription(
          "\(raw: modelName)", table: \(raw: tableName.map { "\"\($0)\"" } ?? "nil")\(raw: options),
          key: [
            \(raw: Self.lines(key.columns.map(outside).map(\.description), 6))
          ],
          columns: [
            \(raw: Self.lines(columns.map(outside).map(\.description), 6))
          ],
          relationships: [
            \(raw: Self.lines(relationshipDescriptions, 6))
          ])
        \(raw: access)init(_ row: Stemma.RowReader) throws(Stemma.StoreError) {
          \(raw: Self.lines(reading, 4))
        }
        \(raw: access)func write(to record: inout Stemma.RecordWriter) {
          \(raw: Self.lines(writing, 4))
        }
      }
      """)
  }

  /// Whether the key is an `id` for Swift's `Identifiable`. Any other nested type `ID` would be
  /// taken for the key's type.
  var isIdentifiable: Bool { key.property == "id" && (members["ID"] == nil || key.type == "ID") }

  /// All values are read first, and a memberwise initializer stores them. An initializer that
  /// stores and throws would build the value in one place and copy it to another. Columns are
  /// numbered: key parts, then the others, then `_state`.
  private var reading: [String] {
    var values: [String: String] = [:]
    if let selection = key.selection {
      values[key.property] = construction(selection, key.columns, 0)
    } else {
      values[key.property] = outside(key.columns[0]).reading(0)
    }
    var number = key.columns.count
    for stored in stored {
      switch stored {
      case .column(let column):
        values[column.property] = outside(column).readingOfTable(number)
      case .group(let group):
        values[group.property] = construction(group.selection, group.columns, number)
      }
      number += stored.columns.count
    }
    values["_record"] = "try row.record(\(number))"
    // In the order of the memberwise initializer.
    let properties = declared.map(\.property) + ["_record"]
    let arguments = properties.enumerated().map { "\($1.asLabel): value\($0)" }.joined(separator: ", ")
    return properties.enumerated().map { "let value\($0) = \(values[$1] ?? "")" }
      + ["self.init(\(arguments))"]
  }

  private func construction(_ type: String, _ columns: [Column], _ first: Int) -> String {
    let parts = columns.enumerated().map {
      "\($1.property.asLabel): \(outside($1).readingOfTable(first + $0))"
    }
    return "\(type)(\(parts.joined(separator: ", ")))"
  }

  private var writing: [String] {
    [
      key.selection == nil
        ? "record.key(self.\(key.property.inCode))" : "self.\(key.property.inCode).write(to: &record)"
    ]
      + stored.flatMap { stored in
        stored.columns.map { outside($0).writing($0.pathInCode, isChecked: !stored.isTracked) }
      }
  }

  /// The model's description without columns and relationships.
  private var options: String {
    var options = policies
    if let partition {
      options.append("partition: [\(partition.map { "\"\($0)\"" }.joined(separator: ", "))]")
    }
    if !indexes.isEmpty {
      let indexes = indexes.map { index in
        let fields = index.fields.map { "\"\($0)\"" }.joined(separator: ", ")
        return ".init([\(fields)]\(index.name.map { ", name: \"\($0)\"" } ?? ""))"
      }
      options.append("indexes: [\(indexes.joined(separator: ", "))]")
    }
    return options.map { ", \($0)" }.joined()
  }

  private var relationshipDescriptions: [String] {
    relationships.map { relationship in
      let fields = relationship.fields.map { "\"\($0)\"" }.joined(separator: ", ")
      let target = "\(outside(relationship.target)).self"
      let head = ".\(relationship.kind.caseName)(\"\(relationship.property)\""
      switch relationship.kind {
      case .belongsTo:
        return "\(head), \(target), fields: [\(fields)], isRequired: \(!relationship.isOptional)),"
      case .hasMany, .hasOne:
        let rule = relationship.deleteRule.map { ", onDelete: .\($0)" } ?? ""
        return "\(head), \(target), fields: [\(fields)]\(rule)),"
      case .manyToMany:
        let by = relationship.joinRelationship.map { ", by: \"\($0)\"" } ?? ""
        return "\(head), \(target), through: \(relationship.join.map(outside) ?? "").self\(by)),"
      }
    }
  }
}

/// The substitute for a conformance that cannot be generated.
extension TableDeclaration {
  /// A conformance with the key only, so that references to this declaration cause no further
  /// errors. None if it would clash with declared members.
  static func refused(
    _ declaration: some DeclGroupSyntax, _ type: some TypeSyntaxProtocol
  ) throws -> [ExtensionDeclSyntax] {
    guard let declaration = declaration.as(StructDeclSyntax.self), declaration.genericParameterClause == nil
    else {
      return []
    }
    let written: Set = ["Draft", "Columns", "Relationships", "PrimaryKey", "primaryKey", "_record"]
    let reserved = ["Draft", "Columns", "Relationships", "PrimaryKey", "Stemma"]
    guard MemberReader.declaredNames(declaration).isDisjoint(with: written),
      !reserved.contains(declaration.name.text)
    else { return [] }
    var misuses = Misuses()
    var reader = MemberReader(declaration)
    try reader.read(&misuses)
    let found = reader.key(&misuses)
    let isKey =
      !found.columns.isEmpty && !found.type.isOptionalType
      && !(found.selection.flatMap { reader.selections[$0] }.map(MemberReader.declaredNames) ?? [])
        .contains(where: SelectionMacro.keyMembers.contains)
      && !reader.stored.contains { $0.property == found.property && declaration.isHidden($0) }
      && !misuses.diagnostics.contains {
        let id = ($0.diagMessage as? Misuse)?.id
        return ["hashableKey", "keyType", "optionalKey", "representedKey"].contains(id)
          || id == "plainNested" && !SpelledTypes.isCommon(found.type)
      }
    let key = isKey ? found.type : "UUID"
    let access = declaration.modifiers.accessPrefix
    return [
      try ExtensionDeclSyntax(
        """
        extension \(type.trimmed): Stemma.Table, Stemma.RefusedTable {
          \(raw: access)typealias PrimaryKey = \(raw: key)
          \(raw: access)typealias Columns = Stemma.RefusedMembers
          \(raw: access)typealias Relationships = Stemma.RefusedMembers
          \(raw: access)struct Draft: Stemma.TableDraft {
            \(raw: access)typealias Row = \(type.trimmed)
            \(raw: access)init(_ row: \(type.trimmed)) {}
            \(raw: access)func write(to record: inout Stemma.RecordWriter) {}
          }
        }
        """)
    ]
  }
}
