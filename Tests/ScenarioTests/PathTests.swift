import Foundation
import Testing

/// The meaning of paths on the command line. Only `-C` names the node. A path means the same before
/// and after it, in every command.
@Suite("paths on the command line")
struct PathTests {
  /// Two files next to `shop`, which contains files of the same names with other contents.
  private func open() throws -> Workplace {
    let work = try Shop.open()
    let line = #"{"model":"Team","key":"red","fields":{"name":"Red"}}"# + "\n"
    for (folder, text) in [("", line), ("shop/", "nonsense\n")] {
      try work.write(folder + "lines.ndjson", text)
      try work.write(folder + "text", folder.isEmpty ? "outside" : "inside")
    }
    try work.stemma("clone", "shop", "peer", "--name", "peer")
    return work
  }

  @Test("every path is relative to the working directory, with -C before the command and behind it")
  func pathsAreThoseOfTheWorkingDirectory() throws {
    let work = try open()
    let commands = [
      "import lines.ndjson --upsert", "import lines.ndjson --dry-run --upsert --reject rejects",
      "schema check shop.graphql", "schema apply shop.graphql",
      "upsert Customer ada name=@text", "rebuild --into then.sqlite",
      "inspect shop/log/00000001.journal", "inspect --verify lines.ndjson",
      "pull peer", "push peer", "sync peer", "diff peer", "repair --from peer",
    ]
    for command in commands {
      let words = command.split(separator: " ").map(String.init)
      for arguments in [["-C", "shop"] + words, words + ["-C", "shop"]] {
        let result = try Tool.run(Tool.path, arguments, in: work.path)
        // `inspect` refuses a file of another format; both files are such.
        #expect(result.status == (command.contains("--verify") ? 65 : 0), "\(arguments): \(result.errors)")
      }
    }
    let customer = try work.stemma("-C", "shop", "get", "Customer", "ada", "--json").object()
    #expect(customer.object("fields").text("name") == "outside")
    for name in ["then.sqlite", "rejects"] {
      #expect(FileManager.default.fileExists(atPath: work.file(name)), "\(name)")
      #expect(!FileManager.default.fileExists(atPath: work.file("shop/" + name)), "\(name)")
    }
    try work.stemma("-C", "shop", "remote", "add", "office", "peer")
    let remotes = try work.stemma("-C", "shop", "remote", "list", "--json").array()
    #expect(remotes.first?.text("address")?.hasSuffix("/peer") == true)
    try work.stemma("-C", "shop", "pull", "office")
  }

  @Test("what works on no node takes no -C")
  func nodelessCommands() throws {
    let work = try open()
    for command in [["init", "new"], ["clone", "shop", "new"], ["schema", "infer", "shop/tables.sqlite"]] {
      for arguments in [["-C", "shop"] + command, command + ["-C", "shop"]] {
        let result = try Tool.run(Tool.path, arguments, in: work.path)
        #expect(result.status == 64, "\(arguments): \(result.output)")
        #expect(result.errors.contains("-C"), "\(result.errors)")
      }
    }
    #expect(!FileManager.default.fileExists(atPath: work.file("new")))
    #expect(!FileManager.default.fileExists(atPath: work.file("shop/new")))
  }

  @Test("inspect takes the names from the node around the file, or from the one that is named")
  func namesOfEvents() throws {
    let work = try open()
    try work.stemma("-C", "shop", "create", "Visit", "site=x", "number=1")
    let journal = try work.bytes("shop/log/00000001.journal")
    try journal.write(to: URL(fileURLWithPath: work.file("alone.journal")))
    func name(_ arguments: [String], _ input: Data? = nil) throws -> String? {
      let result = try Tool.run(
        Tool.path, arguments + ["--events", "--ndjson"], in: work.path, input: input)
      #expect(result.status == 0, "\(result.errors)")
      return try result.objects().flatMap { $0.array("events") }.first?.text("event")
    }
    #expect(try name(["inspect", "shop/log/00000001.journal"]) == "shop:1")
    #expect(try name(["-C", "shop", "inspect", "alone.journal"]) == "shop:1")
    #expect(try name(["inspect", "-", "-C", "shop"], journal) == "shop:1")
    #expect(try name(["inspect", "alone.journal"])?.hasSuffix("shop:1") == false)
    #expect(try work.attempt("-C", "nowhere", "inspect", "alone.journal").status == 66)
  }

  @Test("a second -C is relative to the first one, as with git")
  func severalDirectories() throws {
    let work = try open()
    let name = try work.stemma("-C", "shop", "status", "--json").object().text("name")
    for words in [
      ["-C", "shop", "-C", "log", "status"], ["-C", "peer", "-C", "../shop", "status"],
      ["-C", "peer", "status", "-C", "../shop"], ["status", "-C", "peer", "-C", "../shop"],
    ] {
      let status = try Tool.run(Tool.path, words + ["--json"], in: work.path).object()
      #expect(status.text("name") == name, "\(words)")
    }
    for words in [["-C", "shop", "status", "-C", "peer"], ["status", "-C", "shop", "-C", "peer"]] {
      let result = try Tool.run(Tool.path, words, in: work.path)
      #expect(result.status == 66 && result.errors.contains("shop/peer"), "\(words): \(result.errors)")
    }
  }

  @Test("diff of two nodes needs no third one around it, and accepts directories of nodes")
  func diffOutsideOfANode() throws {
    let work = try open()
    try work.stemma("-C", "peer", "create", "Team", "id=blue", "name=Blue")
    for (a, b, change) in [("shop", "peer", "added"), ("peer", "shop", "removed")] {
      let changes = try work.stemma("diff", a, b, "--json").array()
      #expect(changes.map { $0.text("change") } == [change])
      let inside = try work.stemma("-C", "shop", "diff", a, b, "--json")
      #expect(try inside.array().map { $0.text("change") } == [change])
    }
    // One node and a point in time need a node of which the time is a point.
    for arguments in [
      ["diff", "shop"], ["diff", "shop", "now"], ["-C", "nowhere", "diff", "shop", "peer"],
    ] {
      let result = try Tool.run(Tool.path, arguments, in: work.path)
      #expect(result.status == 66 && result.errors.contains("no node"), "\(arguments): \(result.errors)")
    }
    let half = try work.attempt("diff", "shop", "nonode")
    #expect(half.status == 66 && half.errors.contains("none in nonode"), "\(half.errors)")
    let unknown = try work.attempt("-C", "shop", "diff", "nonode")
    #expect(unknown.status == 64 && unknown.errors.contains("neither a point in history nor a node"))
    #expect(try work.attempt("-C", "shop", "log", "--since", "nonode").errors.contains("no point in history"))
  }
}
