import Foundation
import Testing

/// Names of events, and the ambiguities between them.
@Suite("names of events")
struct EventNameTests {
  private static func visits(_ count: Int) -> String {
    (0..<count).map {
      #"{"model":"Visit","key":{"site":"s\#($0 % 3)","number":\#($0)},"fields":{"room":"room \#($0)"}}"#
        + "\n"
    }.joined()
  }

  @Test("of many events beside one the first and the last of each node are named")
  func manyBesideOne() throws {
    let work = try Workplace()
    try work.write("s.graphql", "type Team @model { id: ID! @primaryKey name: String }\n")
    try work.stemma("init", "a", "--schema", "s.graphql", "--name", "a")
    try work.stemma("-C", "a", "create", "Team", "id=x")
    try work.stemma("-C", "a", "create", "Team", "id=y")
    for name in ["b", "c"] { try work.stemma("clone", "a", name, "--name", name) }
    for (node, count) in [("a", 300), ("b", 1), ("c", 2)] {
      // Events of another record lie in between.
      let lines = (0..<count).map { number in
        ["x", "y"].map {
          #"{"op":"update","model":"Team","key":"\#($0)","fields":{"name":"\#(node)\#(number)"}}"# + "\n"
        }.joined()
      }
      try work.stemma("-C", node, "import", "-", input: lines.joined())
    }
    for other in ["b", "c"] { try work.stemma("-C", "a", "pull", other) }
    let log = try work.stemma(
      "-C", "a", "log", "--model", "Team", "--key", "x", "--reverse", "--format", "{event}"
    ).lines
    let own = log.filter { $0.hasPrefix("a:") }.dropFirst()
    let (first, last) = (try #require(own.first), try #require(own.last))
    let beside = try #require(
      try work.stemma("-C", "a", "show", "b:1").lines.first { $0.contains("Concurrent with") })
    let names = beside.dropFirst("    Concurrent with ".count).dropLast()
    let runs = Set(String(names).components(separatedBy: ", "))
    #expect(own.count == 300 && runs == ["\(first) … \(last) (300 events)", "c:1", "c:3"], "\(beside)")
    let json = try work.stemma("-C", "a", "show", "b:1", "--json").object()
    #expect((json["concurrent"] as? [String])?.count == 302)
  }

  /// `log` prints eight digits of a digest. Some are digits followed by `d`, which looks like a
  /// number of days.
  @Test("the first digits of a digest are never silently a number of days")
  func digestsThatLookLikeDays() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "import", "-", input: Self.visits(12_000))
    let events = try work.stemma("-C", "shop", "log", "--ndjson").objects()
    let digests = events.map { $0.text("digest") ?? "" }
    func event(_ digest: String) throws -> String {
      try #require(events.first { $0.text("digest")?.hasPrefix(digest) ?? false }?.text("position"))
    }

    let long = try #require(
      digests.lazy.compactMap { $0.prefixMatch(of: /[0-9]{5,}d/).map { String($0.0) } }.first)
    let since = try work.stemma("-C", "shop", "log", "--since", long, "--reverse", "-n", "1", "--ndjson")
      .objects()
    #expect(try since.first?.text("position") == event(long))
    let until = try work.stemma("-C", "shop", "log", "--until", long, "-n", "1", "--ndjson").objects()
    #expect(try until.first?.text("position") == event(long))

    let short = try #require(
      digests.lazy.compactMap { $0.prefixMatch(of: /[0-9]{3,4}d/).map { String($0.0) } }.first { prefix in
        digests.count { $0.hasPrefix(prefix) } == 1
      })
    let named = try work.stemma("-C", "shop", "show", short, "--json").object()
    for words in [["log", "--since", short], ["diff", short], ["list", "Visit", "--as-of", short]] {
      let refused = try Tool.run(Tool.path, ["-C", "shop"] + words, in: work.path)
      #expect(refused.status == 64, "\(words): \(refused.output.prefix(200))")
      #expect(
        refused.errors.contains("\(named.text("event") ?? "") in \(named.text("partition") ?? "")"),
        "\(refused.errors)")
      #expect(refused.errors.contains("days") && refused.errors.contains("h)"), "\(refused.errors)")
    }

    // Two events with this prefix do not make the reading as days more likely.
    let beginnings = Dictionary(
      grouping: digests.compactMap { $0.prefixMatch(of: /[0-9]{3,4}d/).map { String($0.0) } }, by: \.self)
    let shared = try #require(beginnings.filter { $0.value.count > 1 }.keys.min())
    let several = try work.attempt("-C", "shop", "log", "--since", shared)
    #expect(several.status == 64 && several.output.isEmpty, "\(several.output.prefix(200))")
    for event in events where event.text("digest")?.hasPrefix(shared) ?? false {
      #expect(several.errors.contains(event.text("event") ?? "?"), "\(several.errors)")
    }

    // A text that is no prefix of a digest means days.
    let days = try #require(
      (100...999).map { "\($0)d" }.first { day in !digests.contains { $0.hasPrefix(day) } })
    for span in ["1d", "30d", days] {
      #expect(try work.stemma("-C", "shop", "log", "--since", span, "-n", "3", "--oneline").lines.count == 3)
    }
    #expect(try work.attempt("-C", "shop", "log", "--since", "10000d").status != 0)
  }

  @Test("an event that is named by its position or digest must be of the partition that is named with it")
  func foreignPartition() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "import", "-", input: Self.visits(2))
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    let before = try work.stemma("-C", "shop", "export").output
    let event = try #require(
      try work.stemma("-C", "shop", "log", "--model", "Visit", "-n", "1", "--json").array().first)
    for name in ["@" + (event.text("position") ?? ""), String((event.text("digest") ?? "").prefix(12))] {
      for words in [["undo", name], ["show", name]] {
        let refused = try Tool.run(
          Tool.path, ["-C", "shop"] + words + ["--partition", "Team"], in: work.path)
        #expect(refused.status == 66 && refused.output.isEmpty, "\(words): \(refused.output)")
        #expect(
          refused.errors.contains("is an event of partition site=s1, not of `Team`"), "\(refused.errors)")
      }
      try work.stemma("-C", "shop", "show", name, "--partition", "site=s1")
    }
    #expect(try work.stemma("-C", "shop", "export").output == before)
    let unknown = try work.attempt("-C", "shop", "show", "shop:1", "--partition", "Nope")
    #expect(unknown.status == 66)
    #expect(unknown.errors.contains("there is no event `shop:1` in partition Nope of this node"))
    // The event does not exist in any partition, so the error does not name one.
    let stranger = try work.attempt("-C", "shop", "show", "zz:1", "--partition", "site=s1")
    #expect(stranger.status == 66)
    #expect(stranger.errors.contains("there is no event `zz:1` in this node"), "\(stranger.errors)")
  }

  @Test("a commit is undone in all partitions, and so refuses to be undone in one")
  func partitionOfACommit() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Customer", "id=ada", "name=first")
    let refused = try work.attempt("-C", "shop", "undo", "shop.1", "--partition", "Customer", "-n")
    #expect(refused.status == 64 && refused.output.isEmpty, "\(refused.output)")
    #expect(refused.errors.contains("`shop.1` is a commit, which is undone whole"), "\(refused.errors)")
    for words in [["shop:1", "--partition", "Customer"], ["shop.1"]] {
      let shown = try Tool.run(Tool.path, ["-C", "shop", "undo", "-n"] + words, in: work.path)
      #expect(shown.status == 0 && shown.output.contains("- Customer[ada]"), "\(words): \(shown.errors)")
    }
  }

  @Test("where all that is asked for is in one partition, the name of an event counts there")
  func partitionOfWhatIsAskedFor() throws {
    let work = try Shop.open()
    for (model, key) in [("Team", "red"), ("Customer", "ada")] {
      try work.stemma("-C", "shop", "create", model, "id=\(key)", "name=first")
      try work.stemma("-C", "shop", "update", model, key, "name=second")
    }
    for words in [
      ["--model", "Customer", "--key", "ada"], ["--model", "Customer"], ["--partition", "Customer"],
    ] {
      let since = try Tool.run(
        Tool.path, ["-C", "shop", "log", "--oneline", "--since", "shop:2"] + words, in: work.path)
      #expect(since.lines.count == 1 && since.output.contains("Customer[ada]"), "\(words): \(since.errors)")
    }
    let then = try work.stemma("-C", "shop", "list", "Customer", "--as-of", "shop:1", "--json").array()
    #expect(then.map { $0.object("fields").text("name") } == ["first"])
    let plan = try work.stemma("-C", "shop", "restore", "Customer", "--as-of", "shop:1", "-n")
    #expect(plan.output.contains("name: \"second\" → \"first\""))
    let changed = try work.stemma("-C", "shop", "diff", "shop:1", "shop:2", "--model", "Customer")
    #expect(changed.lines.last == "0 records added, 0 removed, 1 changed", "\(changed.output)")

    // Without a single partition the name is ambiguous. The error mentions --partition only if the
    // command has it.
    for (words, takesPartition) in [
      (["log", "--since", "shop:1"], true), (["show", "shop:1"], true), (["undo", "shop:1", "-n"], true),
      (["diff", "shop:1"], false), (["query", "SELECT 1", "--as-of", "shop:1"], false),
      (["list", "Visit", "--as-of", "shop:1"], false),
    ] {
      let refused = try Tool.run(Tool.path, ["-C", "shop"] + words, in: work.path)
      #expect(
        refused.status == 64 && refused.errors.contains("shop:1 in Customer or shop:1 in Team"), "\(words)")
      #expect(refused.errors.contains("--partition") == takesPartition, "\(words): \(refused.errors)")
    }
  }
}
