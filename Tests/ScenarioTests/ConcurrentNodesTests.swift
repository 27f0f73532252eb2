import Foundation
import Testing

/// Real branch work: two nodes diverge and sync.
@Suite("Nodes that were changed apart", .enabled(if: RealData.isThere))
struct ConcurrentNodesTests {
  /// base on A, B cloned, node-a on A, node-b on B, sync.
  private func merged() throws -> Workplace {
    let work = try Workplace()
    try work.stemma("init", "a", "--schema", RealData.path("nodes-grdb/schema.graphql"), "--name", "a")
    try work.stemma("-C", "a", "import", RealData.path("nodes-grdb/base.ndjson.gz"))
    try work.stemma("clone", "a", "b", "--name", "b")
    try work.stemma("-C", "a", "import", RealData.path("nodes-grdb/node-a.ndjson.gz"))
    try work.stemma("-C", "b", "import", RealData.path("nodes-grdb/node-b.ndjson.gz"))
    return work
  }

  @Test("no violation, the same conflicts as a naive fold, the same bytes everywhere")
  func mergeIsRight() throws {
    let work = try merged()
    // A third node receives everything in three transfers and in another order: B's work first.
    try work.stemma("clone", "b", "c", "--name", "c", "--partition", "episode=ep00[0-2]*")
    try work.stemma("-C", "b", "sync")
    let exported = try work.stemma("-C", "a", "export").output
    #expect(try work.stemma("-C", "b", "export").output == exported)

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

    // The output of `conflicts` equals a fold of `log --ndjson` by the definition.
    let naive = try NaiveFold(try work.stemma("-C", "a", "log", "--reverse", "--ndjson").objects())
    let listed = try work.stemma("-C", "a", "conflicts", "--ndjson").objects().map(NaiveFold.Conflict.init)
    #expect(Set(listed) == Set(naive.conflicts))
    #expect(listed.count == naive.conflicts.count)
    #expect(listed.count { $0.kind == "value" } == 204)
    #expect(Set(listed.filter { $0.kind == "value" }.map(\.key)).count == 108)

    // The third node gets the rest from the other peer, in two more transfers.
    try work.stemma("-C", "c", "scope", "add", "episode=ep00[3-5]*")
    try work.stemma("-C", "c", "pull", "a")
    try work.stemma("-C", "c", "scope", "add", "*")
    try work.stemma("-C", "c", "pull", "b")
    #expect(try work.stemma("-C", "c", "export").output == exported)
    let digests = try work.stemma("-C", "a", "digest").output
    for node in ["a", "b", "c"] {
      #expect(try work.stemma("-C", node, "digest").output == digests, "\(node)")
      try work.stemma("-C", node, "rebuild")
      #expect(try work.stemma("-C", node, "export").output == exported, "\(node) rebuilt")
      #expect(try work.stemma("-C", node, "digest").output == digests, "\(node) rebuilt")
      #expect(try work.stemma("-C", node, "verify").status == 0)
    }
  }

  @Test("resolving on one node closes the conflict on the other after a sync")
  func resolutionsTravel() throws {
    let work = try merged()
    try work.stemma("-C", "b", "sync")
    let first = try #require(try work.stemma("-C", "a", "conflicts", "--ndjson").objects().first)
    let key = try #require(first["key"] as? [String: String])
    let field = try #require(first["field"] as? String)
    let candidates = try #require(first["candidates"] as? [[String: Any]])
    let text = String(
      decoding: try JSONSerialization.data(withJSONObject: key, options: [.sortedKeys]), as: UTF8.self)
    #expect(try work.attempt("-C", "b", "conflicts", "--check").status == 1)
    let before = try work.stemma("-C", "b", "conflicts", "--ndjson").lines.count
    try work.stemma("-C", "a", "resolve", "Doc", text, field, "--take", "2", "--author", "ann")
    try work.stemma("-C", "b", "sync")
    #expect(try work.stemma("-C", "b", "conflicts", "--ndjson").lines.count == before - 1)
    let row = try #require(try work.stemma("-C", "b", "get", "Doc", text, "--ndjson").objects().first)
    let fields = try #require(row["fields"] as? [String: Any])
    #expect(fields[field] as? String == candidates[1]["value"] as? String)

    try work.stemma("-C", "b", "resolve", "--all", "--take", "newest")
    try work.stemma("-C", "b", "sync")
    try work.stemma("-C", "a", "conflicts", "--check")
    #expect(try work.stemma("-C", "a", "export").output == work.stemma("-C", "b", "export").output)
  }
}
