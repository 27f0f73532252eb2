import Foundation
import Servers
import Testing

extension Peers {
  /// The digest of one partition in a node.
  func digest(_ node: String, _ partition: String) throws -> [String: String] {
    let lines = try stemma("-C", node, "digest", "--ndjson").objects()
    return try #require(lines.first { $0.text("partition") == partition }).mapValues { "\($0)" }
  }
}

/// Published logs on an ordinary web server.
@Suite("Published logs", .enabled(if: NginxServer.isInstalled, "nginx is not installed"))
struct HubWebTests {
  /// A node with three tenants, published below `site/sub`.
  private func publish() throws -> Peers {
    let peers = try Peers(.directory)
    try peers.make("hq")
    for tenant in ["a", "b", "c"] { for id in 1...3 { try peers.write("hq", tenant, "\(id)") } }
    try FileManager.default.createDirectory(
      atPath: peers.work.file("site"), withIntermediateDirectories: false)
    try peers.stemma("-C", "hq", "publish", "site/sub")
    return peers
  }

  @Test("a clone is exact, and a pull gets what is published later")
  func clonesAndPulls() throws {
    let peers = try publish()
    let server = try NginxServer(peers.work.file("site"))
    try peers.stemma(
      "clone", server.endpoint + "/sub/", "field", "--name", "field", "--partition", "tenant=b")
    #expect(try peers.digest("field", "tenant=b") == peers.digest("hq", "tenant=b"))
    #expect(try peers.titles("field") == "b\t1\tx\nb\t2\tx\nb\t3\tx\n")
    try peers.stemma("clone", server.endpoint + "/sub", "all", "--name", "all")
    #expect(try peers.digests("all") == peers.digests("hq"))

    try peers.write("hq", "b", "4", "later")
    try peers.write("hq", "c", "4", "later")
    #expect(try peers.stemma("-C", "field", "pull", "--json").object().number("events") == 0)
    let published = try peers.stemma("-C", "hq", "publish", "site/sub", "--json").object()
    #expect(published.number("events") == 2)
    try peers.stemma("-C", "field", "pull")
    #expect(try peers.titles("field").contains("b\t4\tlater"))
    #expect(try peers.digest("field", "tenant=b") == peers.digest("hq", "tenant=b"))
    try peers.stemma("-C", "all", "pull")
    #expect(try peers.digests("all") == peers.digests("hq"))
    try peers.stemma("-C", "all", "verify", "--against", "source")
    // Nothing is new.
    #expect(try peers.stemma("-C", "hq", "publish", "site/sub", "--json").object().number("events") == 0)
    withExtendedLifetime(server) {}
  }

  @Test("a push to a web site is refused, and keeps the events")
  func refusesPushes() throws {
    let peers = try publish()
    let server = try NginxServer(peers.work.file("site"))
    try peers.stemma("clone", server.endpoint + "/sub/", "field", "--name", "field")
    try peers.write("field", "a", "9", "mine")
    for verb in ["push", "sync"] {
      let refused = try peers.attempt("-C", "field", verb)
      #expect(refused.status == 69, "\(verb): \(refused.output)\(refused.errors)")
      #expect(refused.errors.contains("a web site cannot be written"), "\(refused.errors)")
    }
    #expect(try peers.titles("field").contains("a\t9\tmine"))
    let refused = try peers.attempt("hub", "init", server.endpoint + "/sub")
    #expect(
      refused.status != 0 && refused.errors.contains("a web site cannot be written"), "\(refused.errors)")
    #expect(try server.requests().allSatisfy { $0.method == "GET" })
  }

  @Test("a web server without ranges is refused with the reason")
  func refusesServersWithoutRanges() throws {
    let peers = try publish()
    let server = try NginxServer(peers.work.file("site"), hasRanges: false)
    let refused = try peers.attempt("clone", server.endpoint + "/sub/", "field")
    #expect(refused.status == 69, "\(refused.output)\(refused.errors)")
    #expect(refused.errors.contains("ignores the header Range"), "\(refused.errors)")
    #expect(!FileManager.default.fileExists(atPath: peers.work.file("field")))
    let absent = try peers.attempt("clone", server.endpoint + "/nothing", "field")
    #expect(absent.status == 69, "\(absent.output)\(absent.errors)")
    withExtendedLifetime(server) {}
  }

  @Test("the address of `stemma serve` is that of a node")
  func servedNodes() throws {
    let peers = try publish()
    let node = try ServedNode("hq", in: peers.work)
    try peers.stemma("clone", node.url, "field", "--name", "field")
    try peers.write("field", "a", "9", "mine")
    try peers.stemma("-C", "field", "push")
    #expect(try peers.titles("hq").contains("a\t9\tmine"))
    #expect(node.program.end() == 0)
  }
}
