import Foundation
import Testing

/// Commands that change and read records.
@Suite("record commands")
struct RecordCommandTests {
  private let node = ["STEMMA_NODE": "shop"]

  @Test("create prints the key and mints an id")
  func createPrintsKey() throws {
    let work = try Shop.open()
    #expect(try work.stemma("create", "Team", "id=red", "name=Red", environment: node).output == "red\n")
    let uuid = #/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/#
    let first = try work.stemma("create", "Team", "name=One", environment: node).lines.first ?? ""
    let second = try work.stemma("create", "Team", "name=Two", environment: node).lines.first ?? ""
    #expect(first.wholeMatch(of: uuid) != nil, "\(first)")
    #expect(second.wholeMatch(of: uuid) != nil, "\(second)")
    #expect(first < second)
    #expect(try work.attempt("get", "Team", first, environment: node).status == 0)
    let missing = try work.attempt("create", "Visit", "room=1", environment: node)
    #expect([64, 65].contains(missing.status))
    #expect(missing.errors.contains("Visit"))
  }

  @Test("one change: revision, upsert, nothing written twice")
  func changes() throws {
    let work = try Shop.open()
    let members: Set = ["model", "key", "changed", "revision"]
    let made = try work.stemma("create", "Team", "id=a", "name=A", "--json", environment: node).object()
    #expect(made.members == members)
    let revision = try #require(made.text("revision"))
    let changed = try work.stemma(
      "update", "Team", "a", "name=B", "--if-revision", revision, "--json", environment: node
    ).object()
    #expect(changed.members == members)
    let current = try #require(changed.text("revision"))
    #expect(current != revision)
    let refused = try work.attempt(
      "update", "Team", "a", "name=C", "--if-revision", revision, environment: node)
    #expect(refused.status == 1)
    #expect(refused.errors.contains(current))
    let refusedDelete = try work.attempt("delete", "Team", "a", "--if-revision", revision, environment: node)
    #expect(refusedDelete.status == 1)
    let same = try work.stemma("update", "Team", "a", "name=B", "--json", environment: node).object()
    #expect(same["changed"] as? Bool == false)
    #expect(same.text("revision") == current)
    #expect(
      try work.stemma("upsert", "Team", "b", "name=New", "--json", environment: node).object().members
        == members)
    try work.stemma("upsert", "Team", "b", "name=Newer", environment: node)
    let operations = try work.stemma("log", "--reverse", "--json", environment: node).array().map {
      $0.text("op")
    }
    #expect(operations == ["create", "update", "create", "update"])
    let gone = try work.stemma("delete", "Team", "b", "--json", environment: node).object()
    #expect(gone.members == members)
    #expect(gone["revision"] is NSNull)
    try work.stemma("create", "Team", "id=b", "name=Again", environment: node)
  }

  @Test("delete: required children go, others are unlinked, children first, the cause in the log")
  func deleteCascades() throws {
    let work = try Shop.open()
    try work.stemma("create", "Team", "id=red", "name=Red", environment: node)
    try work.stemma("create", "Member", "id=m", "name=M", "team=red", environment: node)
    try work.stemma("create", "Badge", "id=b", "team=red", environment: node)
    try work.stemma("delete", "Team", "red", environment: node)
    #expect(try work.attempt("get", "Badge", "b", environment: node).status == 66)
    let row = try work.stemma("get", "Member", "m", "--json", environment: node).object()
    #expect(row.object("fields")["teamId"] is NSNull)
    let events = Array(try work.stemma("log", "--reverse", "--json", environment: node).array().dropFirst(3))
    #expect(Set(events.map { $0.text("commit") }).count == 1)
    #expect(events.last?.text("model") == "Team")
    #expect(events.last?.text("op") == "delete")
    #expect(events.last?["cause"] == nil)
    #expect(
      Set(events.dropLast().map { "\($0.text("op") ?? "") \($0.text("model") ?? "")" }) == [
        "unlink Member", "delete Badge",
      ])
    for child in events.dropLast() {
      #expect(child.object("cause").members == ["event", "partition"])
      #expect(child.object("cause").text("event") == events.last?.text("event"))
      #expect(child.object("cause").text("partition") == "Team")
    }
  }

  @Test("link and unlink from either side; many-to-many makes join rows")
  func links() throws {
    let work = try Shop.open()
    for team in ["red", "blue"] {
      try work.stemma("create", "Team", "id=\(team)", "name=\(team)", environment: node)
    }
    try work.stemma("create", "Member", "id=m", "name=M", environment: node)
    try work.stemma("create", "Post", "id=p", environment: node)
    func team() throws -> Any? {
      try work.stemma("get", "Member", "m", "--json", environment: node).object().object("fields")["teamId"]
    }
    try work.stemma("link", "Member", "m", "team", "red", environment: node)
    #expect(try team() as? String == "red")
    try work.stemma("link", "Team", "blue", "members", "m", environment: node)
    #expect(try team() as? String == "blue")
    try work.stemma("unlink", "Team", "blue", "members", "m", environment: node)
    #expect(try team() is NSNull)
    try work.stemma("link", "Member", "m", "team=red", environment: node)
    #expect(try team() as? String == "red")
    try work.stemma("unlink", "Member", "m", "team", environment: node)
    #expect(try team() is NSNull)
    try work.stemma("create", "Badge", "id=b", "team=red", environment: node)
    #expect(try work.attempt("unlink", "Badge", "b", "team", environment: node).status == 65)
    #expect(try work.attempt("link", "Member", "m", "nope", "red", environment: node).status == 65)
    #expect(try work.attempt("link", "Member", "m", "team", environment: node).status == 64)

    func joined() throws -> Int {
      try work.stemma("list", "MemberPost", "--json", environment: node).array().count
    }
    try work.stemma("link", "Member", "m", "posts", "p", environment: node)
    #expect(try joined() == 1)
    try work.stemma("unlink", "Post", "p", "members", "m", environment: node)
    #expect(try joined() == 0)
    try work.stemma("link", "Post", "p", "members", "m", environment: node)
    #expect(try joined() == 1)
    let operations = try work.stemma("log", "--model", "MemberPost", "--reverse", "--json", environment: node)
      .array()
    #expect(operations.map { $0.text("op") } == ["create", "delete", "create"])
    try work.stemma("delete", "Member", "m", environment: node)
    #expect(try joined() == 0)
  }

  @Test("get --include goes from relationship to relationship")
  func includes() throws {
    let work = try Shop.open()
    try work.stemma("create", "Team", "id=red", "name=Red", environment: node)
    try work.stemma("create", "Member", "id=m", "name=M", "team=red", environment: node)
    try work.stemma("create", "Post", "id=p", environment: node)
    try work.stemma("link", "Member", "m", "posts", "p", environment: node)
    let row = try work.stemma(
      "get", "Team", "red", "--include", "members.posts", "--include", "badges", "--json", environment: node
    ).object()
    #expect(row.members == ["model", "key", "fields", "revision", "included"])
    #expect(row.object("included").array("badges").isEmpty)
    let member = try #require(row.object("included").array("members").first)
    #expect(member.object("included").array("posts").first?.object("key").text("id") == "p")
    let post = try work.stemma("get", "Post", "p", "--include", "members.team", "--json", environment: node)
      .object()
    let author = try #require(post.object("included").array("members").first)
    #expect(author.object("included").object("team").object("key").text("id") == "red")
    #expect(
      try work.stemma("get", "Team", "red", "--json", environment: node).object().members == [
        "model", "key", "fields", "revision",
      ])
    let wrong = try work.attempt("get", "Team", "red", "--include", "nope", environment: node)
    #expect(wrong.status == 65)
    #expect(wrong.errors.contains("members"))
  }

  @Test("list: conditions, order, limit and offset")
  func lists() throws {
    let work = try Shop.open()
    for (number, room) in [(1, "b"), (2, "a"), (3, "ab"), (10, "c")] {
      try work.stemma("create", "Visit", "site=x", "number=\(number)", "room=\(room)", environment: node)
    }
    func numbers(_ words: String...) throws -> [Int] {
      let result = try Tool.run(
        Tool.path, ["list", "Visit", "--ndjson"] + words, in: work.path, environment: node)
      #expect(result.status == 0, "\(result.errors)")
      let rows = try result.objects()
      for row in rows { #expect(row.members == ["model", "key", "fields", "revision"]) }
      return rows.compactMap { $0.object("key").number("number") }
    }
    #expect(try numbers() == [1, 2, 3, 10])
    #expect(try numbers("--where", "number>2") == [3, 10])
    #expect(try numbers("--where", "number<=2", "--where", "room!=b") == [2])
    #expect(try numbers("--where", "room^=a") == [2, 3])
    #expect(try numbers("--where", "room~=b") == [1, 3])
    #expect(try numbers("--where", "room=c") == [10])
    #expect(try numbers("--order", "room") == [2, 3, 1, 10])
    #expect(try numbers("--order=-number", "--limit", "2") == [10, 3])
    #expect(try numbers("--limit", "2", "--offset", "1") == [2, 3])
    #expect(try numbers("--offset", "9").isEmpty)
    #expect(try work.attempt("list", "Visit", "--where", "nope=1", environment: node).status == 65)
    #expect(try work.attempt("list", "Visit", "--where", "room", environment: node).status == 64)
    #expect(try work.attempt("list", "Visit", "--order", "nope", environment: node).status == 65)
  }

  @Test("query reads and never writes")
  func queryIsReadOnly() throws {
    let work = try Shop.open()
    try work.stemma("create", "Team", "id=a", "name=A", environment: node)
    let rows = try work.stemma(
      "query", "SELECT id, name AS n, NULL AS z FROM teams", "--json", environment: node
    ).array()
    #expect(rows.count == 1)
    #expect(rows.first?.members == ["id", "n", "z"])
    for statement in [
      "INSERT INTO teams (id, name) VALUES ('q', 'q')", "DELETE FROM teams", "SELECT 1; DELETE FROM teams",
      "WITH x AS (SELECT 1) DELETE FROM teams", "ATTACH 'x.sqlite' AS x", "PRAGMA user_version = 5",
      "DROP TABLE teams", "SELECT nope FROM teams",
    ] {
      #expect(try work.attempt("query", statement, environment: node).status == 65, "\(statement)")
    }
    #expect(try work.stemma("list", "Team", "--json", environment: node).array().count == 1)
    #expect(!FileManager.default.fileExists(atPath: work.file("x.sqlite")))
  }

  @Test("field=@FILE reads files and pipes, and says why it cannot")
  func valuesOfFiles() throws {
    let work = try Shop.open()
    try work.stemma("create", "Team", "id=a", "name=A", environment: node)
    try work.write("name.txt", "from a file")
    func name() throws -> String? {
      try work.stemma("get", "Team", "a", "--json", environment: node).object().object("fields").text("name")
    }
    for (command, wanted) in [
      ("stemma -C shop update Team a name=@name.txt", "from a file"),
      ("stemma -C shop update Team a name=@<(printf 'from a shell')", "from a shell"),
      ("printf 'from a pipe' | stemma -C shop update Team a name=@/dev/stdin", "from a pipe"),
      ("mkfifo pipe && (printf 'by name' > pipe &) && stemma -C shop update Team a name=@pipe", "by name"),
    ] {
      let result = try ConsolePage.shell(command, in: work.path)
      #expect(result.status == 0, "\(command): \(result.errors)")
      #expect(try name() == wanted, "\(command)")
    }
    for (file, reason) in [("nofile", "No such file or directory"), ("shop", "Is a directory")] {
      for words in [["update", "Team", "a", "name=@\(file)"], ["schema", "apply", file]] {
        let refused = try Tool.run(Tool.path, ["-C", "shop"] + words, in: work.path)
        #expect(refused.status == 66, "\(words)")
        #expect(refused.errors == "stemma: cannot read \(file): \(reason)\n")
      }
    }
  }

  @Test("the line end of a key in a file is dropped, and a dangling reference is reported")
  func keysOfFiles() throws {
    let work = try Shop.open()
    try work.write("key", "t1\n")
    try work.stemma("create", "Team", "id=@key", "name=@key", environment: node)
    try work.stemma("create", "Member", "id=tim", "name=Tim", "team=@key", environment: node)
    try work.stemma("create", "Member", "id=tom", "name=Tom", "teamId=@key", environment: node)
    try work.stemma("create", "Member", "id=ann", "name=Ann", environment: node)
    #expect(try work.stemma("link", "Member", "ann", "team=@key", environment: node).errors.isEmpty)
    let members = try work.stemma("list", "Member", "--json", environment: node).array()
    #expect(members.map { $0.object("fields").text("teamId") } == ["t1", "t1", "t1"])
    // Other texts remain unchanged.
    let team = try work.stemma("get", "Team", "id=@key", "--json", environment: node).object()
    #expect(team.object("fields").text("name") == "t1\n")
    for words in [
      ["link", "Member", "ann", "team", "@key"], ["update", "Member", "tim", "team=@key2"],
      ["create", "Member", "name=Eve", "teamId=t2"],
    ] {
      try work.write("key2", "t1\n\n")
      let told = try Tool.run(Tool.path, ["-C", "shop"] + words, in: work.path)
      #expect(told.status == 0)
      #expect(
        told.errors.hasPrefix("stemma: warning: `team` leads to Team ")
          || told.errors.hasPrefix("warning: `team` leads to Team "), "\(words): \(told.errors)")
      #expect(told.errors.hasSuffix(", which is not here\n"))
    }
    // The warning covers only references that the command wrote.
    #expect(try work.stemma("update", "Member", "ann", "name=Anna", environment: node).errors.isEmpty)
  }

  @Test("what is restored may be named by a relationship, as everywhere")
  func restoredRelationships() throws {
    let work = try Shop.open()
    for name in ["t1", "t2"] { try work.stemma("create", "Team", "id=\(name)", "name=x", environment: node) }
    try work.stemma("create", "Member", "id=tim", "name=Tim", "team=t1", environment: node)
    try work.stemma("update", "Member", "tim", "name=Tom", "team=t2", environment: node)
    let before = ["restore", "Member", "tim", "--as-of", "@3", "--field"]
    func attempt(_ words: [String]) throws -> Tool.Result {
      try Tool.run(Tool.path, ["-C", "shop"] + words, in: work.path)
    }
    #expect(try attempt(before + ["team"]).status == 0)
    let fields = try work.stemma("get", "Member", "tim", "--json", environment: node).object().object(
      "fields")
    #expect(fields.text("teamId") == "t1" && fields.text("name") == "Tom")
    let elsewhere = try attempt(["restore", "Team", "t1", "--as-of", "@3", "--field", "members"])
    #expect(
      elsewhere.status == 65
        && elsewhere.errors == "stemma: `members` of Team is stored by Member; restore that\n")
    let slip = try attempt(before + ["tem"])
    #expect(slip.status == 65 && slip.errors.contains("did you mean `team`?"), "\(slip.errors)")
  }

  @Test("a query that SQLite refuses says what is wrong with it, and what there is")
  func refusedQueries() throws {
    let work = try Shop.open()
    try work.stemma("create", "Team", "id=t1", "name=x", environment: node)
    for past in [[], ["--as-of", "@1"]] {
      let refused = try Tool.run(
        Tool.path, ["-C", "shop", "query", "SELECT count(*) FROM nope"] + past, in: work.path)
      let says = "stemma: SQLite says no such table: nope; "
      #expect(
        refused.status == 65
          && refused.errors
            == says + "`stemma query 'SELECT name FROM sqlite_schema'` lists what there is\n"
      )
    }
    let names = try work.stemma("query", "SELECT name FROM sqlite_schema", environment: node).lines
    #expect(names.contains("teams"))
  }

  @Test("a dangling reference is reported from whichever side it is written, of keys, too")
  func danglingReferences() throws {
    let work = try Workplace()
    try work.write(
      "s.graphql",
      """
      type Team @model { id: ID! @primaryKey name: String members: [Member] @hasMany(references: ["teamId"])
        fans: [Member] @hasMany(references: ["favouriteId"]) }
      type Member @model { id: ID! @primaryKey name: String teamId: ID favouriteId: ID
        team: Team @belongsTo(references: ["teamId"]) posts: [Post] @manyToMany(relationName: "MemberPost") }
      type Post @model { id: ID! @primaryKey members: [Member] @manyToMany(relationName: "MemberPost") }
      type Seat @model { team: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! note: String
        of: Team @belongsTo(references: ["team"]) }
      type Club @model @conflict(policy: OPTIMISTIC) { id: ID! @primaryKey name: String note: String leadId: ID
        lead: Member @belongsTo(references: ["leadId"]) }
      type Boss @model { id: ID! @primaryKey bossId: ID boss: Boss @belongsTo(references: ["bossId"]) }
      """)
    try work.stemma("init", "node", "--schema", "s.graphql")
    func errors(_ words: String) throws -> String {
      let result = try Tool.run(
        Tool.path, ["-C", "node"] + words.split(separator: " ").map(String.init), in: work.path)
      #expect(result.status == 0, "\(words): \(result.errors)")
      return result.errors
    }
    #expect(try errors("create Member id=tim name=Tim").isEmpty)
    #expect(
      try errors("link Team t1 members tim")
        == "warning: `team` of Member tim leads to Team t1, which is not here\n")
    // Only the other model declares the relationship.
    #expect(
      try errors("link Team t2 fans tim")
        == "warning: `fans` of Member tim leads to Team t2, which is not here\n")
    #expect(
      try errors("update Member tim favouriteId=t3")
        == "warning: `fans` leads to Team t3, which is not here\n")
    #expect(try errors("update Member tim name=Tom").isEmpty)
    for join in ["link Member tim posts p1", "create MemberPost memberId=tim postId=p2"] {
      let told = try errors(join)
      #expect(told.contains(" leads to Post p") && told.split(separator: "\n").count == 1, "\(told)")
    }
    #expect(try errors("create Seat team=t1 n=1") == "warning: `of` leads to Team t1, which is not here\n")
    #expect(try errors("upsert Seat team=t1 n=1 note=x").isEmpty)
    #expect(try errors("unlink Team t1 members tim").isEmpty)
    // Every write contains all fields of the record, but the warning covers only changed
    // references.
    #expect(
      try errors("create Club id=c leadId=ghost name=A")
        == "warning: `lead` leads to Member ghost, which is not here\n")
    #expect(try errors("update Club c note=hello").isEmpty)
    #expect(
      try errors("update Club c leadId=other note=there")
        == "warning: `lead` leads to Member other, which is not here\n")
    // Only written references are refused.
    for (line, isRefused) in [
      (#"{"op":"update","model":"Seat","key":{"team":"t1","n":1},"fields":{"note":"y"}}"#, false),
      (#"{"op":"create","model":"Seat","key":{"team":"t1","n":2},"fields":{}}"#, true),
      (#"{"op":"update","model":"Member","key":"tim","fields":{"favouriteId":"t4"}}"#, true),
      (#"{"op":"link","model":"Team","key":"t5","fields":{"members":"tim"}}"#, true),
      (#"{"op":"update","model":"Club","key":"c","fields":{"note":"y"}}"#, false),
      (#"{"op":"update","model":"Club","key":"c","fields":{"leadId":"ghost"}}"#, true),
      // A record that refers to itself satisfies its own reference.
      (#"{"op":"create","model":"Boss","key":"b","fields":{"bossId":"b"}}"#, false),
      (#"{"op":"create","model":"Boss","key":"c","fields":{"bossId":"d"}}"#, true),
    ] {
      let strict = try work.attempt("-C", "node", "import", "--strict", "-", input: line + "\n")
      #expect(
        (strict.status != 0) == isRefused && strict.errors.contains("is not there") == isRefused, "\(strict)")
    }
  }

  /// An endless value must not fill the memory.
  @Test(
    "field=@- reads standard input, once; a value that is too long is not read to its end; no field is given twice"
  )
  func fieldFromInput() throws {
    let work = try Shop.open()
    try work.stemma("create", "Team", "id=red", "name=@-", input: "Red\n", environment: node)
    let name = try work.stemma("get", "Team", "red", "--json", environment: node).object().object("fields")
      .text("name")
    #expect(name == "Red\n")
    let twice = try work.attempt("create", "Post", "id=@-", "title=@-", input: "x", environment: node)
    #expect(twice.status == 64 && twice.errors.contains("for one field only"), "\(twice.errors)")
    // A repeated field is an error, not an override.
    let duplicate = try work.attempt("update", "Team", "red", "name=A", "name=B", environment: node)
    #expect(
      duplicate.status == 64 && duplicate.errors.contains("`name` is given twice"), "\(duplicate.errors)")
    let endless = try work.attempt("update", "Team", "red", "name=@/dev/zero", environment: node)
    #expect(endless.status == 65 && endless.errors.contains("is longer than 16.0 MiB"), "\(endless.errors)")
    let schema = try work.attempt("init", "other", "--schema", "/dev/zero")
    #expect(schema.status == 65 && schema.errors.contains("is longer than 1.0 MiB"), "\(schema.errors)")
  }

  /// The last of two key parts could select another record, and a second read of standard input is
  /// empty.
  @Test(
    "no part of a key is given twice, and standard input is read once, also for a key",
    arguments: [
      ["delete", "Visit", "site=z", "number=1", "number=2"],
      ["update", "Visit", "site=x", "site=z", "number=1", "room=a"],
      ["upsert", "Visit", "site=z", "number=2", "number=1", "room=a"],
      ["link", "Visit", "site=z", "number=2", "number=1", "guest", "tim"],
      ["update", "Visit", "number=1", "site=@-", "room=@-"],
      ["update", "Visit", "number=1", "site=@-", "room=@/dev/stdin"],
      ["upsert", "Visit", "number=1", "site=@/dev/stdin", "room=@-"],
      ["log", "--model", "Visit", "--key", "site=z", "--key", "number=1", "--key", "number=2"],
    ])
  func duplicateKeyParts(words: [String]) throws {
    let work = try Shop.open()
    try work.stemma("create", "Customer", "id=tim", environment: node)
    for number in 1...2 {
      try work.stemma("create", "Visit", "site=z", "number=\(number)", "room=r", environment: node)
    }
    let before = try work.stemma("export", environment: node).output
    let refused = try Tool.run(
      Tool.path, words, in: work.path, input: Data("z".utf8), environment: node)
    let reason = words.contains("site=@-") || words.contains("site=@/dev/stdin") ? "one field only" : "twice"
    #expect(refused.status == 64 && refused.errors.contains(reason), "\(refused.errors)")
    #expect(try work.stemma("export", environment: node).output == before)
  }

  @Test(
    "a relationship takes its key from a file or standard input",
    arguments: [
      ["update", "Member", "tim", "team=@-"], ["update", "Member", "tim", "team=@key"],
      ["upsert", "Member", "tim", "team=@key"], ["link", "Member", "tim", "team=@-"],
    ])
  func referenceFromInput(words: [String]) throws {
    let work = try Shop.open()
    for team in ["red", "blue"] {
      try work.stemma("create", "Team", "id=\(team)", "name=T", environment: node)
    }
    try work.stemma("create", "Member", "id=tim", "name=Tim", "team=red", environment: node)
    try work.write("key", "blue")
    let result = try Tool.run(Tool.path, words, in: work.path, input: Data("blue".utf8), environment: node)
    #expect(result.status == 0, "\(result.errors)")
    let member = try work.stemma("get", "Member", "tim", "--json", environment: node).object()
    #expect(member.object("fields").text("teamId") == "blue")
    let absent = try work.attempt("update", "Member", "tim", "team=@nofile", environment: node)
    #expect(absent.status == 66 && absent.errors.contains("nofile"), "\(absent.errors)")
  }

  @Test("a relationship and its field say the same, or are refused")
  func duplicateReference() throws {
    let work = try Shop.open()
    for team in ["red", "blue"] {
      try work.stemma("create", "Team", "id=\(team)", "name=T", environment: node)
    }
    try work.stemma(
      "create", "Member", "id=tim", "name=Tim", "team=red", "teamId=red", environment: node)
    let line = #"{"op":"update","model":"Member","key":"tim","fields":{"teamId":"red","team":"blue"}}"#
    for words in [
      ["update", "Member", "tim", "team=blue", "teamId=red"],
      ["upsert", "Member", "tim", "teamId=blue", "team:=null"], ["import", "-"],
    ] {
      let refused = try Tool.run(
        Tool.path, words, in: work.path, input: Data(line.utf8), environment: node)
      #expect(
        refused.status == 65 && refused.errors.contains("`teamId` of Member is given twice"),
        "\(words): \(refused.errors)")
    }
    let member = try work.stemma("get", "Member", "tim", "--json", environment: node).object()
    #expect(member.object("fields").text("teamId") == "red")
  }

  @Test("export: chosen models, every field, CSV")
  func exports() throws {
    let work = try Shop.open()
    try work.stemma("create", "Team", "id=b", "name=B, \"b\"", environment: node)
    try work.stemma("create", "Team", "id=a", "name=A", environment: node)
    try work.stemma("create", "Post", "id=p", environment: node)
    let rows = try work.stemma("export", "Team", environment: node).objects()
    #expect(rows.map { $0.object("key").text("id") } == ["a", "b"])
    for row in rows { #expect(row.members == ["model", "key", "fields"]) }
    #expect(try work.stemma("export", environment: node).objects().count == 3)
    #expect(
      try work.stemma("export", "Post", environment: node).objects().first?.object("fields")["title"]
        is NSNull)
    let csv = try work.stemma("export", "Team", "--format", "csv", environment: node)
    #expect(csv.lines == ["id,name", "a,A", "b,\"B, \"\"b\"\"\""])
    #expect(try work.attempt("export", "Nope", environment: node).status == 65)
  }
}
