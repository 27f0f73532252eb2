import Foundation
import Testing

/// Output of conflicts with long values, and the counts and refusals of commands that resolve
/// conflicts or write nothing.
@Suite("answers to conflicts, and changes that change nothing")
struct AnsweredConflictTests {
  /// Two nodes that changed one field concurrently and synced.
  private func met(_ shop: String, _ field: String) throws -> Workplace {
    try Shop.synced(
      ["create Customer id=ada name=Ada"],
      files: ["shop.txt": shop, "field.txt": field],
      field: ["update Customer ada name=@field.txt"],
      shop: ["update Customer ada name=@shop.txt"])
  }

  /// A long text without line breaks takes linear time.
  @Test("of a text of 4 MB a part is shown, from before the difference on; all of it with --full")
  func longValues() throws {
    let common = String(repeating: "abcdefgh ", count: 450_000)
    let work = try met(common + "SHOP" + common, common + "FIELD")
    for words in [["conflicts"], ["conflicts", "show", "Customer", "ada", "name"]] {
      let cut = try Tool.run(Tool.path, ["-C", "field"] + words, in: work.path)
      #expect(cut.status == 0 && cut.output.utf8.count < 10_000, "\(words): \(cut.output.utf8.count)")
      #expect(cut.output.contains("SHOP") && cut.output.contains("FIELD"), "\(words)")
      #expect(cut.output.contains("--full"))
      let full = try Tool.run(Tool.path, ["-C", "field"] + words + ["--full"], in: work.path)
      #expect(full.status == 0 && full.output.utf8.count > 10_000_000, "\(words): \(full.output.utf8.count)")
    }
    let json = try work.stemma("-C", "field", "conflicts", "--json").array()
    #expect(json.first?.array("candidates").last?.text("value") == common + "FIELD")
  }

  @Test("short values are shown whole")
  func shortValues() throws {
    let work = try met("Shop", "Field")
    let shown = try work.stemma("-C", "field", "conflicts", "show", "Customer", "ada").output
    #expect(shown.contains("Shop") && shown.contains("Field") && !shown.contains("--full"))
  }

  @Test("resolve says how many conflicts it ended")
  func counted() throws {
    let work = try met("Shop", "Field")
    try work.stemma("-C", "field", "create", "Team", "id=blue", "name=Blue")
    try work.stemma("-C", "field", "create", "Member", "id=tim", "name=Tim", "team=blue")
    try work.stemma("-C", "field", "sync")
    try work.stemma("-C", "field", "update", "Member", "tim", "age=4", "name=T")
    try work.stemma("-C", "shop", "update", "Member", "tim", "age=5", "name=Timmy")
    try work.stemma("-C", "field", "sync")
    let open = try work.stemma("-C", "field", "conflicts", "--json").array().count
    #expect(open == 3)
    let result = try work.stemma("-C", "field", "resolve", "--all", "--take", "shown", "--json").object()
    #expect(result.values.contains { $0 as? Int == open }, "\(result)")
    #expect(try work.stemma("-C", "field", "conflicts", "--json").array().isEmpty)
  }

  @Test("a conflict on a field that the schema here does not know can be shown and resolved")
  func unknownField() throws {
    for (how, value) in [(["--take", "2"], "4"), (["--set", "7"], "7"), (["--take", "1"], "5")] {
      let work = try Workplace()
      try work.write("less.graphql", "type Item @model { id: ID! name: String }")
      try work.write("more.graphql", "type Item @model { id: ID! name: String size: Int }")
      try work.stemma("init", "plain", "--schema", "less.graphql", "--name", "plain")
      for name in ["a", "b"] {
        try work.stemma("clone", "plain", name, "--name", name)
        try work.stemma("-C", name, "schema", "apply", "more.graphql")
      }
      try work.stemma("-C", "a", "create", "Item", "id=x", "name=X")
      try work.stemma("-C", "a", "sync")
      try work.stemma("-C", "b", "sync")
      try work.stemma("-C", "b", "update", "Item", "x", "size=4")
      try work.stemma("-C", "a", "update", "Item", "x", "size=5")
      try work.stemma("-C", "a", "sync")
      try work.stemma("-C", "b", "sync")
      let listed = try work.stemma("-C", "plain", "conflicts", "--model", "Item", "--json").array()
      #expect(listed.map { $0.text("field") } == ["size"], "\(listed)")
      try work.stemma("-C", "plain", "conflicts", "show", "Item", "x", "size")
      let wrong = try work.attempt("-C", "plain", "resolve", "Item", "x", "size", "--set", "seven")
      #expect(wrong.status == 65, "\(wrong)")
      let result = try Tool.run(
        Tool.path, ["-C", "plain", "resolve", "Item", "x", "size"] + how, in: work.path)
      #expect(result.status == 0, "\(result)")
      #expect(try work.stemma("-C", "plain", "conflicts", "--json").array().isEmpty)
      try work.stemma("-C", "a", "sync")
      #expect(try work.stemma("-C", "a", "conflicts", "--json").array().isEmpty)
      let fields = try work.stemma("-C", "a", "get", "Item", "x", "--json").object().object("fields")
      #expect(fields.number("size").map { "\($0)" } == value, "\(fields)")
      #expect(try work.attempt("-C", "plain", "resolve", "Item", "x", "nosuch", "--take", "1").status == 65)
    }
  }

  @Test("a link that is there is not written again")
  func linkedTwice() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Member", "id=max", "name=Max")
    try work.stemma("-C", "shop", "create", "Post", "id=p", "title=P")
    try work.stemma("-C", "shop", "link", "Member", "max", "posts", "p")
    let before = try work.stemma("-C", "shop", "log", "--json").array().count
    try work.stemma("-C", "shop", "link", "Member", "max", "posts", "p")
    #expect(try work.stemma("-C", "shop", "log", "--json").array().count == before)
  }

  @Test("query --tsv escapes what would end a value or a line, and null differs from an empty text")
  func tabs() throws {
    let work = try Shop.open()
    let odd = "a\tb\nc\rd\\e\\N"
    try work.write("odd.txt", odd)
    try work.stemma("-C", "shop", "create", "Customer", "id=ada", "name=@odd.txt")
    let output = try work.stemma(
      "-C", "shop", "query", "--tsv", "SELECT name, NULL, '', 1 FROM customers"
    ).output
    #expect(output == #"a\tb\nc\rd\\e\\N"# + "\t\\N\t\t1\n")
  }

  @Test("restore to before anything was there refuses without --force")
  func emptyPast() throws {
    let work = try Shop.open()
    try work.stemma("-C", "shop", "create", "Customer", "id=ada", "name=Ada")
    let words = ["-C", "shop", "restore", "Customer", "--as-of", "2001-01-01"]
    for further in [[], ["-n"]] {
      let refused = try Tool.run(Tool.path, words + further, in: work.path)
      #expect(refused.status == 1 && refused.errors.contains("--force"), "\(refused)")
    }
    #expect(try work.stemma("-C", "shop", "list", "Customer", "--json").array().count == 1)
    let forced = try Tool.run(Tool.path, words + ["--force"], in: work.path)
    #expect(forced.status == 0, "\(forced)")
    #expect(try work.stemma("-C", "shop", "list", "Customer", "--json").array().isEmpty)
  }

  @Test("a path that is too long for SQLite is refused before anything is made")
  func longPath() throws {
    let work = try Shop.open()
    let parts = (1...5).map { String(repeating: "\($0)", count: 100) }
    let long = parts.joined(separator: "/")
    for words in [["init", long, "--schema", "shop.graphql"], ["clone", "shop", long]] {
      let refused = try Tool.run(Tool.path, words, in: work.path)
      #expect(refused.status == 73, "\(refused)")
      #expect(!FileManager.default.fileExists(atPath: work.path + "/" + parts[0]))
    }
  }
}
