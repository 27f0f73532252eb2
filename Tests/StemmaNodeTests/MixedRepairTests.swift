import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSimulation
import Testing

/// Repairs of a node that holds events of two nodes which have seen each other's: what is put back must stand behind what it
/// has seen, in whichever file.
@Suite struct MixedRepairTests {
  private static let schema = """
    type Row @model { tenant: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! text: String }
    """

  /// `a` has sealed files with events of its own, and behind them a journal with events of `p`, and own ones that have seen
  /// those. `p` has everything.
  private struct Pair {
    let bench: Bench
    let digests: [String]
    let count: Int
    /// Of `a`, before the events of `p` came.
    let tables: [String: Data]

    init(seed: UInt64) throws {
      bench = try Bench(seed: seed, segmentSize: 10_000)
      let a = try bench.node("a", MixedRepairTests.schema)
      for number in 0..<40 {
        try a.commit(Self.line("create", number, String(repeating: "text ", count: 600)))
        if number % 5 == 4 { try a.sealIfWanted() }
      }
      let p = try bench.node("p", MixedRepairTests.schema)
      try p.sync(a)
      tables = try bench.contents("a").filter {
        $0.key.hasPrefix("tables.sqlite") && !$0.key.hasSuffix("-shm")
      }
      for round in 0..<3 {
        for number in 0..<8 { try p.commit(Self.line("update", number, "p\(round)")) }
        try a.sync(p)
        for number in 4..<12 { try a.commit(Self.line("update", number, "a\(round)")) }
      }
      try p.sync(a)
      (digests, count) = (try a.digestTexts, try a.history.count)
      try #require(try names.filter { $0.hasSuffix(".segment") }.count > 5)
    }

    static func line(_ operation: String, _ number: Int, _ text: String) -> String {
      #"{"op":"\#(operation)","model":"Row","key":{"tenant":"t\#(number % 2)","n":\#(number)},"fields":{"text":"\#(text)"}}"#
    }

    func path(_ name: String) -> String { bench.path("a/log/" + name) }

    var names: [String] {
      get throws { try FileManager.default.contentsOfDirectory(atPath: path("")).sorted() }
    }

    func flip(_ name: String, _ places: [Int]) throws {
      var bytes = try Data(contentsOf: URL(fileURLWithPath: path(name)))
      for place in places { bytes[place] ^= 4 }
      try bytes.write(to: URL(fileURLWithPath: path(name)))
    }

    func setTablesBack(to tables: [String: Data]) throws {
      for name in try bench.contents("a").keys where name.hasPrefix("tables.sqlite") {
        try FileManager.default.removeItem(atPath: bench.path("a/" + name))
      }
      for (name, bytes) in tables { try bytes.write(to: URL(fileURLWithPath: bench.path("a/" + name))) }
    }

    func repair(from names: [String]) throws -> RepairReport {
      let peers = names.map { RemotePeer(name: $0, address: bench.path($0)) }
      return try bench.open("a").repair(from: peers) { _, _ in }
    }

    /// Everything is there, and others can have it.
    func checkIsWhole(_ story: String) throws {
      let report = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
      #expect(report.damage.isEmpty, "\(story): \(report.damage)")
      let a = try bench.open("a")
      try a.checkInvariants()
      let clone = try bench.node("clone", MixedRepairTests.schema)
      try clone.sync(a)
      #expect(try a.digestTexts == digests, "\(story)")
      #expect(try clone.digestTexts == digests, "\(story)")
      #expect(try a.commit(Self.line("update", 5, "last")).count == 1, "\(story)")
    }
  }

  /// `repair` called it good, and nobody could clone from the node; or it ended in a log that no command could read.
  @Test(
    arguments: [
      "first and journal gone", "first and journal empty", "third and journal gone", "middle gone, header",
      "first, journal and watermark gone", "third, journal and watermark gone",
    ],
    ["tables", "old tables", "no tables"])
  func whatTheFilesOfTwoHistoriesLostComesBack(kind: String, tables: String) throws {
    for isPlainFirst in [false, true] {
      let pair = try Pair(seed: 1)
      let names = try pair.names
      let (segments, journal) = (
        names.filter { $0.hasSuffix(".segment") }, try #require(names.last { $0.hasSuffix(".journal") })
      )
      if tables != "tables" { try pair.setTablesBack(to: tables == "no tables" ? [:] : pair.tables) }
      switch kind {
      case let kind where kind.hasSuffix("gone"):
        let watermark = kind.contains("watermark") ? ["watermark"] : []
        for name in [segments[kind.hasPrefix("first") ? 0 : 2], journal] + watermark {
          try FileManager.default.removeItem(atPath: pair.path(name))
        }
      case "first and journal empty":
        for name in [segments[0], journal] { try Data().write(to: URL(fileURLWithPath: pair.path(name))) }
      default:
        try FileManager.default.removeItem(atPath: pair.path(segments[2]))
        try pair.flip(segments[4], [1])
      }
      let story = "\(kind), \(tables), \(isPlainFirst)"
      if isPlainFirst { _ = try pair.repair(from: []) }
      let report = try pair.repair(from: ["p"])
      #expect(report.isWhole, "\(story): \(report)")
      // Of a journal of which not even the watermark tells, only tables know, if they were as far.
      if kind.contains("watermark"), tables == "old tables" {
        try pair.bench.open("a").sync(try pair.bench.open("p"))
      }
      try pair.checkIsWhole(story)
    }
  }

  /// Events that others have seen were in a frame of which nothing could be read, and nobody remembered them.
  @Test(arguments: (1...12) + [49] as [UInt64]) func whatOthersHaveSeenIsMissed(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let pair = try Pair(seed: seed)
    let journal = try #require(try pair.names.last { $0.hasSuffix(".journal") })
    let bytes = try Data(contentsOf: URL(fileURLWithPath: pair.path(journal)))
    try pair.setTablesBack(to: seed % 3 == 0 ? pair.tables : [:])
    let frames = bytes.indices.filter { bytes[$0...].starts(with: Data("FRM1".utf8)) }
    let first = frames[random.below(frames.count)]
    let second = frames[random.below(frames.count)]
    let places = [first + 40, first + 45, second + 36 + random.below(20), second + 60]
    try pair.flip(journal, Set(places).filter { $0 < bytes.count }.sorted())
    let story = "\(seed): \(places)"
    if random.chance(50) { _ = try pair.repair(from: []) }
    let report = try pair.repair(from: ["p"])
    #expect(report.isWhole, "\(story): \(report)")
    try pair.checkIsWhole(story)
  }
}
