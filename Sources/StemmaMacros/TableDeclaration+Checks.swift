import SwiftDiagnostics
import SwiftSyntax

/// Checks for errors that the compiler would report later, and elsewhere.
extension TableDeclaration {
  func check(_ node: AttributeSyntax, _ misuses: inout Misuses) {
    if let generics = declaration.genericParameterClause {
      misuses.add("generic", "a model cannot be generic", at: generics)
    }
    // A macro cannot see which attributes are global actors: names with the suffix `Actor` count.
    let actors = declaration.attributes.compactMap { $0.as(AttributeSyntax.self) }
      .filter { $0.attributeName.trimmedDescription.hasSuffix("Actor") }
    for actor in actors {
      misuses.add(
        "isolated",
        "a record is a value for every actor; leave out @\(actor.attributeName.trimmedDescription)",
        at: actor, fix: .leaveOut(actor, of: declaration))
    }
    let reserved = ["Draft", "Columns", "Relationships", "PrimaryKey", "Stemma", "Swift", "String"]
    if reserved.contains(name.withoutTicks) {
      misuses.add(
        "reservedName",
        "a type with @Table cannot be called \(name): what that writes has this name; the model can, with "
          + "@Table(model: \"\(name.withoutTicks)\")",
        at: declaration.name)
    }
    checkMembers(&misuses)
    checkAccess(&misuses)
    checkNames(node, &misuses)
    if let partition, partition != key.columns.prefix(partition.count).map(\.property) {
      let parts = key.columns.map { "\"\($0.property)\"" }.joined(separator: ", ")
      misuses.add(
        "partition", "a partition is named by the first parts of the key, [\(parts)], in this order",
        at: declaration.name)
    }
    checkIndexes(&misuses)
    for column in columns { checkTime(column, &misuses) }
    for relationship in relationships { check(relationship, &misuses) }
    checkSetters(&misuses)
  }

  private func checkIndexes(_ misuses: inout Misuses) {
    var names: Set<String> = []
    for index in indexes {
      for field in index.fields where column(ofProperty: field) == nil {
        addUnknown(field, index.attribute, besides: index.fields, &misuses)
      }
      if index.fields.isEmpty, index.attribute.unreadable.isEmpty {
        misuses.add("noFields", "name the properties of the index: @Index(\"title\")", at: index.attribute)
      }
      if let twice = index.fields.indices.first(where: { index.fields[..<$0].contains(index.fields[$0]) }) {
        let own = index.fields.dropLast(index.attribute.strings.count)
        var seen = Set(own)
        let once = index.attribute.unlabelled.filter { seen.insert($0.fieldName ?? "").inserted }
        misuses.add(
          "fieldTwice", "an index names each property once; `\(index.fields[twice])` is named twice",
          at: index.attribute,
          fix: .replace(
            "name it once", index.attribute, by: index.attribute.naming(once.map(\.trimmedDescription))))
      }
      // The schema reader's default name, made of columns; SQLite ignores the case.
      let columns = index.fields.compactMap { column(ofProperty: $0)?.name }
      let name =
        index.name
        ?? "by" + columns.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined(separator: "And")
      if !index.fields.isEmpty, !names.insert(name.lowercased()).inserted {
        misuses.add(
          "sameIndex", "\(self.name) has an index `\(name)` already; give this one another name",
          at: index.attribute)
      }
    }
  }

  /// Reports references with one setter, as of `team` and `Team`, or with the same fields.
  private func checkSetters(_ misuses: inout Misuses) {
    let references = relationships.filter { $0.kind == .belongsTo }
    for (index, reference) in references.enumerated() {
      let others = references[..<index]
      if let other = others.first(where: { $0.setterName == reference.setterName }) {
        misuses.add(
          "clash",
          "@Table writes `\(reference.setterName)(_:)` for `\(other.property)` already; call this one otherwise",
          at: reference.variable)
      }
      let isFree =
        !reference.fields.isEmpty && !Set(key.columns.map(\.property)).isSuperset(of: reference.fields)
      if isFree,
        let other = others.first(where: { $0.fields == reference.fields })
      {
        let names = reference.fields.map { "`\($0)`" }.joined(separator: ", ")
        misuses.warn(
          "sharedReference",
          other.target == reference.target
            ? "\(names) is what `\(other.property)` is stored in already: set one of the two, and both are; leave one out"
            : "\(names) leads to a \(other.target) already; the same key is one of a \(reference.target) by chance only",
          at: reference.attribute)
      }
    }
  }

  /// Reports an unknown column. Suggests one that differs only in case, unless `fields` has it.
  func addUnknown(
    _ field: String, _ attribute: AttributeSyntax, besides fields: [String], _ misuses: inout Misuses
  ) {
    let known = (key.columns + columns).map(\.property)
    let meant = known.first { $0.lowercased() == field.lowercased() }
    let isLiteral = attribute.unlabelled.allSatisfy { $0.is(StringLiteralExprSyntax.self) }
    var fix: FixIt?
    if let meant, isLiteral, !fields.contains(meant) {
      let fields = attribute.strings.map { "\"\($0 == field ? meant : $0)\"" }
      fix = .replace("write `\(meant)`", attribute, by: attribute.naming(fields))
    }
    misuses.add(
      "unknownField", "\(name) has no column `\(field)`; it has \(known.joined(separator: ", "))",
      at: attribute, fix: fix)
  }

  /// Reports a column that the node would maintain without its representation.
  private func checkTime(_ column: Column, _ misuses: inout Misuses) {
    var plain = column
    plain.representation = nil
    guard plain.isMaintained, !column.isMaintained else { return }
    misuses.warn(
      "representedTime",
      "the node maintains `\(column.name)` only where it is stored as it is: leave out `as:`, or call the column otherwise",
      at: column.place)
  }

  /// Reports members that `@Table` also generates.
  private func checkMembers(_ misuses: inout Misuses) {
    var generated = [
      "Draft", "Columns", "Relationships", "_record", "static columns", "static relationships",
      "static description", "static modelName", "PrimaryKey", "init(_: RowReader)", "write(to:)",
    ]
    if key.property != "primaryKey" { generated.append("primaryKey") }
    generated += relationships.filter { $0.kind == .belongsTo }.map { "\($0.setterName)(_:)" }
    for member in generated {
      guard let place = members[member] else { continue }
      let name = member.replacing("static ", with: "")
      misuses.add("clash", "@Table writes `\(name)`; call this one otherwise", at: place)
    }
  }

  // MARK: Relationships

  private func check(_ relationship: Relationship, _ misuses: inout Misuses) {
    let title = "@\(relationship.kind.rawValue)"
    if let binding = relationship.variable.bindings.first, binding.initializer != nil {
      misuses.add("initialValue", "what \(title) leads to has no initial value", at: binding)
    }
    if relationship.variable.bindingSpecifier.tokenKind == .keyword(.let) {
      misuses.add(
        "constantRelationship", "a relationship is read when it is asked for; make it a `var`",
        at: relationship.variable.bindingSpecifier,
        fix: .replace(
          "make it a `var`", relationship.variable.bindingSpecifier, by: TokenSyntax.keyword(.var)))
    }
    if relationship.kind == .hasOne, !relationship.isOptional, let type = relationship.typeSyntax {
      misuses.add(
        "requiredChild", "there may be no \(relationship.target) yet: the type is `\(relationship.target)?`",
        at: type,
        fix: .replace(
          "write `\(relationship.target)?`", type, by: TypeSyntax(stringLiteral: "\(relationship.target)?")))
    }
    // An unreadable argument is reported already, and hides the others.
    guard relationship.attribute.unreadable.isEmpty else { return }
    guard relationship.kind != .manyToMany else {
      if relationship.join == nil {
        misuses.add(
          "noJoin", "name the model that belongs to both sides: @ManyToMany(through: <Model>.self)",
          at: relationship.attribute)
      }
      return
    }
    guard !relationship.fields.isEmpty else {
      misuses.add(
        "noFields", "name the reference fields: \(title)(\"\(guess(relationship) ?? "…")\")",
        at: relationship.attribute, fix: naming(relationship))
      return
    }
    checkRoots(relationship, &misuses)
    guard Set(relationship.fields).count == relationship.fields.count else {
      misuses.add(
        "fieldTwice", "each part of the key has a reference field of its own; name each once",
        at: relationship.attribute)
      return
    }
    guard checkGroups(relationship, &misuses) else { return }
    guard relationship.kind == .belongsTo else {
      checkKey(relationship, &misuses)
      return
    }
    var fields: [Column] = []
    for field in relationship.fields {
      if let column = column(ofProperty: field) {
        fields.append(column)
      } else {
        addUnknown(field, relationship.attribute, besides: relationship.fields, &misuses)
      }
    }
    guard fields.count == relationship.fields.count else { return }
    checkNullability(relationship, fields, &misuses)
    if relationship.target == name { checkKey(relationship, &misuses) }
  }

  private func checkNullability(
    _ relationship: Relationship, _ fields: [Column], _ misuses: inout Misuses
  ) {
    let parts = Set(key.columns.map(\.property))
    let free = fields.filter { !parts.contains($0.property) }
    guard Set(free.map(\.isOptional)).count < 2 else {
      let names = free.map { "`\($0.property)`" }.joined(separator: " and ")
      misuses.add(
        "mixedFields", "\(names) make up one reference: all are optional, or none", at: relationship.attribute
      )
      return
    }
    let isNullable = free.first?.isOptional ?? false
    guard relationship.isOptional != isNullable, let type = relationship.typeSyntax else { return }
    if relationship.isOptional {
      misuses.add(
        "optionalOverRequired",
        "\(fields.map { "`\($0.property)`" }.joined(separator: ", ")) cannot be nil, so there is always a "
          + "\(relationship.target)",
        at: type,
        fix: .replace(
          "write `\(relationship.target)`", type, by: TypeSyntax(stringLiteral: relationship.target)))
    } else {
      misuses.warn(
        "requiredOverOptional",
        "`\(free[0].property)` can be nil, while \(relationship.property) cannot; it is taken for required",
        at: type,
        fix: .replace(
          "write `\(relationship.target)?`", type,
          by: TypeSyntax(stringLiteral: "\(relationship.target)?")))
    }
  }

  /// A field of this struct that may be the reference, by its name.
  private func guess(_ relationship: Relationship) -> String? {
    guard relationship.kind == .belongsTo else { return nil }
    return (key.columns + columns).map(\.property).first {
      $0.lowercased() == "\(relationship.property)id".lowercased()
    }
  }

  private func naming(_ relationship: Relationship) -> FixIt? {
    guard let field = guess(relationship) else { return nil }
    let attribute = AttributeSyntax(
      stringLiteral: "@\(relationship.kind.rawValue)(\"\(field)\")")
    return .replace("name `\(field)`", relationship.attribute, by: attribute)
  }
}

extension TableDeclaration.Relationship {
  var setterName: String { "set\(property.prefix(1).uppercased())\(property.dropFirst())" }

  var typeSyntax: TypeSyntax? { variable.bindings.first?.typeAnnotation?.type }
}

extension TableDeclaration {
  /// Checks the place of a model. Inside of a function, it cannot have an extension.
  static func checkPlace(
    _ node: AttributeSyntax, _ declaration: some DeclGroupSyntax, _ context: [Syntax]
  ) throws {
    if declaration.attributes.all("Table").count > 1 {
      throw Misuse("twice", "a model has one @Table").error(at: node)
    }
    if let misplaced = misplacement(in: context) { throw misplaced.error(at: node) }
  }

  /// The error of a model's place; nil if there is none. Macros generate nothing for a misplaced
  /// model, because that would have further errors.
  static func misplacement(in context: [Syntax]) -> Misuse? {
    let generic = context.first {
      $0.asProtocol(WithGenericParametersSyntax.self)?.genericParameterClause != nil
    }
    if let outer = generic?.asProtocol(NamedDeclSyntax.self), !outer.is(FunctionDeclSyntax.self) {
      return Misuse(
        "generic", "a model cannot be nested in a generic type; declare it outside of `\(outer.name.text)`")
    }
    let isLocal = context.contains {
      $0.is(FunctionDeclSyntax.self) || $0.is(InitializerDeclSyntax.self) || $0.is(ClosureExprSyntax.self)
        || $0.is(AccessorDeclSyntax.self) || $0.is(SubscriptDeclSyntax.self)
    }
    return isLocal
      ? Misuse("local", "a model cannot be declared inside of a function; declare it in a file or a type")
      : nil
  }
}
