import SwiftSyntax

/// Checks of attributes. A macro sees an argument's source, not its value. An argument that it
/// cannot read is an error, because the declared rule would not apply otherwise.
extension Misuses {
  /// Checks the attributes of a property or a struct.
  mutating func checkArguments(of attributes: AttributeListSyntax) {
    for name in ["Column", "Index"] + TableDeclaration.Relationship.Kind.allCases.map(\.rawValue) {
      for attribute in attributes.all(name) { checkArguments(of: attribute) }
    }
  }

  mutating func checkArguments(of attribute: AttributeSyntax) {
    let name = attribute.attributeName.trimmedDescription
    if let label = attribute.ownSideLabel {
      add(
        "ownSide",
        "@\(name) names the reference fields that the other model has, not `\(label):`: write @\(name)(\"…\")",
        at: attribute)
      return
    }
    if let (plain, isComplete) = attribute.withPlainFields {
      add(
        "fieldList", "properties are named one by one, without a label: \(plain)", at: attribute,
        fix: isComplete
          ? .replace("write `\(plain)`", attribute, by: AttributeSyntax(stringLiteral: plain)) : nil)
      return
    }
    for argument in attribute.unreadable {
      let text = argument.with(\.trailingComma, nil).trimmedDescription
      add(
        "unreadable", "@\(name) cannot read `\(text)`: write it out, as a macro sees no values", at: attribute
      )
    }
  }

  /// Declarations must not depend on the build: an attribute inside of `#if` would be ignored.
  mutating func checkConditional(_ attributes: AttributeListSyntax) {
    let names = ["Table", "Selection", "Column", "Index", "Ephemeral"]
    for case .ifConfigDecl(let conditional) in attributes {
      for clause in conditional.clauses {
        guard case .attributes(let inner) = clause.elements else { continue }
        checkConditional(inner)
        for name in names + TableDeclaration.Relationship.Kind.allCases.map(\.rawValue) {
          for attribute in inner.all(name) {
            add("conditional", "@\(name) cannot stand inside of #if; take it out", at: attribute)
          }
        }
      }
    }
  }
}

extension TableDeclaration {
  /// Reports a second `@Column`, and column attributes on a property that is not stored. (Other
  /// checks report `@Ephemeral`, `lazy` and relationships.)
  static func checkAttributes(_ variable: VariableDeclSyntax, _ misuses: inout Misuses) {
    for attribute in variable.attributes.all("Column").dropFirst() {
      misuses.add(
        "secondColumn", "a property is one column; say all of it in one @Column", at: attribute)
    }
    let isStored = variable.isInstance && variable.bindings.contains(where: \.isStored)
    let isLazy = variable.modifiers.contains { $0.name.tokenKind == .keyword(.lazy) }
    guard !isStored, !isLazy, !variable.isRelationship, variable.attributes.named("Ephemeral") == nil,
      let property = variable.bindings.first?.name
    else { return }
    for name in ["Column", "Index"] {
      guard let attribute = variable.attributes.named(name) else { continue }
      misuses.add(
        "storedMetadata", "`\(property)` is not stored in a record; leave out @\(name)", at: attribute,
        fix: .leaveOut(attribute, of: variable))
    }
  }
}

extension AttributeSyntax {
  /// The arguments that are not literals of the expected kind.
  var unreadable: [LabeledExprSyntax] { expressions.filter { !$0.isReadable } }

  /// The label for this model's fields or an index, from Amplify's first GraphQL, on a relationship
  /// whose fields are the other model's. (`references:`, from its second, names those.)
  fileprivate var ownSideLabel: String? {
    let name = attributeName.trimmedDescription.split(separator: ".").last
    guard name == "HasMany" || name == "HasOne" else { return nil }
    return expressions.compactMap(\.label?.text).first { ["fields", "indexName"].contains($0) }
  }

  /// The attribute with properties one by one, if they are in a list or have GraphQL's label, and
  /// whether there are any. Nil otherwise, and if one is no literal.
  fileprivate var withPlainFields: (text: String, isComplete: Bool)? {
    let name = attributeName.trimmedDescription
    guard name != "Column", name != "Table" else { return nil }
    var isPlain = true
    var fields: [String] = []
    var others: [String] = []
    for argument in expressions {
      let list = argument.expression.as(ArrayExprSyntax.self)?.elements.map(\.expression)
      let isLabelled = LabeledExprSyntax.fieldLabels.contains(argument.label?.text ?? "")
      guard isLabelled || argument.label == nil else {
        others.append(argument.with(\.trailingComma, nil).trimmedDescription)
        continue
      }
      if isLabelled || list != nil { isPlain = false }
      for field in list ?? [argument.expression] {
        guard field.fieldName != nil else { return nil }
        fields.append(field.trimmedDescription)
      }
    }
    guard !isPlain else { return nil }
    // Arguments without a label come first.
    let arguments = (fields.isEmpty ? ["\"…\""] : fields) + others
    return ("@\(name)(\(arguments.joined(separator: ", ")))", !fields.isEmpty)
  }
}

extension LabeledExprSyntax {
  /// The labels of properties in GraphQL.
  fileprivate static let fieldLabels: Set = ["fields", "references"]

  fileprivate var isReadable: Bool {
    switch label?.text {
    case let label? where Self.fieldLabels.contains(label) || label == "indexName": false
    case "primaryKey": expression.is(BooleanLiteralExprSyntax.self)
    case "onDelete": expression.deleteRule != nil
    case "as", "through": expression.metatypeName != nil
    case "partition":
      expression.is(NilLiteralExprSyntax.self)
        || expression.as(ArrayExprSyntax.self)?.elements.allSatisfy { $0.expression.fieldName != nil }
          ?? false
    // The generated code repeats these as they are written.
    case "policy", "deletes": true
    default: expression.fieldName != nil
    }
  }
}

extension ExprSyntax {
  /// The case of a delete rule, from `.restrict` and `DeleteRule.restrict`.
  var deleteRule: String? {
    guard let access = self.as(MemberAccessExprSyntax.self),
      [nil, "DeleteRule", "Stemma.DeleteRule"].contains(access.base?.trimmedDescription)
    else { return nil }
    return access.declName.baseName.text
  }
}
