import Foundation
import Testing

/// Real branch work: two nodes go apart and meet again.
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
    // A third node that hears of everything in three pieces and in another order: B's work first.
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

    // What `conflicts` says equals a fold of `log --ndjson` by the definition.
    let naive = try NaiveFold(try work.stemma("-C", "a", "log", "--reverse", "--ndjson").objects())
    let listed = try work.stemma("-C", "a", "conflicts", "--ndjson").objects().map(NaiveFold.Conflict.init)
    #expect(Set(listed) == Set(naive.conflicts))
    #expect(listed.count == naive.conflicts.count)
    #expect(listed.count { $0.kind == "value" } == 204)
    #expect(Set(listed.filter { $0.kind == "value" }.map(\.key)).count == 108)

    // The rest of it for the third node, from the other peer, in two more pieces.
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
    try work.stemma("-C", "a", "resolve", "Doc", text, field, "--take", "2", "--by", "ann")
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

/// The merge by its definition, over the lines of `log --ndjson`: for each register, the writes that no other
/// write of the register has seen. Shares no code with the tool.
private struct NaiveFold {
  struct Conflict: Hashable {
    var key: String
    var field: String
    var kind: String
    /// `event value`, the shown one first.
    var candidates: [String]

    init(key: String, field: String, kind: String, candidates: [String]) {
      self.key = key
      self.field = field
      self.kind = kind
      self.candidates = candidates
    }

    init(_ object: [String: Any]) {
      let key = object["key"] as? [String: String] ?? [:]
      let listed = object["candidates"] as? [[String: Any]] ?? []
      self.init(
        key: "\(key["episode"] ?? "") \(key["path"] ?? "")", field: object["field"] as? String ?? "-",
        kind: object["kind"] as? String ?? "",
        candidates: listed.map { "\($0["event"] ?? "") \($0["value"] ?? "")" })
    }
  }

  private struct Write {
    var event: String
    var node: String
    var sequence: Int
    var version: Int
    var timestamp: Int
    var origin: String
    var seen: [String: Int]
    var value: String

    func isBelow(_ other: Write) -> Bool {
      (version, timestamp, origin, sequence) < (other.version, other.timestamp, other.origin, other.sequence)
    }
  }

  var conflicts: [Conflict] = []

  init(_ log: [[String: Any]]) throws {
    var records: [String: [[String: Any]]] = [:]
    for event in log {
      let key = event["key"] as? [String: String] ?? [:]
      records["\(key["episode"] ?? "") \(key["path"] ?? "")", default: []].append(event)
    }
    for (key, events) in records {
      var registers: [String: [Write]] = ["": []]
      let names = Set(events.flatMap { ($0["fields"] as? [String: Any] ?? [:]).keys })
      for event in events {
        let name = event["event"] as? String ?? ""
        let fields = event["fields"] as? [String: Any] ?? [:]
        let operation = event["op"] as? String ?? ""
        func write(_ value: String) -> Write {
          Write(
            event: name, node: String(name.prefix { $0 != ":" }), sequence: event["sequence"] as? Int ?? 0,
            version: event["version"] as? Int ?? 0,
            timestamp: Int(event["timestamp"] as? String ?? "") ?? event["timestamp"] as? Int ?? 0,
            origin: event["origin"] as? String ?? "", seen: event["context"] as? [String: Int] ?? [:],
            value: value)
        }
        registers["", default: []].append(write(operation == "delete" ? "0" : "1"))
        for field in names {
          if let value = fields[field] {
            registers[field, default: []].append(write("\(value)"))
          } else if operation == "create" {
            registers[field, default: []].append(write("<null>"))
          }
        }
      }
      func siblings(_ field: String) -> [Write] {
        let writes = registers[field] ?? []
        return writes.filter { write in
          !writes.contains { ($0.seen[write.node] ?? 0) >= write.sequence }
        }.sorted { $1.isBelow($0) }
      }
      let existence = siblings("")
      let isContested = Set(existence.map(\.value)).count > 1
      if isContested {
        conflicts.append(
          Conflict(
            key: key, field: "-", kind: "delete", candidates: existence.map { "\($0.event) \($0.value)" }))
      }
      guard existence.first?.value == "1" || isContested else { continue }
      for field in names {
        let found = siblings(field)
        guard Set(found.map(\.value)).count > 1 else { continue }
        conflicts.append(
          Conflict(key: key, field: field, kind: "value", candidates: found.map { "\($0.event) \($0.value)" })
        )
      }
    }
  }
}
