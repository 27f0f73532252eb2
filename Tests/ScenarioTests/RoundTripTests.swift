import Foundation
import Testing

/// `import` reads the output of `export` and `log --reverse --mutations`, also at the limits of
/// values.
@Suite("what is written out is read again")
struct RoundTripTests {
  static let schema = """
    enum Size { S L }
    type Inner { a: String b: Int }
    type Limit @model {
      id: ID!
      s: String
      i: Int
      f: Float
      b: Boolean
      e: Size
      d: AWSDate
      t: AWSTime
      dt: AWSDateTime
      ts: AWSTimestamp
      j: AWSJSON
      u: AWSURL
      mail: AWSEmail
      ip: AWSIPAddress
      phone: AWSPhone
      texts: [String]
      numbers: [Int!]
      inner: Inner
      nextId: ID
      next: Limit @belongsTo(fields: ["nextId"])
      tags: [Tag] @manyToMany(relationName: "LimitTag")
    }
    type Tag @model { id: ID! limits: [Limit] @manyToMany(relationName: "LimitTag") }
    type Part @model {
      text: String! @primaryKey(sortKeyFields: ["number", "at"])
      number: Int!
      at: AWSDateTime!
      real: Float
    }

    """

  /// Control characters, including NUL; unusual line ends; the first and the last character outside
  /// of the Basic Multilingual Plane.
  static let odd =
    String(String.UnicodeScalarView((0..<0x20).compactMap(Unicode.Scalar.init)))
    + "\u{7F}\u{80}\u{2028}\u{FEFF}\u{FFFD}\u{10000}\u{1F600}\u{10FFFF}\"\\/"

  private static func lines() throws -> [String] {
    var lines: [[String: Any]] = []
    func add(_ key: String, _ fields: [String: Any], _ operation: String = "upsert", model: String = "Limit")
    {
      lines.append(["op": operation, "model": model, "key": key, "fields": fields])
    }
    add("nulls", [:])
    add(
      "least",
      [
        "s": odd, "i": Int.min, "b": false, "e": "S", "d": "0001-01-01", "t": "00:00",
        "dt": "0001-01-01T00:00:00Z", "ts": Int.min, "j": "{\"a\":[1.0,null,\"\\u0000\"]}", "u": "a:b",
        "mail": "a@b", "ip": "::", "phone": "123", "texts": [], "numbers": [],
        "inner": ["a": "", "b": Int.min],
      ])
    add(
      "most",
      [
        "s": String(repeating: "x", count: 100_000), "i": Int.max, "b": true, "e": "L",
        "d": "9999-12-31-18:00",
        "t": "23:59:59.999999999+18:00", "dt": "9999-12-31T23:59:59.999999999-18:00", "ts": Int.max,
        "j": "12345678901234567890.5e-400", "texts": [NSNull(), "", odd],
        "numbers": [Int.max, Int.min, 0, 1 << 53], "inner": ["a": odd, "b": Int.max],
      ])
    for (number, key) in [
      odd, "", String(repeating: "k", count: 2000), "a,b", "null", "-", "e\u{301}", "é", "'", " ",
    ]
    .enumerated() where !key.isEmpty {
      add(key, ["s": key, "i": (1 << 53) + number, "nextId": "most"])
    }
    add("t", [:], model: "Tag")
    add("least", ["tags": "t"], "link")
    add("nulls", ["next": odd], "link")
    add("a,b", ["next": NSNull()], "unlink")
    add("gone", [:], "create")
    add("gone", [:], "delete")
    var texts = try lines.map {
      String(decoding: try JSONSerialization.data(withJSONObject: $0, options: .sortedKeys), as: UTF8.self)
    }
    // Foundation formats these differently.
    for (number, real) in [
      "-1.7976931348623157e308", "1.7976931348623157e308", "5e-324", "-5e-324", "-0.0", "0.1", "1e22", "3",
      "1e23",
      "2.2250738585072014e-308", "9007199254740993",
    ].enumerated() {
      texts.append(#"{"model":"Limit","key":"real \#(number)","fields":{"f":\#(real)}}"#)
    }
    for text in ["", String(repeating: "p", count: 900), "a,b=c"] {
      for number in [Int.min, 0, Int.max] {
        for at in ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z"] {
          texts.append(
            #"{"model":"Part","key":{"text":"\#(text)","number":\#(number),"at":"\#(at)"},"fields":{"real":1e22}}"#
          )
        }
      }
    }
    return texts
  }

  @Test("extreme values, keys, links and deletions come back as they were")
  func extremes() throws {
    let work = try Workplace()
    try work.write("schema.graphql", Self.schema)
    for node in ["a", "exported", "mutated", "rows"] {
      try work.stemma("init", node, "--schema", "schema.graphql", "--name", node)
    }
    let lines = try Self.lines()
    try work.write("lines.ndjson", lines.map { $0 + "\n" }.joined())
    try work.stemma("-C", "a", "import", "--batch", "7", "lines.ndjson")
    let export = try work.stemma("-C", "a", "export").output
    // The deletion, the links and the preceding upsert.
    #expect(export.split(separator: "\n").count == lines.count - 4)
    let mutations = try work.stemma("-C", "a", "log", "--reverse", "--mutations").output
    for (node, written) in [("exported", export), ("mutated", mutations)] {
      try work.stemma("-C", node, "import", "-", input: written)
      #expect(try work.stemma("-C", node, "export").output == export, "\(node)")
    }
    for model in ["Limit", "Tag", "Part", "LimitTag"] {
      try work.write("\(model).csv", try work.stemma("-C", "a", "export", model, "--format", "csv").output)
      try work.stemma("-C", "rows", "import", "\(model).csv")
    }
    #expect(try work.stemma("-C", "rows", "export").output == export)
    #expect(try work.stemma("-C", "rows", "import", "a/tables.sqlite").output.contains("as 0 events"))
  }
}
