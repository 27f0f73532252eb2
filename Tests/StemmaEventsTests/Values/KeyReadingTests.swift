import StemmaEvents
import StemmaSchema
import Testing

@Suite struct KeyReadingTests {
  private func model(_ fields: String) throws -> (Schema, Model) {
    let schema = try SDL.read("enum E { LOW HIGH } type A @model { \(fields) }").schema
    return (schema, try #require(schema.model(named: "A")))
  }

  private static let composite = "country: String! @primaryKey(sortKeyFields: [\"id\"])  id: ID!"

  @Test func aKeyOfOnePartMayBeBare() throws {
    let (schema, model) = try model("isbn: Int! @primaryKey")
    let key = Key(.int(5))
    #expect(try schema.key(.int(5), of: model) == key)
    #expect(try schema.key(.string("5"), of: model) == key)
    #expect(try schema.key(JSON.parse("{\"isbn\":5}"), of: model) == key)
    #expect(try schema.key(text: "5", of: model) == key)
    #expect(try schema.key(text: "{\"isbn\": 5}", of: model) == key)
    #expect(try schema.key(parts: [("isbn", "5")], of: model) == key)
    #expect(schema.json(of: key, model: model).text == "{\"isbn\":5}")
  }

  @Test func aCompositeKeyIsAnObjectWithExactlyItsParts() throws {
    let (schema, model) = try model(Self.composite)
    let key = Key(.string("CH"), .string("x"))
    #expect(try schema.key(JSON.parse(#"{"id":"x","country":"CH"}"#), of: model) == key)
    #expect(try schema.key(parts: [("id", "x"), ("country", "CH")], of: model) == key)
    #expect(schema.json(of: key, model: model).text == #"{"country":"CH","id":"x"}"#)
    for text in [#"{"country":"CH"}"#, #"{"country":"CH","id":"x","more":1}"#, "\"CH\"", "[]", "{}"] {
      let error = #expect(throws: ValueError.self) { try schema.key(JSON.parse(text), of: model) }
      #expect(error?.rule == #"a key of A is {"country": String, "id": ID}"#)
    }
    for parts in [
      [("country", "CH")], [("country", "CH"), ("country", "CH")], [("id", "x"), ("nope", "y")],
    ] {
      #expect(throws: ValueError.self) { try schema.key(parts: parts, of: model) }
    }
    #expect(throws: ValueError.self) { try schema.key(text: "CH", of: model) }
    #expect(throws: ValueError.self) { try schema.key(text: "{", of: model) }
    #expect(throws: ValueError.self) { try schema.key(JSON.parse(#"{"country":null,"id":"x"}"#), of: model) }
  }

  @Test func absentPartsAreMintedWhereTheyCanBe() throws {
    let (schema, model) = try model(Self.composite)
    let key = try schema.key(JSON.parse(#"{"country":"CH"}"#), of: model, mint: { .string("minted") })
    #expect(key == Key(.string("CH"), .string("minted")))
    #expect(throws: ValueError.self) {
      try schema.key(JSON.parse(#"{"id":"x"}"#), of: model, mint: { .string("minted") })
    }
    let (simple, plain) = try self.model("x: Int")
    #expect(try simple.key(nil, of: plain, mint: { .string("minted") }) == Key(.string("minted")))
    #expect(try simple.key(.string("given"), of: plain, mint: { .string("minted") }) == Key(.string("given")))
    #expect(throws: ValueError.self) { try simple.key(nil, of: plain) }
  }

  @Test func partsHaveOneForm() throws {
    let (schema, model) = try model(
      "at: AWSDateTime! @primaryKey(sortKeyFields: [\"id\", \"e\", \"f\", \"b\"])  id: ID!  e: E!  f: Float!  b: Boolean!"
    )
    let key = try schema.key(
      JSON.parse(
        #"{"at":"2015-06-30T13:16:30.000+02:00","id":"01890A5D-AC96-774B-BCCE-B302099A8057","e":"LOW","f":-0.0,"b":true}"#
      ),
      of: model)
    #expect(
      key
        == Key(
          .string("2015-06-30T11:16:30Z"), .string("01890a5d-ac96-774b-bcce-b302099a8057"), .string("LOW"),
          .double(0), .bool(true)))
    #expect(Partition(model: model, key: key).description == "at=2015-06-30T11:16:30Z")
    #expect(throws: ValueError.self) {
      try schema.key(
        JSON.parse(#"{"at":"0000-01-01T00:00:00+01:00","id":"x","e":"LOW","f":0,"b":true}"#), of: model)
    }
  }

  /// Fields that hold the key of another record use the form of keys. Others keep their text.
  @Test func referenceFieldsAreWrittenAsKeysAre() throws {
    let schema = try SDL.read(
      """
      type Day @model { at: AWSDateTime! @primaryKey }
      type Note @model { dayAt: AWSDateTime  written: AWSDateTime  day: Day @belongsTo(fields: ["dayAt"]) }
      """
    ).schema
    let message = try #require(schema.model(named: "Note"))
    func read(_ name: String) throws -> Value {
      try schema.value(
        .string("2015-06-30T13:16:30.0+02:00"), for: #require(message.field(named: name)), of: "Note")
    }
    #expect(try read("dayAt") == .string("2015-06-30T11:16:30Z"))
    #expect(try read("written") == .string("2015-06-30T13:16:30.0+02:00"))
  }

  @Test func keysAndPartitionsAreBounded() throws {
    let (schema, model) = try model("a: String! @primaryKey")
    // Two bytes of a string's encoding are its tag and its end.
    for (count, isRead) in [(Limits.key - 3, true), (Limits.key - 2, true), (Limits.key - 1, false)] {
      let json = JSON.string(String(repeating: "x", count: count))
      if isRead {
        #expect(throws: Never.self) { try schema.key(json, of: model) }
      } else {
        #expect(throws: ValueError.self) { try schema.key(json, of: model) }
      }
    }
    let (other, composite) = try self.model("a: String! @primaryKey(sortKeyFields: [\"b\"])  b: Int!")
    // `a=` and the value, each `%` of which becomes three bytes.
    for (count, isRead) in [
      (Limits.partition - 3, true), (Limits.partition - 2, true), (Limits.partition - 1, false),
    ] {
      let text = String(repeating: "%", count: count / 3) + String(repeating: "x", count: count % 3)
      let json = JSON.object([("a", .string(text)), ("b", .int(1))])
      if isRead {
        #expect(throws: Never.self) { try other.key(json, of: composite) }
      } else {
        #expect(throws: ValueError.self) { try other.key(json, of: composite) }
      }
    }
  }

  @Test func largeNumbersInKeysAreStringsOnOutput() throws {
    let (schema, model) = try model("n: Int! @primaryKey")
    let key = try schema.key(text: "9007199254740993", of: model)
    #expect(schema.json(of: key, model: model).text == "{\"n\":\"9007199254740993\"}")
    #expect(try schema.key(schema.json(of: key, model: model), of: model) == key)
  }
}
