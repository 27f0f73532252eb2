import Foundation
import Testing

/// Reading commands mark values in conflict and show past decisions.
@Suite("Conflicts in what is read")
struct ShownConflictTests {
  /// Two synced nodes: the name of a customer and the existence of a team are in conflict.
  private func met() throws -> Workplace {
    try Shop.synced(
      [
        "create Customer id=ada name=Ada",
        "create Customer id=bea name=Bea",
        "create Team id=blue name=Blue",
      ],
      field: [
        "update Customer ada name=Field",
        "delete Team blue",
      ],
      shop: [
        "update Customer ada name=Shop",
        "update Team blue name=Bleu",
      ])
  }

  @Test("get and list mark a field in conflict, and name the command that shows its values")
  func marks() throws {
    let work = try met()
    let shown = try work.stemma("-C", "field", "get", "Customer", "ada")
    #expect(shown.lines.contains("name !    Shop"), "\(shown.output)")
    let advice = try #require(shown.lines.first { $0.hasPrefix("! ") })
    let command = try #require(advice.split(separator: "`").first { $0.hasPrefix("stemma conflicts") })
    let conflicts = try Tool.run(
      Tool.path, ["-C", "field"] + command.split(separator: " ").dropFirst().map(String.init), in: work.path)
    #expect(conflicts.status == 0 && conflicts.output.contains("Field"), "\(conflicts)")
    #expect(
      try work.stemma("-C", "field", "get", "Customer", "ada", "--json").object()["conflicts"] as? [String]
        == ["name"])
    #expect(
      try work.stemma("-C", "field", "get", "Team", "blue", "--json").object()["conflicts"] as? [String]
        == ["existence"])
    #expect(try work.stemma("-C", "field", "get", "Team", "blue").lines.contains("id !      blue"))

    let list = try work.stemma("-C", "field", "list", "Customer")
    #expect(list.lines.dropFirst().prefix(2) == ["ada  Shop !", "bea  Bea"], "\(list.output)")
    #expect(list.lines.last?.contains("`stemma conflicts --model Customer`") == true)
    #expect(try work.stemma("-C", "field", "list", "Team").lines[1].hasPrefix("blue !  Bleu"))
    let rows = try work.stemma("-C", "field", "list", "Customer", "--json").array()
    #expect(rows.map { $0["conflicts"] as? [String] } == [["name"], nil])

    // Listed rows can be imported, and the import resolves nothing.
    let lines = try work.stemma("-C", "field", "list", "Customer", "--ndjson").output
    try work.stemma("-C", "field", "import", "-", input: lines)
    #expect(try work.attempt("-C", "field", "conflicts", "--check").status == 1)

    try work.stemma("-C", "field", "resolve", "--all", "--take", "newest")
    #expect(try work.stemma("-C", "field", "get", "Customer", "ada", "--json").object()["conflicts"] == nil)
    #expect(try !work.stemma("-C", "field", "list", "Customer").output.contains("!"))
  }

  @Test("the past shows the conflicts that were open then")
  func past() throws {
    let work = try met()
    let before = try work.stemma("-C", "field", "log", "-n", "1", "--json").array()
    let position = "@" + (before.first?.text("position") ?? "")
    try work.stemma("-C", "field", "resolve", "Customer", "ada", "name", "--take", "2")
    for command in [["get", "Customer", "ada"], ["list", "Customer", "--where", "id=ada"]] {
      let words = ["-C", "field"] + command + ["--as-of", position, "--ndjson"]
      let row = try #require(try Tool.run(Tool.path, words, in: work.path).objects().first)
      #expect(row["conflicts"] as? [String] == ["name"])
    }
    let shown = try work.stemma("-C", "field", "get", "Customer", "ada", "--as-of", position)
    #expect(shown.lines.last == "! in conflict: name")
  }

  @Test("log -p, history and show print what a resolve decided, also if it kept the shown value")
  func decisions() throws {
    let work = try met()
    try work.stemma("-C", "field", "resolve", "Customer", "ada", "name", "--take", "1")
    let event = try #require(
      try work.stemma("-C", "field", "log", "-n", "1", "--json").array().first?.text("event"))
    for words in [
      ["log", "-n", "1", "-p"], ["history", "Customer", "ada"], ["show", event, "--partition", "Customer"],
    ] {
      let result = try Tool.run(Tool.path, ["-C", "field"] + words, in: work.path)
      #expect(result.output.contains("name: \"Shop\" (kept)"), "\(words): \(result)")
    }
    // A decision for another value is a change. An ordinary update has no such line.
    try work.stemma("-C", "field", "update", "Customer", "ada", "name=Eve")
    #expect(try !work.stemma("-C", "field", "log", "-n", "1", "-p").output.contains("(kept)"))
  }
}
