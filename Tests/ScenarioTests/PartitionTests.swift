import Foundation
import Testing

/// Transfer and purge of single partitions of a real history.
@Suite("Partial copies", .enabled(if: RealData.isThere))
struct PartitionTests {
  private struct Counts: Decodable {
    var partitions: [String]
    var events: Int
    var bytesRead: Int
    var bytesShipped: Int
  }

  private struct Digest: Decodable, Equatable {
    var partition: String
    var events: Int
    var log: String
    var tables: String
  }

  private let models = ["--model", "File", "--model", "FileAuthor"]

  private func office() throws -> Workplace {
    let work = try Workplace()
    try work.stemma(
      "init", "office", "--schema", RealData.path("git-grdb/schema.graphql"), "--name", "office")
    try work.stemma("-C", "office", "import", RealData.path("git-grdb/mutations.ndjson.gz"))
    return work
  }

  private func digests(_ work: Workplace, _ node: String) throws -> [String: Digest] {
    let list: [Digest] = try work.stemma("-C", node, "digest", "--json").json()
    return Dictionary(uniqueKeysWithValues: list.map { ($0.partition, $0) })
  }

  private func check(_ work: Workplace, _ node: String, _ partitions: [String]) throws {
    try work.write("export.ndjson", try work.stemma("-C", node, "export", "File", "FileAuthor").output)
    let filters = partitions.flatMap { ["--partition", "partition=\($0)"] }
    try RealData.check("git-grdb", ["--ndjson", work.file("export.ndjson")] + models + filters, in: work)
    #expect(try work.stemma("-C", node, "export", "Author", "Commit").output == "")
  }

  @Test("a partial clone holds the chosen partitions; scope changes move nothing else")
  func scopesComeAndGo() throws {
    let work = try office()
    let whole = try digests(work, "office")
    let cloned: Counts = try work.stemma(
      "clone", "office", "field", "--name", "field", "--partition", "partition=Tests", "--partition",
      "partition=GRDB", "--json"
    ).json()
    #expect(cloned.partitions == ["partition=GRDB", "partition=Tests"])
    #expect(cloned.events == (whole["partition=GRDB"]?.events ?? 0) + (whole["partition=Tests"]?.events ?? 0))
    try check(work, "field", ["Tests", "GRDB"])
    let before = try digests(work, "field")
    #expect(before["partition=GRDB"] == whole["partition=GRDB"])
    #expect(before["partition=Tests"] == whole["partition=Tests"])
    #expect(before.count == 2)

    try work.stemma("-C", "field", "scope", "add", "partition=Documentation")
    let pulled: Counts = try work.stemma("-C", "field", "pull", "--json").json()
    #expect(pulled.partitions == ["partition=Documentation"])
    #expect(pulled.events == whole["partition=Documentation"]?.events)
    try check(work, "field", ["Tests", "GRDB", "Documentation"])
    var wanted = before
    wanted["partition=Documentation"] = whole["partition=Documentation"]
    #expect(try digests(work, "field") == wanted)

    try work.stemma("clone", "field", "third", "--name", "third")
    #expect(try work.stemma("-C", "third", "export").output == work.stemma("-C", "field", "export").output)
    #expect(try digests(work, "third") == wanted)

    try work.stemma("-C", "field", "scope", "remove", "partition=Tests")
    wanted["partition=Tests"] = nil
    #expect(try digests(work, "field") == wanted)
    try check(work, "field", ["GRDB", "Documentation"])
    try work.stemma("-C", "field", "rebuild")
    #expect(try digests(work, "field") == wanted)
    #expect(try work.stemma("-C", "field", "verify").status == 0)
    // Purged partitions can be fetched again.
    try work.stemma("-C", "field", "scope", "add", "partition=Tests")
    try work.stemma("-C", "field", "pull")
    wanted["partition=Tests"] = whole["partition=Tests"]
    #expect(try digests(work, "field") == wanted)
  }

  @Test("a write outside of the scope is refused; own unacknowledged events are not purged unasked")
  func scopesProtect() throws {
    let work = try office()
    try work.stemma("clone", "office", "field", "--name", "field", "--partition", "partition=GRDB")
    let refused = try work.attempt(
      "-C", "field", "create", "Author", "id=someone", "name=Someone")
    #expect(refused.status == 77)
    #expect(refused.errors.contains("scope"))
    let path: [[String: String]] = try work.stemma(
      "-C", "field", "query", "--json", "SELECT path FROM files ORDER BY path LIMIT 1"
    ).json()
    try work.stemma(
      "-C", "field", "update", "File", "partition=GRDB", "path=\(path[0]["path"] ?? "")", "mode=100755")
    let kept = try work.attempt("-C", "field", "scope", "remove", "partition=GRDB")
    #expect(kept.status == 77)
    #expect(kept.errors.contains("--discard"))
    try work.stemma("-C", "field", "push")
    try work.stemma("-C", "field", "scope", "remove", "partition=GRDB")
    #expect(try digests(work, "field") == [:])
  }

  @Test("bytesRead agrees with what the system counts below the sender's log")
  func bytesReadAgreesWithTheSystem() throws {
    let strace = "/usr/bin/strace"
    guard FileManager.default.isExecutableFile(atPath: strace) else {
      print("skipped: strace is not installed")
      return
    }
    let work = try office()
    for partitions in [["--partition", "partition=Documentation"], []] {
      let node = "copy\(partitions.count)"
      let result = try Tool.run(
        strace,
        [
          "-ff", "-y", "-qq", "-e", "trace=read,pread64,readv,preadv", "-o", work.file("trace-\(node)"),
          Tool.path,
        ]
          + ["clone", "office", node, "--json"] + partitions, in: work.path)
      #expect(result.status == 0, "\(result.errors)")
      let counts: Counts = try result.json()
      var seen = 0
      // One file per thread, because calls are interleaved in a shared one.
      let traces = try FileManager.default.contentsOfDirectory(atPath: work.path)
        .filter { $0.hasPrefix("trace-\(node).") }
      for line in try traces.flatMap({
        String(decoding: try work.bytes($0), as: UTF8.self).split(separator: "\n")
      })
      where line.contains("/office/log/") {
        if let equals = line.range(of: "= ", options: .backwards),
          let count = Int(line[equals.upperBound...].prefix { $0.isNumber })
        {
          seen += count
        }
      }
      #expect(seen > 0)
      #expect(
        abs(Double(counts.bytesRead) / Double(seen) - 1) <= 0.05, "said \(counts.bytesRead), strace \(seen)")
    }
  }
}
