/// Builds the syntax tree. A syntax error ends its definition; parsing continues after it.
struct Parser {
  private var lexer: Lexer
  private var token = Token(kind: .end, place: Place(line: 1, column: 1))
  /// The number of open braces.
  private var depth = 0
  /// Whether `token` is a substitute, because the lexer has failed at that place.
  private var endsEarly = false
  private(set) var errors: [Diagnostic] = []
  private(set) var warnings: [Diagnostic] = []

  init(_ text: String) { lexer = Lexer(text) }

  mutating func document() -> Document {
    var document = Document()
    do { try advance() } catch { recover(error) }
    while token.kind != .end && errors.count < SchemaLimits.diagnostics {
      depth = 0
      do { try definition(into: &document) } catch { recover(error) }
    }
    return document
  }

  private mutating func recover(_ error: SyntaxError) {
    errors.append(error.diagnostic)
    while true {
      var isClosing = false
      switch token.kind {
      case .name(let text) where depth == 0 && Self.keywords.contains(text): return
      case .punctuator("}"): isClosing = depth <= 1
      case .end where !endsEarly: return
      default: break
      }
      // Further errors in this definition are not reported: most would follow from the first.
      do { try advance() } catch { continue }
      if isClosing { return }
    }
  }

  private static let keywords = [
    "type", "enum", "input", "schema", "directive", "scalar", "interface", "union", "extend",
  ]

  // MARK: Definitions

  private mutating func definition(into document: inout Document) throws(SyntaxError) {
    if case .string = token.kind { try advance() }
    let keyword = try name("a definition", advice: "begin with `type`, `enum` or `input`")
    switch keyword.text {
    case "type":
      if let type = try type() { document.types.append(type) }
    case "enum": document.enums.append(try enumeration())
    case "input":
      _ = try name("the name of the input type")
      _ = try directives()
      if try take("{") { try skipInputFields() }
    case "schema":
      warnings.append(Diagnostic(keyword.place, "`schema` is ignored: Stemma has no operations"))
      _ = try directives()
      try expect("{")
      while try !take("}") {
        _ = try name("an operation")
        try expect(":")
        _ = try name("a type")
      }
    case "directive":
      warnings.append(Diagnostic(keyword.place, "a directive's definition is ignored"))
      try directiveDefinition()
    case "scalar":
      throw SyntaxError(
        keyword.place, "own scalars are not supported",
        "use one of \(Scalar.allCases.map(\.rawValue).joined(separator: ", "))")
    case "interface", "union":
      throw SyntaxError(keyword.place, "`\(keyword.text)` is not supported", "declare a type for each case")
    case "extend":
      throw SyntaxError(keyword.place, "`extend` is not supported", "write all fields into one definition")
    default:
      throw SyntaxError(
        keyword.place, "unknown definition `\(keyword.text)`", "begin with `type`, `enum` or `input`")
    }
  }

  /// Nil for a root operation type, which declares no data.
  private mutating func type() throws(SyntaxError) -> TypeSyntax? {
    let typeName = try name("the name of the type")
    if case .name("implements") = token.kind {
      throw SyntaxError(token.place, "`implements` is not supported", "leave it out")
    }
    let directives = try directives()
    var fields: [FieldSyntax] = []
    let isOperation = ["Query", "Mutation", "Subscription"].contains(typeName.text)
    try expect("{")
    while try !take("}") {
      if case .string = token.kind { try advance() }
      let fieldName = try name("a field or `}`", advice: "write `name: Type`")
      if token.kind == .punctuator("(") {
        guard isOperation else {
          throw SyntaxError(
            token.place, "field `\(fieldName.text)` has arguments", "a stored field has none; leave them out")
        }
        try advance()
        while try !take(")") { try inputValue() }
      }
      try expect(
        ":", after: "the field's name `\(fieldName.text)`", advice: "write `\(fieldName.text): Type`")
      let type = try typeReference()
      fields.append(FieldSyntax(name: fieldName, type: type, directives: try self.directives()))
    }
    if isOperation {
      warnings.append(
        Diagnostic(typeName.place, "type `\(typeName.text)` is ignored: Stemma has no operations"))
      return nil
    }
    return TypeSyntax(name: typeName, directives: directives, fields: fields)
  }

  private mutating func enumeration() throws(SyntaxError) -> EnumSyntax {
    let enumName = try name("the name of the enum")
    warnOfIgnored(try directives())
    var cases: [NameSyntax] = []
    try expect("{")
    while try !take("}") {
      if case .string = token.kind { try advance() }
      cases.append(try name("a case or `}`"))
      warnOfIgnored(try directives())
    }
    return EnumSyntax(name: enumName, cases: cases)
  }

  private mutating func warnOfIgnored(_ directives: [DirectiveSyntax]) {
    for directive in directives {
      warnings.append(Diagnostic(directive.name.place, "`@\(directive.name.text)` is ignored on enums"))
    }
  }

  private mutating func skipInputFields() throws(SyntaxError) {
    while try !take("}") { try inputValue() }
  }

  private mutating func inputValue() throws(SyntaxError) {
    if case .string = token.kind { try advance() }
    _ = try name("an argument")
    try expect(":")
    _ = try typeReference(allowsNestedLists: true)
    if try take("=") { _ = try literal() }
    _ = try directives()
  }

  private mutating func directiveDefinition() throws(SyntaxError) {
    try expect("@")
    _ = try name("the directive's name")
    if try take("(") { while try !take(")") { try inputValue() } }
    if case .name("repeatable") = token.kind { try advance() }
    guard case .name("on") = token.kind else { throw unexpected("`on`") }
    try advance()
    _ = try take("|")
    _ = try name("a location")
    while try take("|") { _ = try name("a location") }
  }

  // MARK: Types, directives, values

  private mutating func typeReference(
    allowsNestedLists: Bool = false, depth: Int = 0
  ) throws(SyntaxError) -> TypeReferenceSyntax {
    let start = token.place
    guard depth <= SchemaLimits.literalDepth else { throw SyntaxError(start, "type is nested too deeply") }
    if try take("[") {
      if token.kind == .punctuator("["), !allowsNestedLists {
        throw SyntaxError(
          token.place, "a list of lists is not supported", "use an embedded type with a list, or AWSJSON")
      }
      let element = try typeReference(allowsNestedLists: allowsNestedLists, depth: depth + 1)
      try expect("]", after: "the element type", advice: "write `[\(element.name.text)]`")
      return TypeReferenceSyntax(
        name: element.name, isRequired: try take("!"), isList: true, elementsRequired: element.isRequired)
    }
    let typeName = try name("a type")
    return TypeReferenceSyntax(
      name: typeName, isRequired: try take("!"), isList: false, elementsRequired: false)
  }

  private mutating func directives() throws(SyntaxError) -> [DirectiveSyntax] {
    var directives: [DirectiveSyntax] = []
    while token.kind == .punctuator("@") {
      let start = token.place
      try advance()
      var directiveName = try name("the directive's name")
      directiveName.place = start
      var arguments: [ArgumentSyntax] = []
      if try take("(") { while try !take(")") { arguments.append(try argument(arguments)) } }
      directives.append(DirectiveSyntax(name: directiveName, arguments: arguments))
    }
    return directives
  }

  private mutating func argument(
    _ others: [ArgumentSyntax], depth: Int = 0
  ) throws(SyntaxError) -> ArgumentSyntax {
    let argumentName = try name("an argument", advice: "write `name: value`")
    if others.contains(where: { $0.name.text == argumentName.text }) {
      throw SyntaxError(argumentName.place, "`\(argumentName.text)` is given twice", "keep one of them")
    }
    try expect(
      ":", after: "the argument's name `\(argumentName.text)`",
      advice: "write `\(argumentName.text): value`")
    return ArgumentSyntax(name: argumentName, value: try literal(depth: depth))
  }

  private mutating func literal(depth: Int = 0) throws(SyntaxError) -> LiteralSyntax {
    let start = token
    guard depth < SchemaLimits.literalDepth else {
      throw SyntaxError(
        start.place, "value is nested too deeply", "at most \(SchemaLimits.literalDepth) levels")
    }
    func made(_ kind: LiteralSyntax.Kind) -> LiteralSyntax { LiteralSyntax(kind: kind, place: start.place) }
    switch start.kind {
    case .punctuator("["):
      try advance()
      var elements: [LiteralSyntax] = []
      while try !take("]") { elements.append(try literal(depth: depth + 1)) }
      return made(.list(elements))
    case .punctuator("{"):
      try advance()
      var members: [ArgumentSyntax] = []
      while try !take("}") { members.append(try argument(members, depth: depth + 1)) }
      return made(.object(members))
    case .punctuator, .end: throw unexpected("a value")
    case .string(let text):
      try advance()
      return made(.string(text))
    case .int(let text):
      try advance()
      return made(.int(text))
    case .float(let text):
      try advance()
      return made(.float(text))
    case .name(let text):
      try advance()
      switch text {
      case "null": return made(.null)
      case "true": return made(.bool(true))
      case "false": return made(.bool(false))
      default: return made(.name(text))
      }
    }
  }

  // MARK: Tokens

  private mutating func advance() throws(SyntaxError) {
    switch token.kind {
    case .punctuator("{"): depth += 1
    case .punctuator("}"): depth -= 1
    default: break
    }
    // Consume the token even if the lexer fails after it, so that no brace counts twice.
    token = Token(kind: .end, place: token.place)
    endsEarly = true
    token = try lexer.next()
    endsEarly = false
  }

  /// Consumes a punctuator, if it is the next token.
  private mutating func take(_ punctuator: String) throws(SyntaxError) -> Bool {
    guard token.kind == .punctuator(punctuator) else { return false }
    try advance()
    return true
  }

  private mutating func expect(
    _ punctuator: String, after: String? = nil, advice: String? = nil
  ) throws(SyntaxError) {
    guard token.kind == .punctuator(punctuator) else {
      throw unexpected("`\(punctuator)`" + (after.map { " after \($0)" } ?? ""), advice: advice)
    }
    try advance()
  }

  private mutating func name(_ what: String, advice: String? = nil) throws(SyntaxError) -> NameSyntax {
    guard case .name(let text) = token.kind else { throw unexpected(what, advice: advice) }
    let found = NameSyntax(text: text, place: token.place)
    try advance()
    return found
  }

  private func unexpected(_ wanted: String, advice: String? = nil) -> SyntaxError {
    SyntaxError(token.place, "\(token.text) where \(wanted) should stand", advice)
  }
}
