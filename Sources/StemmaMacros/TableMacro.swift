import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@Table`.
struct TableMacro {}

extension TableMacro: MemberMacro {
  static func expansion(
    of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    let table = try TableDeclaration(node, declaration)
    return ["\(raw: table.access)var _record: Stemma.RecordHandle = Stemma.RecordHandle()"]
      + [DraftExpansion(table: table).declaration, table.columnsDeclaration, table.relationshipsDeclaration]
      + table.setters
  }
}

extension TableMacro: ExtensionMacro {
  static func expansion(
    of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
    providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    let table: TableDeclaration
    // The member role of the same attribute has said what is wrong.
    do { table = try TableDeclaration(node, declaration) } catch { return [] }
    return [try table.conformance(of: type)]
  }
}

/// An attribute that `@Table` reads, and that makes nothing by itself.
struct MarkerMacro: PeerMacro {
  static func expansion(
    of node: AttributeSyntax, providingPeersOf declaration: some DeclSyntaxProtocol,
    in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] { [] }
}

extension TableDeclaration {
  /// Lines of generated code.
  static func lines(_ lines: [String], _ indentation: Int) -> String {
    lines.joined(separator: "\n" + String(repeating: " ", count: indentation))
  }

  var columnsDeclaration: DeclSyntax {
    let columns = (key.columns + self.columns).map {
      "\(access)let \($0.property) = Stemma.TableColumn<\(name), \($0.type)>(\"\($0.name)\")"
    }
    return """
      \(raw: access)struct Columns: Sendable {
        \(raw: Self.lines(columns + ["\(access)init() {}"], 2))
      }
      """
  }

  var relationshipsDeclaration: DeclSyntax {
    let paths = relationships.map {
      "\(access)let \($0.property) = Stemma.RelationshipPath<\(name), \($0.target), \($0.value)>(\"\($0.property)\")"
    }
    return """
      \(raw: access)struct Relationships: Sendable {
        \(raw: Self.lines(paths + ["\(access)init() {}"], 2))
      }
      """
  }

  /// `setTeam(_:)` for each reference whose fields can be set.
  var setters: [DeclSyntax] {
    relationships.filter { $0.kind == .belongsTo }.compactMap { relationship in
      let fields = relationship.fields.compactMap { column(ofProperty: $0) }
      guard fields.count == relationship.fields.count, fields.allSatisfy(\.isVariable) else { return nil }
      let name = relationship.property
      let title = name.prefix(1).uppercased() + name.dropFirst()
      let assignments = relationship.assignments(from: name)
      return """
        \(raw: access)mutating func set\(raw: title)(_ \(raw: name): \(raw: relationship.parameterType)) {
          \(raw: Self.lines(assignments, 2))
        }
        """
    }
  }

  func conformance(of type: some TypeSyntaxProtocol) throws -> ExtensionDeclSyntax {
    let all = key.columns + columns
    var reading: [String] = []
    if let selection = key.selection {
      let parts = key.columns.enumerated().map { "\($1.property): try \($1.typeExpression).read(row, \($0))" }
      reading.append("self.\(key.property) = \(selection)(\(parts.joined(separator: ", ")))")
    } else {
      reading.append("self.\(key.property) = try \(key.columns[0].typeExpression).read(row, 0)")
    }
    for (index, column) in columns.enumerated() {
      reading.append(
        "self.\(column.property) = try \(column.typeExpression).read(row, \(key.columns.count + index))")
    }
    reading.append("self._record = try row.record(\(all.count))")
    let writing =
      ["self.primaryKey.write(to: &record)"] + columns.map { "record.value(self.\($0.property))" }
    let described = relationships.map { relationship in
      let fields = relationship.fields.map { "\"\($0)\"" }.joined(separator: ", ")
      let kind = relationship.kind.rawValue.prefix(1).lowercased() + relationship.kind.rawValue.dropFirst()
      let required = relationship.kind == .belongsTo ? ", isRequired: \(!relationship.isOptional)" : ""
      return
        ".\(kind)(\"\(relationship.property)\", \(relationship.target).self, fields: [\(fields)]\(required)),"
    }
    return try ExtensionDeclSyntax(
      """
      extension \(type.trimmed): Stemma.Table {
        \(raw: access)static var modelName: String { "\(raw: name)" }
        \(raw: access)static let columns = Columns()
        \(raw: access)static let relationships = Relationships()
        \(raw: access)static let description = Stemma.ModelDescription(
          "\(raw: name)", table: \(raw: tableName.map { "\"\($0)\"" } ?? "nil"),
          key: [
            \(raw: Self.lines(key.columns.map(\.description), 6))
          ],
          columns: [
            \(raw: Self.lines(columns.map(\.description), 6))
          ],
          relationships: [
            \(raw: Self.lines(described, 6))
          ])
        \(raw: access)var primaryKey: \(raw: key.selection ?? key.columns[0].type) { self.\(raw: key.property) }
        \(raw: access)init(_ row: Stemma.RowReader) throws(Stemma.StoreError) {
          \(raw: Self.lines(reading, 4))
        }
        \(raw: access)func write(to record: inout Stemma.RecordWriter) {
          \(raw: Self.lines(writing, 4))
        }
      }
      """)
  }
}

extension TableDeclaration.Column {
  /// The type where an expression is expected.
  var typeExpression: String { type.hasSuffix("?") ? "(\(type))" : type }

  /// An element of the model's description.
  var description: String {
    let isLiteral = ["Bool", "Int", "Double", "String"].contains(type)
    let literal =
      isLiteral ? defaultValue.flatMap { $0.contains("\"") ? nil : ", defaultValue: \"\\\"\($0)\\\"\"" } : nil
    return ".init(\"\(name)\", \(typeExpression).columnType\(literal ?? "")),"
  }
}

extension TableDeclaration.Relationship {
  /// The type of a record that is given for the relationship.
  var parameterType: String { isOptional ? "\(target)?" : target }

  /// Sets the reference fields from the record of that name.
  func assignments(from record: String) -> [String] {
    let parts = "\(record)\(isOptional ? "?" : "").primaryKey.parts"
    return fields.enumerated().map { index, field in
      "self.\(field) = \(parts)\(fields.count == 1 ? "" : ".\(index)")"
    }
  }
}
