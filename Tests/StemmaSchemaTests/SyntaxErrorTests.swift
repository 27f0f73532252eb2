import StemmaSchema
import Testing

@Suite struct SyntaxErrorTests {
  @Test func whatIsNoDefinitionIsRefused() {
    expectError("‸foo Bar {}", "unknown definition `foo`", "begin with `type`")
    expectError("‸{ }", "where a definition should stand", "begin with `type`")
    expectError("‸scalar Date", "own scalars", "AWSDate")
    expectError("‸interface A { x: Int }", "`interface` is not supported", "declare a type")
    expectError("‸union A = B | C", "`union` is not supported", "declare a type")
    expectError("‸extend type A { x: Int }", "`extend`", "one definition")
    expectError("type A ‸implements B @model { x: Int }", "`implements`", "leave it out")
  }

  @Test func fieldsAreNameAndType() {
    expectError(
      "type A @model {\n  x ‸y: Int\n}", "`y` where `:` after the field's name `x`", "write `x: Type`")
    expectError("type A @model {\n  x: ‸}\n", "`}` where a type should stand")
    expectError("type A @model {\n  x: [Int\n‸}", "`}` where `]` after the element type", "write `[Int]`")
    expectError("type A @model { x: [‸[Int]] }", "list of lists", "embedded type")
    expectError("type A @model { x‸(y: Int): Int }", "has arguments", "leave them out")
    expectError("type A @model { ‸5: Int }", "`5` where a field or `}`", "name: Type")
    expectError("type A @model { x: Int‸", "the end of the schema where a field or `}`")
  }

  @Test func argumentsAreNameAndValue() {
    expectError("type A @model(‸1) { x: Int }", "where an argument should stand", "name: value")
    expectError(
      "type A @model { x: Int @index(name ‸\"a\") }", "where `:` after the argument's name", "name: value")
    expectError("type A @model { x: Int @index(name: ‸) }", "where a value should stand")
    expectError(
      "type A @model { x: Int @index(name: \"a\", ‸name: \"b\") }", "`name` is given twice", "keep one")
    let deep = String(repeating: "[", count: 32)
    expectError("type A @model { x: Int @auth(r: \(deep)‸[", "nested too deeply", "at most 32")
  }

  @Test func tokensAreChecked() {
    expectError("type A @model { x: ‸é }", "unexpected character U+00E9", "A-Z")
    expectError("type A @model { x: Int @default(value: ‸\"abc\n\") }", "string without end", "same line")
    expectError("type A @model { x: Int @default(value: \"a‸\\q\") }", "unknown escape", "known are")
    expectError("type A @model { x: Int @default(value: \"‸\\uD800\") }", "surrogate", "both halves")
    expectError("type A @model { x: Int @default(value: \"‸\\u12\") }", "four hexadecimal")
    expectError("type A @model { x: Int @default(value: ‸01) }", "begins with 0", "leading zeros")
    expectError("type A @model { x: Int @default(value: ‸-) }", "without a number")
    expectError("type A @model { x: Int @default(value: ‸1x) }", "runs into `x`", "space")
    expectError("type A @model { x: Int @default(value: ‸1e) }", "no exponent")
    expectError("‸\"\"\"abc", "block string without end", "close it")
    expectError("‸.", "unexpected `.`")
    let name = String(repeating: "a", count: 256)
    expectError("type ‸\(name) @model { x: Int }", "name of 256 bytes", "at most 255")
  }

  @Test func severalDefinitionsReportTheirOwnErrors() throws {
    let text = """
      type A @model { x y: Int }
      scalar Date
      type B @model { z: é  w: Int }
      type C @model { fine: Int }
      enum D { 5 }
      """
    let error = #expect(throws: SchemaError.self) { try SDL.read(text) }
    #expect(error?.diagnostics.map(\.line) == [1, 2, 3, 5])
  }

  @Test func semanticErrorsAreCollectedInTheOrderOfTheText() {
    let text = """
      type A @model @foo { x: Nope  _y: Int }
      type B @model { a: A }
      """
    let error = #expect(throws: SchemaError.self) { try SDL.read(text) }
    #expect(error?.diagnostics.map(\.line) == [1, 1, 1, 2])
    #expect(error?.diagnostics.map(\.column) == [15, 25, 31, 20])
  }

  @Test func whatSaysNothingAboutDataIsSkipped() throws {
    let text = """
      # a comment, then a description
      \"\"\"
        All of them.
      \"\"\"
      schema { query: Query }
      directive @mine(x: [[Int!]!] = [1]) repeatable on FIELD_DEFINITION | OBJECT
      input Filter { name: String = "x" @auth, rule: Rule = { allow: public } }
      input Empty
      type Query { echo(msg: String = "hi"): String @function(name: "echo-${env}") }
      "One."
      type A @model(queries: null, subscriptions: { level: off }) @auth(rules: [{allow: owner}]) @searchable {
        "its name" name: String @auth(rules: [{allow: private, operations: [read]}])
      }
      "kinds" enum Kind { "first" A, B @deprecated(reason: "old") }
      """
    let (schema, warnings) = try SDL.read(text)
    #expect(schema.models.map(\.name) == ["A"])
    #expect(schema.models[0].fields.map(\.name) == ["id", "name"])
    #expect(schema.enums == [EnumType(name: "Kind", cases: ["A", "B"])])
    #expect(warnings.map(\.line) == [5, 6, 9, 11, 11, 11, 11, 12, 14])
  }

  @Test func stringsAreUnescapedAndBlocksDedented() throws {
    func standard(_ literal: String) throws -> String? {
      try SDL.read("type A @model { x: String @default(value: \(literal)) }").schema.models[0]
        .field(named: "x")?.defaultValue
    }
    #expect(try standard(#""a\"\\\/\n\u00e9\uD83D\uDE00""#) == #""a\"\\/\né😀""#)
    #expect(try standard("\"\"\"\n    a\n      b\n    \\\"\"\"\n  \"\"\"") == #""a\n  b\n\"\"\"""#)
  }

  /// Peers send their schemas, so no text may hang or trap the parser.
  @Test func hostileTextsEndInAnError() {
    let texts = [
      String(repeating: "type A @model {", count: 50_000), String(repeating: "[", count: 100_000),
      String(repeating: "\u{0}", count: 10_000),
      "type A @model { " + (0..<50_000).map { "f\($0): Int " }.joined() + "}",
      (0..<20_000).map { "type A\($0) { x: A\($0 + 1)! } " }.joined(),
      String(repeating: " ", count: SchemaLimits.text + 1),
      "type A @model { x: " + String(repeating: "[", count: 200_000),
      "input A { x: " + String(repeating: "[", count: 200_000),
    ]
    for text in texts {
      let error = #expect(throws: SchemaError.self) { try SDL.read(text) }
      #expect((1...SchemaLimits.diagnostics).contains(error?.diagnostics.count ?? 0))
    }
  }

  @Test func everyPrefixAndEveryDroppedTokenIsReadOrRefused() throws {
    let text = """
      enum E { A B }
      type A @model(timestamps: { createdAt: "on" }) @conflict(policy: LATEST) {
        id: ID! @primaryKey(sortKeyFields: ["e"])
        e: E! @index(name: "byE", sortKeyFields: ["id"]) @default(value: "A")
        others: [A!]! @hasMany
        one: A @belongsTo
      }
      """
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    for index in words.indices {
      var fewer = words
      fewer.remove(at: index)
      for text in [words[..<index].joined(separator: " "), fewer.joined(separator: " ")] {
        let schema: Schema
        do { schema = try SDL.read(text).schema } catch {
          #expect(!error.diagnostics.isEmpty)
          continue
        }
        #expect(try SDL.read(SDL.print(schema)).schema == schema)
      }
    }
  }
}
