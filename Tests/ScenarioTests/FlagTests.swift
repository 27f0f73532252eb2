import Foundation
import Testing

/// Shortcut flags, and the messages for wrong spellings.
@Suite("Flags and spellings")
struct FlagTests {
  @Test("the author is --author, else STEMMA_AUTHOR, else the login name; an empty one is none")
  func author() throws {
    let work = try Shop.open()
    let login = try Tool.run("/usr/bin/env", ["id", "-un"], in: work.path).lines.first
    let create = [Tool.path, "-C", "shop", "create", "Team", "name=A"]
    for words in [
      ["-u", "STEMMA_AUTHOR"] + create, ["STEMMA_AUTHOR=bob"] + create, ["STEMMA_AUTHOR="] + create,
      ["STEMMA_AUTHOR=bob"] + create + ["--author", "ann"],
      ["STEMMA_AUTHOR=bob"] + create + ["--author", ""],
    ] {
      #expect(try Tool.run("/usr/bin/env", words, in: work.path).status == 0)
    }
    let events = try work.stemma("-C", "shop", "log", "--reverse", "--json").array()
    #expect(events.map { $0.text("author") } == [login, "bob", nil, "ann", nil])
    func numbers(_ authors: String...) throws -> [String] {
      let words = ["-C", "shop", "log", "--reverse", "--json"] + authors.flatMap { ["--author", $0] }
      return try Tool.run(Tool.path, words, in: work.path).array().compactMap { $0.text("event") }
    }
    #expect(try numbers("bob") == ["shop:2"])
    #expect(try numbers("bob", "ann") == ["shop:2", "shop:4"])
    // Part of a name is not an author.
    #expect(try numbers("bo").isEmpty)
    #expect(
      try work.stemma("-C", "shop", "log", "--author", "ann", "--oneline").lines.count == 1)
  }

  @Test("log -N is log -n N")
  func count() throws {
    let work = try Shop.open()
    for number in 1...3 { try work.stemma("-C", "shop", "create", "Team", "id=\(number)", "name=A") }
    func names(_ words: String...) throws -> [String] {
      try Tool.run(Tool.path, ["-C", "shop", "log"] + words + ["--json"], in: work.path).array()
        .compactMap { $0.text("event") }
    }
    #expect(try names("-2") == ["shop:3", "shop:2"])
    #expect(try names("--reverse", "-2") == ["shop:1", "shop:2"])
    #expect(try names("-2", "--model", "Team") == names("-n", "2"))
    #expect(try work.attempt("-C", "shop", "log", "-2", "-n", "3").status == 64)
    #expect(try work.attempt("-C", "shop", "log", "-n", "-1").status == 64)
    #expect(try work.attempt("-C", "shop", "log", "-2", "--nosuch").errors.contains("--nosuch"))
  }

  @Test("a record's name where options are meant, and a negative key, name the right spelling")
  func spelling() throws {
    let work = try Workplace()
    try work.write("num.graphql", "type Num @model { id: Int! @primaryKey text: String }")
    try work.stemma("init", "node", "--schema", "num.graphql", "--name", "node")
    try work.stemma("-C", "node", "create", "Num", "id=-5", "text=x")
    for words in [["get", "Num", "-5"], ["get", "Num", "-5", "--json"], ["history", "Num", "-5"]] {
      let refused = try Tool.run(Tool.path, ["-C", "node"] + words, in: work.path)
      #expect(refused.status == 64 && refused.errors.contains("id=-5"), "\(refused)")
      #expect(refused.errors.split(separator: "\n").count == 1, "\(refused.errors)")
    }
    #expect(try work.stemma("-C", "node", "get", "Num", "--", "-5").output.contains("x"))
    #expect(try work.stemma("-C", "node", "get", "Num", "id=-5").output.contains("x"))
    let log = try work.attempt("-C", "node", "log", "Num", "2")
    #expect(log.status == 64 && log.errors.contains("`stemma log --model Num --key 2`"), "\(log.errors)")
    #expect(log.errors.contains("`stemma history Num 2`"), "\(log.errors)")
    #expect(
      try work.stemma("-C", "node", "log", "--model", "Num", "--key", "-5", "--json").array().count == 1)
  }

  @Test("diff --exit-code exits with 1 if there are differences")
  func exitCode() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    try work.stemma("clone", "shop", "copy", "--name", "copy")
    #expect(try work.attempt("-C", "copy", "diff", "source", "--exit-code").status == 0)
    try work.stemma("-C", "copy", "update", "Team", "red", "name=Rot")
    for words in [["--exit-code"], ["--exit-code", "--stat"], ["--exit-code", "--json"]] {
      let result = try Tool.run(Tool.path, ["-C", "copy", "diff", "source"] + words, in: work.path)
      #expect(result.status == 1 && !result.output.isEmpty, "\(result)")
    }
    #expect(try work.attempt("-C", "copy", "diff", "source").status == 0)
  }

  @Test("remote set-url moves a remote, and refuses what remote add refuses")
  func setURL() throws {
    let work = try Shop.open()
    try work.stemma("clone", "shop", "copy", "--name", "copy")
    try FileManager.default.moveItem(atPath: work.file("shop"), toPath: work.file("moved"))
    #expect(try work.attempt("-C", "copy", "pull").status == 69)
    #expect(try work.attempt("-C", "copy", "remote", "set-url", "source", "nowhere").status == 66)
    #expect(try work.attempt("-C", "copy", "remote", "set-url", "source", "copy").status == 64)
    #expect(try work.attempt("-C", "copy", "remote", "set-url", "nosuch", "moved").status == 66)
    try work.stemma("-C", "copy", "remote", "set-url", "source", "moved")
    try work.stemma("-C", "copy", "pull")
    let remotes = try work.stemma("-C", "copy", "remote", "list", "--json").array()
    #expect(remotes.map { $0.text("name") } == ["source"])
    #expect(remotes.first?.text("address")?.hasSuffix("/moved") == true)
  }

  @Test("list --fields chooses columns and members, --vertical writes a line for each field")
  func listing() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Member", "id=a", "name=Ann", "age=40")
    try work.stemma("-C", "shop", "create", "Member", "id=b", "name=Bob")
    let chosen = try work.stemma("-C", "shop", "list", "Member", "--fields", "age,name")
    #expect(chosen.lines == ["age   name", "40    Ann", "null  Bob"], "\(chosen.output)")
    let rows = try work.stemma("-C", "shop", "list", "Member", "--fields", "age,id", "--json").array()
    #expect(rows.map { $0.object("fields").members } == [["age"], ["age"]])
    #expect(rows.map { $0.object("key").text("id") } == ["a", "b"])
    let vertical = try work.stemma("-C", "shop", "list", "Member", "--fields", "name,id", "--vertical")
    #expect(vertical.output == "name  Ann\nid    a\n\nname  Bob\nid    b\n")
    #expect(
      try work.stemma("-C", "shop", "list", "Member", "--where", "id=a", "--vertical").output
        == work.stemma("-C", "shop", "get", "Member", "a").output)
    #expect(try work.attempt("-C", "shop", "list", "Member", "--fields", "nam").status == 65)
    #expect(try work.attempt("-C", "shop", "list", "Member", "--vertical", "--json").status == 64)
  }

  /// Visits of three sites. A clone holds one of them.
  private func sites() throws -> Workplace {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Customer", "id=ada", "name=Ada")
    for site in ["bonn", "berlin", "paris"] {
      try work.stemma("-C", "shop", "create", "Visit", "site=\(site)", "number=1", "guest=ada")
    }
    return work
  }

  @Test("get --include names the record that a reference leads to outside of the scope")
  func outside() throws {
    let work = try sites()
    try work.stemma("clone", "shop", "part", "--partition", "site=bonn", "--name", "part")
    let get = ["get", "Visit", "site=bonn", "number=1", "--include", "guest"]
    let row = try Tool.run(Tool.path, ["-C", "part"] + get + ["--json"], in: work.path).object()
    #expect(row.object("outsideScope").object("guest").text("id") == "ada")
    #expect(row.object("included")["guest"] is NSNull)
    let text = try Tool.run(Tool.path, ["-C", "part"] + get, in: work.path)
    #expect(text.lines.last?.hasPrefix("guest: Customer ada, outside") == true, "\(text.output)")
    let whole = try Tool.run(Tool.path, ["-C", "shop"] + get + ["--json"], in: work.path).object()
    #expect(whole["outsideScope"] == nil)
    // A missing record within the scope is shown as none.
    try work.stemma("-C", "shop", "delete", "Customer", "ada")
    let missing = try Tool.run(Tool.path, ["-C", "shop"] + get, in: work.path)
    #expect(missing.lines.last == "guest: none", "\(missing)")
  }

  @Test("a pattern that fits no partition is a warning: clone, pull, push, sync, scope add")
  func idlePatterns() throws {
    let work = try sites()
    func warns(_ words: [String], of pattern: String?) throws {
      let result = try Tool.run(Tool.path, words, in: work.path)
      #expect(result.status == 0, "\(words): \(result)")
      let warnings = result.errors.split(separator: "\n").filter { $0.hasPrefix("warning: no partition") }
      #expect(warnings.count == (pattern == nil ? 0 : 1), "\(words): \(result.errors)")
      if let pattern { #expect(warnings.first?.contains("`\(pattern)`") == true, "\(result.errors)") }
    }
    let clone = ["clone", "shop", "part", "--name", "part", "--partition", "site=bonn", "--partition"]
    try warns(clone + ["site=rome"], of: "site=rome")
    for command in ["pull", "push", "sync"] {
      try warns(["-C", "part", command, "--partition", "site=rme"], of: "site=rme")
      try warns(["-C", "part", command, "--partition", "site=bonn"], of: nil)
    }
    // This node has no such partition, but the remote does.
    try warns(["-C", "part", "scope", "add", "site=berlin"], of: nil)
    try warns(["-C", "part", "scope", "add", "site=pars"], of: "site=pars")
    try warns(["-C", "part", "scope", "add", "!site=b?n"], of: "!site=b?n")
  }

  @Test("scope -n changes nothing; counts stand with the patterns, the partitions and what is purged")
  func rehearsal() throws {
    let work = try sites()
    try work.stemma("clone", "shop", "copy", "--name", "copy")
    func held() throws -> [String] {
      try work.stemma("-C", "copy", "scope", "list", "--partitions", "--json").array()
        .map { "\($0.text("partition") ?? "") \($0.number("events") ?? 0) \($0.number("records") ?? 0)" }
    }
    let all = ["Customer 1 1", "site=berlin 1 1", "site=bonn 1 1", "site=paris 1 1"]
    #expect(try held() == all)
    let rehearsed = try work.stemma("-C", "copy", "scope", "add", "!site=b*", "-n")
    #expect(
      rehearsed.lines == [
        "would purge 2 partitions, 2 events and 2 records:", "  site=berlin: 1 event, 1 record",
        "  site=bonn: 1 event, 1 record",
      ])
    #expect(try held() == all)
    #expect(try work.stemma("-C", "copy", "scope", "add", "site=x", "-n").lines == ["would purge nothing"])
    #expect(try work.attempt("-C", "copy", "scope", "remove", "site=x", "-n").status == 65)
    let purged = try work.stemma("-C", "copy", "scope", "add", "!site=b*")
    #expect(purged.output.contains("2 partitions, 2 events and 2 records"), "\(purged.output)")
    #expect(try held() == ["Customer 1 1", "site=paris 1 1"])
    let patterns = try work.stemma("-C", "copy", "scope", "list", "--json").array()
    #expect(patterns.map { $0.text("pattern") } == ["*", "!site=b*"])
    #expect(patterns.map { $0.number("partitions") } == [2, 0])
    #expect(patterns.map { $0.number("events") } == [2, 0])

    let status = try work.stemma("-C", "shop", "status", "--json").object()
    #expect(
      status.array("largestPartitions").map { $0.text("partition") } == [
        "Customer", "site=berlin", "site=bonn", "site=paris",
      ])
    #expect(
      try work.stemma("-C", "shop", "status").lines.contains("partition   site=bonn: 1 event, 1 record"))
  }
}
