import Foundation
import Testing

/// A record that one node deleted and others changed concurrently, followed by a change from a node
/// that had seen both.
@Suite("deletions in conflict")
struct DeletionConflictTests {
  /// `n1` holds all events: `n1:1` created the team, `n2:1` and `n1:2` changed it, and `n3:1`
  /// deleted it, all concurrently.
  private func met() throws -> Workplace {
    let work = try Workplace()
    try work.write("shop.graphql", Shop.schema)
    try work.stemma("init", "n1", "--schema", "shop.graphql", "--name", "n1")
    try work.stemma("-C", "n1", "create", "Team", "id=red", "name=Red")
    for name in ["n2", "n3"] { try work.stemma("clone", "n1", name, "--name", name) }
    try work.stemma("-C", "n2", "update", "Team", "red", "name=Rot")
    try work.stemma("-C", "n3", "delete", "Team", "red")
    try work.stemma("-C", "n1", "update", "Team", "red", "name=Rouge")
    // The last write has the longest history, so it is shown.
    try work.stemma("-C", "n1", "update", "Team", "red", "name=Rojo")
    for peer in ["n2", "n3"] { try work.stemma("-C", "n1", "pull", peer) }
    return work
  }

  @Test("show names what says the same, and what stands against it")
  func existence() throws {
    let work = try met()
    let update = try work.stemma("-C", "n1", "show", "n2:1").output
    #expect(update.contains("existence: says the same as n1:3"))
    #expect(update.contains("n3:1 stands against it."))
    let deletion = try work.stemma("-C", "n1", "show", "n3:1").output
    #expect(deletion.contains("existence: stands against n1:3, which is shown (version)."))
    #expect(deletion.contains("n2:1 stands against it."))
    let outcome = try #require(
      try work.stemma("-C", "n1", "show", "n1:3", "--json").object().array("outcomes").first)
    #expect(outcome["against"] as? [String] == ["n3:1"] && outcome.text("state") == "shown")
  }

  @Test("a change after a seen deletion is distinguished from a concurrent one")
  func seenDeletion() throws {
    let work = try met()
    #expect(
      try work.stemma("-C", "n1", "why", "Team", "red").output.contains("3 writes had not seen each other"))
    try work.stemma("-C", "n1", "update", "Team", "red", "name=Purple")
    let words = "n1:4 had seen the deletion n3:1, but an ordinary update does not bury one."
    let why = try work.stemma("-C", "n1", "why", "Team", "red").lines.map {
      $0.trimmingCharacters(in: .whitespaces)
    }
    #expect(why.contains("2 writes stand side by side:") && why.contains(words), "\(why)")
    #expect(
      why.contains { $0.hasPrefix("It is an open conflict; decide with `stemma resolve Team red --keep`") })
    let fields = try work.stemma("-C", "n1", "why", "Team", "red", "--json").object().array("fields")
    #expect(fields.first?.array("candidates").first?["saw"] as? [String] == ["n3:1"])
    let shown = try work.stemma("-C", "n1", "conflicts", "show", "Team", "red").output
    #expect(shown.contains("changed by one that had seen the deletion") && shown.contains("had seen n3:1"))
    #expect(try work.stemma("-C", "n1", "show", "n1:4").output.contains("It had seen the deletion n3:1"))
    #expect(try work.stemma("-C", "n1", "show", "n3:1").output.contains("n1:4 had seen it, but"))
  }

  @Test("a change beside a deletion is undone as a change, and a deletion by keeping the record")
  func undo() throws {
    let work = try met()
    func name() throws -> String? {
      try work.stemma("-C", "n1", "get", "Team", "red", "--json").object().object("fields").text("name")
    }
    try work.stemma("-C", "n1", "resolve", "Team", "red", "name", "--set", "Green")
    try work.stemma("-C", "n1", "update", "Team", "red", "name=Purple")
    #expect(try work.stemma("-C", "n1", "undo", "n1:5").lines.contains("    name: \"Purple\" → \"Green\""))
    #expect(try name() == "Green")
    let kinds = try work.stemma("-C", "n1", "conflicts", "--json").array().map { $0.text("kind") }
    #expect(kinds == ["delete"], "whether it exists is open as before")
    // A commit of two records, one of them in conflict.
    try work.stemma(
      "-C", "n1", "import", "-",
      input: """
        {"op":"update","model":"Team","key":"red","fields":{"name":"Both"}}
        {"op":"create","model":"Team","key":"two","fields":{"name":"Two"}}

        """)
    let commit = try #require(
      try work.stemma("-C", "n1", "log", "-n", "1", "--json").array().first?.text("commit"))
    try work.stemma("-C", "n1", "undo", commit)
    #expect(try name() == "Green")
    #expect(try work.attempt("-C", "n1", "get", "Team", "two").status == 66)
    // The deletion lost, so its undo changes only the list of conflicts.
    let undone = try work.stemma("-C", "n1", "undo", "n3:1", "--json").object()
    #expect(undone.number("events") == 1 && undone.array("changes").first?["kept"] as? Bool == true)
    #expect(try work.stemma("-C", "n1", "conflicts").lines == ["no conflicts"])
    #expect(try name() == "Green")
  }

  @Test("of a record that has no conflict of a kind or field it is said which it has")
  func otherConflicts() throws {
    let work = try met()
    for (words, asked) in [
      (["--kind", "cardinality"], " of the kind cardinality"),
      (["name", "--kind", "delete"], " of the kind delete about name"),
    ] {
      let refused = try Tool.run(
        Tool.path, ["-C", "n1", "conflicts", "show", "Team", "red"] + words, in: work.path)
      #expect(refused.status == 66)
      #expect(
        refused.errors.hasPrefix("stemma: Team red has no conflict\(asked); it has "), "\(refused.errors)")
      #expect(refused.errors.contains("delete") && refused.errors.contains("value (name)"))
    }
    let unknown = try work.attempt("-C", "n1", "conflicts", "show", "Team", "red", "nme")
    #expect(unknown.status == 65 && unknown.errors.contains("did you mean `name`?"), "\(unknown.errors)")
    let twice = try work.attempt(
      "-C", "n1", "conflicts", "show", "Team", "red", "name", "--field", "existence")
    #expect(twice.status == 64 && twice.errors.contains("once"), "\(twice.errors)")
  }

  @Test("whether a record exists has a name that all commands take where a field is called existence, too")
  func fieldCalledExistence() throws {
    let work = try Workplace()
    try work.write("d.graphql", "type D @model { id: ID! existence: String n: Int }")
    try work.stemma("init", "n1", "--schema", "d.graphql", "--name", "n1")
    for key in ["x", "y"] { try work.stemma("-C", "n1", "create", "D", "id=\(key)", "existence=sure") }
    try work.stemma("clone", "n1", "n2", "--name", "n2")
    try work.stemma("-C", "n1", "update", "D", "x", "n=1")
    try work.stemma("-C", "n2", "delete", "D", "x")
    try work.stemma("-C", "n1", "update", "D", "y", "existence=doubtful")
    try work.stemma("-C", "n2", "update", "D", "y", "existence=likely")
    try work.stemma("-C", "n1", "pull", "n2")
    for (field, kind) in [("_exists", "delete"), ("existence", "value")] {
      let open = try work.stemma("-C", "n1", "conflicts", "--json", "--field", field).array()
      #expect(open.map { $0.text("kind") } == [kind])
      let one = try work.stemma("-C", "n1", "conflicts", "--json", "--field", field, "--model", "D").array()
      #expect(one.map { $0.text("kind") } == [kind])
    }
    #expect(try work.stemma("-C", "n1", "blame", "D", "x").lines.contains { $0.hasPrefix("_exists ") })
    #expect(try work.stemma("-C", "n1", "show", "n2:1", "--partition", "D").output.contains("_exists: "))
    #expect(
      try work.stemma("-C", "n1", "why", "D", "x", "_exists").output.contains("had not seen each other"))
    #expect(try work.stemma("-C", "n1", "why", "D", "x", "existence").output.hasPrefix("existence is"))
    #expect(try work.stemma("-C", "n1", "conflicts", "show", "D", "x", "_exists").output.contains("delete"))
    try work.stemma("-C", "n1", "resolve", "D", "x", "_exists", "--take", "2")
    try work.stemma("-C", "n1", "resolve", "D", "y", "existence", "--take", "1")
    for (field, key) in [("_exists", "x"), ("existence", "y")] {
      let found = try work.stemma(
        "-C", "n1", "log", "--field", field, "--op", "resolve", "--op", "delete", "--json")
      #expect(try found.array().map { $0.object("key").text("id") } == [key], "\(field)")
    }
  }

  @Test("whether a record exists is called existence by all that show or find how it was resolved")
  func word() throws {
    let work = try met()
    #expect(try work.stemma("-C", "n1", "blame", "Team", "red").lines.contains { $0.hasPrefix("existence ") })
    let contested = try work.stemma("-C", "n1", "stats").lines.first { $0.contains("Team.existence") }
    #expect(contested?.split(separator: " ").dropFirst().prefix(2) == ["1", "0"])
    try work.stemma("-C", "n1", "resolve", "Team", "red", "--keep")
    func log(_ words: String...) throws -> [String] {
      try Tool.run(Tool.path, ["-C", "n1", "log"] + words, in: work.path).lines
    }
    for form in ["--oneline", "--graph"] {
      #expect(try log(form, "-n", "1").first?.hasSuffix(" resolve Team[red] existence=true") == true)
    }
    #expect(try log("-n", "1").last == "      existence = true")
    #expect(try log("-n", "1", "-p").last == "      existence: true")
    #expect(try log("-n", "1", "--format", "{fields.existence}") == ["true"])
    #expect(try work.stemma("-C", "n1", "show", "n1:4").lines.contains("      existence: true"))
    #expect(try work.stemma("-C", "n1", "history", "Team", "red").lines.contains("    existence: true"))
    for choice in [["--field", "existence"], ["--grep", "existence"]] {
      let found = try Tool.run(
        Tool.path, ["-C", "n1", "log", "--format", "{event}"] + choice, in: work.path)
      #expect(found.lines == ["n1:4"], "\(choice): \(found.errors)")
    }
    for words in [
      ["log", "--field", "existance"], ["conflicts", "--field", "existance"],
      ["conflicts", "show", "Team", "red", "existance"], ["why", "Team", "red", "existance"],
      ["resolve", "Team", "red", "existance", "--keep"],
    ] {
      let slip = try Tool.run(Tool.path, ["-C", "n1"] + words, in: work.path)
      #expect(slip.status == 65 && slip.errors.contains("did you mean `existence`?"), "\(slip.errors)")
    }
    let fields = try work.stemma("-C", "n1", "log", "-n", "1", "--json").array().first?.object("fields")
    #expect(fields?.members == ["_exists"])
  }

  @Test("where a model has a field of that name, it and whether a record exists are found each by its own")
  func fieldOfThatName() throws {
    let work = try Workplace()
    try work.write("s.graphql", "type Idea @model { id: ID! @primaryKey existence: String name: String }\n")
    try work.stemma("init", "n1", "--schema", "s.graphql", "--name", "n1")
    try work.stemma("-C", "n1", "create", "Idea", "id=i", "existence=doubtful")
    try work.stemma("clone", "n1", "n2", "--name", "n2")
    try work.stemma("-C", "n2", "delete", "Idea", "i")
    try work.stemma("-C", "n1", "update", "Idea", "i", "name=x")
    try work.stemma("-C", "n1", "pull", "n2")
    func firstWords(_ words: String...) throws -> [Substring] {
      try Tool.run(Tool.path, ["-C", "n1"] + words, in: work.path).lines.compactMap {
        $0.split(separator: " ").first
      }
    }
    // Each name labels one line.
    #expect(try firstWords("blame", "Idea", "i").prefix(4) == ["field", "_exists", "or", "existence"])
    #expect(try firstWords("stats").contains("Idea._exists"))
    let shown = try firstWords("show", "n1:1")
    #expect(shown.contains("_exists:") && shown.count { $0 == "existence:" } == 2, "\(shown)")
    try work.stemma("-C", "n1", "resolve", "Idea", "i", "--keep")
    for model in [[], ["--model", "Idea"]] {
      for (field, event) in [("existence", "n1:1"), ("_exists", "n1:3")] {
        let found = try Tool.run(
          Tool.path, ["-C", "n1", "log", "--field", field, "--format", "{event}", "--reverse"] + model,
          in: work.path)
        #expect(found.lines == [event], "\(found)")
      }
    }
  }
}
