import Foundation
import Testing
import StemmaSimulation

/// Real histories produce the same tables as independent readers of the same sources.
@Suite("Real histories equal their oracles", .enabled(if: RealData.isThere))
struct OracleTests {
  static let names = ["chinook", "git-grdb"]

  private func node(_ name: String, _ importing: [String] = []) throws -> Workplace {
    let work = try Workplace()
    try work.stemma("init", "node", "--schema", RealData.path("\(name)/schema.graphql"), "--name", "office")
    let result = try Tool.run(
      Tool.path, ["-C", "node", "import"] + importing + [RealData.path("\(name)/mutations.ndjson.gz")],
      in: work.path)
    #expect(result.status == 0, "\(result.errors)")
    return work
  }

  private func export(_ work: Workplace, _ node: String = "node", to file: String) throws -> String {
    let text = try work.stemma("-C", node, "export").output
    try work.write(file, text)
    return text
  }

  @Test("import, then export and tables equal the oracle; rebuilding gives the same bytes", arguments: names)
  func importedRowsEqualTheOracle(name: String) throws {
    let work = try node(name)
    let exported = try export(work, to: "export.ndjson")
    try RealData.check(name, ["--ndjson", work.file("export.ndjson")], in: work)
    try RealData.check(name, ["--db", work.file("node/tables.sqlite")] + RealData.tables(name), in: work)
    let digests = try work.stemma("-C", "node", "digest").output
    #expect(try work.stemma("-C", "node", "verify").status == 0)

    try work.stemma("-C", "node", "rebuild")
    #expect(try export(work, to: "rebuilt.ndjson") == exported)
    #expect(try work.stemma("-C", "node", "digest").output == digests)

    // A row that another program changed.
    let table = name == "chinook" ? "tracks" : "files"
    let column = name == "chinook" ? "name" : "mode"
    try Spoil.execute("UPDATE \(table) SET \(column) = 'spoilt'", in: work.file("node/tables.sqlite"))
    #expect(
      try export(work, to: "spoilt.ndjson") != exported, "the change must be visible before the rebuild")
    try work.stemma("-C", "node", "rebuild")
    #expect(try export(work, to: "recovered.ndjson") == exported)
    #expect(try work.stemma("-C", "node", "digest").output == digests)

    for file in try FileManager.default.contentsOfDirectory(atPath: work.file("node"))
    where file.hasPrefix("tables.sqlite") {
      try FileManager.default.removeItem(atPath: work.file("node/\(file)"))
    }
    #expect(try export(work, to: "returned.ndjson") == exported)
    #expect(try work.stemma("-C", "node", "digest").output == digests)
  }

  @Test("the export does not depend on commits and segments", arguments: names)
  func exportDoesNotDependOnBatches(name: String) throws {
    let exported = try export(try node(name), to: "export.ndjson")
    for importing in [["--batch", "1"], ["--batch", "1000"], ["--segment-size", "8192"]] {
      let work = try node(name, importing)
      #expect(try export(work, to: "export.ndjson") == exported, "\(importing)")
      #expect(try work.stemma("-C", "node", "verify").status == 0)
      try work.stemma("-C", "node", "rebuild")
      #expect(try export(work, to: "rebuilt.ndjson") == exported, "rebuilt after \(importing)")
    }
  }

  @Test("an export is imported into a new node with the same export", arguments: names)
  func exportCanBeImported(name: String) throws {
    let work = try node(name)
    let exported = try export(work, to: "export.ndjson")
    try work.stemma("init", "second", "--schema", RealData.path("\(name)/schema.graphql"))
    try work.stemma("-C", "second", "import", "export.ndjson")
    #expect(try export(work, "second", to: "second.ndjson") == exported)
  }

  @Test("the log as mutations gives the same export elsewhere", arguments: names)
  func logAsMutationsCanBeImported(name: String) throws {
    let work = try node(name)
    let exported = try export(work, to: "export.ndjson")
    try work.write("log.ndjson", try work.stemma("-C", "node", "log", "--reverse", "--mutations").output)
    try work.stemma("init", "second", "--schema", RealData.path("\(name)/schema.graphql"))
    try work.stemma("-C", "second", "import", "log.ndjson")
    #expect(try export(work, "second", to: "second.ndjson") == exported)
  }

  /// The range of the part of a file that contains a byte.
  private func part(of path: String, at offset: Int, _ work: Workplace) throws -> Range<Int> {
    let object = try work.stemma("inspect", path, "--json").object()
    let parts = try #require(object["parts"] as? [[String: Any]])
    for part in parts {
      let start = try #require(part["offset"] as? Int)
      let range = start..<start + (try #require(part["bytes"] as? Int))
      if range.contains(offset) { return range }
    }
    Issue.record("byte \(offset) of \(path) is in no part")
    return 0..<0
  }

  @Test("every one of 50 flipped bits in segments is found, with file and offset", arguments: names)
  func flippedBitsAreFound(name: String) throws {
    let work = try node(name, ["--segment-size", "200000"])
    let directory = work.file("node/log")
    let segments = try FileManager.default.contentsOfDirectory(atPath: directory)
      .filter { $0.hasSuffix(".segment") }.sorted()
    #expect(segments.count > 2)
    var random = SplitMix64(seed: 2026)
    print("seed 2026, \(name)")
    for _ in 0..<50 {
      let segment = directory + "/" + segments[Int(random.next() % UInt64(segments.count))]
      let url = URL(fileURLWithPath: segment)
      let whole = try Data(contentsOf: url)
      let offset = Int(random.next() % UInt64(whole.count))
      let part = try part(of: url.path, at: offset, work)
      var corrupt = whole
      corrupt[offset] ^= 1 << (random.next() % 8)
      try corrupt.write(to: url)
      let result = try work.attempt("-C", "node", "verify")
      #expect(result.status == 1, "byte \(offset) of \(segment): \(result.output)\(result.errors)")
      #expect(result.output.contains(url.lastPathComponent), "\(result.output)")
      let places = result.output.matches(of: /at byte (\d+)/).compactMap { Int($0.1) }
      #expect(places.contains { part.contains($0) }, "byte \(offset) in \(part): \(result.output)")
      try whole.write(to: url)
    }
    #expect(try work.stemma("-C", "node", "verify").status == 0)
    // The files are restored, and no record of the corruption remains.
    let status = try work.stemma("-C", "node", "status")
    #expect(!(status.output + status.errors).contains("corrupt"), "\(status.output)\(status.errors)")
    #expect(try work.stemma("-C", "node", "rebuild").errors == "")
  }
}
