import StemmaEvents
import StemmaSchema
import Testing
import StemmaSimulation

/// A model with one field `x` of the given type, together with an enum and embedded types.
func fixture(_ type: String) throws -> (schema: Schema, field: Field) {
  let schema = try SDL.read(
    """
    enum Colour { RED GREEN }
    type Place { street: String!  number: Int  colour: Colour @default(value: "RED")  places: [Place] at: AWSDateTime }
    type A @model { x: \(type) }
    """
  ).schema
  return (schema, try #require(schema.model(named: "A")?.field(named: "x")))
}

@Suite struct FieldValueTests {
  private func read(_ type: String, _ json: String) throws -> Value {
    let (schema, field) = try fixture(type)
    return try schema.value(JSON.parse(json), for: field, of: "A")
  }

  private func expectRefused(
    _ type: String, _ json: String, _ rule: String, field: String = "x",
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let error = #expect(throws: ValueError.self, sourceLocation: sourceLocation) { try read(type, json) }
    #expect(error?.model == "A", sourceLocation: sourceLocation)
    #expect(error?.field == field, sourceLocation: sourceLocation)
    #expect(error?.rule.contains(rule) == true, "\(error?.rule ?? "")", sourceLocation: sourceLocation)
  }

  @Test func nullIsForOptionalFields() throws {
    #expect(try read("Int", "null") == .null)
    expectRefused("Int!", "null", "no null")
  }

  /// Whole numbers beyond ±(2^53-1) are JSON strings on output. Input accepts both forms.
  @Test func largeIntegersAreStringsOnOutput() throws {
    let limit: Int64 = 1 << 53
    for number in [limit - 2, limit - 1, limit, limit + 1, .max, -limit + 1, -limit, -limit - 1, .min, 0] {
      var bytes: [UInt8] = []
      Value.int(number).appendJSON(to: &bytes)
      let text = String(decoding: bytes, as: UTF8.self)
      #expect(text == (number.magnitude < 1 << 53 ? "\(number)" : "\"\(number)\""))
      #expect(Value.int(number).json.text == text)
      for form in ["\(number)", "\"\(number)\""] { #expect(try read("Int", form) == .int(number)) }
      // Inside of lists, too.
      #expect(try read("[Int]", "[\(number)]") == .json("[\(text)]"))
      #expect(try read("[Int]", "[\"\(number)\"]") == .json("[\(text)]"))
    }
  }

  @Test func integersAreWholeAndFit() throws {
    expectRefused("Int", "9223372036854775808", "2^63")
    expectRefused("Int", "\"9223372036854775808\"", "2^63")
    for json in ["1.0", "1e2", "\"+1\"", "\"01\"", "\" 1\"", "true", "\"\"", "[1]"] {
      expectRefused("Int", json, "whole number")
    }
    #expect(try read("Int", "-0") == .int(0))
    expectRefused("AWSTimestamp", "1.5", "whole number")
    #expect(try read("AWSTimestamp", "-1") == .int(-1))
  }

  @Test func floatsAreFiniteAndHaveOneZero() throws {
    #expect(try read("Float", "5") == .double(5))
    #expect(try read("Float", "1.50") == .double(1.5))
    #expect(try read("Float", "-0.0") == .double(0))
    #expect(try read("Float", "-0") == .double(0))
    guard case .double(let zero) = try read("Float", "-0.0") else { return }
    #expect(zero.sign == .plus)
    expectRefused("Float", "1e999", "too large")
    for json in ["\"1\"", "\"NaN\"", "true"] { expectRefused("Float", json, "number") }
  }

  @Test(arguments: 1...50)
  func doublesAreWrittenInTheFewestDigitsThatReadBack(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let (schema, field) = try fixture("Float")
    for _ in 0..<200 {
      let number = Double(bitPattern: random.next())
      if !number.isFinite || number == 0 { continue }
      #expect(
        try schema.value(JSON.parse(Value.double(number).json.text), for: field, of: "A") == .double(number))
    }
  }

  @Test func idsThatLookLikeUUIDsAreLowerCase() throws {
    let text = "01890A5D-AC96-774B-BCCE-B302099A8057"
    #expect(try read("ID", "\"\(text)\"") == .string(text.lowercased()))
    #expect(try read("String", "\"\(text)\"") == .string(text))
    #expect(try read("ID", "\"ABC\"") == .string("ABC"))
    #expect(try read("ID", "5") == .string("5"))
    #expect(try read("[ID]", "[\"\(text)\"]") == .json("[\"\(text.lowercased())\"]"))
    expectRefused("ID", "1.5", "a string")
  }

  @Test func textScalarsKeepTheirText() throws {
    #expect(
      try read("AWSDateTime", "\"2015-06-30T13:16:30.500+02:00\"") == .string("2015-06-30T13:16:30.500+02:00")
    )
    #expect(try read("AWSDate", "\"2024-02-29\"") == .string("2024-02-29"))
    #expect(try read("AWSIPAddress", "\"FE80::1\"") == .string("FE80::1"))
    expectRefused("AWSDateTime", "\"2015-06-30T13:16:30\"", "2024-02-29T23:59:59Z")
    expectRefused("AWSDate", "\"2023-02-29\"", "2024-02-29")
    expectRefused("AWSTime", "\"24:00\"", "23:59:59.999")
    expectRefused("AWSEmail", "\"x\"", "name@example.org")
    expectRefused("AWSPhone", "\"x\"", "3 to 15 digits")
    expectRefused("AWSURL", "\"x\"", "https://example.org/path")
    expectRefused("AWSIPAddress", "\"x\"", "192.0.2.1")
    expectRefused("AWSDate", "5", "a string")
    expectRefused("String", "5", "a string")
    expectRefused("Boolean", "\"true\"", "true or false")
    expectRefused("Boolean", "1", "true or false")
  }

  @Test func awsJSONIsCanonicalText() throws {
    #expect(try read("AWSJSON", #""{ \"b\": 1.0, \"a\": [] }""#) == .string(#"{"a":[],"b":1.0}"#))
    #expect(
      try read("AWSJSON", #"{"b":12345678901234567890,"a":9007199254740993}"#)
        == .string(#"{"a":9007199254740993,"b":12345678901234567890}"#))
    #expect(try read("AWSJSON", #""\"x\"""#) == .string("\"x\""))
    #expect(try read("AWSJSON", "\"null\"") == .string("null"))
    expectRefused("AWSJSON", "\"x\"", "holds JSON")
    // The output can be read back unchanged.
    let value = try read("AWSJSON", #""\"5\"""#)
    #expect(try read("AWSJSON", value.json.text) == value)
  }

  @Test func enumsTakeTheirCases() throws {
    #expect(try read("Colour", "\"RED\"") == .string("RED"))
    expectRefused("Colour", "\"BLUE\"", "one of RED, GREEN")
    expectRefused("Colour", "\"red\"", "one of RED, GREEN")
    #expect(try read("[Colour!]", "[\"RED\",\"RED\"]") == .json("[\"RED\",\"RED\"]"))
    expectRefused("[Colour]", "[\"RED\",\"BLUE\"]", "one of", field: "x[1]")
  }

  @Test func listsComeInFourForms() throws {
    for (type, allowsNull, allowsNullInside) in [
      ("[String]", true, true), ("[String!]", true, false), ("[String]!", false, true),
      ("[String!]!", false, false),
    ] {
      #expect(try read(type, " [ \"a\" , \"\" ] ") == .json("[\"a\",\"\"]"))
      #expect(try read(type, "[]") == .json("[]"))
      if allowsNull {
        #expect(try read(type, "null") == .null)
      } else {
        expectRefused(type, "null", "no null")
      }
      if allowsNullInside {
        #expect(try read(type, "[null]") == .json("[null]"))
      } else {
        expectRefused(type, "[null]", "takes no null", field: "x[0]")
      }
      expectRefused(type, "\"a\"", "a list")
    }
  }

  @Test func embeddedValuesAreCanonical() throws {
    #expect(
      try read("Place", #"{"street":"S","number":null,"places":[{"street":"T","colour":null},null]}"#)
        == .json(#"{"colour":"RED","places":[{"street":"T"},null],"street":"S"}"#))
    #expect(
      try read("Place", #"{"number":9007199254740993,"street":"S","colour":"GREEN"}"#)
        == .json(#"{"colour":"GREEN","number":"9007199254740993","street":"S"}"#))
    expectRefused("Place", #"{"number":1}"#, "no null", field: "x.street")
    expectRefused(
      "Place", #"{"street":"S","nope":1}"#, "Place has the fields street, number", field: "x.nope")
    expectRefused(
      "Place", #"{"street":"S","places":[{"street":1}]}"#, "a string", field: "x.places[0].street")
    expectRefused("Place", "5", "a JSON object, Place")
    expectRefused("[Place!]", #"[{"street":"S"},5]"#, "a JSON object", field: "x[1]")
    let deep = String(repeating: #"{"street":"S","places":["#, count: 63) + String(repeating: "]}", count: 63)
    #expect(throws: Never.self) { try read("Place", deep) }
  }

  @Test func whatWasReadIsReadAgainAsItself() throws {
    let (schema, field) = try fixture("[Place]")
    let first = try schema.value(JSON.parse(#"[{"street":"S"},null]"#), for: field, of: "A")
    #expect(try schema.value(first.json, for: field, of: "A") == first)
  }

  @Test func theErrorShowsTheValueCutShort() throws {
    let long = String(repeating: "é", count: 500)
    let (schema, field) = try fixture("Int")
    let error = #expect(throws: ValueError.self) { try schema.value(.string(long), for: field, of: "A") }
    #expect((error?.value.utf8.count ?? 0) <= ValueError.longestValue + 3)
    #expect(error?.value.hasSuffix("…") == true)
  }

  @Test func valuesAreBounded() throws {
    let (schema, field) = try fixture("String")
    for (count, isRead) in [(Limits.value - 1, true), (Limits.value, true), (Limits.value + 1, false)] {
      let json = JSON.string(String(repeating: "a", count: count))
      if isRead {
        #expect(throws: Never.self) { try schema.value(json, for: field, of: "A") }
      } else {
        #expect(throws: ValueError.self) { try schema.value(json, for: field, of: "A") }
      }
    }
  }

  @Test func textIsReadByTheFieldsType() throws {
    func read(_ type: String, _ text: String) throws -> Value {
      let (schema, field) = try fixture(type)
      return try schema.value(text: text, for: field, of: "A")
    }
    #expect(try read("String", "5") == .string("5"))
    #expect(try read("String", "null") == .string("null"))
    #expect(try read("String", "") == .string(""))
    #expect(try read("ID", "5") == .string("5"))
    #expect(try read("Int", "5") == .int(5))
    #expect(try read("Int", "9007199254740993") == .int(9_007_199_254_740_993))
    #expect(try read("Float", "5") == .double(5))
    #expect(try read("Boolean", "true") == .bool(true))
    #expect(try read("Colour", "RED") == .string("RED"))
    #expect(try read("[Int]", "[1, 2]") == .json("[1,2]"))
    #expect(try read("Place", #"{"street": "S"}"#) == .json(#"{"colour":"RED","street":"S"}"#))
    #expect(try read("AWSJSON", #"{"b":1, "a":2}"#) == .string(#"{"a":2,"b":1}"#))
    #expect(throws: ValueError.self) { try read("Int", "null") }
    #expect(throws: ValueError.self) { try read("Int", "five") }
    #expect(throws: ValueError.self) { try read("Int", "\"5\"x") }
    #expect(throws: ValueError.self) { try read("Boolean", "yes") }
    #expect(throws: ValueError.self) { try read("[Int]", "1,2") }
    #expect(throws: ValueError.self) { try read("Colour", "BLUE") }
  }

  @Test func defaultsAreValues() throws {
    func standard(_ type: String, _ literal: String) throws -> Value? {
      let (schema, field) = try fixture("\(type) @default(value: \"\(literal)\")")
      return try #require(schema.model(named: "A")).defaultValue(of: field)
    }
    #expect(try standard("Int", "5") == .int(5))
    #expect(try standard("Int", "9007199254740993") == .int(9_007_199_254_740_993))
    #expect(try standard("Float", "-0") == .double(0))
    #expect(try standard("Boolean", "false") == .bool(false))
    #expect(try standard("Colour", "GREEN") == .string("GREEN"))
    #expect(try standard("String", "5") == .string("5"))
    let (schema, field) = try fixture("Int")
    #expect(schema.model(named: "A")?.defaultValue(of: field) == nil)
  }

  @Test func textInALogThatIsNoJSONIsWrittenAsAString() {
    #expect(Value.json("[1,").json.text == "\"[1,\"")
    var bytes: [UInt8] = []
    Value.json("}, \"x\": {").appendJSON(to: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == #""}, \"x\": {""#)
  }
}
