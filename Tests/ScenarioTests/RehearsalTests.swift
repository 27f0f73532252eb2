import Foundation
import GRDB
import Testing

/// Dry runs: commands with `-n` that only show their effect.
@Suite("rehearsals")
struct RehearsalTests {
  /// A copied directory gets a new origin at its first write. A dry run does not write.
  @Test("-n changes nothing, also of a directory that was copied, and takes no lock")
  func onlyShows() throws {
    let work = try Shop.open()
    let lines = (0..<2000).map {
      #"{"model":"Visit","key":{"site":"s","number":\#($0)},"fields":{"room":"room \#($0 * 7919)"}}"#
    }
    try work.stemma(
      "-C", "shop", "import", "-", "--segment-size", "20000", input: lines.joined(separator: "\n") + "\n")
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    try work.stemma("-C", "shop", "update", "Team", "red", "name=Rouge")
    try work.write("teams.ndjson", #"{"model":"Team","key":{"id":"blue"},"fields":{"name":"Blue"}}"# + "\n")
    let last = try work.stemma("-C", "shop", "log", "-n", "1", "--format", "{position}").output
      .trimmingCharacters(in: .newlines)
    for name in ["copy", "hurt"] {
      try FileManager.default.copyItem(atPath: work.file("shop"), toPath: work.file(name))
    }
    let segment = URL(fileURLWithPath: work.file("hurt/log/00000001.segment"))
    var bytes = try Data(contentsOf: segment)
    bytes.replaceSubrange(200..<210, with: Data(repeating: 0xFF, count: 10))
    try bytes.write(to: segment)

    for (node, words, shown) in [
      ("copy", ["undo", last, "-n"], "name: \"Rouge\" → \"Red\""),
      ("copy", ["restore", "Team", "red", "--as-of", last, "-n"], "nothing to change"),
      ("copy", ["import", "--dry-run", "teams.ndjson"], "would import 1 line as 1 event"),
      ("hurt", ["repair", "--accept-loss", "-n"], "nothing was changed"),
    ] {
      let before = try files(work.file(node))
      let result = try ConsolePage.shell(
        "flock \(node)/lock stemma -C \(node) \(words.joined(separator: " ")) --wait 0", in: work.path)
      #expect(result.status == 0, "\(result.errors)")
      #expect(result.output.contains(shown), "\(result.output)")
      #expect(try files(work.file(node)) == before, "\(words)")
    }
  }

  @Test("-n waits for another transaction of the tables as long as --wait says")
  func waits() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    try work.stemma("-C", "shop", "update", "Team", "red", "name=Rouge")
    let last = try work.stemma("-C", "shop", "log", "-n", "1", "--format", "{position}").output
      .trimmingCharacters(in: .newlines)
    let other = try DatabaseQueue(path: work.file("shop/tables.sqlite"))
    let result = try other.inDatabase { database in
      try database.execute(sql: "BEGIN IMMEDIATE")
      let result = try work.attempt("-C", "shop", "undo", last, "-n", "--wait", "0")
      try database.execute(sql: "ROLLBACK")
      return result
    }
    try other.close()
    #expect(result.status == 75 && result.errors.contains("wait longer with --wait"), "\(result.errors)")
  }

  /// The first write to a copy begins an origin, which changes the names of older events. A refused
  /// command must not begin one.
  @Test("what is refused leaves a copy as it was, and the events of before keep their names")
  func copies() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Team", "id=red", "name=Red")
    try work.stemma("-C", "shop", "update", "Team", "red", "name=Rouge")
    try work.write("bad.ndjson", #"{"model":"Team","key":{"id":"x"},"fields":{"nme":"X"}}"# + "\n")
    try FileManager.default.copyItem(atPath: work.file("shop"), toPath: work.file("copy"))
    let before = try files(work.file("copy"))
    for words in [
      ["undo", "shop:9"], ["undo", "other:1"], ["undo", "shop:1"],
      ["restore", "Team", "red", "--as-of", "shop:9"],
      ["resolve", "Team", "red", "name", "--take", "1"], ["resolve", "Team", "red", "nme", "--take", "1"],
      ["update", "Team", "red", "nme=x"], ["create", "Team", "id=red", "name=x"],
      ["delete", "Team", "green"],
      ["link", "Member", "tim", "team", "red"], ["import", "bad.ndjson"],
    ] {
      let refused = try Tool.run(Tool.path, ["-C", "copy"] + words, in: work.path)
      #expect(refused.status != 0, "\(words): \(refused.output)")
      #expect(try files(work.file("copy")) == before, "\(words)")
    }
    try work.stemma("-C", "copy", "update", "Team", "red", "name=Rouge")
    #expect(try files(work.file("copy")) == before, "there was nothing to write")

    let undone = try work.stemma("-C", "copy", "undo", "shop:2", "--partition", "Team")
    #expect(undone.output.contains("name: \"Rouge\" → \"Red\""), "\(undone.output)")
    #expect(undone.errors.contains("is of a new origin"), "\(undone.errors)")
    #expect(try work.stemma("-C", "copy", "get", "Team", "red", "--json").output.contains("\"Red\""))
    #expect(try work.stemma("-C", "copy", "log", "--origin", "shop", "--oneline").lines.count == 3)
    let old = try work.stemma("-C", "copy", "show", "shop:2", "--json").object()
    #expect(old.object("fields").text("name") == "Rouge")
    // Both origins have a first event and a first commit.
    for words in [["show", "shop:1"], ["undo", "shop.1"], ["log", "--since", "shop:1"]] {
      let refused = try Tool.run(Tool.path, ["-C", "copy"] + words, in: work.path)
      #expect(
        refused.status == 64 && refused.errors.contains("`\(words[words.count - 1])` may be shop-"),
        "\(refused.errors)")
    }
    #expect(try work.stemma("-C", "copy", "log", "--commit", "shop.1", "--oneline").lines.count == 2)
    try work.stemma("-C", "copy", "create", "Team", "id=blue", "name=Blue")
    let origins = try work.stemma("-C", "copy", "log", "--ndjson").objects().compactMap { $0.text("origin") }
    #expect(Set(origins).count == 2 && origins[0] == origins[1])
    try work.stemma("-C", "copy", "verify")
  }

  /// The node's metadata and the log files. Readers may refresh the tables.
  private func files(_ directory: String) throws -> [String: Data] {
    var found: [String: Data] = [:]
    for folder in ["", "log/"] {
      for name in try FileManager.default.contentsOfDirectory(atPath: directory + "/" + folder) {
        let isOfLog = name.contains(".segment") || name.contains(".journal")
        if isOfLog || ["stemma.json", "schema.graphql", "watermark"].contains(name) {
          found[folder + name] = try Data(contentsOf: URL(fileURLWithPath: directory + "/" + folder + name))
        }
      }
    }
    return found
  }

  @Test("the name of an event that several partitions have is the one of the record's partition")
  func pointsInTimeOfPartitions() throws {
    let work = try Shop.open()
    for site in ["paris", "rome"] {
      try work.stemma("-C", "shop", "create", "Visit", "site=\(site)", "number=1", "room=first")
      try work.stemma("-C", "shop", "update", "Visit", "site=\(site)", "number=1", "room=second")
    }
    let then = try work.stemma(
      "-C", "shop", "get", "Visit", "site=rome", "number=1", "--as-of", "shop:1", "--json"
    ).object()
    #expect(then.object("fields").text("room") == "first")
    let plan = try work.stemma(
      "-C", "shop", "restore", "Visit", "site=rome", "number=1", "--as-of", "shop:1", "-n")
    #expect(plan.output.contains("room: \"second\" → \"first\""), "\(plan.output)")
    let since = try work.stemma(
      "-C", "shop", "log", "--since", "shop:2", "--partition", "site=rome", "--oneline")
    #expect(since.lines.count == 1)
    let refused = try work.attempt("-C", "shop", "list", "Visit", "--as-of", "shop:1")
    #expect(refused.status == 64 && refused.errors.contains("name it by its position"), "\(refused.errors)")
  }
}
