import StemmaEvents
import StemmaSchema
import Testing

@testable import StemmaTables

@Suite struct ReadingTests {
  private func sample() throws -> Tables {
    var writers = Writers(try sampleSchema())
    for (path, size, note) in [("a", 3, "x%"), ("b", 1, nil), ("c", 2, "xy"), ("d", 2, "z")]
      as [(String, Int64, String?)]
    {
      try writers.write(
        .create, "File", Key(.string("f"), .string(path)),
        ["size": .int(size), "note": note.map(Value.string) ?? .null])
    }
    try writers.write(.create, "Team", Key(.string("t")))
    for (id, team) in [("m1", "t"), ("m2", nil), ("m3", "t")] as [(String, String?)] {
      try writers.write(
        .create, "Member", Key(.string(id)),
        ["teamId": team.map(Value.string) ?? .null, "active": .bool(id == "m1")])
    }
    let tables = try Tables.inMemory(schema: writers.schema)
    try tables.apply(writers.events)
    return tables
  }

  private func paths(_ tables: Tables, _ listing: Listing) throws -> String {
    try tables.read { reader throws(TablesError) in
      var cursor = try reader.list(listing)
      return try cursor.all().map { $0.key.parts.last?.text ?? "" }.joined()
    }
  }

  @Test(arguments: [
    (Listing.Condition("size", .equal, .int(2)), "cd"), (.init("size", .notEqual, .int(2)), "ab"),
    (.init("size", .less, .int(2)), "b"), (.init("size", .lessOrEqual, .int(2)), "bcd"),
    (.init("size", .greater, .int(2)), "a"), (.init("size", .greaterOrEqual, .int(2)), "acd"),
    (.init("note", .equal, .null), "b"), (.init("note", .notEqual, .null), "acd"),
    (.init("note", .beginsWith, .string("x")), "ac"), (.init("note", .contains, .string("%")), "a"),
    (.init("path", .greater, .string("b")), "cd"), (.init("folder", .equal, .string("f")), "abcd"),
  ])
  func conditionsChooseRows(condition: Listing.Condition, expected: String) throws {
    #expect(try paths(try sample(), Listing("File", where: [condition])) == expected)
  }

  @Test func listsAreOrderedAndCut() throws {
    let tables = try sample()
    #expect(try paths(tables, Listing("File", order: [.init("size")])) == "bcda")
    #expect(try paths(tables, Listing("File", order: [.init("size", isDescending: true)])) == "acdb")
    #expect(try paths(tables, Listing("File", order: [.init("note")], limit: 2)) == "ba")
    #expect(try paths(tables, Listing("File", limit: 2, offset: 1)) == "bc")
    #expect(try paths(tables, Listing("File", offset: 3)) == "d")
    #expect(
      try paths(
        tables,
        Listing(
          "File", where: [.init("size", .equal, .int(2)), .init("note", .equal, .string("z"))])) == "d")
    #expect(try paths(tables, Listing("Member", where: [.init("active", .equal, .bool(true))])) == "m1")
  }

  @Test func namesAreCheckedAgainstTheSchema() throws {
    let tables = try sample()
    #expect(throws: TablesError.unknownModel("Nope")) { try self.paths(tables, Listing("Nope")) }
    for listing in [
      Listing("File", where: [.init("size; DROP TABLE files", .equal, .null)]),
      Listing("File", order: [.init("size; DROP TABLE files")]),
    ] {
      #expect(throws: TablesError.unknownField(model: "File", field: "size; DROP TABLE files")) {
        try self.paths(tables, listing)
      }
    }
  }

  @Test func queryGivesNamesAndValuesAndChangesNothing() throws {
    let tables = try sample()
    #expect(
      try tables.lines(
        "SELECT path, size / 2.0, note, x'00ff' FROM files WHERE path < 'c' ORDER BY path -- two\n;") == [
          [.string("a"), .double(1.5), .string("x%"), .string("00ff")],
          [.string("b"), .double(0.5), .null, .string("00ff")],
        ])
    let columns = try tables.read { reader throws(TablesError) in
      try reader.query("SELECT 1 AS a, 2 b").columns
    }
    #expect(columns == ["a", "b"])
    for sql in [
      "DELETE FROM files", "SELECT 1; SELECT 2", "", "ATTACH '/tmp/x' AS x", "DROP TABLE files",
      "UPDATE files SET size = 1 RETURNING size",
    ] {
      #expect(throws: TablesError.notAQuery(sql)) { try tables.lines(sql) }
    }
    #expect {
      _ = try tables.lines("SELECT nonsense FROM files")
    } throws: { error in
      guard case TablesError.sqlite(_, _, let message) = error else { return false }
      return message.contains("nonsense")
    }
  }

  @Test func relationshipsAreReadFromBothSides() throws {
    let tables = try sample()
    func related(_ model: String, _ key: String, _ relationship: String) throws -> [String] {
      try tables.read { reader throws(TablesError) in
        var cursor = try reader.related(to: Key(.string(key)), of: model, through: relationship)
        return try cursor.all().flatMap { $0.key.parts.map(\.text) }
      }
    }
    #expect(try related("Team", "t", "members") == ["m1", "m3"])
    #expect(try related("Member", "m1", "team") == ["t"])
    #expect(try related("Member", "m2", "team").isEmpty)
    #expect(try related("Team", "t", "captain").isEmpty)
    #expect(throws: TablesError.unknownRelationship(model: "Team", relationship: "name")) {
      try related("Team", "t", "name")
    }
    let schema = try sampleSchema()
    let team = try #require(schema.model(named: "Team"))
    let inverse = try #require(schema.inverseReferences(to: team).first { $0.child.name == "Member" })
    let children = try tables.read { reader throws(TablesError) in
      try reader.children(of: Key(.string("t")), through: inverse)
    }
    #expect(children == [Key(.string("m1")), Key(.string("m3"))])
  }

  @Test func manyToManyIsReadThroughTheJoinModel() throws {
    let schema = try SDL.read(
      """
      type Post @model { id: ID! tags: [Tag] @manyToMany(relationName: "PostTags") }
      type Tag @model { id: ID! posts: [Post] @manyToMany(relationName: "PostTags") }
      """
    ).schema
    let join = try #require(schema.models.first { $0.isJoinModel })
    var writers = Writers(schema)
    for post in ["p1", "p2"] { try writers.write(.create, "Post", Key(.string(post))) }
    for tag in ["t1", "t2"] { try writers.write(.create, "Tag", Key(.string(tag))) }
    for (post, tag) in [("p1", "t1"), ("p1", "t2"), ("p2", "t2")] {
      try writers.write(.create, join.storedName, Key(.string(post), .string(tag)))
    }
    let tables = try Tables.inMemory(schema: schema)
    try tables.apply(writers.events)
    func related(_ model: String, _ key: String, _ relationship: String) throws -> [String] {
      try tables.read { reader throws(TablesError) in
        var cursor = try reader.related(to: Key(.string(key)), of: model, through: relationship)
        return try cursor.all().flatMap { $0.key.parts.map(\.text) }
      }
    }
    #expect(try related("Post", "p1", "tags") == ["t1", "t2"])
    #expect(try related("Tag", "t2", "posts") == ["p1", "p2"])
  }

  @Test func partitionsAreCounted() throws {
    let partitions = try sample().read { reader throws(TablesError) in try reader.partitions() }
    #expect(
      partitions.map { "\($0.partition) \($0.rows) \($0.events) \($0.origins)" } == [
        "Member 3 3 1", "Team 1 1 1", "folder=f 4 4 1",
      ])
  }

  @Test func indexesAreMadeFromTheSchemaAndForReferences() throws {
    let lines = try sample().lines(
      "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql NOT NULL ORDER BY name")
    #expect(
      lines == [
        [
          .string("Captain.reference.teamId"),
          .string("CREATE INDEX \"Captain.reference.teamId\" ON \"captains\" (\"teamId\")"),
        ],
        [
          .string("File.authorAndMessage"),
          .string("CREATE INDEX \"File.authorAndMessage\" ON \"files\" (\"note\", \"size\")"),
        ],
        [
          .string("Member.reference.teamId"),
          .string("CREATE INDEX \"Member.reference.teamId\" ON \"members\" (\"teamId\")"),
        ],
      ])
  }
}
