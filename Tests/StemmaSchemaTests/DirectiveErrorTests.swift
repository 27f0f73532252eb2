import StemmaSchema
import Testing

@Suite struct DirectiveErrorTests {
  @Test func unknownDirectivesAndArgumentsAreRefusedOrIgnored() throws {
    expectError("type A @model ‸@foo { x: Int }", "unknown directive `@foo`", "@conflict, @mapsTo, @model")
    expectError("type A @model { x: Int ‸@foo }", "unknown directive `@foo`", "@belongsTo, @default")
    expectError("type A @model { x: Int ‸@connection }", "`@connection` is not supported", "`@hasMany`")
    expectError("type A @model ‸@key(fields: [\"x\"]) { x: Int }", "`@key` is not supported", "`@primaryKey`")
    expectError("type A @model(‸foo: 1) { x: Int }", "`@model` has no argument `foo`", "it takes timestamps")
    expectError(
      "type A @model { x: Int ‸@model }", "`@model` is not allowed on a field", "behind the name of a type")
    expectError(
      "type A @model ‸@hasMany { x: Int }", "`@hasMany` is not allowed on", "behind a field of a type")
    expectError("type A @model ‸@model { x: Int }", "`@model` stands twice", "keep one")
    expectError(
      "type A ‸@partition(fields: []) { x: Int }", "`@partition` is not allowed on a type without `@model`")
    try expectWarning("type A @model ‸@searchable { x: Int }", "`@searchable` is ignored")
    try expectWarning("type A @model(‸queries: null) { x: Int }", "`queries` of `@model` is ignored")
    try expectWarning("type A @model { x: Int @index(name: \"i\", ‸queryField: \"q\") }", "`queryField`")
    try expectWarning("enum A { B ‸@auth }", "`@auth` is ignored")
    try expectWarning("‸schema { query: Query }", "`schema` is ignored")
    try expectWarning("type ‸Query { x: Int }", "type `Query` is ignored")
    try expectWarning("‸directive @a on OBJECT", "ignored")
  }

  @Test func argumentsHaveTypes() {
    expectError("type A @model ‸@table { x: Int }", "needs the argument `name`", "@table(name: \"…\")")
    expectError("type A @model @table(name: ‸5) { x: Int }", "`name` must be a string", "in quotes")
    expectError(
      "type A @model @partition(fields: ‸5) { x: Int }", "must be a list of field names", "fields: [\"…\"]")
    expectError("type A @model @partition(fields: [‸5]) { x: Int }", "must hold strings", "fields: [\"…\"]")
    expectError("type A @model @partition(fields: [\"x\", ‸\"x\"]) { x: Int }", "stands twice", "once")
    expectError(
      "type A @model @conflict(policy: ‸NEVER) { x: Int }", "none of its words",
      "AUTOMERGE, LATEST, OPTIMISTIC")
    expectError(
      "type A @model @conflict(deletes: ‸7) { x: Int }", "none of its words",
      "BY_VERSION, DELETE_WINS, UPDATE_WINS")
    expectError("type A @model(timestamps: ‸5) { x: Int }", "object or null", "timestamps: {")
    expectError(
      "type A @model(timestamps: { ‸foo: \"x\" }) { x: Int }", "no `foo`", "createdAt and updatedAt")
    expectError("type A @model(timestamps: { createdAt: ‸5 }) { x: Int }", "must be a string", "in quotes")
    expectError(
      "type A @model(timestamps: ‸{ createdAt: \"x\" }) { x: Int }", "is not maintained", "x: AWSDateTime")
    expectError(
      "type A @model(timestamps: ‸{ createdAt: \"_x\" }) { x: Int }", "cannot be a field", "letters")
    expectError(
      "type A @model { x: Int @mapsTo(name: ‸\"_exists\") }", "`_exists` is not a name", "a letter first")
  }

  @Test func aMistypedModelIsNamed() {
    expectError("type A ‸@modle { x: Int }", "unknown directive `@modle`", "write `@model`")
    expectError(
      "type A @model { x: Int! ‸@primarKey }", "unknown directive `@primarKey`", "did you mean `@primaryKey`?"
    )
    expectError(
      "type A @model { x: Int! @primaryKey(‸sortKeyField: []) }", "has no argument `sortKeyField`",
      "did you mean `sortKeyFields`?")
  }

  @Test func typesAreKnown() {
    expectError("type A @model { x: ‸DateTime }", "unknown type `DateTime`", "write `AWSDateTime`")
    expectError("type A @model { x: ‸string }", "unknown type `string`", "did you mean `String`?")
    expectError("type A @model { x: ‸Strng }", "unknown type `Strng`", "did you mean `String`?")
    expectError("type A @model { x: ‸Nope }", "unknown type `Nope`", "declare it, or use one of ID")
    expectError(
      "type A @model { b: ‸B } type B @model { x: Int }", "needs a relationship", "`@belongsTo` or `@hasOne`")
    expectError(
      "type A @model { b: [‸B] } type B @model { x: Int }", "needs a relationship", "write `@hasMany`")
    expectError("type A { b: ‸B } type B @model { x: Int }", "cannot be embedded", "store the key of the B")
    expectError(
      "type A @model { x: Int }\ntype ‸A { x: Int }", "declared twice, first in line 1", "another name")
    expectError("type ‸Int { x: Float }", "is a scalar", "another name")
    expectError("type ‸_A @model { x: Int }", "begins with `_`", "another")
    expectError("enum ‸A { }", "has no case", "at least one")
    expectError("enum A { B ‸B }", "stands twice", "keep one")
    expectError("enum A { ‸true }", "cannot be a case", "another")
    expectError("type ‸A { }", "has no field", "at least one")
    expectError("type A { x: Int ‸x: Int }", "stands twice", "keep one")
    expectError("type A @model { x: Int ‸x: Int }", "stands twice", "keep one")
    expectError("type ‸A { b: B! } type B { a: A! }", "without end", "optional")
  }

  @Test func keysAreRequiredScalars() {
    expectError("type A @model { ‸id: ID }", "is the key and not required", "write `id: ID!`")
    expectError("type A @model { ‸id: [ID!]! }", "cannot be a key", "write `id: ID!`")
    expectError("type A @model { ‸id: A @belongsTo }", "`id` is a relationship", "`@primaryKey`")
    expectError("type A @model { ‸x: Int @primaryKey }", "is not required", "write `x: Int!`")
    expectError("type A @model { ‸x: [Int]! @primaryKey }", "is a list", "a scalar or an enum")
    expectError(
      "type A @model { x: E! @primaryKey } type E { y: Int }".replacing("x:", with: "‸x:"),
      "is an embedded type", "scalar")
    expectError(
      "type A @model { x: Int! @primaryKey(sortKeyFields: ‸[\"y\"]) }", "no field `y`",
      "declare it, or name one of x")
    expectError(
      "type A @model { x: Int! @primaryKey(sortKeyFields: [\"y\"])\n ‸y: Int }", "key part `y`",
      "write `y: Int!`")
    expectError(
      "type A @model { x: Int! @primaryKey ‸y: Int! @primaryKey }", "second `@primaryKey`",
      "sortKeyFields: [\"y\"]")
    expectError("type A @model { x: Int! ‸@primaryKey(sortKeyFields: [\"x\"]) }", "`x` stands twice", "once")
    expectError(
      "type A @model { x: Int! @primaryKey(sortKeyFields: ‸[\"b\"]) b: A @belongsTo }", "is a relationship",
      "reference fields")
  }

  @Test func partitionsAreBeginningsOfTheKey() throws {
    let key = "{ x: Int! @primaryKey(sortKeyFields: [\"y\"]) y: Int! }"
    expectError(
      "type A @model ‸@partition(fields: [\"y\"]) \(key)", "first parts of the key", "[\"x\", \"y\"]")
    expectError("type A @model ‸@partition(fields: [\"x\", \"z\"]) \(key)", "first parts of the key")
    expectError("type A @model ‸@partition \(key)", "needs the argument `fields`", "[\"x\"]")
    try expectWarning(
      "type A @model ‸@partition(fields: [\"x\", \"y\"]) \(key)", "a partition of its own", "fewer")
  }

  @Test func indexesNameScalars() {
    expectError("type A @model { ‸x: [Int] @index }", "is a list", "scalar or an enum")
    expectError(
      "type A @model { x: Int @index(sortKeyFields: ‸[\"y\"]) }", "no field `y`", "name one of id, x")
    expectError("type A @model { x: Int ‸@index(sortKeyFields: [\"x\"]) }", "stands twice", "once")
    expectError("type A @model { x: Int @index(name: ‸\"a b\") }", "cannot name an index", "letters")
    expectError(
      "type A @model { x: Int @index(name: \"a\") @index(name: ‸\"A\") }",
      "two indexes named `a` except for case", "a name of its own")
    expectError("type A @model { x: Int @index ‸@index }", "two indexes named `byX`", "a name of its own")
  }

  @Test func defaultsAreValuesOfTheirField() throws {
    expectError("type A @model { x: Int @default(value: ‸\"y\") }", "`y` is not an Int", "64 bits")
    expectError("type A @model { x: Float @default(value: ‸\"inf\") }", "is not a Float", "a number")
    expectError("type A @model { x: Boolean @default(value: ‸\"yes\") }", "is not a Boolean", "true or false")
    expectError(
      "type A @model { x: AWSDate @default(value: ‸\"2023-02-29\") }", "is not an AWSDate", "2024-02-29")
    expectError("enum E { B C } type A @model { x: E @default(value: ‸\"D\") }", "is no case of `E`", "B, C")
    expectError(
      "type A @model { x: [Int] @default(value: ‸\"1\") }", "a list has no default", "scalars and enums")
    expectError(
      "type E { y: Int } type A @model { x: E @default(value: ‸\"1\") }", "`E` has no default", "scalars")
    expectError("type A @model { x: Int ‸@default }", "needs the argument `value`", "@default(value: \"…\")")
    expectError("type A @model { x: Int @default(value: ‸null) }", "must be a string", "quotes")
    func standard(_ type: String, _ literal: String) throws -> String? {
      try SDL.read("enum E { B C } type A @model { x: \(type) @default(value: \(literal)) }")
        .schema.models[0].field(named: "x")?.defaultValue
    }
    #expect(try standard("Int", "\"5\"") == "5")
    #expect(try standard("Int", "5") == "5")
    #expect(try standard("Float", "5") == "5.0")
    #expect(try standard("Float", "\"-0\"") == "0.0")
    #expect(try standard("Boolean", "true") == "true")
    #expect(try standard("E", "C") == "\"C\"")
    #expect(try standard("String", "\"My new Todo\"") == "\"My new Todo\"")
  }
}
