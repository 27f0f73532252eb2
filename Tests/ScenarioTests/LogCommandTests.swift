import Foundation
import Testing

/// Reading the log.
@Suite("log commands")
struct LogCommandTests {
  @Test("--field, --model, --origin, --commit and --grep that are given twice find what either does")
  func repeatedFilters() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Member", "id=m", "name=Tim")
    for word in ["age=41", "height=1.5"] { try work.stemma("-C", "shop", "update", "Member", "m", word) }
    try work.stemma("clone", "shop", "field", "--name", "field")
    try work.stemma("-C", "field", "update", "Member", "m", "active=true")
    func count(_ words: String...) throws -> Int {
      try Tool.run(Tool.path, ["-C", "field", "log", "--ndjson"] + words, in: work.path).lines.count
    }
    let (age, active) = (try count("--field", "age"), try count("--field", "active"))
    #expect(age == 1 && active == 1)
    #expect(try count("--field", "age", "--field", "active") == 2)
    #expect(try count("--grep", "41", "--grep", "1.5") == 2)
    #expect(try count("--origin", "field") == 1)
    #expect(try count("--origin", "field", "--origin", "shop") == 4)
    #expect(try count("--commit", "shop.1", "--commit", "field.1") == 2)
    try work.stemma("-C", "field", "create", "Team", "id=a", "name=A")
    try work.stemma("-C", "field", "create", "Post", "id=a", "title=A")
    #expect(try count("--model", "Team") == 1)
    #expect(try count("--model", "Team", "--model", "Member") == 5)
    #expect(try count("--model", "Team", "--model", "Member", "--field", "name") == 2)
    let lines = try work.stemma("-C", "field", "log", "--oneline", "--model", "Team", "--model", "Post").lines
    #expect(lines.count == 2)
    let keyed = try work.attempt("-C", "field", "log", "--model", "Team", "--model", "Post", "--key", "a")
    #expect(keyed.status == 64)
  }

  @Test("values that look alike are distinguished")
  func lookalikes() throws {
    let work = try Shop.open()
    let long = String(repeating: "x", count: 150)
    for name in ["Ren\u{E9}e", "Rene\u{301}e", long + "1", long + "2"] {
      try work.stemma("-C", "shop", "upsert", "Team", "id=red", "name=\(name)")
    }
    let log = try work.stemma("-C", "shop", "log", "-p", "--reverse").output
    #expect(log.contains(#""Ren\u00e9e" → "Rene\u0301e""#), "\(log)")
    #expect(log.contains(#"x1" → …x"#) && log.contains(#"x2""#), "\(log)")
    let diff = try work.stemma("-C", "shop", "diff", "@1", "@2").output
    #expect(diff.contains(#""Ren\u00e9e" → "Rene\u0301e""#), "\(diff)")
  }

  @Test("a partition that is not here is said, and the list is empty")
  func unknownPartitions() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Visit", "site=berlin", "number=1", "room=1")
    for words in [["log"], ["log", "--oneline"], ["log", "--json"], ["stats"], ["digest"]] {
      let none = try Tool.run(
        Tool.path, ["-C", "shop"] + words + ["--partition", "site=bern"], in: work.path)
      #expect(none.status == 0, "\(words): \(none.errors)")
      #expect(none.errors.contains("no partition with events here fits `site=bern`"), "\(words)")
      let some = try Tool.run(
        Tool.path, ["-C", "shop"] + words + ["--partition", "site=ber*", "--partition", "!site=bern"],
        in: work.path)
      #expect(some.status == 0 && some.errors.isEmpty && !some.output.isEmpty, "\(words): \(some.errors)")
    }
  }

  @Test("a count below zero is refused in words, also after `=`")
  func negativeCounts() throws {
    let work = try Shop.open()
    for (words, part) in [
      (["log", "-n", "-1"], "-n takes a number of events"),
      (["stats", "--top", "-3"], "--top takes a number from 1"),
      (["inspect", "shop/log/00000001.journal", "--block", "-1"], "--block takes a number from 1"),
      (["list", "Team", "--limit", "-1"], "--limit takes a number of records"),
      (["list", "Team", "--offset", "-1"], "--offset takes a number of records"),
      (["import", "--batch", "-1", "-"], "--batch takes 1 or more lines"),
    ] {
      let result = try Tool.run(
        Tool.path, words, in: work.path, environment: ["STEMMA_NODE": work.file("shop")])
      #expect(result.status == 64 && result.errors.contains(part), "\(words): \(result.errors)")
    }
    // Words after -- are not option values.
    try work.stemma("-C", "shop", "create", "Visit", "site=berlin", "number=-1", "room=1")
    #expect(try work.attempt("-C", "shop", "list", "Visit", "--limit", "--", "-1").status == 64)
  }

  @Test("filters, order, and shapes")
  func filters() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    try work.stemma("-C", "shop", "create", "Visit", "site=berlin", "number=1", "room=1")
    try work.stemma("-C", "shop", "create", "Visit", "site=paris", "number=1", "room=2")
    try work.stemma("clone", "shop", "field", "--name", "field")
    try work.stemma("-C", "field", "update", "Visit", "site=berlin", "number=1", "guestId=ada")
    try work.stemma("-C", "field", "push")
    try work.stemma("-C", "shop", "create", "Member", "id=m", "name=M", "team=red")
    try work.stemma("-C", "shop", "link", "Member", "m", "team", "blue")
    try work.stemma("-C", "shop", "delete", "Team", "red")

    func events(_ words: String...) throws -> [[String: Any]] {
      let result = try Tool.run(Tool.path, ["-C", "shop", "log", "--json"] + words, in: work.path)
      #expect(result.status == 0, "\(result.errors)")
      return try result.array()
    }
    func short(_ events: [[String: Any]]) -> [String] {
      events.map { "\($0.text("op") ?? "") \($0.text("model") ?? "") \($0.text("partition") ?? "")" }
    }
    let all = [
      "create Team Team", "create Visit site=berlin", "create Visit site=paris", "update Visit site=berlin",
      "create Member Member", "link Member Member", "delete Team Team",
    ]
    #expect(try short(events("--reverse")) == all)
    #expect(try short(events()) == all.reversed())
    #expect(try short(events("-n", "2")) == [all[6], all[5]])
    #expect(try short(events("-n", "2", "--reverse")) == [all[0], all[1]])
    #expect(try short(events("-n2")) == [all[6], all[5]])
    #expect(try events("-n", "0").isEmpty)
    let top = try work.stemma("-C", "shop", "stats", "--top", "2", "--json").object()
    #expect(top.array("models").map { $0.text("model") } == ["Visit", "Member"])
    for (words, status, part) in [
      (["log", "--field", "rom"], 65, "no model has a field `rom`; did you mean `room`?"),
      (
        ["log", "--field", "number"], 64,
        "`number` is a part of the key of Visit, which no event writes; --key"
      ),
      (["log", "--field", "id", "--model", "Team"], 64, "`id` is a part of the key of Team"),
      (
        ["log", "--format", "{fields.site}"], 64,
        "`site` is a part of the key of Visit, which no event writes; {key}"
      ),
      (["log", "--field", "rom", "--model", "Visit"], 65, "Visit has no field `rom`; did you mean `room`?"),
      (
        ["log", "--field", "cart"], 65,
        "`cart` of Customer is stored by Cart; write --model Cart --field customerId"
      ),
      (
        ["log", "--field", "posts"], 65,
        "`posts` of Member is stored by MemberPost; write --model MemberPost\n"
      ),
      (["log", "--until", "@999"], 66, "`@999` lies beyond the end of the log; the last event is @"),
      (["log", "--oneline", "--json"], 64, "--oneline"), (["log", "--stat", "-p"], 64, "--stat"),
    ] {
      let result = try Tool.run(Tool.path, ["-C", "shop"] + words, in: work.path)
      #expect(result.status == Int32(status) && result.errors.contains(part), "\(words): \(result.errors)")
    }
    #expect(try short(events("--reverse", "--model", "Team")) == [all[0], all[6]])
    #expect(try short(events("--model", "Team", "--key", "red", "-n", "1")) == [all[6]])
    #expect(try short(events("--model", "Visit", "--key", "site=paris", "--key", "number=1")) == [all[2]])
    #expect(try short(events("--reverse", "--partition", "site=*")) == Array(all[1...3]))
    #expect(
      try short(events("--reverse", "--partition", "site=*", "--partition", "!site=paris")) == [
        all[1], all[3],
      ])
    #expect(try short(events("--reverse", "--op", "update", "--op", "delete")) == [all[3], all[6]])
    #expect(try short(events("--reverse", "--model", "Visit", "--field", "room")) == [all[1], all[2]])
    // A relationship is a field of the model that stores it.
    for words in [["--field", "team"], ["--field", "team", "--model", "Member"]] {
      let found = try Tool.run(
        Tool.path, ["-C", "shop", "log", "--json", "--reverse"] + words, in: work.path)
      #expect(try short(found.array()) == [all[4], all[5]], "\(words)")
    }
    #expect(try work.attempt("-C", "shop", "log", "--field", "members", "--model", "Team").status == 65)
    #expect(try short(events("--origin", "field")) == [all[3]])
    #expect(try work.attempt("-C", "shop", "log", "--origin", "nobody").status == 66)
    #expect(try work.attempt("-C", "shop", "log", "--key", "red").status == 64)

    let required: Set = [
      "event", "partition", "position", "digest", "time", "timestamp", "op", "model", "key", "fields",
      "version",
      "context", "origin", "sequence", "commit",
    ]
    for event in try events() {
      let optional: Set = event.text("op") == "link" ? ["relationship"] : []
      #expect(event.members == required.union(optional))
      let name = try #require(event.text("event")).split(separator: ":")
      #expect(Int(name[1]) == event.number("sequence"))
    }
    let lines = try work.stemma("-C", "shop", "log", "--ndjson").objects()
    #expect(lines.count == all.count)
    #expect(try work.stemma("-C", "shop", "log", "--oneline").lines.count == all.count)
    #expect(try work.stemma("-C", "shop", "log").lines.count { $0.hasPrefix("event ") } == all.count)
  }

  @Test("--mutations are what import reads")
  func mutations() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    try work.stemma("-C", "shop", "create", "Member", "id=m", "name=M", "age=3", "extra:={\"a\":1}")
    try work.stemma("-C", "shop", "create", "Post", "id=p")
    try work.stemma("-C", "shop", "link", "Member", "m", "team", "red")
    try work.stemma("-C", "shop", "link", "Member", "m", "posts", "p")
    try work.stemma("-C", "shop", "update", "Member", "m", "age:=null")
    try work.stemma("-C", "shop", "create", "Team", "id=gone", "name=Gone")
    try work.stemma("-C", "shop", "delete", "Team", "gone")
    let mutations = try work.stemma("-C", "shop", "log", "--mutations", "--reverse")
    for line in try mutations.objects() {
      #expect(
        line.members
          == (line.text("op") == "delete"
            ? ["op", "model", "key", "ts"] : ["op", "model", "key", "fields", "ts"]))
    }
    try work.stemma("init", "copy", "--schema", "shop.graphql")
    try work.stemma("-C", "copy", "import", "-", input: mutations.output)
    #expect(try work.stemma("-C", "copy", "export").output == work.stemma("-C", "shop", "export").output)
  }

  @Test("segments and digest")
  func segments() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    try work.stemma("-C", "shop", "create", "Visit", "site=a", "number=1")
    try work.stemma("clone", "shop", "copy", "--name", "copy")
    let files = try work.stemma("-C", "copy", "segments", "--json").array()
    for file in files {
      #expect(
        file.members == [
          "number", "kind", "file", "events", "positions", "times", "rawBytes", "storedBytes",
          "partitions", "blocks", "digest", "corruption",
        ])
      #expect(["segment", "journal"].contains(file.text("kind")))
      if file.text("kind") == "segment" { #expect(file.text("digest")?.count == 64) }
    }
    #expect(files.compactMap { $0.number("events") }.reduce(0, +) == 2)
    let digests = try work.stemma("-C", "shop", "digest", "--json").array()
    #expect(digests.map { $0.text("partition") } == ["Team", "site=a"])
    for digest in digests { #expect(digest.members == ["partition", "events", "log", "tables"]) }
    #expect(try work.stemma("-C", "copy", "digest").output == work.stemma("-C", "shop", "digest").output)
    #expect(try work.stemma("-C", "shop", "digest", "--partition", "site=*").lines.count == 1)
    try work.stemma("-C", "shop", "update", "Team", "red", "name=Rot")
    #expect(try work.stemma("-C", "copy", "digest").output != work.stemma("-C", "shop", "digest").output)
    #expect(
      try work.stemma("-C", "copy", "digest", "--partition", "site=a").output
        == work.stemma("-C", "shop", "digest", "--partition", "site=a").output)
  }
}
