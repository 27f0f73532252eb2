import Foundation
import Testing

/// The output of `log`: filters, following and paging.
@Suite("reading the log")
struct LogReadingTests {
  /// Three commits at known times.
  private func shop() throws -> Workplace {
    let work = try Shop.open()
    let lines = [
      #"{"op":"create","model":"Team","key":"red","fields":{"name":"Red"},"ts":1577836800}"#,
      #"{"op":"update","model":"Team","key":"red","fields":{"name":"Rouge"},"ts":1577923200}"#,
      #"{"op":"create","model":"Visit","key":{"site":"paris","number":1},"fields":{"room":"7"},"ts":1578009600}"#,
    ]
    for (index, line) in lines.enumerated() {
      try work.stemma(
        "-C", "shop", "import", "-", "--author", index == 1 ? "bob" : "ann", input: line + "\n")
    }
    return work
  }

  private func positions(_ work: Workplace, _ words: String...) throws -> [String] {
    let result = try Tool.run(Tool.path, ["-C", "shop", "log", "--json"] + words, in: work.path)
    #expect(result.status == 0, "\(result.errors)")
    return try result.array().compactMap { $0.text("position") }
  }

  @Test("points in history: times, dates, spans, positions, events")
  func pointsInTime() throws {
    let work = try shop()
    #expect(try positions(work, "--since", "2020-01-02") == ["3", "2"])
    #expect(try positions(work, "--until", "2020-01-01T00:00:00Z") == ["1"])
    #expect(try positions(work, "--since", "2020-01-01T12:00:00+01:00", "--until", "2020-01-02") == ["2"])
    #expect(try positions(work, "--until", "2020-01-02") == ["2", "1"])
    #expect(try positions(work, "--until", "2019-12").isEmpty && positions(work, "--until", "2019").isEmpty)
    // A time without a zone is UTC, as in all output.
    #expect(try positions(work, "--since", "2020-01-02T00:00:00") == ["3", "2"])
    #expect(try positions(work, "--since", "2020-01-02 00:00") == ["3", "2"])
    #expect(try positions(work, "--since", "2020-01-02 00:01") == ["3"])
    for first in ["2020", "2020-01"] {
      #expect(try positions(work, "--since", first) == positions(work, "--since", "2020-01-01"))
      #expect(try positions(work, "--until", first).count == 3, "all of \(first)")
    }
    let unnamed = try work.attempt("-C", "shop", "undo", "nobody.99")
    #expect(unnamed.status == 64 && unnamed.errors.contains("a commit (NAME.NUMBER"))
    #expect(try work.attempt("-C", "shop", "log", "--since", "2020-13-02T00:00:00").status == 64)
    #expect(try positions(work, "--since", "@2") == ["3", "2"])
    #expect(try positions(work, "--until", "@2", "--reverse") == ["1", "2"])
    #expect(try positions(work, "--since", "2h").isEmpty)
    #expect(try positions(work, "--until", "yesterday").count == 3)
    let digest = try #require(
      try work.stemma("-C", "shop", "log", "-n", "1", "--json").array()[0].text("digest"))
    #expect(try positions(work, "--since", String(digest.prefix(8))) == ["3"])
    #expect(try work.attempt("-C", "shop", "log", "--since", "soon").status == 64)
    #expect(try work.attempt("-C", "shop", "log", "--since", "ffffffff").status == 66)
  }

  @Test("--grep, --commit, --format")
  func words() throws {
    let work = try shop()
    #expect(try positions(work, "--grep", "bob") == ["2"])
    #expect(try positions(work, "--grep", "Roug") == ["2"])
    #expect(try positions(work, "--grep", "paris") == ["3"])
    #expect(try positions(work, "--commit", "shop.2") == ["2"])
    #expect(try work.attempt("-C", "shop", "log", "--commit", "shop.9").status == 66)
    let lines = try work.stemma(
      "-C", "shop", "log", "--reverse", "--format", "{time} {author} {op} {model}[{key}] {fields.name}{{}"
    ).lines
    #expect(
      lines == [
        "2020-01-01T00:00:00Z ann create Team[red] Red{}",
        "2020-01-02T00:00:00Z bob update Team[red] Rouge{}",
        "2020-01-03T00:00:00Z ann create Visit[site=paris number=1] {}",
      ])
    #expect(try work.attempt("-C", "shop", "log", "--format", "{what}").status == 64)
    // A position is valid input for `show`.
    let position = try work.stemma("-C", "shop", "log", "-n", "1", "--format", "{position}").lines[0]
    #expect(position == "@3")
    #expect(try work.stemma("-C", "shop", "show", position, "--json").object().text("position") == "3")
  }

  @Test("--format refuses a brace that is not closed, and fields that no event can have")
  func formatMistakes() throws {
    let work = try shop()
    func attempt(_ format: String, _ words: String...) throws -> Tool.Result {
      try Tool.run(Tool.path, ["-C", "shop", "log", "--format", format] + words, in: work.path)
    }
    for open in ["{time", "{", "{fields.name} {", "{fields.name"] {
      let result = try attempt(open)
      #expect(result.status == 64 && result.errors.contains("is not closed; there are {event}"), "\(open)")
    }
    let unknown = try attempt("{fields.nmae}")
    #expect(unknown.status == 64 && unknown.errors.contains("did you mean `name`?"), "\(unknown.errors)")
    let many = try attempt("{fields.xyzzy}")
    #expect(many.status == 64 && many.errors.contains("`stemma schema show` lists all"), "\(many.errors)")
    let other = try attempt("{fields.room}", "--model", "Team")
    #expect(
      other.status == 64 && other.errors.contains("Team has no field `room`; there are"), "\(other.errors)")
    for known in ["{fields.room}", "{fields._exists}", "{{time", "time}"] {
      #expect(try attempt(known).status == 0, "\(known)")
    }
    // The log contains fields that the schema has removed.
    let fewer = Shop.schema.replacing("  name: String!\n  members:", with: "  members:")
    try work.write("fewer.graphql", fewer)
    try work.stemma("-C", "shop", "schema", "apply", "fewer.graphql")
    #expect(try attempt("{fields.name}", "--model", "Team").lines.contains("Rouge"))
  }

  /// Plain lines are rendered from the blocks, lines with a graph from events.
  @Test("a line says the same however it is made")
  func linesAreTheSame() throws {
    let work = try shop()
    try work.stemma(
      "-C", "shop", "create", "Member", "id=a b'c", "name=\u{e9}\"\n" + String(repeating: "x", count: 200),
      "age=-3",
      "height=1.5", "active=true", "tags:=[\"1\",\"ü\"]", "extra:={\"a\":9007199254740993}")
    try work.stemma("-C", "shop", "update", "Member", "a b'c", "age:=null", "team=red")
    try work.stemma("-C", "shop", "link", "Member", "a b'c", "team", "blue")
    try work.stemma("-C", "shop", "delete", "Visit", "site=paris", "number=1")
    let fast = try work.stemma("-C", "shop", "log", "--oneline").lines
    #expect(fast.count == 7)
    #expect(try work.stemma("-C", "shop", "log", "--graph").lines == fast.map { "* " + $0 })
  }

  @Test("columns are aligned whatever is in them: wide characters, and line ends spelt out")
  func columns() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=日本", "name=x")
    try work.stemma("-C", "shop", "create", "Team", "id=abcd", "name=two\nlines")
    let expected = ["id    name", #"abcd  two\nlines"#, "日本  x"]
    #expect(try work.stemma("-C", "shop", "list", "Team").lines == expected)
    #expect(
      try work.stemma("-C", "shop", "query", "SELECT id, name FROM teams ORDER BY id").lines == expected)
    // A pipe is a valid schema file.
    let check = try ConsolePage.shell(
      "cat shop.graphql | stemma -C shop schema check /dev/stdin", in: work.path)
    #expect(check.status == 0 && check.output == "no change\n", "\(check.errors)")
  }

  /// Under OPTIMISTIC each write contains the whole record.
  @Test("of a record that is one register, only the fields that changed are shown")
  func changesOfAWholeRecord() throws {
    let work = try Workplace()
    try work.write(
      "notes.graphql",
      "type Note @model @conflict(policy: OPTIMISTIC) { id: ID! text: String stars: Int }\n")
    try work.stemma("init", "notes", "--schema", "notes.graphql", "--name", "notes")
    try work.stemma("-C", "notes", "create", "Note", "id=n", "text=a", "stars=3")
    try work.stemma("-C", "notes", "update", "Note", "n", "text=b")
    for command in [["log", "-p", "-n", "1"], ["show", "notes:2"], ["history", "Note", "n"]] {
      let shown = try Tool.run(Tool.path, ["-C", "notes"] + command, in: work.path).output
      #expect(shown.contains("text: \"a\" → \"b\"") && !shown.contains("3 → 3"), "\(shown)")
    }
    let changes = try work.stemma("-C", "notes", "show", "notes:2", "--json").object().array("changes")
    #expect(changes.map { $0.text("field") } == ["text"])
  }

  @Test("--follow goes on with what another process appends")
  func follow() throws {
    let work = try shop()
    let following = try Following(
      ["-C", "shop", "log", "--follow", "-n", "2", "--format", "{op} {model}[{key}]"], in: work)
    let shown = ["update Team[red]", "create Visit[site=paris number=1]"]
    #expect(following.lines(2) == shown)
    try work.stemma("-C", "shop", "create", "Team", "id=blue", "name=Blue")
    try work.stemma("-C", "shop", "delete", "Team", "blue")
    #expect(following.lines(4) == shown + ["create Team[blue]", "delete Team[blue]"])
  }

  @Test("a pager and colours on a terminal only", .enabled(if: Pseudoterminal.isThere))
  func pager() throws {
    let work = try shop()
    func terminal(_ environment: [String: String], typing: String = "") throws -> String {
      try Pseudoterminal.run(
        ["-C", "shop", "log", "--oneline", "-n", "1"], in: work.path, typing: typing,
        environment: ["TERM": "xterm", "NO_COLOR": ""].merging(environment) { $1 })
    }
    #expect(try terminal(["STEMMA_PAGER": "sed 's/^/PAGED /'"]).contains("PAGED \u{1B}[33m@3"))
    // A pager also reads the terminal. A terminal stops readers outside of its foreground process
    // group.
    let asking = "sh -c 'read word < /dev/tty; sed \"s/^/$word /\"'"
    #expect(
      try terminal(["STEMMA_PAGER": asking, "NO_COLOR": "1"], typing: "TYPED\n").contains("TYPED @3"))
    let plain = try terminal(["STEMMA_PAGER": "cat", "NO_COLOR": "1"])
    #expect(plain.contains("@3 2020-01-03") && !plain.contains("\u{1B}"))
    // Without a pager the output is printed directly.
    let missing = try terminal(["STEMMA_PAGER": "nosuchpager -x", "NO_COLOR": "1"])
    #expect(missing.contains("no pager `nosuchpager`") && missing.contains("@3 2020-01-03"))
    let piped = try work.stemma(
      "-C", "shop", "log", "--oneline", "-n", "1", environment: ["STEMMA_PAGER": "sed 's/^/PAGED /'"])
    #expect(!piped.output.contains("PAGED"))
  }

  @Test("lines of a format: braces, tabulators, ends of lines; a value never ends one")
  func formats() throws {
    let work = try shop()
    try work.stemma("-C", "shop", "create", "Team", "id=two", "name:=\"a\\tb\\nc\"")
    func log(_ format: String) throws -> String {
      try work.stemma("-C", "shop", "log", "-n", "1", "--format", format).output
    }
    #expect(try log("{{{op}}}") == "{create}\n")
    #expect(try log("{{op}} }") == "{op} }\n")
    #expect(try log("{op}\\t{model}\\n{key}\\\\n\\x") == "create\tTeam\ntwo\\n\\x\n")
    #expect(try log("{fields.name}") == "a\\tb\\nc\n")
  }

  @Test("the inner columns of the tables are there by name")
  func queryOfAll() throws {
    let work = try shop()
    for past in [[], ["--as-of", "@2"]] {
      let words = ["-C", "shop", "query", "--json"] + past
      let all = try Tool.run(Tool.path, words + ["SELECT * FROM teams"], in: work.path)
      #expect(try all.array().map(\.members) == [["id", "name"]])
      let version = try Tool.run(Tool.path, words + ["SELECT _version FROM teams"], in: work.path)
      #expect(try version.array().first?.members == ["_version"])
    }
  }

  @Test("what cannot be meant is refused in words")
  func refusals() throws {
    let work = try shop()
    for (words, part) in [
      (["undo", "2022", "-n"], "`2022` names nothing in the log"),
      (["show", "2022"], "`2022` names nothing in the log"),
      (["restore", "Team", "red", "--as-of", "@1", "--field", "id"], "`id` is a part of the key of Team"),
      (["log", "--follow", "--reverse"], "--reverse"),
    ] {
      let result = try Tool.run(Tool.path, ["-C", "shop"] + words, in: work.path)
      #expect(result.status == 64 && result.errors.contains(part), "\(words): \(result.errors)")
    }
  }

  @Test("a history goes from new to old in the order of the log")
  func orderOfAHistory() throws {
    let work = try shop()
    try work.stemma("clone", "shop", "field", "--name", "field")
    for (node, name) in [("field", "A"), ("shop", "B"), ("field", "C")] {
      try work.stemma("-C", node, "update", "Team", "red", "name=\(name)")
    }
    try work.stemma("-C", "shop", "pull", "field")
    func events(_ words: String...) throws -> [String?] {
      try Tool.run(Tool.path, ["-C", "shop"] + words + ["--json"], in: work.path).array().map {
        $0.text("event")
      }
    }
    let history = try events("history", "Team", "red")
    #expect(history.prefix(3) == ["field:2", "field:1", "shop:3"])
    #expect(try history == events("log", "--model", "Team", "--key", "red"))
    #expect(try history.reversed() == events("history", "Team", "red", "--reverse"))
  }

  @Test("show finds an event by position, name and digest; blame and history know a deleted record")
  func events() throws {
    let work = try shop()
    try work.stemma("-C", "shop", "delete", "Team", "red", "--author", "eve")
    let event = try #require(try work.stemma("-C", "shop", "log", "-n", "1", "--json").array().first)
    let names = ["@" + (event.text("position") ?? ""), event.text("event") ?? "", event.text("digest") ?? ""]
    for name in names {
      let shown = try work.stemma("-C", "shop", "show", name, "--partition", "Team", "--json").object()
      #expect(shown.text("event") == event.text("event"), "\(name)")
      #expect(shown.array("changes").first?["from"] as? String == "Rouge")
    }
    #expect(try work.stemma("-C", "shop", "history", "Team", "red", "--json").array().count == 3)
    let blame = try work.stemma("-C", "shop", "blame", "Team", "red", "--authors", "--json").object().array(
      "fields")
    #expect(blame.count == 1)
    #expect(blame[0]["value"] as? Bool == false)
    #expect(blame[0].array("candidates")[0].text("author") == "eve")
    #expect(
      try work.stemma("-C", "shop", "why", "Team", "red").output.hasPrefix("The record does not exist."))
    #expect(try work.attempt("-C", "shop", "why", "Team", "nobody").status == 66)
    #expect(try work.attempt("-C", "shop", "why", "Team", "red", "shoe").status == 65)
    #expect(
      try work.stemma("-C", "shop", "get", "Team", "red", "--as-of", "2020-01-01T12:00:00Z", "--json")
        .object()
        .object("fields").text("name") == "Red")
    #expect(
      try work.stemma("-C", "shop", "list", "Team", "--as-of", "2020-01-05", "--json").array().count == 1)
    let count = try work.stemma(
      "-C", "shop", "query", "--tsv", "--as-of", "@3", "SELECT name FROM teams")
    #expect(count.lines == ["Rouge"])
  }

  @Test("restore and undo append events, and say what they did")
  func goingBack() throws {
    let work = try shop()
    #expect(
      try work.stemma("-C", "shop", "restore", "Team", "red", "--as-of", "@1", "-n").lines.first
        == "~ Team[red]")
    #expect(try positions(work).count == 3)
    let undone = try work.stemma("-C", "shop", "undo", "@2", "--author", "eve", "--json").object()
    #expect(undone.number("events") == 1)
    #expect(
      try work.stemma("-C", "shop", "get", "Team", "red", "--json").object().object("fields").text("name")
        == "Red")
    let last = try #require(try work.stemma("-C", "shop", "log", "-n", "1", "--json").array().first)
    #expect(last.text("author") == "eve" && last.text("message") == "undo @2")
    #expect(try work.attempt("-C", "shop", "restore", "Team", "nobody", "--as-of", "@1").status == 66)
    // The values that the event wrote are no longer current.
    #expect(try work.stemma("-C", "shop", "undo", "@2", "--json").object().number("events") == 0)
    try work.stemma("-C", "shop", "delete", "Visit", "site=paris", "number=1")
    try work.stemma("-C", "shop", "restore", "Visit", "--as-of", "2020-01-04")
    #expect(try work.stemma("-C", "shop", "list", "Visit", "--json").array().count == 1)
  }
}
