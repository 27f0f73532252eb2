import Foundation
import StemmaSimulation
import Testing

/// The ways to reach a peer. Each scenario holds for all of them.
enum Reach: CaseIterable { case directory, shell, http, hub }

/// Nodes that reach each other in one way.
final class Peers {
  let reach: Reach
  let work: Workplace
  private var served: [String: ServedNode] = [:]
  /// The hub through which each of these nodes is reached, in a folder.
  private var hubs: [(node: String, address: String)] = []

  static let schema = """
    type Task @model @partition(fields: ["tenant"]) {
      tenant: String! @primaryKey(sortKeyFields: ["id"])
      id: ID!
      title: String
      done: Boolean
    }

    """

  init(_ reach: Reach) throws {
    self.reach = reach
    work = try Workplace()
    try work.write("schema.graphql", Self.schema)
    // Takes the place of ssh: runs the command for the other host here.
    try work.write("shell", "#!/bin/sh\nshift\nPATH='\(Tool.directory)':$PATH exec sh -c \"$1\"\n")
    try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: work.file("shell"))
  }

  var environment: [String: String] { ["STEMMA_SSH": work.file("shell")] }

  func address(_ node: String) throws -> String {
    switch reach {
    case .directory: return node
    case .shell: return "elsewhere:\(work.file(node))"
    case .http:
      if let node = served[node] { return node.url }
      let node = (name: node, server: try ServedNode(node, in: work))
      served[node.name] = node.server
      return node.server.url
    case .hub:
      if let known = hubs.first(where: { $0.node == node }) { return known.address }
      let address = "file://" + work.file("hub-\(node)")
      try work.stemma("hub", "init", address)
      hubs.append((node, address))
      try settle()
      return address
    }
  }

  /// Each node that is reached through a hub exchanges events with it.
  private func settle() throws {
    for (node, address) in hubs {
      let result = try Tool.run(Tool.path, ["-C", node, "sync", address], in: work.path)
      #expect(result.status == 0, "\(result.errors)")
    }
  }

  private static let exchanges: Set<String> = ["clone", "pull", "push", "sync", "verify"]

  func make(_ node: String, schema: String = "schema.graphql") throws {
    try work.stemma("init", node, "--schema", schema, "--name", node)
  }

  @discardableResult
  func stemma(
    _ arguments: String..., sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Tool.Result {
    try stemma(arguments, sourceLocation: sourceLocation)
  }

  @discardableResult
  func stemma(
    _ arguments: [String], sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Tool.Result {
    let result = try run(arguments)
    #expect(
      result.status == 0, "stemma \(arguments.joined(separator: " ")): \(result.errors)",
      sourceLocation: sourceLocation)
    return result
  }

  func attempt(_ arguments: String...) throws -> Tool.Result { try run(arguments) }

  private func run(_ arguments: [String]) throws -> Tool.Result {
    let isExchange = arguments.contains(where: Self.exchanges.contains)
    if isExchange { try settle() }
    let result = try Tool.run(Tool.path, arguments, in: work.path, environment: environment)
    if isExchange { try settle() }
    return result
  }

  func write(_ node: String, _ tenant: String, _ id: String, _ title: String = "x") throws {
    try stemma("-C", node, "upsert", "Task", "tenant=\(tenant)", "id=\(id)", "title=\(title)")
  }

  func titles(_ node: String) throws -> String {
    try stemma("-C", node, "query", "--tsv", "SELECT tenant, id, title FROM tasks ORDER BY 1, 2").output
  }

  /// Whether a node shows a title before a minute has passed. Asks again and again.
  func awaits(_ node: String, _ title: String) throws -> Bool {
    let deadline = Date().addingTimeInterval(60)
    while Date() < deadline { if try titles(node).contains(title) { return true } }
    return false
  }

  func digests(_ node: String) throws -> String { try stemma("-C", node, "digest").output }
}

@Suite("Peers") struct PeerTests {
  @Test("a clone holds its scope, which can be widened and narrowed", arguments: Reach.allCases)
  func scopes(reach: Reach) throws {
    let peers = try Peers(reach)
    try peers.make("hq")
    for tenant in ["a", "b", "c"] { try peers.write("hq", tenant, "1") }
    try peers.stemma(
      "clone", try peers.address("hq"), "field", "--name", "field", "--partition", "tenant=a")
    #expect(try peers.titles("field") == "a\t1\tx\n")
    try peers.stemma("-C", "field", "scope", "add", "tenant=b")
    try peers.stemma("-C", "field", "pull")
    #expect(try peers.titles("field") == "a\t1\tx\nb\t1\tx\n")
    try peers.stemma("-C", "field", "scope", "remove", "tenant=a")
    try peers.write("hq", "a", "2")
    try peers.stemma("-C", "field", "sync")
    #expect(try peers.titles("field") == "b\t1\tx\n")
  }

  @Test("both list the same conflicts, and hold the same bytes", arguments: Reach.allCases)
  func conflicts(reach: Reach) throws {
    let peers = try Peers(reach)
    try peers.make("hq")
    try peers.write("hq", "a", "1")
    try peers.stemma("clone", try peers.address("hq"), "field", "--name", "field")
    try peers.write("hq", "a", "1", "here")
    try peers.write("field", "a", "1", "there")
    try peers.write("field", "b", "7")
    try peers.stemma("-C", "field", "sync")
    let listed = try peers.stemma("-C", "hq", "conflicts", "--json").output
    #expect(try peers.stemma("-C", "field", "conflicts", "--json").output == listed)
    #expect(listed.contains("title"))
    #expect(try peers.digests("hq") == peers.digests("field"))
    #expect(try peers.titles("hq").contains("b\t7"))
    // Nothing is sent twice.
    for verb in ["pull", "push"] {
      let again = try peers.stemma("-C", "field", verb, "--json").object()
      #expect(again.number("events") == 0)
    }
  }

  @Test("digests show which partitions differ, and an event where it is", arguments: Reach.allCases)
  func comparison(reach: Reach) throws {
    let peers = try Peers(reach)
    try peers.make("hq")
    for tenant in ["a", "b", "c"] { try peers.write("hq", tenant, "1") }
    let address = try peers.address("hq")
    try peers.stemma(
      "clone", address, "field", "--name", "field", "--partition", "tenant=a", "--partition", "tenant=b")
    let equal = try peers.stemma("-C", "field", "verify", "--against", "source", "--json").object()
    #expect(equal.number("equal") == 2 && equal.array("differences").isEmpty)
    try peers.write("field", "a", "2")
    let different = try peers.attempt("-C", "field", "verify", "--against", address, "--json")
    #expect(different.status == 1, "\(different.errors)")
    let found = try different.object()
    #expect(found.number("equal") == 1)
    #expect(found.array("differences").map { $0.text("partition") } == ["tenant=a"])
    #expect(
      try peers.attempt("-C", "field", "verify", "--against", address, "--partition", "tenant=b").status == 0)

    func durability() throws -> [String: Any] {
      let event = try peers.stemma(
        "-C", "field", "show", "field:1", "--partition", "tenant=a", "--json"
      ).object()
      return try #require(event["durability"] as? [String: Any])
    }
    let local = try durability()
    #expect(local["isEverywhere"] as? Bool == false)
    #expect(local.array("peers").map { $0["hasEvent"] as? Bool } == [false])
    try peers.stemma("-C", "field", "push")
    let everywhere = try durability()
    #expect(everywhere["isEverywhere"] as? Bool == true)
    #expect((everywhere["acknowledgedBy"] as? [String])?.count == 1)
    // An exchange of one partition keeps what is known of others.
    try peers.stemma("-C", "field", "sync", "--partition", "tenant=b")
    #expect(try durability()["isEverywhere"] as? Bool == true)
    let status = try peers.stemma("-C", "field", "status", "--json").object().array("peers")[0]
    #expect(status.number("ahead") == 0 && status.number("behind") == 0)
  }

  @Test("a node between two others relays what it holds", arguments: Reach.allCases)
  func relay(reach: Reach) throws {
    let peers = try Peers(reach)
    try peers.make("hq")
    for tenant in ["a", "b"] { try peers.write("hq", tenant, "1") }
    try peers.stemma(
      "clone", try peers.address("hq"), "middle", "--name", "middle", "--partition", "tenant=a")
    try peers.stemma("clone", try peers.address("middle"), "far", "--name", "far")
    try peers.write("far", "a", "2", "from far")
    try peers.stemma("-C", "far", "push")
    try peers.stemma("-C", "middle", "push")
    #expect(try peers.titles("hq") == "a\t1\tx\na\t2\tfrom far\nb\t1\tx\n")
  }

  @Test("a copy that was written is a fork, and refused", arguments: Reach.allCases)
  func forks(reach: Reach) throws {
    let peers = try Peers(reach)
    try peers.make("hq")
    try peers.write("hq", "a", "1")
    try peers.stemma("clone", try peers.address("hq"), "field", "--name", "field")
    let backup = peers.work.file("backup")
    try FileManager.default.copyItem(atPath: peers.work.file("field"), toPath: backup)
    try peers.write("field", "a", "2")
    try peers.stemma("-C", "field", "push")
    try FileManager.default.removeItem(atPath: peers.work.file("field"))
    try FileManager.default.moveItem(atPath: backup, toPath: peers.work.file("field"))
    // A restored node begins a new origin when it meets its own later events.
    try peers.stemma("-C", "field", "pull")
    try peers.write("field", "a", "3")
    try peers.stemma("-C", "field", "sync")
    #expect(try peers.digests("hq") == peers.digests("field"))
  }

  @Test("schemas that contradict each other are refused by both, others are not", arguments: Reach.allCases)
  func schemas(reach: Reach) throws {
    let peers = try Peers(reach)
    try peers.work.write("other.graphql", "type Task @model { id: ID! @primaryKey title: String }\n")
    try peers.work.write(
      "more.graphql", Peers.schema + "type Note @model { id: ID! @primaryKey text: String }\n")
    try peers.make("hq")
    try peers.make("other", schema: "other.graphql")
    try peers.make("more", schema: "more.graphql")
    try peers.write("hq", "a", "1")
    let refused = try peers.attempt("-C", "other", "sync", try peers.address("hq"))
    #expect(refused.status == 65, "\(refused.errors)")
    try peers.stemma("-C", "more", "sync", try peers.address("hq"))
    #expect(try peers.titles("more") == "a\t1\tx\n")
  }

  @Test("partitions with lost events are left out", arguments: [Reach.directory, .shell, .http])
  func losses(reach: Reach) throws {
    let peers = try Peers(reach)
    try peers.make("hq")
    for tenant in ["a", "b"] { for id in 1...20 { try peers.write("hq", tenant, "\(id)") } }
    let log = peers.work.file("hq/log")
    let names = try FileManager.default.contentsOfDirectory(atPath: log)
    let journal = try #require(names.first { $0.hasSuffix(".journal") || $0.contains("journal") })
    var bytes = try Data(contentsOf: URL(fileURLWithPath: log + "/" + journal))
    // Within an early frame.
    bytes[600] ^= 1
    try bytes.write(to: URL(fileURLWithPath: log + "/" + journal))
    _ = try peers.attempt("-C", "hq", "verify")
    let cloned = try peers.attempt("clone", try peers.address("hq"), "field", "--name", "field")
    #expect(cloned.status == 74, "\(cloned.output)\(cloned.errors)")
  }

  @Test("an address without a node is an error with advice", arguments: [Reach.shell, .http, .hub])
  func nothingThere(reach: Reach) throws {
    let peers = try Peers(reach)
    try peers.make("hq")
    let nothing = peers.work.file("nothing")
    let address =
      reach == .http ? "http://127.0.0.1:9" : reach == .hub ? "file://\(nothing)" : "elsewhere:\(nothing)"
    let result = try peers.attempt("-C", "hq", "pull", address)
    #expect(result.status == 69, "\(result.errors)")
    #expect(try peers.attempt("clone", address, "new").status == 69)
    #expect(!FileManager.default.fileExists(atPath: peers.work.file("new")))
  }
}

@Suite("Peers with real data", .enabled(if: RealData.isThere))
struct RealPeerTests {
  /// nodes-grdb: two nodes diverge and sync over each transport.
  @Test("no violation over a pipe, over HTTP and through a hub", arguments: [Reach.shell, .http, .hub])
  func realMerge(reach: Reach) throws {
    let peers = try Peers(reach)
    try peers.work.stemma("init", "a", "--schema", RealData.path("nodes-grdb/schema.graphql"), "--name", "a")
    try peers.stemma("-C", "a", "import", RealData.path("nodes-grdb/base.ndjson.gz"))
    try peers.stemma("clone", try peers.address("a"), "b", "--name", "b")
    try peers.stemma("-C", "a", "import", RealData.path("nodes-grdb/node-a.ndjson.gz"))
    try peers.stemma("-C", "b", "import", RealData.path("nodes-grdb/node-b.ndjson.gz"))
    try peers.stemma("-C", "b", "sync")
    try Self.checkNodes(in: peers.work)
  }

  /// Checks that the nodes `a` and `b` hold what the oracle says, and the same.
  static func checkNodes(in work: Workplace) throws {
    let conflicts = try work.stemma("-C", "a", "conflicts", "--ndjson").output
    try work.write("conflicts.ndjson", conflicts)
    let python = try #require(RealData.python)
    let checked = try Tool.run(
      python,
      [
        RealData.path("check/check_nodes.py"), RealData.path("nodes-grdb"), "a/tables.sqlite",
        "b/tables.sqlite", "--table", "docs", "--conflicts", "conflicts.ndjson",
      ], in: work.path)
    #expect(checked.status == 0, "\(checked.output)\(checked.errors)")
    #expect(checked.output.contains("violations 0"))
    #expect(try work.stemma("-C", "a", "digest").output == work.stemma("-C", "b", "digest").output)
  }

  /// The same nodes meet only through files. Each imports its changes in four parts and makes a
  /// bundle after each.
  @Test("no violation by bundles in any order, one of them lost and sent again")
  func realBundles() throws {
    let peers = try Peers(.directory)
    let work = peers.work
    let schema = RealData.path("nodes-grdb/schema.graphql")
    for node in ["a", "b"] { try work.stemma("init", node, "--schema", schema, "--name", node) }
    try peers.stemma("-C", "a", "import", RealData.path("nodes-grdb/base.ndjson.gz"))
    try peers.stemma("-C", "a", "bundle", "create", "a0")
    try peers.stemma("-C", "b", "bundle", "apply", "a0")
    var random = SplitMix64(seed: 36)
    for node in ["a", "b"] {
      let unpacked = try ConsolePage.run(
        "gunzip -c '\(RealData.path("nodes-grdb/node-\(node).ndjson.gz"))' > \(node).ndjson && split -n l/4 -d -a 1 \(node).ndjson \(node)-part-",
        in: work.path, showsStatus: true)
      try #require(unpacked == [])
      var since = "a0"
      for part in 1...4 {
        try peers.stemma("-C", node, "import", "\(node)-part-\(part - 1)")
        try peers.stemma("-C", node, "bundle", "create", "\(node)\(part)", "--since", since)
        since = "\(node)\(part)"
      }
    }
    for (node, other) in [("b", "a"), ("a", "b")] {
      let lost = Int.random(in: 1...4, using: &random)
      // In any order, each round adds at least one bundle of those before the lost one.
      for round in 1...8 {
        let sent = (1...4).filter { round > 4 || $0 != lost }.shuffled(using: &random)
        for number in sent {
          let applied = try peers.attempt("-C", node, "bundle", "apply", "\(other)\(number)")
          #expect(applied.status == 0 || applied.status == 69, "\(applied.errors)")
          if round < 5, number > lost { #expect(applied.status == 69) }
        }
      }
    }
    try Self.checkNodes(in: peers.work)
  }

  @Test("three partitions of git-grdb over HTTP are exact, and the server reads about what it ships")
  func realPartitions() throws {
    let peers = try Peers(.http)
    try peers.work.stemma("init", "hq", "--schema", RealData.path("git-grdb/schema.graphql"), "--name", "hq")
    try peers.stemma(
      "-C", "hq", "import", "--segment-size", "200000", RealData.path("git-grdb/mutations.ndjson.gz"))
    let node = try ServedNode("hq", in: peers.work)
    let partitions = ["Documentation", "GRDB Tests", "DemoApps"]
    try peers.stemma(
      Array(
        ["clone", node.url, "field", "--name", "field"]
          + partitions.flatMap { ["--partition", "partition=\($0)"] }))
    try peers.work.write(
      "export.ndjson", try peers.stemma("-C", "field", "export", "File", "FileAuthor").output)
    try RealData.check(
      "git-grdb",
      ["--ndjson", peers.work.file("export.ndjson"), "--model", "File", "--model", "FileAuthor"]
        + partitions.flatMap { ["--partition", "partition=\($0)"] }, in: peers.work)
    try peers.stemma("-C", "field", "verify", "--against", "source")
    let metrics = try node.answer("/metrics", in: peers.work).body
    func counter(_ name: String) throws -> Double {
      let line = try #require(metrics.split(separator: "\n").first { $0.hasPrefix(name + " ") })
      return try #require(Double(line.split(separator: " ")[1]))
    }
    let (read, sent) = (try counter("stemma_log_read_bytes_total"), try counter("stemma_sent_bytes_total"))
    print("the server read \(Int(read)) bytes and sent \(Int(sent))")
    #expect(read < sent * 2)
  }
}
