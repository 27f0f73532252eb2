import SwiftDiagnostics
import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

struct TableMacro {}

extension TableMacro: MemberMacro {
  static func expansion(
    of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    try TableDeclaration.checkPlace(node, declaration, context.lexicalContext)
    let record: DeclSyntax =
      "\(raw: declaration.modifiers.accessPrefix)var _record: Stemma.RecordHandle = Stemma.RecordHandle()"
    let table: TableDeclaration
    do {
      table = try TableDeclaration(node, declaration, isNested: !context.lexicalContext.isEmpty)
    } catch let refusal as Refusal {
      // With `_record`, the code of other macros has no further errors.
      for misuse in refusal.diagnostics { context.diagnose(misuse) }
      return MemberReader.declaredNames(declaration).contains("_record") ? [] : [record]
    }
    for warning in table.warnings { context.diagnose(warning) }
    return [record]
      + table.types + table.initializers + table.parts
      + TableDeclaration.Stored.keptDefaults(table.declared, table.access)
      + [DraftExpansion(table: table).declaration, table.columnsDeclaration, table.relationshipsDeclaration]
      + table.keyForwarders + table.setters
  }
}

extension TableMacro: ExtensionMacro {
  static func expansion(
    of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
    providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    // The member role of the same attribute reports the errors.
    do { try TableDeclaration.checkPlace(node, declaration, context.lexicalContext) } catch { return [] }
    let table: TableDeclaration
    do {
      table = try TableDeclaration(node, declaration, isNested: !context.lexicalContext.isEmpty)
    } catch { return try TableDeclaration.refused(declaration, type) }
    let conformance = try table.conformance(of: type)
    // Only if it is not declared already.
    let isMissing = protocols.contains { $0.trimmedDescription.split(separator: ".").last == "Identifiable" }
    guard isMissing, table.isIdentifiable else { return [conformance] }
    return [conformance, try ExtensionDeclSyntax("extension \(type.trimmed): Swift.Identifiable {}")]
  }
}

/// `#_minted`: a draft's placeholder for an omitted key part.
struct MintedMacro: ExpressionMacro {
  static func expansion(
    of node: some FreestandingMacroExpansionSyntax, in context: some MacroExpansionContext
  ) throws -> ExprSyntax { "Stemma.MintedPart.absent()" }
}

extension TableDeclaration {
  static func lines(_ lines: [String], _ indentation: Int) -> String {
    lines.joined(separator: "\n" + String(repeating: " ", count: indentation))
  }

  /// Members with the model's own types. In the extension, outside of the type, they could be more
  /// visible than these types.
  var parts: [DeclSyntax] {
    var parts: [DeclSyntax] = [
      "\(raw: access)static let columns = Columns()",
      "\(raw: access)static let relationships = Relationships()",
    ]
    if key.property != "primaryKey" {
      parts.append("\(raw: access)var primaryKey: \(raw: key.type) { self.\(raw: key.property.inCode) }")
    }
    return parts
  }

  /// Initializers where Swift's memberwise one is missing or hidden: one for users of the type, one
  /// for reading rows. Swift's own is internal at most, and disappears when there is another.
  var initializers: [DeclSyntax] {
    let hasOwn = members["init"] != nil
    if access.isEmpty, !hasOwn { return [] }
    let keyed: Stored =
      key.selection.map {
        .group(
          Group(
            property: key.property, selection: $0, columns: key.columns, defaultValue: nil, isVariable: false)
        )
      } ?? .column(key.columns[0])
    return (hasOwn ? [] : [Self.memberwise(of: name, access, [keyed] + stored)]) + [readingInitializer]
  }

  private var readingInitializer: DeclSyntax {
    let parameters = declared.map { "\($0.property.inCode): \($0.type)" } + ["_record: Stemma.RecordHandle"]
    let names = declared.map(\.property.inCode) + ["_record"]
    return """
      fileprivate init(\(raw: parameters.joined(separator: ", "))) {
        \(raw: Self.lines(names.map { "self.\($0) = \($0)" }, 2))
      }
      """
  }

  static func memberwise(of owner: String, _ access: String, _ stored: [Stored]) -> DeclSyntax {
    let parameters = stored.map { stored -> String in
      let standard =
        stored.parameterDefault(owner, access)
        ?? (stored.type.isOptionalType && stored.isTracked ? "nil" : nil)
      return "\(stored.property.inCode): \(stored.type)\(standard.map { " = \($0)" } ?? "")"
    }
    return """
      \(raw: stored.map { $0.access(access) }.narrowest(access))init(\(raw: parameters.joined(separator: ", "))) {
        \(raw: lines(stored.map { "self.\($0.property.inCode) = \($0.property.inCode)" }, 2))
      }
      """
  }

  var columnsDeclaration: DeclSyntax {
    // The key has its own name, even if a part has the same one.
    let parts = key.columns.filter { key.selection == nil || $0.property != key.property }
    var lines = (parts + columns.filter { $0.group == nil }).map { declaration(of: $0) }
    var groups = stored.compactMap { stored -> Group? in
      if case .group(let group) = stored { group } else { nil }
    }
    if let selection = key.selection {
      groups.append(
        Group(property: key.property, selection: selection, columns: key.columns, isVariable: false))
    }
    for group in groups { lines += declaration(of: group) }
    return """
      \(raw: access)struct Columns: Swift.Sendable {
        \(raw: Self.lines(lines + ["\(access)init() {}"], 2))
      }
      """
  }

  private func declaration(of group: Group) -> [String] {
    let seen = Stored.group(group).access(access)
    // The output type is as visible as the struct that declares it.
    let hidden = declaration.hiddenType(group.selection, access)?.modifiers.narrowing(access) ?? access
    let access = [seen, hidden].narrowest(access)
    let columns = group.columns.map { "Stemma.GroupColumn(self.\($0.property.inCode))" }
    return [
      "\(seen)let \(group.property.inCode) = \(group.selection)()",
      "\(access)struct \(group.selection): Stemma.ColumnGroup {",
      "  \(access)typealias Output = \(name).\(group.selection)",
    ] + group.columns.map { "  " + declaration(of: $0) } + [
      "  \(access)var _columns: [Stemma.GroupColumn] { [\(columns.joined(separator: ", "))] }",
      "  \(access)init() {}", "}",
    ]
  }

  private func declaration(of column: Column) -> String {
    let codec = column.representation ?? column.type
    return
      "\(column.access(access))let \(column.property.inCode) = Stemma.TableColumn<\(name), \(codec)>(\"\(column.name)\")"
  }

  var relationshipsDeclaration: DeclSyntax {
    let paths = relationships.map {
      "\($0.access(access))let \($0.property.inCode) = Stemma.RelationshipPath<\(name), \($0.target), \($0.value)>(\"\($0.property)\")"
    }
    return """
      \(raw: access)struct Relationships: Swift.Sendable {
        \(raw: Self.lines(paths + ["\(access)init() {}"], 2))
      }
      """
  }

  /// Accessors of a nested key's parts on the record itself.
  var keyForwarders: [DeclSyntax] {
    guard key.selection != nil else { return [] }
    return key.columns.filter { members[$0.property] == nil }.map { part in
      "\(raw: access)var \(raw: part.property.inCode): \(raw: part.type) { self.\(raw: part.pathInCode) }"
    }
  }

  /// `setTeam(_:)` for each reference that can be set: one that the record's key does not fix. If
  /// the key fixes a part, the setter throws for a record that differs there.
  var setters: [DeclSyntax] {
    relationships.filter { $0.kind == .belongsTo }.compactMap { relationship in
      let fixed = Set(key.columns.map(\.property)).intersection(relationship.fields)
      let free = relationship.fields.filter { !fixed.contains($0) }.compactMap { column(ofProperty: $0) }
      guard !free.isEmpty, free.count + fixed.count == relationship.fields.count,
        free.allSatisfy(\.isVariable)
      else { return nil }
      let name = relationship.property
      let body =
        [parts(of: relationship)] + checks(of: relationship, fixed)
        + relationship.assignments(without: fixed)
      return """
        \(raw: relationship.access(access))mutating func \(raw: relationship.setterName)(_ \(raw: name.inCode): \(raw: relationship.parameterType))\(raw: fixed.isEmpty ? "" : " throws(Stemma.StoreError)") {
          \(raw: Self.lines(body, 2))
        }
        """
    }
  }

  /// Lines that throw if a relationship's record differs from this one's key in a shared field.
  private func checks(of relationship: Relationship, _ fixed: Set<String>) -> [String] {
    relationship.fields.enumerated().flatMap { index, field -> [String] in
      guard fixed.contains(field) else { return [] }
      let name = relationship.property
      let own = key.columns.first { $0.property == field }?.pathInCode ?? field
      let condition = "\(relationship.part(index)) != self.\(own)"
      return [
        "if \(relationship.isOptional ? "\(name.inCode) != nil, " : "")\(condition) {",
        "  throw .fixedReference(model: Self.modelName, relationship: \"\(name)\", field: \"\(field)\")",
        "}",
      ]
    }
  }
}

extension TableDeclaration.Relationship {
  /// The type of the parameter for the relationship's record.
  var parameterType: String { isOptional ? "\(target)?" : target }

  /// The variable with the key parts of a given record.
  private var partsName: String { "_\(property)" }

  /// One of the key parts; nil without a record.
  func part(_ index: Int) -> String { fields.count == 1 ? partsName : "\(partsName).\(index)" }

  /// Sets the reference fields from the key parts, except the fixed ones.
  func assignments(without fixed: Set<String>) -> [String] {
    fields.enumerated().compactMap { index, field in
      fixed.contains(field) ? nil : "self.\(field.inCode) = \(part(index))"
    }
  }

  /// Declares the key parts, with the types of the reference fields.
  func naming(_ types: [String]) -> String {
    let types = types.map { SpelledTypes.unwrapped($0).type + (isOptional ? "?" : "") }
    let type = types.count == 1 ? types[0] : "(\(types.joined(separator: ", ")))"
    return "let \(partsName): \(type) = Stemma.ReferenceParts.of(\(property.inCode))"
  }
}

extension TableDeclaration {
  /// A line that declares the key parts of a relationship's record.
  func parts(of relationship: Relationship) -> String {
    relationship.naming(relationship.fields.compactMap { column(ofProperty: $0)?.type })
  }
}
