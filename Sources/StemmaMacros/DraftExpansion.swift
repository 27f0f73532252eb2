import SwiftSyntax
import SwiftSyntaxBuilder

/// The nested `Draft`: the table's columns, with a nested key's parts beside the others.
struct DraftExpansion {
  let table: TableDeclaration

  /// A column with the type that it has in a draft: a key part named `id` may be absent.
  private struct Field {
    var name: String
    var type: String
    var defaultValue: String?
    /// How a row spells it.
    var source: String
  }

  private var fields: [Field] {
    let key = table.key.columns.map { part in
      let source = table.key.selection == nil ? part.property : "\(table.key.property).\(part.property)"
      let isMinted = part.property == "id" && ["UUID", "Int", "String"].contains(part.type)
      return Field(
        name: part.property, type: isMinted ? "\(part.type)?" : part.type,
        defaultValue: isMinted ? "nil" : part.defaultValue, source: source)
    }
    let others = table.columns.map {
      Field(
        name: $0.property, type: $0.type, defaultValue: $0.defaultValue ?? ($0.isOptional ? "nil" : nil),
        source: $0.property)
    }
    return key + others
  }

  private func parameter(_ field: Field) -> String {
    "\(field.name): \(field.type)\(field.defaultValue.map { " = \($0)" } ?? "")"
  }

  var declaration: DeclSyntax {
    let access = table.access
    let fields = self.fields
    let key = fields.prefix(table.key.columns.count)
    let properties = fields.map { "\(access)var \($0.name): \($0.type)" }
    let plain = fields.map { "self.\($0.name) = \($0.name)" }
    let copied = fields.map { "self.\($0.name) = row.\($0.source)" }
    let written =
      key.map { "record.key(self.\($0.name))" }
      + fields.dropFirst(key.count).map { "record.value(self.\($0.name))" }
    return """
      \(raw: access)struct Draft: Stemma.TableDraft {
        \(raw: TableDeclaration.lines(properties, 2))
        \(raw: access)init(\(raw: fields.map(parameter).joined(separator: ", "))) {
          \(raw: TableDeclaration.lines(plain, 4))
        }
        \(raw: related)\(raw: access)init(_ row: \(raw: table.name)) {
          \(raw: TableDeclaration.lines(copied, 4))
        }
        \(raw: access)func write(to record: inout Stemma.RecordWriter) {
          \(raw: TableDeclaration.lines(written, 4))
        }
      }
      """
  }

  /// The initialiser that takes related records in the place of reference fields. Disfavoured, because without any
  /// of them both fit.
  private var related: String {
    let parents = table.relationships.filter { $0.kind == .belongsTo }
    guard !parents.isEmpty else { return "" }
    let referenceFields = Set(parents.flatMap(\.fields))
    let free = fields.filter { !referenceFields.contains($0.name) }
    let parameters =
      free.map(parameter)
      + parents.map { "\($0.property): \($0.parameterType)\($0.isOptional ? " = nil" : "")" }
    let assignments =
      free.map { "self.\($0.name) = \($0.name)" } + parents.flatMap { $0.assignments(from: $0.property) }
    return """
      @_disfavoredOverload
        \(table.access)init(\(parameters.joined(separator: ", "))) {
          \(TableDeclaration.lines(assignments, 4))
        }

      """ + "  "
  }
}
