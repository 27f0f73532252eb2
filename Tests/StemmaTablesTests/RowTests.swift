import StemmaEvents
import StemmaMerge
import StemmaSchema
import Testing

@testable import StemmaTables

@Suite struct RowTests {
  private func member(_ key: String, _ values: [String: Value]) throws -> Row {
    var writers = Writers(try sampleSchema())
    try writers.write(.create, "Member", Key(.string(key)), values)
    let tables = try Tables.inMemory(schema: writers.schema)
    try tables.apply(writers.events)
    let row = try tables.read { reader throws(TablesError) in
      try reader.get("Member", Key(.string(key)))
    }
    return try #require(row)
  }

  @Test func everyTypeComesBackAsItWasWritten() throws {
    let row = try member(
      "m",
      [
        "name": .string("x\0y \"quoted\" é"), "age": .int(.min), "score": .double(-0.1),
        "active": .bool(true),
        "tags": .json("[\"a\",null]"),
      ])
    #expect(row.value(of: "name") == .string("x\0y \"quoted\" é"))
    #expect(row.value(of: "age") == .int(.min))
    #expect(row.value(of: "score") == .double(-0.1))
    #expect(row.value(of: "active") == .bool(true))
    #expect(row.value(of: "tags") == .json("[\"a\",null]"))
    #expect(row.value(of: "teamId") == .null)
    #expect(row.version == Version(1))
    #expect(row.revision.hasPrefix("1-"))
  }

  @Test func emptyTextIsNotNull() throws {
    let row = try member("m", ["name": .string(""), "teamId": .null])
    #expect(row.value(of: "name") == .string(""))
    #expect(row.value(of: "teamId") == .null)
  }

  /// Swift considers both texts equal, but SQLite keeps two rows.
  @Test func composedAndDecomposedKeysAreTwoRecords() throws {
    var writers = Writers(try sampleSchema())
    try writers.write(.create, "Team", Key(.string("\u{e9}")), ["name": .string("composed")])
    try writers.write(.create, "Team", Key(.string("e\u{301}")), ["name": .string("decomposed")])
    let tables = try Tables.inMemory(schema: writers.schema)
    try tables.apply(writers.events)
    #expect(
      try tables.exported() == """
        {"model":"Team","key":{"id":"e\u{301}"},"fields":{"name":"decomposed"}}
        {"model":"Team","key":{"id":"\u{e9}"},"fields":{"name":"composed"}}

        """)
    try tables.check()
  }

  /// jq and JavaScript round integers beyond 2^53.
  @Test func exportWritesGreatIntegersAsStrings() throws {
    var writers = Writers(try sampleSchema())
    try writers.write(.create, "Counter", Key(.int(.max)), ["value": .int(1 << 53)])
    try writers.write(.create, "Counter", Key(.int(-1)), ["value": .int(1 << 53 - 1)])
    let tables = try Tables.inMemory(schema: writers.schema)
    try tables.apply(writers.events)
    #expect(
      try tables.exported() == """
        {"model":"Counter","key":{"number":-1},"fields":{"value":9007199254740991,"updatedAt":null}}
        {"model":"Counter","key":{"number":"9223372036854775807"},"fields":{"value":"9007199254740992","updatedAt":null}}

        """)
  }

  /// SQLite's order of a primary key is the order of the key's bytes, whatever the types of its
  /// parts.
  @Test func rowsComeInKeyOrder() throws {
    var writers = Writers(try sampleSchema())
    let stations: [Int64] = [.min, -256, -1, 0, 1, 255, 256, .max]
    let times = [-1e300, -1, -0.5, 0, 1e-300, 1, 1e300]
    for station in stations.shuffled() {
      for time in times.shuffled() {
        try writers.write(.create, "Reading", Key(.int(station), .double(time)), ["ok": .bool(true)])
      }
    }
    let texts = ["", "\0", "\0a", "a", "a\0", "a\0b", "b", "é", "\u{10FFFF}"]
    for text in texts.shuffled() { try writers.write(.create, "Team", Key(.string(text))) }
    let tables = try Tables.inMemory(schema: writers.schema)
    try tables.apply(writers.events)
    for model in ["Reading", "Team"] {
      let keys = try tables.read { reader throws(TablesError) in
        var cursor = try reader.rows(of: model)
        return try cursor.all().map(\.key)
      }
      #expect(keys == keys.sorted())
      #expect(keys.count == (model == "Team" ? texts.count : stations.count * times.count))
    }
  }

  /// An event of an older schema, or of another program, may hold a different type than the column.
  /// The value is kept.
  @Test func valueOfAnotherTypeThanItsColumnIsNotLost() throws {
    var writers = Writers(try sampleSchema())
    let key = Key(.string("m"))
    try writers.write(.create, "Member", key, ["age": .string("007"), "name": .int(5), "score": .int(3)])
    let tables = try Tables.inMemory(schema: writers.schema)
    try tables.apply(writers.events)
    let member = try #require(writers.schema.model(named: "Member"))
    let state = try tables.read { reader throws(TablesError) in try reader.state(of: key, in: member) }
    let rules = MergeRules(member)
    #expect(state?.value(of: "age", rules) == .string("007"))
    #expect(state?.value(of: "name", rules) == .int(5))
    #expect(state?.value(of: "score", rules) == .int(3))
  }

  @Test func fieldsThatTheSchemaDoesNotKnowAreKept() throws {
    var writers = Writers(try sampleSchema())
    let key = Key(.string("t"))
    try writers.write(.create, "Team", key, ["name": .string("n"), "motto": .string("later")])
    let tables = try Tables.inMemory(schema: writers.schema)
    try tables.apply(writers.events)
    let team = try #require(writers.schema.model(named: "Team"))
    let state = try tables.read { reader throws(TablesError) in try reader.state(of: key, in: team) }
    #expect(state?.value(of: "motto", MergeRules(team)) == .string("later"))
  }

  @Test func modelsThatTheSchemaDoesNotKnowMoveTheirStreamOnly() throws {
    var writers = Writers(try sampleSchema())
    try writers.write(.create, "Later", Key(.string("x")), ["a": .int(1)])
    let tables = try Tables.inMemory(schema: writers.schema)
    try tables.apply(writers.events)
    #expect(try tables.exported().isEmpty)
    let head = try tables.read { reader throws(TablesError) in
      try reader.head(Partition("Later"), Origin(1))
    }
    #expect(head.sequence == SequenceNumber(1))
    #expect(head.hash == writers.events[0].digest.hash)
  }
}
