import SwiftDiagnostics
import SwiftParser
import SwiftSyntax

extension TableDeclaration {
  /// A stored property that is a column, or a property of such a group.
  struct Column {
    /// Its declared name, without backticks.
    var property: String
    /// The column's name: the property's, unless `@Column("name")` gives another.
    var name: String
    var type: String
    /// The type whose values are stored instead, from `@Column(as:)`.
    var representation: String?
    var defaultValue: ExprSyntax?
    var isVariable: Bool
    /// The property of its group.
    var group: String?
    var place: Syntax
    var variable: VariableDeclSyntax
    /// Whether it is a part of a key, or of a reference to one.
    var isIdentity = false

    var isOptional: Bool { type.isOptionalType }
    /// `title`, or `address.street` inside of a group.
    var path: String { (group.map { "\($0)." } ?? "") + property }
    /// The same in generated code.
    var pathInCode: String { (group.map { "\($0.inCode)." } ?? "") + property.inCode }
  }

  /// A stored property whose type is a nested `@Selection`: its properties are columns.
  struct Group {
    var property: String
    /// The nested struct's name.
    var selection: String
    var columns: [Column]
    var defaultValue: ExprSyntax?
    var isVariable: Bool
    /// Nil for a key, which is as visible as its table.
    var variable: VariableDeclSyntax?
  }

  /// A stored property of the table.
  enum Stored {
    case column(Column)
    case group(Group)

    var property: String {
      switch self {
      case .column(let column): column.property
      case .group(let group): group.property
      }
    }

    var type: String {
      switch self {
      case .column(let column): column.type
      case .group(let group): group.selection
      }
    }

    var columns: [Column] {
      switch self {
      case .column(let column): [column]
      case .group(let group): group.columns
      }
    }

    var variable: VariableDeclSyntax? {
      switch self {
      case .column(let column): column.variable
      case .group(let group): group.variable
      }
    }

    /// Whether `@_Tracked` is added to it.
    var isTracked: Bool {
      switch self {
      case .column(let column): column.isVariable
      case .group(let group): group.isVariable
      }
    }

    /// Marked as identity, if it is one of the properties that make up references.
    func referring(_ properties: Set<String>) -> Stored {
      guard case .column(var column) = self, properties.contains(column.property) else { return self }
      column.isIdentity = true
      return .column(column)
    }
  }

  /// The stored properties of a declaration in the type `owner`; none if computed or `@Ephemeral`.
  static func columns(
    _ variable: VariableDeclSyntax, of owner: String, isOfGroup: Bool = false
  ) throws -> [Column] {
    guard variable.attributes.named("Ephemeral") == nil else { return [] }
    var columns: [Column] = []
    // `var a, b: Int`: a name without a type has that of the next name.
    var type: TypeSyntax?
    for binding in variable.bindings.reversed() {
      if binding.isStored { try checkPattern(binding, variable) }
      if let own = binding.typeAnnotation?.type {
        type = own
      } else if binding.initializer != nil {
        type = nil
      }
      guard binding.isStored, let name = binding.name else { continue }
      let value = binding.initializer?.value.trimmed.spelled(outside: owner).as(ExprSyntax.self)
      if let type {
        try check(type, of: name, isOfGroup: isOfGroup)
        try checkDepth(type, of: name, variable)
      }
      let spelled = type?.spelled(outside: owner).as(TypeSyntax.self)
      // A redundant optional is read as a simple one; later checks report it.
      let single = spelled.flatMap { $0.isOddOptional ? "\($0.bare.trimmedDescription)?" : nil }
      guard let text = single ?? spelled?.plainText ?? value?.literalType else {
        throw untyped(name, binding)
      }
      let attribute = variable.attributes.named("Column")
      columns.append(
        Column(
          property: name, name: attribute?.strings.first ?? name, type: text,
          representation: attribute?.expression("as")?.metatypeName(in: owner), defaultValue: value,
          isVariable: variable.bindingSpecifier.tokenKind == .keyword(.var),
          place: Syntax(binding), variable: variable))
    }
    return columns.reversed()
  }

  private static func untyped(_ name: String, _ binding: PatternBindingSyntax) -> any Error {
    let annotated = binding.with(\.pattern, binding.pattern.with(\.trailingTrivia, []))
      .with(
        \.typeAnnotation,
        TypeAnnotationSyntax(
          colon: .colonToken(trailingTrivia: .space), type: TypeSyntax(stringLiteral: "<#Type#> ")))
    return Misuses.error(
      "type", "write the type of `\(name)`: it cannot be determined from its value", at: binding,
      fix: .replace("write a type", binding, by: annotated))
  }
}

extension TableDeclaration.Column {
  /// The stored type in generated expressions.
  var codec: String {
    let codec = representation ?? type
    return codec.isOptionalType ? "(\(codec))" : codec
  }

  /// An expression that reads it from column `index` of a row.
  func reading(_ index: Int) -> String {
    if representation != nil { return "try row.represented(\(index), as: \(codec).self)" }
    let read =
      isIdentity && ["Date", "URL"].contains(SpelledTypes.plain(type).type)
      ? "row.exactly(\(index), as: \(codec).self)"
      : SpelledTypes.isCommon(type)
        ? "\(codec).read(row, \(index))" : "row.value(\(index), as: \(codec).self)"
    // A record older than the column has null there.
    guard !type.isOptionalType, let literal = defaultValue, literal.isLiteral else { return "try \(read)" }
    return "try row.isNull(\(index)) ? \(literal) : \(read)"
  }

  /// As `reading`, for a column of a table. The code that sets or writes a property compares it
  /// with its representation. Here, a closure that is never called prevents a second error.
  func readingOfTable(_ index: Int) -> String {
    let read = reading(index)
    return representation == nil ? read : "\(read) { (own: Self) in own.\(pathInCode) }"
  }

  /// A statement that writes it. `isChecked`: no other code compares property and representation.
  func writing(_ path: String, isChecked: Bool = false) -> String {
    if representation == nil { return "record.value(self.\(path))" }
    return "record.\(isChecked ? "constant" : "represented")(self.\(path), as: \(codec).self)"
  }

  /// An element of the model's description.
  var description: String {
    var text = ".init(\"\(name)\", \(codec).self"
    if name != property { text += ", property: \"\(property)\"" }
    if representation == nil, let literal = defaultValue, literal.isLiteral {
      text += ", defaultValue: \(literal)"
    }
    return text + "),"
  }

  /// Whether the node maintains it: `createdAt` or `updatedAt`, stored as a point in time.
  var isMaintained: Bool {
    ["createdAt", "updatedAt"].contains(name) && SpelledTypes.plain(type).type == "Date"
      && representation == nil
  }
}

extension String {
  var isOptionalType: Bool { hasSuffix("?") || hasPrefix("Optional<") }

  /// `Int` for `Int?`.
  var withoutMetadata: String { hasSuffix("?") ? String(dropLast()) : self }

  /// `default` for `` `default` ``.
  var withoutTicks: String { replacing("`", with: "") }

  /// A name in code: in backticks if it is a keyword.
  var inCode: String {
    // The one keyword that can be declared without backticks, but has another meaning at each use.
    let isPlain =
      self != "await" && isValidSwiftIdentifier(for: .variableName)
      && isValidSwiftIdentifier(for: .memberAccess)
    return isPlain ? self : "`\(self)`"
  }

  /// The same for an argument label, where all keywords except `inout` are plain names.
  var asLabel: String { Names.isPlain(self) && self != "inout" ? self : inCode }
}

extension ExprSyntax {
  /// The type's name from `Type.self`.
  var metatypeName: String? {
    guard let access = self.as(MemberAccessExprSyntax.self), access.declName.baseName.text == "self" else {
      return nil
    }
    return access.base?.trimmedDescription
  }

  /// The same, spelled for use outside of the type `owner`.
  func metatypeName(in owner: String) -> String? { spelled(outside: owner).as(ExprSyntax.self)?.metatypeName }

  /// Whether it is a number, a text without interpolation, or a Boolean: the same for every row.
  var isLiteral: Bool {
    if let prefixed = self.as(PrefixOperatorExprSyntax.self) { return prefixed.expression.isLiteral }
    if let text = self.as(StringLiteralExprSyntax.self) { return text.representedLiteralValue != nil }
    return self.is(BooleanLiteralExprSyntax.self) || self.is(IntegerLiteralExprSyntax.self)
      || self.is(FloatLiteralExprSyntax.self)
  }
}
