import StemmaEvents
import Testing
import StemmaSimulation

@Suite struct JSONTests {
  private func expectError(
    _ text: String, _ problem: JSONError.Problem, at offset: Int,
    sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let error = #expect(throws: JSONError.self, sourceLocation: sourceLocation) { try JSON.parse(text) }
    #expect(error == JSONError(problem, at: offset), "\(text)", sourceLocation: sourceLocation)
  }

  @Test func valuesAreRead() throws {
    #expect(try JSON.parse(" null\n") == .null)
    #expect(try JSON.parse("true") == .bool(true))
    #expect(try JSON.parse("[ ]") == .array([]))
    #expect(try JSON.parse("{\t}") == .object([]))
    #expect(
      try JSON.parse(#"{"a": [1, -2, "x"], "b": {"c": false}}"#)
        == .object([
          ("a", .array([.int(1), .int(-2), .string("x")])), ("b", .object([("c", .bool(false))])),
        ]))
  }

  @Test func numbersKeepEveryDigit() throws {
    #expect(try JSON.parse("9223372036854775807") == .int(.max))
    #expect(try JSON.parse("-9223372036854775808") == .int(.min))
    #expect(try JSON.parse("9223372036854775808") == .number("9223372036854775808"))
    #expect(try JSON.parse("-9223372036854775809") == .number("-9223372036854775809"))
    #expect(try JSON.parse("99999999999999999999") == .number("99999999999999999999"))
    #expect(try JSON.parse("-0") == .number("-0"))
    #expect(try JSON.parse("0") == .int(0))
    #expect(try JSON.parse("1.50") == .number("1.50"))
    #expect(try JSON.parse("1E+2") == .number("1E+2"))
  }

  @Test func stringsAreUnescaped() throws {
    #expect(try JSON.parse(#""a\"\\\/\b\f\n\r\té""#) == .string("a\"\\/\u{8}\u{C}\n\r\té"))
    #expect(try JSON.parse(#""x\uD83D\uDE00y\u0000""#) == .string("x😀y\u{0}"))
    #expect(try JSON.parse("\"é\u{2028}\u{7F}\"") == .string("é\u{2028}\u{7F}"))
  }

  @Test func everyErrorNamesItsByte() {
    expectError("", .cutShort, at: 0)
    expectError("[1", .cutShort, at: 2)
    expectError("{\"a\"", .cutShort, at: 4)
    expectError("{\"a\":", .cutShort, at: 5)
    expectError("\"abc", .cutShort, at: 4)
    expectError("\"a\\", .cutShort, at: 3)
    expectError("tru", .cutShort, at: 3)
    expectError("-", .cutShort, at: 1)
    expectError("1.", .cutShort, at: 2)
    expectError("trve", .expected("a value"), at: 0)
    expectError("[1,]", .expected("a value"), at: 3)
    expectError("[1 2]", .expected("`,` or `]`"), at: 3)
    expectError("{\"a\":1,}", .expected("a name in quotes"), at: 7)
    expectError("{a:1}", .expected("a name in quotes"), at: 1)
    expectError("{\"a\" 1}", .expected("`:`"), at: 5)
    expectError("{\"a\":1 \"b\":2}", .expected("`,` or `}`"), at: 7)
    expectError("NaN", .expected("a value"), at: 0)
    expectError("+1", .expected("a value"), at: 0)
    expectError("01", .number, at: 0)
    expectError("[-x]", .number, at: 1)
    expectError("[1.x]", .number, at: 1)
    expectError("[1e+x]", .number, at: 1)
    expectError("1 2", .trailingText, at: 2)
    expectError("{} // x", .trailingText, at: 3)
    expectError("\"a\nb\"", .controlCharacter, at: 2)
    expectError("\"\\\u{1}\"", .escape, at: 1)
    expectError(#""a\q""#, .escape, at: 2)
    expectError(#""a\uD800""#, .escape, at: 2)
    expectError(#""a\uDC00""#, .escape, at: 2)
    expectError(#""a\uD800\u0041""#, .escape, at: 2)
    expectError(#""a\u12g4""#, .escape, at: 2)
    expectError("\u{FEFF}1", .byteOrderMark, at: 0)
    expectError(#"{"a":1,"b":2,"a":3}"#, .repeatedName("a"), at: 13)
  }

  @Test func invalidUTF8IsFound() {
    func offset(_ bytes: [UInt8]) -> JSONError? {
      #expect(throws: JSONError.self) { try JSON.parse(Array("[\"".utf8) + bytes + Array("\"]".utf8)) }
    }
    #expect(offset([0x61, 0xFF]) == JSONError(.notUTF8, at: 3))
    #expect(offset([0xC3, 0xA9, 0xC0, 0x80]) == JSONError(.notUTF8, at: 4))
    #expect(offset([0xED, 0xA0, 0x80])?.problem == .notUTF8)
    #expect(offset([0x5C, 0x6E, 0xFF])?.problem == .notUTF8)
  }

  /// Names are compared as bytes: a composed and a decomposed letter are two names.
  @Test func namesCompareAsBytes() throws {
    let json = try JSON.parse("{\"\u{E9}\":1,\"e\u{301}\":2}")
    #expect(json["\u{E9}"] == .int(1))
    #expect(json["e\u{301}"] == .int(2))
    #expect(json["e"] == nil)
  }

  @Test func repeatedNamesAreFoundInLargeObjectsToo() throws {
    for count in [15, 16, 17, 18, 300] {
      let members = (0..<count).map { "\"n\($0)\":\($0)" }
      #expect(throws: Never.self) { try JSON.parse("{" + members.joined(separator: ",") + "}") }
      for repeated in [0, count - 1] {
        let text = "{" + members.joined(separator: ",") + ",\"n\(repeated)\":0}"
        let error = #expect(throws: JSONError.self) { try JSON.parse(text) }
        #expect(error?.problem == .repeatedName("n\(repeated)"))
      }
    }
  }

  @Test func nestingIsLimited() {
    for (depth, isRead) in [
      (JSON.depthLimit - 1, true), (JSON.depthLimit, true), (JSON.depthLimit + 1, false),
    ] {
      let text = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
      if isRead {
        #expect(throws: Never.self) { try JSON.parse(text) }
      } else {
        expectError(text, .tooDeep(limit: JSON.depthLimit), at: JSON.depthLimit)
      }
    }
    #expect(throws: JSONError.self) { try JSON.parse(String(repeating: "{\"a\":", count: 1_000_000)) }
  }

  @Test func whatIsWrittenIsEscapedWhereItMustBe() {
    #expect(
      JSON.string("a/b \"\\\u{0}\u{8}\t\n\u{C}\r\u{1F}\u{7F}é😀").text == #""a/b \"\\\u0000\b\t\n\f\r\u001f"#
        + "\u{7F}é😀\"")
  }

  @Test func theCanonicalTextIsOneForEachValue() throws {
    let json = try JSON.parse(#" { "b" : [ 1.0 , { "z":1, "é":2, "Z":3 } ], "a" : null } "#)
    #expect(json.canonicalText == #"{"a":null,"b":[1.0,{"Z":3,"z":1,"é":2}]}"#)
    #expect(json.text == #"{"b":[1.0,{"z":1,"é":2,"Z":3}],"a":null}"#)
  }

  /// Random values, written and read. The arguments are the seeds.
  @Test(arguments: 1...100)
  func whatIsWrittenIsReadBack(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    for _ in 0..<20 {
      let json = random.json(depth: 4)
      #expect(try JSON.parse(json.text) == json, "seed \(seed)")
      let canonical = try JSON.parse(json.canonicalText)
      #expect(canonical.text == json.canonicalText)
    }
  }

  /// Every single-byte change of a text is parsed or refused, without a trap.
  @Test func corruptTextsNeverTrap() {
    let text = Array(#"{"op":"create","key":{"id":-12.5e3},"fields":{"é\n😀":[true,null,"x"]}}"#.utf8)
    for index in text.indices {
      for byte in UInt8.min...UInt8.max {
        var corrupt = text
        corrupt[index] = byte
        do { _ = try JSON.parse(corrupt) } catch {
          #expect((0...text.count).contains(error.offset))
        }
      }
      do { _ = try JSON.parse(Array(text[..<index])) } catch { #expect(error.offset <= index) }
    }
  }
}

extension SplitMix64 {
  mutating func string() -> String {
    let scalars: [Unicode.Scalar] = [
      "a", "\"", "\\", "\n", "\u{0}", "é", "e", "\u{301}", "😀", "/", "\u{2028}",
    ]
    var text = ""
    for _ in 0..<below(8) { text.unicodeScalars.append(scalars[below(scalars.count)]) }
    return text
  }

  mutating func json(depth: Int) -> JSON {
    switch below(depth == 0 ? 5 : 7) {
    case 0: return .null
    case 1: return .bool(below(2) == 0)
    case 2: return .int(Int64(bitPattern: next()) >> Int64(below(64)))
    case 3: return .number(["1.5", "-0", "1e400", "123456789012345678901", "0.1E-7"][below(5)])
    case 4: return .string(string())
    case 5: return .array((0..<below(5)).map { _ in json(depth: depth - 1) })
    default:
      var members: [(name: String, value: JSON)] = []
      for _ in 0..<below(20) {
        let name = string()
        if members.contains(where: { $0.name.hasSameBytes(as: name) }) { continue }
        members.append((name, json(depth: depth - 1)))
      }
      return .object(members)
    }
  }
}
