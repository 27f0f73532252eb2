import Foundation
import Testing

/// Keys, values, names and messages from other nodes that could move a terminal's cursor or imitate
/// extra lines.
@Suite("control characters in data")
struct ControlCharacterTests {
  private let key = "it's e\u{1B}[31m\nvil\u{9B}\u{202E}\\"
  private let value = "x\u{1B}]0;t\u{7}\u{7F}\u{85}\r\n\u{2066}"
  private let by = "b\tob\u{1B}[7m"
  private let note = "no\nte \u{1B}[5m\r\nthird\rline"

  /// Two nodes with such names that changed such a record concurrently and synced: five events.
  private func met() throws -> Workplace {
    let work = try Workplace()
    try work.write("shop.graphql", Shop.schema)
    try work.stemma("init", "shop", "--schema", "shop.graphql", "--name", "sh\u{1B}[1mop")
    let remarks = ["--author", by, "-m", note]
    func write(_ words: String...) throws {
      let result = try Tool.run(Tool.path, words + remarks, in: work.path)
      #expect(result.status == 0, "\(words): \(result.errors)")
    }
    try write("-C", "shop", "create", "Team", "id=\(key)", "name=\(value)")
    try write("-C", "shop", "create", "Visit", "site=\(key)", "number=1", "room=\(value)")
    try write("-C", "shop", "create", "Badge", "id=b", "team=\(key)no")
    try work.stemma("clone", "shop", "field", "--name", "fi\neld")
    try write("-C", "field", "update", "Team", key, "name=field\(value)")
    try write("-C", "shop", "update", "Team", key, "name=shop\(value)")
    try work.stemma("-C", "field", "sync")
    return work
  }

  /// The control characters in a text that a terminal would obey, except line ends.
  private func obeyed(_ text: String) -> [String] {
    text.unicodeScalars.filter { scalar in
      switch scalar.value {
      case 0x0A: false
      case 0x00...0x1F, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069: true
      default: false
      }
    }.map { String($0.value, radix: 16) }
  }

  @Test("no command writes them for people, on output or as an error")
  func spelled() throws {
    let work = try met()
    let commands: [[String]] = [
      ["log"], ["log", "-p"], ["log", "--oneline"], ["log", "--oneline", "--grep", "x"], ["log", "--graph"],
      ["log", "--stat"],
      ["log", "--format", "{event} {partition} {key} {author} {message} {fields} {fields.name}"],
      ["show", "@2"], ["history", "Team", key], ["history", "Team", key, "--graph"],
      ["blame", "Team", key, "--authors"], ["why", "Team", key], ["why", "Team", key, "name"],
      ["why", "Badge", "b", "team"], ["conflicts"], ["conflicts", "show", "Team", key],
      ["conflicts", "show", "Badge", "b"], ["diff", "@1"], ["get", "Team", key], ["list", "Team"],
      ["query", "SELECT * FROM teams"], ["stats"], ["digest"], ["segments", "--partitions"], ["status"],
    ]
    for words in commands {
      let result = try Tool.run(Tool.path, ["-C", "field"] + words, in: work.path)
      #expect(result.status == 0 && result.errors.isEmpty, "\(words): \(result.errors)")
      #expect(!result.output.isEmpty, "\(words)")
      #expect(obeyed(result.output).isEmpty, "\(words): \(result.output)")
    }
    let refused: [[String]] = [
      ["get", "Team", key + "no"], ["history", "Team", key + "no"],
      ["create", "Team", "id=\(key)", "name=x"],
      ["conflicts", "show", "Visit", "site=\(key)", "number=1"],
      ["create", "Member", "id=m", "name=M", "age=\(key)"],
      ["undo", "@1"],
    ]
    for words in refused {
      let result = try Tool.run(Tool.path, ["-C", "field"] + words, in: work.path)
      #expect(result.status != 0, "\(words)")
      #expect(obeyed(result.errors).isEmpty, "\(words): \(result.errors)")
    }
    let missing = try work.attempt("-C", "field", "get", "Team", key + "no")
    #expect(
      missing.errors == #"stemma: there is no Team $'it\'s e\033[31m\nvil\302\233\342\200\256\\no'"# + "\n")
  }

  @Test("nor does what a person typed: paths, and words that are no options")
  func spelledWords() throws {
    let work = try met()
    let odd = "e\u{1B}[31mvil"
    for words in [
      ["-C", "field", "conflicts", "--kind", odd], ["-C", "field", "log", "--\(odd)"],
      ["-C", "field", "log", "-n", odd],
      ["inspect", odd], ["-C", odd, "log"],
    ] {
      let refused = try Tool.run(Tool.path, words, in: work.path)
      #expect(refused.status != 0 && refused.errors.contains("e\\u{1b}[31mvil"), "\(refused.errors)")
      #expect(obeyed(refused.errors).isEmpty, "\(words): \(refused.errors)")
    }
    for words in [
      ["init", odd, "--schema", "shop.graphql", "--name", "odd"],
      ["clone", "shop", odd + "2", "--name", "odd"],
      ["-C", odd, "status"], ["inspect", odd + "/log/watermark"],
    ] {
      let result = try Tool.run(Tool.path, words, in: work.path)
      #expect(result.status == 0 && result.output.contains("e\\u{1b}[31mvil"), "\(words): \(result.errors)")
      #expect(obeyed(result.output).isEmpty, "\(words): \(result.output)")
    }
  }

  /// In a pipe, the output is the bare value for the next command.
  @Test("the key that create prints on a terminal can be typed there", .enabled(if: Pseudoterminal.isThere))
  func createdKey() throws {
    let work = try met()
    let odd = "e\u{1B}[31mvil"
    let shown = try Pseudoterminal.run(
      ["-C", "shop", "create", "Post", "id=\(odd)", "title=x"], in: work.path)
    #expect(shown == #"$'e\033[31mvil'"# + "\n", "\(shown)")
    let got = try ConsolePage.shell("stemma -C shop get Post \(shown)", in: work.path)
    #expect(got.status == 0, "\(got.errors)")
    #expect(
      try Pseudoterminal.run(["-C", "shop", "create", "Post", "id=p", "title=x"], in: work.path) == "p\n")
    let piped = try work.stemma("-C", "shop", "create", "Post", "id=\(odd)2", "title=x")
    #expect(piped.output == odd + "2\n")
  }

  @Test("an event has one line, whatever its key and its note")
  func lines() throws {
    let work = try met()
    for words in [
      ["--oneline"], ["--oneline", "--grep", "e"], ["--format", "{key} {author} {message} {fields}"],
    ] {
      let result = try Tool.run(Tool.path, ["-C", "field", "log"] + words, in: work.path)
      #expect(result.lines.count == 5, "\(words): \(result.output)")
    }
    // A message keeps its lines, each of them indented.
    let full = try work.stemma("-C", "field", "log", "-n", "1").output
    #expect(full.contains("\n    no\n    te \\u{1b}[5m\n    third\\rline\n"), "\(full)")
  }

  @Test("a key that is shown can be pasted, and JSON gives it as it is")
  func pasted() throws {
    let work = try met()
    let rows = try work.stemma("-C", "field", "log", "--model", "Team", "--json").array()
    #expect(rows.allSatisfy { $0.object("key").text("id") == key && $0.text("message") == note })
    #expect(rows.allSatisfy { $0.text("author") == by })
    #expect(rows.last?.object("fields").text("name") == value)
    let exported = try work.stemma("-C", "field", "export", "Team").objects()
    #expect(exported.map { $0.object("key").text("id") } == [key])

    let advice = try work.stemma("-C", "field", "conflicts", "show", "Team", key).lines
    let command = try #require(advice.first { $0.hasSuffix("--take 2") })
    let pasted = try ConsolePage.shell("cd field && " + command, in: work.path)
    #expect(pasted.status == 0, "\(command): \(pasted.errors)")
    let row = try work.stemma("-C", "field", "get", "Team", key, "--json").object()
    #expect(row.object("fields").text("name") == "field\(value)")
  }
}
