import Foundation
import Testing

/// One block of the log is corrupt. Every reading command returns all readable events and reports
/// the missing ones once. It omits records that would be wrong without them.
@Suite("reading around corruption")
struct CorruptReadingTests {
  /// Two equal nodes, one with a wrong byte in the second block of its first segment. Each of 900
  /// visits was created in one file and changed in the next.
  private struct Pair {
    let work: Workplace
    /// Events of the intact node by position, and the readable events of the other one.
    let all: [[String: Any]]
    let readable: [[String: Any]]

    /// The intact node.
    static func fill() throws -> Workplace {
      let work = try Shop.open()
      func lines(_ operation: String, _ word: String) -> String {
        (0..<900).map { number in
          let room = String(repeating: "\(word) \(number * 7919 % 1000) ", count: 12)
          return
            #"{"op":"\#(operation)","model":"Visit","key":{"site":"s","number":\#(number)},"fields":{"room":"\#(room)"}}"#
        }.joined(separator: "\n") + "\n"
      }
      let team = #"{"op":"create","model":"Team","key":"red","fields":{"name":"Red"}}"# + "\n"
      for text in [lines("create", "room"), lines("update", "hall") + team] {
        try work.stemma("-C", "shop", "import", "-", "--segment-size", "50000", "--batch", "901", input: text)
      }
      return work
    }

    init() throws {
      work = try Self.fill()
      try FileManager.default.copyItem(atPath: work.file("shop"), toPath: work.file("hurt"))
      let path = "hurt/log/00000001.segment"
      let block = try #require(
        try work.stemma("inspect", path, "--block", "2", "--json").object().array("parts").first)
      var bytes = try work.bytes(path)
      bytes[try #require(block.number("offset")) + 50] ^= 1
      try bytes.write(to: URL(fileURLWithPath: work.file(path)))
      try FileManager.default.moveItem(atPath: work.file("hurt"), toPath: work.file("unread"))
      all = try work.stemma("-C", "shop", "log", "--ndjson", "--reverse").objects()
      try FileManager.default.copyItem(atPath: work.file("unread"), toPath: work.file("hurt"))
      readable = try work.attempt("-C", "hurt", "log", "--ndjson", "--reverse").objects()
    }

    /// Restores the corrupt node to the state before any command recorded the corruption.
    func forget() throws {
      try FileManager.default.removeItem(atPath: work.file("hurt"))
      try FileManager.default.copyItem(atPath: work.file("unread"), toPath: work.file("hurt"))
    }

    /// Runs a command that is the first to meet the corruption.
    func first(_ words: [String]) throws -> Tool.Result {
      try forget()
      return try Tool.run(Tool.path, ["-C", "hurt"] + words, in: work.path)
    }

    var lost: Int { all.count - readable.count }

    /// The numbers of the visits that lost an event.
    var lostVisits: Set<Int> {
      let positions = Set(readable.compactMap { $0.text("position") })
      return Set(
        all.filter { !positions.contains($0.text("position") ?? "") }.compactMap {
          $0.object("key").number("number")
        })
    }

    /// The same command on both nodes, as the first that meets the corruption.
    func run(_ words: String...) throws -> (whole: Tool.Result, hurt: Tool.Result) { try run(words) }

    func run(_ words: [String]) throws -> (whole: Tool.Result, hurt: Tool.Result) {
      let whole = try Tool.run(Tool.path, ["-C", "shop"] + words, in: work.path)
      #expect(whole.status == 0, "\(words): \(whole.errors)")
      return (whole, try first(words))
    }

    /// Expects the result of a command that read around the corruption.
    func expectMissing(_ result: Tool.Result, _ what: String) {
      #expect(result.status == 74, "\(what): \(result.errors)")
      let lines = result.errors.split(separator: "\n")
      #expect(lines.count == 1, "\(what) says it once: \(result.errors)")
      #expect(
        result.errors.contains("\(lost) events of partition site=s cannot be read")
          && result.errors.contains(
            "log/00000001.segment is corrupt at byte"),
        "\(what): \(result.errors)")
    }
  }

  @Test("log --follow says what is missing and goes on with what is appended")
  func follow() throws {
    let pair = try Pair()
    try pair.forget()
    let following = try Following(
      ["-C", "hurt", "log", "--follow", "-n", "2000", "--format", "{event} {model}"], in: pair.work)
    let shown = pair.readable.map { "\($0.text("event") ?? "") \($0.text("model") ?? "")" }
    #expect(following.lines(shown.count) == shown)
    try pair.work.stemma("-C", "hurt", "create", "Team", "id=blue", "name=Blue")
    #expect(following.lines(shown.count + 1).last?.hasSuffix(" Team") == true)
  }

  @Test("log gives all events that can be read, in every form")
  func log() throws {
    let pair = try Pair()
    #expect(pair.lost > 20 && pair.lost < 500)
    var lines: [String] = []
    for words in [
      ["--oneline"], ["--oneline", "--reverse"], ["--graph"], ["--mutations"],
      ["--format", "{event} {fields}"],
      ["--ndjson"], ["--field", "room", "--oneline"], ["--commit", "shop.1", "--oneline"],
    ] {
      let whole = try Tool.run(Tool.path, ["-C", "shop", "log"] + words, in: pair.work.path)
      let hurt = try pair.first(["log"] + words)
      pair.expectMissing(hurt, "\(words)")
      #expect(whole.lines.count - hurt.lines.count == pair.lost, "\(words)")
      let left = Set(hurt.lines)
      #expect(whole.lines.filter { left.contains($0) } == hurt.lines, "\(words)")
      if words == ["--oneline"] { lines = hurt.lines }
      if words == ["--graph"] { #expect(hurt.lines == lines.map { "* " + $0 }) }
    }
    let (_, array) = try pair.run("log", "--json")
    #expect(try array.array().count == pair.readable.count)
    let (_, commits) = try pair.run("log", "--stat", "--json")
    #expect(try commits.array().reduce(0) { $0 + ($1.number("events") ?? 0) } == pair.readable.count)
    // Intact data is read without a warning.
    let (_, team) = try pair.run("log", "--model", "Team")
    #expect(team.status == 0 && team.errors.isEmpty)
  }

  @Test(
    "wrong bytes in a segment: reads report exactly the lost events, and a repair from a peer restores them",
    arguments: [1, 64, 512])
  func mendedFromAPeer(wrong: Int) throws {
    let work = try Pair.fill()
    try work.stemma("clone", "shop", "peer")
    func all(_ node: String) throws -> [String] {
      [try work.export(node), try work.stemma("-C", node, "digest").output]
    }
    /// Events without their log position.
    func events(_ node: String) throws -> Set<String> {
      let lines = try work.attempt("-C", node, "log", "--ndjson").lines
      return Set(lines.map { $0.replacing(#/"position":"[^"]*",/#, with: "") })
    }
    let (before, whole) = (try all("shop"), try events("shop"))
    #expect(try events("peer") == whole && whole.count == 1801)

    let path = "shop/log/00000001.segment"
    var bytes = try work.bytes(path)
    for place in bytes.indices.dropFirst((bytes.count - wrong) / 2).prefix(wrong) { bytes[place] ^= 0xff }
    try bytes.write(to: URL(fileURLWithPath: work.file(path)))

    let readable = try events("shop")
    #expect(readable.isStrictSubset(of: whole))
    #expect(try work.attempt("-C", "shop", "log").status == 74)
    let report = try work.attempt("-C", "shop", "verify", "--json").object()
    var told: Set<String> = []
    for run in report.array("missing") {
      let range = try #require(run.number("from"))...(try #require(run.number("to")))
      for number in range {
        let name = "\(try #require(run.text("partition"))) \(try #require(run.text("origin"))) \(number)"
        #expect(told.insert(name).inserted, "an event is reported once")
      }
    }
    let lost = try whole.subtracting(readable).map { line in
      let event = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
      return "\(event.text("partition") ?? "") \(event.text("origin") ?? "") \(event.number("sequence") ?? 0)"
    }
    #expect(told == Set(lost) && !lost.isEmpty && report["isVague"] as? Bool == false)

    try work.stemma("-C", "shop", "repair", "--from", work.file("peer"))
    #expect(try work.stemma("-C", "shop", "verify").errors.isEmpty)
    #expect(try all("shop") == before)
    #expect(try all("shop") == all("peer"))
    #expect(try events("shop") == events("peer"))
    #expect(try work.stemma("-C", "shop", "sync", work.file("peer")).errors.isEmpty)
    #expect(try all("shop") == before)
  }

  @Test("segments marks the file in which corruption was met")
  func segments() throws {
    let pair = try Pair()
    try pair.forget()
    func corruption() throws -> (Int32, [Bool]) {
      let result = try pair.work.attempt("-C", "hurt", "segments", "--json")
      return (result.status, try result.array().map { $0.text("corruption") != nil })
    }
    #expect(try corruption() == (0, [false, false, false]), "the block has not been read")
    try pair.work.stemma("-C", "hurt", "create", "Team", "id=blue", "name=Blue")
    #expect(try pair.work.attempt("-C", "hurt", "verify").status == 1)
    #expect(try corruption() == (1, [true, false, false]))
    let table = try pair.work.attempt("-C", "hurt", "segments")
    #expect(table.status == 1 && table.output.contains("00000001.segment: corrupt at byte"))
    let partitions = try pair.work.attempt("-C", "hurt", "segments", "--partitions")
    #expect(partitions.status == 1 && partitions.output.contains("corrupt at byte"))
  }

  @Test("answers from tables that were made around corruption end with 74")
  func partialTables() throws {
    let pair = try Pair()
    // Whether or not the corruption was recorded when the tables were deleted.
    for isKnown in [true, false] {
      if !isKnown { try pair.forget() }
      try checkPartialTables(pair)
    }
  }

  private func checkPartialTables(_ pair: Pair) throws {
    for name in ["tables.sqlite", "tables.sqlite-wal", "tables.sqlite-shm"] {
      let path = pair.work.file("hurt/" + name)
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }
    let lost = try #require(pair.lostVisits.min())
    for words in [
      ["status"], ["digest"], ["conflicts"], ["conflicts", "--check"], ["conflicts", "--count"],
      ["list", "Visit"],
      ["query", "SELECT count(*) FROM visits"], ["export"], ["blame", "Visit", "site=s", "number=\(lost)"],
    ] {
      let whole = try Tool.run(Tool.path, ["-C", "shop"] + words, in: pair.work.path)
      let hurt = try Tool.run(Tool.path, ["-C", "hurt"] + words, in: pair.work.path)
      #expect(hurt.status == 74 && hurt.errors.contains("stemma verify"), "\(words): \(hurt.errors)")
      // A record whose create is lost is not in the tables.
      if words[0] != "blame" {
        #expect(hurt.output.isEmpty == whole.output.isEmpty, "\(words) answers nevertheless")
      }
    }
    // Partitions without lost events get complete answers.
    #expect(try pair.work.attempt("-C", "hurt", "blame", "Team", "red").status == 0)
    #expect(try pair.work.attempt("-C", "hurt", "get", "Team", "red").status == 0)
  }

  @Test("log -p shows what an event changed, or that it cannot be determined")
  func changes() throws {
    let pair = try Pair()
    let (whole, hurt) = try pair.run("log", "-p", "--ndjson", "--reverse")
    pair.expectMissing(hurt, "-p")
    let right = Dictionary(
      uniqueKeysWithValues: try whole.objects().map { ($0.text("position") ?? "", $0.array("changes")) })
    let lost = pair.lostVisits
    var untold = 0
    for event in try hurt.objects() {
      guard let changes = event["changes"] as? [[String: Any]] else {
        #expect(lost.contains(event.object("key").number("number") ?? -1))
        untold += 1
        continue
      }
      #expect(
        "\(changes.map { "\($0["from"] ?? "")" })"
          == "\(right[event.text("position") ?? "", default: []].map { "\($0["from"] ?? "")" })")
    }
    #expect(untold == lost.count, "of each the change whose create is lost")
    let (_, text) = try pair.run("log", "-p")
    #expect(text.lines.count { $0.hasPrefix("event ") } == pair.readable.count)
  }

  @Test("stats count what can be read")
  func stats() throws {
    let pair = try Pair()
    let (_, hurt) = try pair.run("stats", "--json")
    pair.expectMissing(hurt, "stats")
    #expect(try hurt.object().number("events") == pair.readable.count)
  }

  @Test("the past leaves out the records that lost events, and no others")
  func past() throws {
    let pair = try Pair()
    let last = try #require(pair.all.last?.text("position"))
    let creates = pair.all.filter { $0.text("op") == "create" && $0.text("model") == "Visit" }
    let made = try #require(creates.last?.text("position"))
    let lost = pair.lostVisits
    // The present tables were made before the corruption and are still current.
    let (present, remembered) = try pair.run("list", "Visit", "--as-of", "@" + last, "--ndjson")
    #expect(remembered.status == 0 && remembered.output == present.output)
    for words in [
      ["diff", "@1", "now", "--ndjson"], ["diff", "2020-01-01", "now", "--ndjson", "--model", "Visit"],
      ["list", "Visit", "--as-of", "@" + made, "--ndjson"],
      ["query", "--as-of", "@" + made, "--ndjson", "SELECT number, room FROM visits ORDER BY number"],
    ] {
      let whole = try Tool.run(Tool.path, ["-C", "shop"] + words, in: pair.work.path)
      let hurt = try pair.first(words)
      #expect(whole.status == 0, "\(whole.errors)")
      pair.expectMissing(hurt, "\(words)")
      let left = Set(hurt.lines)
      #expect(whole.lines.filter { left.contains($0) } == hurt.lines, "\(words): nothing is wrong")
      func number(_ object: [String: Any]) -> Int? {
        object.object("key").number("number") ?? object.number("number")
      }
      let numbers = Set(try hurt.objects().map(number))
      let missing = try whole.objects().count { !numbers.contains(number($0)) }
      #expect(whole.lines.count - hurt.lines.count >= lost.count && missing <= lost.count + 2, "\(words)")
    }
    let one = String(try #require(lost.min()) + 1)
    for words in [["get", "--as-of", "@" + last], ["restore", "--as-of", "@" + last, "-n"]] {
      let result = try pair.first([words[0], "Visit", "site=s", "number=\(one)"] + words.dropFirst())
      #expect(result.status == 74 && result.output.isEmpty, "\(words)")
      #expect(result.errors.contains("Visit site=s number=\(one) may have lost events"), "\(result.errors)")
    }
    let (whole, hurt) = try pair.run("get", "Visit", "site=s", "number=0", "--as-of", "@" + last)
    #expect(hurt.status == 0 && hurt.output == whole.output)
  }

  @Test("one record that lost events: what is left of its history, and its state from the tables")
  func record() throws {
    let pair = try Pair()
    let one = "number=\(try #require(pair.lostVisits.min()) + 1)"
    let (history, left) = try pair.run("history", "Visit", "site=s", one, "--json")
    #expect(left.status == 74)
    #expect(try history.array().count == 2)
    let events = try left.array()
    #expect(events.count == 1 && events[0].text("op") == "update" && events[0]["changes"] is NSNull)
    for command in ["history", "log"] {
      let words =
        command == "log" ? ["--model", "Visit", "--key", "site=s", "--key", one] : ["Visit", "site=s", one]
      let result = try pair.first([command] + words)
      #expect(result.status == 74 && result.output.contains("update"), "\(command)")
    }
    let (blame, same) = try pair.run("blame", "Visit", "site=s", one)
    #expect(same.status == 0 && same.output == blame.output)
    let (why, told) = try pair.run("why", "Visit", "site=s", one, "room")
    #expect(told.status == 74 && told.output == why.output)
    let event = try #require(events[0].text("position"))
    let (_, shown) = try pair.run("show", "@" + event)
    #expect(
      shown.status == 74 && shown.output.contains("update") && !shown.output.contains("is what is shown"))
    let lost = try #require(try history.array().last?.text("position"))
    #expect(try pair.run("show", "@" + lost).hurt.status == 74)
    for words in [["segments"], ["status"], ["conflicts"], ["export"], ["list", "Visit"], ["digest"]] {
      let result = try pair.first(words)
      #expect(result.status == 0, "\(words): \(result.errors)")
    }
  }

  @Test("status --json lists recorded corruption and lost events, and --check exits with 1")
  func statusOfCorruption() throws {
    let pair = try Pair()
    #expect(try pair.work.attempt("-C", "hurt", "verify").status == 1)
    let result = try pair.work.attempt("-C", "hurt", "status", "--check", "--json")
    let status = try result.object()
    #expect(result.status == 1 && status["isSound"] as? Bool == false)
    #expect(status.array("corruption").first?.members == ["file", "offset", "what"])
    #expect(status.array("missing").first?.text("partition") == "site=s")
    #expect((status["notices"] as? [String])?.isEmpty == false)
    #expect(try pair.work.attempt("-C", "hurt", "status", "--json").status == 0)
  }

  @Test(
    "a command that meets corruption records it: later ones report it, and no write builds on lost events",
    arguments: [
      ["log", "--oneline"], ["history", "Visit", "site=s", "number="], ["stats"], ["verify"],
      ["sync", "empty"],
    ])
  func recorded(words: [String]) throws {
    let pair = try Pair()
    let hidden = "number=\(try #require(pair.lostVisits.min()))"
    try pair.work.stemma("init", "empty", "--schema", "shop.graphql", "--name", "empty")
    let update = ["update", "Visit", "site=s", hidden, "room=new"]
    #expect(try pair.first(update).status == 0, "the corruption is not recorded yet")
    let met = try pair.first(words.map { $0 == "number=" ? hidden : $0 })
    #expect(met.status != 0, "\(met.errors)")
    let refused = try Tool.run(Tool.path, ["-C", "hurt"] + update, in: pair.work.path)
    #expect(refused.status == 74 && refused.errors.contains("can only be read"), "\(refused.errors)")
    #expect(try pair.work.attempt("-C", "hurt", "status").errors.contains("is corrupt at byte"))
    // Two lines at the beginning, and one at the end about omitted events.
    let told = try pair.work.attempt("-C", "hurt", "log", "--oneline")
    #expect(told.errors.split(separator: "\n").count == 3, "\(told.errors)")
    #expect(told.errors.contains("what cannot be read is left out"))
    let pushed = try pair.work.attempt("-C", "hurt", "sync", "empty")
    #expect(pushed.status == 74 || !pushed.output.contains("site=s"), "\(pushed.output)")
  }

  /// Readers also refresh tables after a process died between its last commit and their update.
  @Test("tables that are behind a corrupt log are brought up to it by who reads")
  func tablesBehind() throws {
    let pair = try Pair()
    try pair.forget()
    #expect(try pair.work.attempt("-C", "hurt", "verify").status == 1)
    let old = pair.work.file("old")
    try FileManager.default.copyItem(atPath: pair.work.file("hurt"), toPath: old)
    try pair.work.stemma("-C", "hurt", "create", "Team", "id=blue", "name=Blue")
    for name in ["tables.sqlite", "tables.sqlite-wal", "tables.sqlite-shm"] {
      let path = pair.work.file("hurt/" + name)
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
      guard FileManager.default.fileExists(atPath: old + "/" + name) else { continue }
      try FileManager.default.copyItem(atPath: old + "/" + name, toPath: path)
    }
    let shown = try pair.work.attempt("-C", "hurt", "get", "Team", "blue")
    #expect(shown.status == 0 && shown.output.contains("Blue"), "\(shown.errors)")
    // The tables keep the digests of the lost events.
    #expect(try pair.work.attempt("-C", "hurt", "digest").status == 74)
    #expect(try pair.work.attempt("-C", "hurt", "digest", "--partition", "Team").status == 0)
  }

  @Test("a rehearsal reads around corruption all the same, and leaves the node as it is")
  func unrecorded() throws {
    let pair = try Pair()
    try pair.forget()
    let metadata = try pair.work.bytes("hurt/stemma.json")
    let one = "number=\(try #require(pair.lostVisits.min()) + 1)"
    let rehearsed = try pair.work.attempt(
      "-C", "hurt", "restore", "Visit", "site=s", one, "--as-of", "@901", "-n")
    #expect(rehearsed.status == 74, "\(rehearsed.errors)")
    #expect(try pair.work.bytes("hurt/stemma.json") == metadata)
  }

  /// A backup of intact partitions succeeds, and one that omits partitions does not end with 0.
  @Test(
    "an exchange that leaves corrupt partitions out ends with that; one of other partitions knows nothing of it"
  )
  func exchanges() throws {
    let pair = try Pair()
    let work = pair.work
    _ = try work.attempt("-C", "hurt", "log")
    try work.stemma("-C", "hurt", "create", "Team", "id=blue", "name=Blue")
    let hurt = work.file("hurt")
    for (command, moved) in [("pull", 1), ("push", 0), ("sync", 0)] {
      let result = try work.attempt("-C", "shop", command, hurt, "--json")
      #expect(result.status == 74, "\(command): \(result.errors)")
      #expect(
        result.errors.contains("of partition site=s, so what it has of these was left out"),
        "\(result.errors)")
      var transfers: [[String: Any]] = []
      if command == "sync" {
        let reports = try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [[String: Any]]
        let report = try #require(reports?.first, "\(result.output)")
        transfers = [report.object("pulled"), report.object("pushed")]
      } else {
        transfers = [try result.object()]
      }
      for transfer in transfers {
        #expect(transfer["leftOut"] as? [String] == ["site=s"], "\(command)")
        #expect(transfer.number("events") == moved, "\(command)")
      }
      let other = try work.attempt("-C", "shop", command, hurt, "--partition", "Team", "--json")
      #expect(other.status == 0 && !other.errors.contains("left out"), "\(command): \(other.errors)")
      #expect(!other.output.contains("leftOut"), "\(command)")
    }
    let part = try work.attempt("clone", "hurt", "part", "--partition", "Team")
    #expect(part.status == 0 && !part.errors.contains("left out"), "\(part)")
    #expect(try work.stemma("-C", "part", "status").errors.isEmpty)
    #expect(try work.stemma("-C", "part", "list", "Team").lines.count >= 2)
    let whole = try work.attempt("clone", "hurt", "whole")
    #expect(whole.status == 74 && whole.errors.contains("unfinished"), "\(whole.errors)")
    #expect(try work.attempt("-C", "whole", "pull").status == 74)
    try work.stemma("-C", "hurt", "repair", "--from", work.file("shop"))
    let finished = try work.stemma("-C", "whole", "pull")
    #expect(finished.errors.contains("counts as whole") || finished.errors.isEmpty, "\(finished.errors)")
    #expect(try work.export("whole") == (try work.export("hurt")))
  }
}
