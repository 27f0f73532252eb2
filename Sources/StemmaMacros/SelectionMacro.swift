import SwiftSyntax
import SwiftSyntaxBuilder
import SwiftSyntaxMacros

/// `@Selection`: a struct whose properties are columns of the enclosing table, or a statement's
/// output. A Hashable one without optional properties can be the table's key.
struct SelectionMacro {
  /// Its stored properties; `misuses` gets the errors.
  ///
  /// - Parameters:
  ///   - owner: the spelling of its name at the caller.
  ///   - isOfTable: whether it is nested in a table, and may be its key: another check then
  ///     requires that it is Hashable.
  static func parts(
    of declaration: some DeclGroupSyntax, _ owner: String? = nil, isOfTable: Bool,
    _ misuses: inout Misuses
  ) throws -> [TableDeclaration.Column] {
    let owner = owner ?? declaration.as(StructDeclSyntax.self)?.name.text ?? "Self"
    let isKey = declaration.as(StructDeclSyntax.self)?.isHashable ?? false
    var parts: [TableDeclaration.Column] = []
    for member in declaration.memberBlock.members {
      checkInner(member.decl, &misuses)
      TableDeclaration.checkMember(member.decl, &misuses)
      guard let variable = member.decl.as(VariableDeclSyntax.self), variable.isInstance,
        !variable.isRelationship
      else { continue }
      misuses.checkArguments(of: variable.attributes)
      let columns =
        try misuses.collect {
          try TableDeclaration.columns(variable, of: owner, isOfGroup: true)
        } ?? []
      for column in columns {
        MemberReader.checkOptional(column, mayBeKey: isKey || isOfTable, &misuses)
        MemberReader.checkConstant(column, isKey, &misuses)
        MemberReader.checkMetadata(ofPart: column, &misuses)
        TableDeclaration.checkTaken(
          column.property, column.place, column: isOfTable && column.name == column.property,
          &misuses)
      }
      parts += columns
    }
    check(declaration, parts, &misuses)
    return parts
  }

  /// The generated members of one that can be a key.
  static let keyMembers = ["parts", "write(to:)"]

  /// Whether it can be a key.
  private static func canBeKey(
    _ declaration: some DeclGroupSyntax, _ parts: [TableDeclaration.Column]
  ) -> Bool {
    (declaration.as(StructDeclSyntax.self)?.isHashable ?? false)
      && parts.allSatisfy { !$0.isOptional && $0.representation == nil }
  }

  /// Reports a struct without properties, and members that clash with generated ones.
  private static func check(
    _ declaration: some DeclGroupSyntax, _ parts: [TableDeclaration.Column], _ misuses: inout Misuses
  ) {
    if parts.isEmpty, !misuses.hasErrors, let name = declaration.as(StructDeclSyntax.self)?.name {
      misuses.add("emptySelection", "`\(name.text)` has no property that is stored", at: name)
    }
    let members = MemberReader.declaredMembers(declaration)
    let generated =
      ["Columns", "init(_: RowReader)"] + (canBeKey(declaration, parts) ? keyMembers : [])
    for member in generated {
      guard let place = members[member] else { continue }
      misuses.add("clash", "@Selection writes `\(member)`; call this one otherwise", at: place)
    }
  }
}

extension SelectionMacro: MemberMacro {
  static func expansion(
    of node: AttributeSyntax, providingMembersOf declaration: some DeclGroupSyntax,
    conformingTo protocols: [TypeSyntax], in context: some MacroExpansionContext
  ) throws -> [DeclSyntax] {
    guard declaration.is(StructDeclSyntax.self) else {
      throw Misuse("selectionStruct", "@Selection requires a struct: a selection is a value").error(at: node)
    }
    let access = declaration.modifiers.accessPrefix
    var misuses = Misuses()
    let parts = try Self.parts(of: declaration, isOfTable: context.isInTable, &misuses)
    for misuse in misuses.diagnostics { context.diagnose(misuse) }
    let hasOwn = declaration.memberBlock.members.contains { $0.decl.is(InitializerDeclSyntax.self) }
    var members = SpelledTypes.declaration(of: parts, nested: !context.lexicalContext.isEmpty, access)
    // Swift's memberwise initializer is internal at most.
    let name = declaration.as(StructDeclSyntax.self)?.name.text
    if let name, !access.isEmpty, !misuses.hasErrors {
      let stored = parts.map(TableDeclaration.Stored.column)
      members += TableDeclaration.Stored.keptDefaults(stored, access)
      if !hasOwn { members.append(TableDeclaration.memberwise(of: name, access, stored)) }
    }
    if let name, !parts.isEmpty,
      !MemberReader.declaredNames(declaration).contains("Columns")
    {
      members.append(columns(of: name, parts, access, misuses))
    }
    return members
  }

  /// Refuses a group inside of a group.
  private static func checkInner(_ member: DeclSyntax, _ misuses: inout Misuses) {
    guard let inner = member.as(StructDeclSyntax.self), inner.attributes.named("Selection") != nil
    else { return }
    misuses.add(
      "innerSelection",
      "a @Selection holds values, no other @Selection; declare the properties of `\(inner.name.text)` in its place",
      at: inner.name)
  }

  /// The terms that a statement selects for the properties.
  private static func columns(
    of name: String, _ parts: [TableDeclaration.Column], _ access: String, _ misuses: Misuses
  ) -> DeclSyntax {
    let parameters = parts.map { part in
      "\(part.property.inCode): some Stemma.ExpressionProtocol<\(part.representation ?? part.type)>"
    }
    let selected = parts.map { "Stemma.SelectedColumn(\($0.property.inCode))" }.joined(separator: ", ")
    let made = misuses.hasErrors ? refused : ["self.selected = [\(selected)]"]
    return """
      \(raw: access)struct Columns: Stemma.SelectionColumns {
        \(raw: access)typealias Output = \(raw: name)
        \(raw: access)let selected: [Stemma.SelectedColumn]
        \(raw: parts.map { $0.access(access) }.narrowest(access))init(\(raw: parameters.joined(separator: ", "))) {
          \(raw: TableDeclaration.lines(made, 4))
        }
      }
      """
  }
}

extension SelectionMacro: ExtensionMacro {
  static func expansion(
    of node: AttributeSyntax, attachedTo declaration: some DeclGroupSyntax,
    providingExtensionsOf type: some TypeSyntaxProtocol, conformingTo protocols: [TypeSyntax],
    in context: some MacroExpansionContext
  ) throws -> [ExtensionDeclSyntax] {
    guard let selection = declaration.as(StructDeclSyntax.self) else { return [] }
    // A declaration cannot be more visible than the types that it uses.
    let isHidden = context.lexicalContext.contains {
      $0.asProtocol(WithModifiersSyntax.self)?.modifiers.isPrivate ?? false
    }
    let access = isHidden ? "fileprivate " : declaration.modifiers.accessPrefix
    let isNested = !context.lexicalContext.isEmpty
    // The member role of the same attribute reports the errors.
    var misuses = Misuses()
    let parts = try Self.parts(of: declaration, isOfTable: context.isInTable, &misuses).map {
      isNested ? SpelledTypes.outside($0) : $0
    }
    guard !parts.isEmpty else { return [] }
    // All values are read before any is stored, as in a table.
    let read = parts.enumerated().map { "let value\($0) = \($1.reading($0))" }
    let stored = parts.enumerated().map { "self.\($1.property.inCode) = value\($0)" }
    let reading = try ExtensionDeclSyntax(
      """
      extension \(type.trimmed): Stemma.Selection {
        \(raw: access)init(_ row: Stemma.RowReader) throws(Stemma.StoreError) {
          \(raw: TableDeclaration.lines(misuses.hasErrors ? refused : read + stored, 4))
        }
      }
      """)
    let isKey =
      canBeKey(selection, parts)
      && MemberReader.declaredNames(selection).isDisjoint(with: keyMembers)
    return isKey ? [try key(type, parts, access, misuses), reading] : [reading]
  }

  /// The body of a refused initializer: its properties cannot all be set.
  private static let refused = ["Swift.preconditionFailure()"]

  private static func key(
    _ type: some TypeSyntaxProtocol, _ parts: [TableDeclaration.Column], _ access: String, _ misuses: Misuses
  ) throws -> ExtensionDeclSyntax {
    let types = parts.map(\.type).joined(separator: ", ")
    let optionalTypes = parts.map { "\($0.type)?" }.joined(separator: ", ")
    let values = parts.map { "self.\($0.property.inCode)" }.joined(separator: ", ")
    let unwrapped = parts.indices.map {
      "let part\($0) = optionalParts\(parts.count == 1 ? "" : ".\($0)")"
    }
    let assigned = parts.enumerated().map { "self.\($1.property.inCode) = part\($0)" }
    let made = ["guard \(unwrapped.joined(separator: ", ")) else {", "  return nil", "}"] + assigned
    let written = parts.map { "record.key(self.\($0.property.inCode))" }
    return try ExtensionDeclSyntax(
      """
      extension \(type.trimmed): Stemma.TableKey {
        \(raw: access)init?(optionalParts: (\(raw: optionalTypes))) {
          \(raw: TableDeclaration.lines(misuses.hasErrors ? refused : made, 4))
        }
        \(raw: access)var parts: (\(raw: types)) { (\(raw: values)) }
        \(raw: access)func write(to record: inout Stemma.RecordWriter) {
          \(raw: TableDeclaration.lines(written, 4))
        }
      }
      """)
  }
}

extension MacroExpansionContext {
  /// Whether the expanded declaration is nested in a table.
  fileprivate var isInTable: Bool {
    lexicalContext.first?.as(StructDeclSyntax.self)?.attributes.named("Table") != nil
  }
}
