import Foundation
import Servers
import Testing

/// A Chromium, and Playwright to drive it.
enum Browser {
  static let program = Programs.installed("chromium") ?? Programs.installed("google-chrome")

  static var isThere: Bool {
    guard Programs.areThere, program != nil, let driver = try? Programs.ofPeers("playwright") else {
      return false
    }
    return FileManager.default.isExecutableFile(atPath: driver)
  }
}

/// The page of `stemma ui` in a real browser. `page.py` drives it and compares what it shows with
/// the command line.
@Suite(
  "The page of a node", .enabled(if: Browser.isThere, "there is no Chromium, or no Playwright"), .serialized)
struct PageTests {
  /// Runs a case of `page.py` on a node that is served with a page, and returns what it prints.
  @discardableResult
  private func run(
    _ name: String, _ node: String, at address: String, in work: Workplace, _ arguments: String...
  ) throws -> String {
    let script = ConsolePage.root.appendingPathComponent("Tests/ScenarioTests/page.py").path
    let result = try Tool.run(
      try Programs.ofPeers("python3"), [script, name, Tool.path, node, address] + arguments, in: work.path,
      environment: ["STEMMA_BROWSER": Browser.program ?? ""])
    #expect(result.status == 0, "\(name) \(node): \(result.errors)")
    return result.output
  }

  /// The address that `stemma ui` prints, with its secret.
  private func page(
    of node: String, in work: Workplace, by author: String = ""
  ) throws -> (program: Background, address: String) {
    let program = try Background(
      Tool.path, ["-C", node, "ui"], in: work, environment: ["STEMMA_AUTHOR": author])
    let address = String(program.firstLine.split(separator: " ").last ?? "")
    try #require(address.contains("/#token=stm_"), "\(program.firstLine) \(program.errorText)")
    return (program, address)
  }

  private static func makeRealNodes() throws -> Workplace {
    let work = try Workplace()
    func load(_ node: String, _ file: String) throws {
      let result = try Tool.run(
        Tool.path, ["-C", node, "import", RealData.path(file), "--author", "ann"], in: work.path)
      try #require(result.status == 0, "\(result.errors)")
    }
    try work.stemma("init", "git", "--schema", RealData.path("git-grdb/schema.graphql"), "--name", "git")
    try load("git", "git-grdb/mutations.ndjson.gz")
    try work.stemma("init", "a", "--schema", RealData.path("nodes-grdb/schema.graphql"), "--name", "a")
    try load("a", "nodes-grdb/base.ndjson.gz")
    try work.stemma("clone", "a", "b", "--name", "b")
    try load("a", "nodes-grdb/node-a.ndjson.gz")
    try load("b", "nodes-grdb/node-b.ndjson.gz")
    try work.stemma("-C", "b", "sync")
    try work.stemma("-C", "a", "remote", "add", "b", "b")
    return work
  }

  @Test("it shows real histories as the commands do", .enabled(if: RealData.isThere))
  func realHistories() throws {
    let work = try Self.makeRealNodes()
    for (node, cases) in [
      ("git", ["views", "slider", "live"]), ("a", ["views", "slider", "keyboard", "live", "accessible"]),
    ] {
      let (program, address) = try page(of: node, in: work)
      for name in cases { print(try run(name, node, at: address, in: work), terminator: "") }
      #expect(program.end() == 0)
      #expect(program.errorText == "")
    }
  }

  private static let schema = """
    type Note @model @partition(fields: ["shelf"]) {
      shelf: String! @primaryKey(sortKeyFields: ["name"])
      name: String!
      text: String
    }

    """

  /// A node with names and texts that could be mistaken for markup, and a conflict.
  private func hostileNodes() throws -> Workplace {
    let work = try Workplace()
    try work.write("schema.graphql", Self.schema)
    try work.stemma("init", "<i>node", "--schema", "schema.graphql", "--name", "<b>node</b>")
    let names = [
      "<script>alert(1)</script>", "نجيب محفوظ\u{202E}txt.exe", "\"><img src=x onerror=alert(1)>",
      "a/b&c=d?#%41",
      "javascript:alert(1)", "{{7*7}}", "line\nbreak",
    ]
    for name in names {
      try work.stemma(
        "-C", "<i>node", "create", "Note", "shelf=<u>", "name=\(name)", "text=\(name)", "--author", name,
        "-m", name)
    }
    try work.stemma("clone", "<i>node", "other", "--name", "<b>other</b>")
    for node in ["<i>node", "other"] {
      try work.stemma(
        "-C", node, "update", "Note", "shelf=<u>", "name=\(names[0])",
        "text=<script>alert(2)</script> \(node)")
    }
    try work.stemma("-C", "other", "sync")
    return work
  }

  @Test("texts of records stay texts")
  func hostileTexts() throws {
    let work = try hostileNodes()
    let (program, address) = try page(of: "<i>node", in: work)
    try run("hostile", "<i>node", at: address, in: work)
    try run("accessible", "<i>node", at: address, in: work)
    #expect(program.end() == 0)
  }

  /// A form reread its controls, which rounded numbers in JSON and changed line ends.
  @Test("a form changes what a person has changed")
  func forms() throws {
    let work = try Workplace()
    try work.write(
      "schema.graphql",
      "type Thing @model { id: ID! @primaryKey text: String json: AWSJSON count: Int every: Interval }\n"
        + "enum Interval { DAY WEEK }\n")
    try work.stemma("init", "node", "--schema", "schema.graphql", "--name", "node")
    try work.stemma(
      "-C", "node", "create", "Thing", "id=1", "text=a\r\nb\rc", "count=1", "every=DAY",
      #"json={"big":9007199254740993,"b":1.0}"#)
    let (program, address) = try page(of: "node", in: work)
    try run("edit", "node", at: address, in: work)
    #expect(program.end() == 0)
  }

  @Test("the secret is needed, and leaves the address")
  func secret() throws {
    let work = try hostileNodes()
    let (program, address) = try page(of: "other", in: work, by: "Ann & Bo")
    try run("secret", "other", at: address, in: work)
    #expect(program.end() == 0)
  }

  @Test("an ungranted partition is nowhere")
  func rights() throws {
    let work = try Workplace()
    try work.write("schema.graphql", Self.schema)
    try work.stemma("init", "node", "--schema", "schema.graphql", "--name", "node")
    for name in ["one", "two"] {
      try work.stemma("-C", "node", "create", "Note", "shelf=open", "name=\(name)", "text=x")
      try work.stemma("-C", "node", "create", "Note", "shelf=secretly", "name=\(name)", "text=secretly")
    }
    try work.stemma("-C", "node", "update", "Note", "shelf=open", "name=one", "text=y")
    let token = try work.stemma("-C", "node", "token", "create", "reader", "--read", "shelf=open").lines[0]
    let node = try ServedNode("node", in: work, ["--ui"])
    try run("granted", "node", at: "\(node.url)/#token=\(token)", in: work, "secretly")
  }
}
