import StemmaSchema
import Testing

/// The table of Amplify's documentation about automatic UUID keys, row by row.
@Suite struct IdentifierTests {
  private func customer(_ fields: String) throws -> Model {
    let schema = try SDL.read(
      "type Customer @model {\n\(fields)\n  firstName: String\n  lastName: String\n}"
    ).schema
    return try #require(schema.model(named: "Customer"))
  }

  private func key(_ model: Model) -> [String] { model.keyFields.map { model.fields[$0].name } }
  private func minted(_ model: Model) -> String? { model.autoPopulatedField.map { model.fields[$0].name } }

  @Test func withoutPrimaryKey() throws {
    let model = try customer("")
    #expect(key(model) == ["id"])
    #expect(model.fields[0] == Field(name: "id", type: FieldType(.scalar(.id)), isRequired: true))
    #expect(minted(model) == "id")
    #expect(model.partitionDepth == 0)
  }

  @Test func withoutPrimaryKeyButWithExplicitID() throws {
    let model = try customer("id: ID!")
    #expect(key(model) == ["id"])
    #expect(minted(model) == "id")
  }

  @Test func primaryKeyOnACustomField() throws {
    let model = try customer("customerId: ID! @primaryKey")
    #expect(key(model) == ["customerId"])
    #expect(minted(model) == nil)
    #expect(model.partitionDepth == 0)
  }

  @Test func primaryKeyOnID() throws {
    let model = try customer("id: ID! @primaryKey\n dob: AWSDateTime!")
    #expect(key(model) == ["id"])
    #expect(minted(model) == "id")
  }

  @Test func primaryKeyOnIDWithSortKey() throws {
    let model = try customer("id: ID! @primaryKey (sortKeyFields: [\"dob\"])\n dob: AWSDateTime!")
    #expect(key(model) == ["id", "dob"])
    #expect(minted(model) == "id")
    #expect(model.partitionDepth == 0)
  }

  @Test func idInTheSortKey() throws {
    let model = try customer("country: String! @primaryKey (sortKeyFields: [\"id\"])\n id: ID!")
    #expect(key(model) == ["country", "id"])
    #expect(minted(model) == "id")
    #expect(model.partitionDepth == 1)
  }

  @Test func primaryKeyWithoutID() throws {
    let model = try customer("zip: String! @primaryKey (sortKeyFields: [\"username\"])\n username: String!")
    #expect(key(model) == ["zip", "username"])
    #expect(minted(model) == nil)
    #expect(model.partitionDepth == 1)
  }

  @Test func theOrderOfTheKeyIsThatOfItsDefinition() throws {
    let model = try customer("b: Int!\n c: Int!\n a: Int! @primaryKey(sortKeyFields: [\"c\", \"b\"])")
    #expect(key(model) == ["a", "c", "b"])
  }

  @Test func aNumberNamedIDIsMintedByTheNode() throws {
    let model = try customer("id: Int! @primaryKey(sortKeyFields: [\"at\"])\n at: AWSDateTime!")
    #expect(minted(model) == "id")
    #expect(model.partitionDepth == 0)
  }

  @Test func partitionOverridesTheRule() throws {
    func depth(_ directive: String) throws -> Int {
      try SDL.read(
        "type A @model \(directive) { x: ID! @primaryKey(sortKeyFields: [\"y\", \"z\"]) y: Int! z: Int! }"
      ).schema.models[0].partitionDepth
    }
    #expect(try depth("") == 1)
    #expect(try depth("@partition(fields: [\"x\", \"y\"])") == 2)
    #expect(try depth("@partition(fields: \"x\")") == 1)
    #expect(try depth("@partition(fields: [])") == 0)
  }
}
