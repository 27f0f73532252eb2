import StemmaSchema
import Testing

@Suite struct NameTests {
  @Test(arguments: [
    ("Book", "books"), ("Box", "boxes"), ("Branch", "branches"), ("Wish", "wishes"), ("Quiz", "quizes"),
    ("Bus", "buses"), ("Category", "categories"), ("Day", "days"), ("MediaType", "mediaTypes"),
    ("PlaylistTrack", "playlistTracks"), ("URLEntry", "urlEntries"), ("URL", "urls"), ("A", "as"),
    ("Project4aV2", "project4aV2s"), ("todo", "todos"), ("Y", "ys"),
  ])
  func tablesAreNamedByTheNaiveRule(model: String, table: String) throws {
    #expect(Naming.tableName(ofModel: model) == table)
    #expect(try SDL.read("type \(model) @model { x: Int }").schema.models[0].tableName == table)
  }

  @Test func tableOverridesTheRule() throws {
    let schema = try SDL.read("type Book @model @table(name: \"library\") { x: Int }").schema
    #expect(schema.models[0].tableName == "library")
    expectError("type A @model ‸@table(name: \"_a\") { x: Int }", "cannot name a table", "a letter first")
    expectError("type A @model ‸@table(name: \"SQLITE_a\") { x: Int }", "cannot name a table", "not sqlite_")
    expectError("type A @model ‸@table(name: \"a b\") { x: Int }", "cannot name a table", "letters")
  }

  /// SQLite considers `postID` and `postId` one column, and `books` and `BOOKS` one table.
  @Test func namesThatDifferOnlyInCaseAreRefused() {
    expectError(
      "type A @model {\n  postID: ID\n  ‸postId: ID\n}", "`postID` and `postId` of `A` differ only in case",
      "one column")
    expectError(
      "type Book @model { x: Int }\ntype ‸BOOK @model { x: Int }",
      "have the same name `books` except for case", "@table")
    expectError(
      "type Book @model { x: Int }\ntype Other @model ‸@table(name: \"Books\") { x: Int }", "same name",
      "@table")
    // Implied reference fields are included.
    expectError(
      "type P @model { c: [C] ‸@hasMany }\ntype C @model { PCID: ID }".replacing(
        "c: [C] ‸", with: "‸c: [C] "),
      "differ only in case")
  }

  @Test func namesThatBeginWithAnUnderscoreAreRefused() {
    expectError("type A @model { ‸_version: Int }", "`_version` begins with `_`", "write `version`")
  }

  @Test func storedNamesAreNotShared() throws {
    expectError(
      "type A @model {\n  new: Int @mapsTo(name: \"old\")\n  ‸old: Int\n}", "are both stored as `old`",
      "@mapsTo")
    expectError(
      "type A @model { x: Int }\ntype ‸B @model @mapsTo(name: \"A\") { x: Int }", "are both stored as `A`",
      "@mapsTo")
    let schema = try SDL.read("type B @model @mapsTo(name: \"A\") { y: Int @mapsTo(name: \"x\") }").schema
    #expect(schema.models[0].storedName == "A")
    #expect(schema.models[0].tableName == "bs")
    #expect(schema.models[0].field(named: "y")?.storedName == "x")
  }

  @Test func timestampsAreFoundOrNamed() throws {
    func read(_ text: String) throws -> Model { try SDL.read(text).schema.models[0] }
    let plain = try read("type A @model { createdAt: AWSDateTime  x: Int }")
    #expect(plain.createdAt == "createdAt")
    #expect(plain.updatedAt == nil)
    let named = try read("type A @model(timestamps: { createdAt: \"on\" }) { updatedAt: AWSDateTime! }")
    #expect(named.createdAt == "on")
    #expect(named.updatedAt == "updatedAt")
    #expect(named.field(named: "on")?.type.scalar == .awsDateTime)
    #expect(try read("type A @model(timestamps: null) { createdAt: AWSDateTime }").createdAt == nil)
    let partly = try read(
      "type A @model(timestamps: { createdAt: null }) { createdAt: AWSDateTime updatedAt: AWSDateTime }")
    #expect(partly.createdAt == nil)
    #expect(partly.updatedAt == "updatedAt")
    try expectWarning("type A @model { ‸createdAt: String }", "not maintained", "createdAt: AWSDateTime")
  }

  @Test func indexesWithoutNameGetOne() throws {
    let model = try SDL.read(
      "type A @model { name: String @index(sortKeyFields: [\"age\"]) age: Int @index }"
    ).schema.models[0]
    #expect(
      model.indexes == [
        Index(name: "byNameAndAge", fields: ["name", "age"]), Index(name: "byAge", fields: ["age"]),
      ])
  }
}
