import SwiftSyntax
import SwiftSyntaxBuilder

/// The extension that makes a struct a `Table`.
extension TableDeclaration {
  func conformance(of type: some TypeSyntaxProtocol) throws -> ExtensionDeclSyntax {
    try ExtensionDeclSyntax(
      """
      extension \(type.trimmed): Stemma.Table {
        \(raw: access)static var modelName: String { "\(raw: name)" }
        \(raw: access)static let description = Stemma.ModelDescription(
          "\(raw: name)", table: \(raw: tableName.map { "\"\($0)\"" } ?? "nil")\(raw: options),
          key: [
            \(raw: Self.lines(key.columns.map(\.description), 6))
          ],
          columns: [
            \(raw: Self.lines(columns.map(\.description), 6))
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

  /// Everything is read before anything is stored, and a memberwise initialiser stores it: one that stores and can throw
  /// would make the value in one place and copy it to another. Columns are numbered: key parts, then the others, then
  /// `_state`.
  private var reading: [String] {
    var values: [String: String] = [:]
    if let selection = key.selection {
      values[key.property] = Self.construction(selection, key.columns, 0)
    } else {
      values[key.property] = key.columns[0].reading(0)
    }
    var number = key.columns.count
    for stored in stored {
      switch stored {
      case .column(let column): values[column.property] = column.reading(number)
      case .group(let group):
        values[group.property] = Self.construction(group.selection, group.columns, number)
      }
      number += stored.columns.count
    }
    values["_record"] = "try row.record(\(number)\(untracked.isEmpty ? "" : ", untracked: \(untracked)"))"
    // As the memberwise initialiser takes them.
    let properties = declared.map(\.property) + ["_record"]
    let arguments = properties.enumerated().map { "\($1.asLabel): value\($0)" }.joined(separator: ", ")
    return properties.enumerated().map { "let value\($0) = \(values[$1] ?? "")" }
      + ["self.init(\(arguments))"]
  }

  private static func construction(_ type: String, _ columns: [Column], _ first: Int) -> String {
    let parts = columns.enumerated().map { "\($1.property): \($1.reading(first + $0))" }
    return "\(type)(\(parts.joined(separator: ", ")))"
  }

  private var writing: [String] {
    ["self.primaryKey.write(to: &record)"] + columns.map { $0.writing($0.path) }
  }

  /// What the model says of itself beside its columns.
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
      let target = "\(relationship.target).self"
      let head = ".\(relationship.kind.caseName)(\"\(relationship.property)\""
      switch relationship.kind {
      case .belongsTo:
        return "\(head), \(target), fields: [\(fields)], isRequired: \(!relationship.isOptional)),"
      case .hasMany, .hasOne:
        let rule = relationship.deleteRule.map { ", onDelete: .\($0)" } ?? ""
        let parts = relationship.fields.map { field in "$0.\(field)" }
        let reference = parts.count == 1 ? parts[0] : "(\(parts.joined(separator: ", ")))"
        return "\(head), of: Self.self, \(target), fields: [\(fields)]\(rule)) { \(reference) },"
      case .manyToMany:
        let by = relationship.joinRelationship.map { ", by: \"\($0)\"" } ?? ""
        return "\(head), \(target), through: \(relationship.join ?? "").self\(by)),"
      }
    }
  }
}
