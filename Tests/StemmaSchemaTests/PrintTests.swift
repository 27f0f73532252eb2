import StemmaSchema
import Testing
import StemmaSimulation

@Suite struct PrintTests {
  @Test func theCanonicalFormSpellsEverythingOut() throws {
    let text = """
      type Post @model(timestamps: { createdAt: "on" }) @conflict(policy: OPTIMISTIC) {
        tags: [Tag] @manyToMany(relationName: "PostTag")
        comments: [Comment!]! @hasMany
        state: State @default(value: "DRAFT") @index
      }
      type Tag @model { name: String! @primaryKey posts: [Post] @manyToMany(relationName: "PostTag") }
      type Comment @model @mapsTo(name: "Remark") @table(name: "remarks") @partition(fields: ["post"]) {
        post: ID! @primaryKey(sortKeyFields: ["n"])
        n: Int!
        places: [Place!]!
        text: String @mapsTo(name: "body") @default(value: "a\\n\\"b\\"")
      }
      enum State { DRAFT DONE }
      type Place { at: [Float] @auth }
      """
    #expect(
      try SDL.print(SDL.read(text).schema) == """
        enum State {
          DRAFT
          DONE
        }

        type Place {
          at: [Float]
        }

        type Post @model(timestamps: { createdAt: "on" }) @conflict(policy: OPTIMISTIC) {
          id: ID! @primaryKey
          state: State @default(value: "DRAFT") @index(name: "byState")
          on: AWSDateTime
          tags: [Tag] @manyToMany(relationName: "PostTag")
          comments: [Comment] @hasMany(references: ["postCommentsId"])
        }

        type Tag @model {
          name: String! @primaryKey
          posts: [Post] @manyToMany(relationName: "PostTag")
        }

        type Comment @model @mapsTo(name: "Remark") @table(name: "remarks") {
          post: ID! @primaryKey(sortKeyFields: ["n"])
          n: Int!
          places: [Place!]!
          text: String @default(value: "a\\n\\"b\\"") @mapsTo(name: "body")
          postCommentsId: ID
        }

        """)
  }

  /// Failures print the seed, so that each can be repeated.
  @Test(arguments: 1...200)
  func whatIsPrintedIsReadBack(seed: Int) throws {
    var generator = SchemaGenerator(seed: UInt64(seed))
    let text = generator.text()
    let schema = try SDL.read(text).schema
    let printed = SDL.print(schema)
    #expect(try SDL.read(printed).schema == schema, "seed \(seed)\n\(text)\n\(printed)")
    #expect(try SDL.print(SDL.read(printed).schema) == printed)
  }

  /// An accepted schema can be stored and read back. Any other is refused with a position in its
  /// text.
  @Test func looseSchemasAreReadBackOrRefusedWithTheirPlace() throws {
    var accepted = 0
    let count = Trials.count(500)
    for seed in 1...count {
      var generator = SchemaGenerator(seed: UInt64(seed), isLoose: true)
      let text = generator.text()
      let schema: Schema
      do { schema = try SDL.read(text).schema } catch {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        for diagnostic in error.diagnostics {
          let isInside =
            lines.indices.contains(diagnostic.line - 1)
            && 1...lines[diagnostic.line - 1].unicodeScalars.count + 1 ~= diagnostic.column
          #expect(isInside, "seed \(seed): \(diagnostic)\n\(text)")
        }
        continue
      }
      accepted += 1
      let printed = SDL.print(schema)
      do {
        #expect(try SDL.read(printed).schema == schema, "seed \(seed)\n\(text)\n\(printed)")
      } catch { Issue.record("seed \(seed): \(error)\n\(text)\n\(printed)") }
    }
    #expect(accepted > count / 4 && accepted < count)
  }

  static let racks = """
    type Rack @model { row: ID! @primaryKey(sortKeyFields: ["col"]) col: String! REL }
    type Box @model { id: ID! FIELDS BACK }
    """

  /// The canonical text names implied reference fields, so a mixture that it cannot express must be
  /// refused at once.
  @Test(arguments: [
    ("boxes: [Box] @hasMany", "", "rackBoxes"), ("", "rack: Rack @belongsTo", "boxRack"),
  ])
  func impliedReferenceFieldsAreAllRequiredOrNone(relation: String, back: String, prefix: String) throws {
    func schema(_ fields: String) throws -> Schema {
      let text = Self.racks.replacing("REL", with: relation).replacing("BACK", with: back)
      return try SDL.readForStoring(text.replacing("FIELDS", with: fields)).schema
    }
    #expect(throws: SchemaError.self) { try schema("\(prefix)Row: ID! \(prefix)Col: String") }
    #expect(throws: SchemaError.self) { try schema("\(prefix)Row: ID \(prefix)Col: String!") }
    for (fields, isRequired) in [
      ("\(prefix)Row: ID!", true), ("\(prefix)Col: String!", true), ("\(prefix)Col: String", false),
      ("\(prefix)Row: ID! \(prefix)Col: String!", true), ("", false),
    ] {
      let box = try #require(try schema(fields).model(named: "Box"))
      let found = ["Row", "Col"].map { box.field(named: prefix + $0)?.isRequired }
      #expect(found == [isRequired, isRequired], "\(fields)")
    }
  }

  @Test func aPartlyRequiredImpliedReferenceIsRefusedAtItsRelationship() {
    expectError(
      """
      type Rack @model { row: ID! @primaryKey(sortKeyFields: ["col"]) col: String! ‸boxes: [Box] @hasMany }
      type Box @model { id: ID! rackBoxesRow: ID! rackBoxesCol: String }
      """,
      "partly required: `rackBoxesCol` is not", "make all of rackBoxesRow, rackBoxesCol required, or none")
    expectError(
      """
      type Rack @model { row: ID! @primaryKey(sortKeyFields: ["col"]) col: String! }
      type Box @model { id: ID! ‸rack: Rack @hasOne boxRackRow: ID! boxRackCol: String }
      """,
      "partly required: `boxRackCol` is not", "make all of boxRackRow, boxRackCol required, or none")
  }

  /// The canonical text includes implied parts, so it can exceed the limit although the original
  /// does not.
  @Test func aSchemaWhoseCanonicalTextIsTooLongIsRefused() throws {
    var text = ""
    let name = String(repeating: "n", count: 240)
    for number in 0..<1500 { text += "type M\(number)\(name) @model{a:ID b:M\(number)\(name) @hasOne}\n" }
    _ = try SDL.read(text)
    #expect(throws: SchemaError.self) { try SDL.readForStoring(text) }
  }
}
