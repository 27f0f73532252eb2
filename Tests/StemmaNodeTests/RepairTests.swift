import Foundation
import StemmaEvents
import StemmaLog
import StemmaHistory
import StemmaNode
import StemmaReplication
import StemmaSimulation
import Testing

/// A node with a corrupt log continues and reports the lost events. It is complete again after a
/// peer returned them or their loss was accepted.
@Suite struct RepairTests {
  static let schema = """
    type Row @model { tenant: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! text: String note: String rank: Int }
    type Pick @model @conflict(policy: OPTIMISTIC) {
      tenant: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! text: String rank: Int
    }
    """

  static func row(_ tenant: String, _ number: Int, _ text: String = "x") -> String {
    #"{"op":"upsert","model":"Row","key":{"tenant":"\#(tenant)","n":\#(number)},"fields":{"text":"\#(text)"}}"#
  }

  /// Two equal nodes, `a` and `b`, with a segment of several blocks and a journal.
  private struct Pair {
    let bench: Bench
    let digests: [String]
    let export: [UInt8]

    init(_ count: Int = 300) throws {
      bench = try Bench(segmentSize: 800 * count)
      let a = try bench.node("a", RepairTests.schema)
      for tenant in 0..<4 {
        let lines = try (0..<count).map { number in
          try mutation(
            RepairTests.row("t\(tenant)", number, String(repeating: "\(number * 7919 % 1000) ", count: 80)))
        }
        try a.write(CommitMessage(text: "tenant \(tenant)")) { transaction throws(NodeError) in
          for line in lines { try transaction.perform(line) }
        }
      }
      try a.sealIfWanted()
      let b = try bench.node("b", RepairTests.schema)
      try a.commit(RepairTests.row("t0", 1000))
      try a.commit(RepairTests.row("t3", 1000))
      try a.sync(b)
      digests = try a.digestTexts
      export = try Self.export(of: a)
    }

    /// Wraps a bench with a different history.
    init(_ bench: Bench) {
      self.bench = bench
      (digests, export) = ([], [])
    }

    static func export(of node: Node) throws -> [UInt8] {
      var bytes: [UInt8] = []
      try node.export([]) { bytes += $0 }
      return bytes
    }

    func corruption(_ name: String, at place: Double, bytes count: Int = 64) throws {
      let url = URL(fileURLWithPath: bench.path("a/log/" + name))
      var bytes = try Data(contentsOf: url)
      let start = Int(Double(bytes.count - 1) * place)
      for index in start..<min(start + count, bytes.count) { bytes[index] ^= 0x5A }
      // Overwrites in place like bit rot: another file would look like a copy.
      let handle = try #require(FileHandle(forWritingAtPath: url.path))
      try handle.write(contentsOf: bytes)
      try handle.close()
    }

    func logFiles(_ suffix: String) throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: bench.path("a/log"))
        .filter { $0.hasSuffix(suffix) }.sorted()
    }

    /// All files of the log except the watermark.
    var logContents: [String: Data] {
      get throws {
        try bench.contents("a").filter { $0.key.hasPrefix("log/") && !$0.key.hasSuffix("watermark") }
      }
    }

    func removeTables() throws {
      for suffix in ["", "-wal", "-shm"] {
        let path = bench.path("a/tables.sqlite" + suffix)
        if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
      }
    }

    func verify(_ name: String = "a") throws -> VerificationReport {
      try Node.verify(at: bench.path(name), options: Node.OpeningOptions())
    }

    func repair(from names: [String] = ["b"], acceptsLoss: Bool = false) throws -> RepairReport {
      let peers = names.map { RemotePeer(name: $0, address: bench.path($0)) }
      return try bench.open("a").repair(from: peers, acceptsLoss: acceptsLoss) { _, _ in }
    }

    func checkIsAsBefore(_ comment: Comment) throws {
      let a = try bench.open("a")
      try a.checkInvariants()
      #expect(try a.digestTexts == (try bench.open("b").digestTexts), comment)
      #expect(try Self.export(of: a) == Self.export(of: try bench.open("b")), comment)
      #expect(try verify().corruption.map(\.what) == [], comment)
      #expect(try repair().files == [], comment)
    }
  }

  @Test func aCorruptBlockTakesEventsOfOnePartition() throws {
    let pair = try Pair()
    let segment = try #require(try pair.logFiles(".segment").first)
    try pair.corruption(segment, at: 0.4)
    // Opening does not detect the corruption. `verify` does, and lists exactly the missing events.
    let report = try pair.verify()
    #expect(report.corruption.map(\.remedy) == [.repair] && !report.isVague)
    let partition = try #require(report.losses.first?.partition)
    let lost = report.losses.reduce(0) { $0 + $1.count }
    #expect(report.losses.allSatisfy { $0.partition == partition } && lost > 0 && lost < 300)
    do {
      let a = try pair.bench.open("a")
      let tenant = String(partition.dropFirst("tenant=".count))
      // The tables lose nothing. The partition becomes read-only, the others do not.
      #expect(try Pair.export(of: a) == pair.export)
      #expect(try a.refusal(Self.row(tenant, 2000)) == "corruptPartition")
      let other = tenant == "t0" ? "t1" : "t0"
      #expect(try a.commit(Self.row(other, 2000)).count == 1)
      // All readable events are returned, followed by the error.
      var count: UInt64 = 0
      let error = #expect(throws: NodeError.self) {
        try a.forEachEvent(LogFilter(), newestFirst: false) { _, _ in
          count += 1
          return true
        }
      }
      #expect(error.map(caseName) == "missing" && count + lost == 1203)
      // The rest is exchanged, and the report lists the skipped partition.
      let exchange = try a.sync(try pair.bench.open("b"))
      #expect(exchange.pushed?.events == 1 && exchange.notices.contains { $0.contains(partition) })
    }
    // Without peers, nothing is changed.
    let before = try pair.logContents
    let alone = try pair.repair(from: [])
    #expect(!alone.isWhole && alone.missing == report.losses)
    #expect(try pair.logContents == before)
    let repaired = try pair.repair()
    #expect(repaired.isWhole && repaired.files == [segment] && repaired.events == lost)
    #expect(repaired.missing == [] && repaired.written == 0)
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: pair.bench.path("a/log/corrupt")) == [segment])
    try pair.checkIsAsBefore("a block")
    #expect(try pair.bench.open("a").history.count == 1203)
  }

  @Test(
    arguments: [
      "header", "footer", "trailer", "cut", "missing", "journal", "journal's header", "no journal",
    ],
    [false, true])
  func anyOtherCorruptionIsRepairedToo(kind: String, areTablesLost: Bool) throws {
    let pair = try Pair(120)
    let segment = try #require(try pair.logFiles(".segment").first)
    let journal = try #require(try pair.logFiles(".journal").last)
    let path = pair.bench.path("a/log/" + segment)
    switch kind {
    case "header": try pair.corruption(segment, at: 0.0001, bytes: 8)
    case "footer": try pair.corruption(segment, at: 0.985)
    case "trailer": try pair.corruption(segment, at: 0.9999, bytes: 1)
    case "cut":
      let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
      try bytes.prefix(bytes.count / 2).write(to: URL(fileURLWithPath: path))
    case "missing": try FileManager.default.removeItem(atPath: path)
    case "journal": try pair.corruption(journal, at: 0.5, bytes: 8)
    case "journal's header": try pair.corruption(journal, at: 0, bytes: 8)
    default: try FileManager.default.removeItem(atPath: pair.bench.path("a/log/" + journal))
    }
    if areTablesLost { try pair.removeTables() }
    let report = try pair.verify()
    #expect(report.isCorrupt, "\(kind)")
    // Only the tables know the contents of a completely unreadable file.
    #expect(report.isVague == (areTablesLost && kind != "header"), "\(kind)")
    let losesEnd = areTablesLost && ["journal's header", "no journal"].contains(kind)
    #expect(report.losses.isEmpty == (kind == "header" || losesEnd), "\(kind)")
    let repaired = try pair.repair()
    #expect(repaired.isWhole, "\(kind): \(repaired)")
    try pair.checkIsAsBefore("\(kind)")
    #expect(try pair.bench.open("a").digestTexts == pair.digests, "\(kind)")
    let a = try pair.bench.open("a")
    #expect(try a.commit(Self.row("t0", 3000)).count == 1)
    try a.sync(pair.bench.open("b"))
    try pair.checkIsAsBefore("\(kind), later")
  }

  /// Peers complement each other. Events that all peers lack leave the log unchanged.
  @Test func severalPeersGiveBackTogether() throws {
    let bench = try Bench(segmentSize: 4000)
    let a = try bench.node("a", Self.schema)
    let b = try bench.node("b", Self.schema, scope: ["tenant=t0"])
    let c = try bench.node("c", Self.schema, scope: ["tenant=t1"])
    for number in 0..<40 {
      for tenant in ["t0", "t1"] { try a.commit(Self.row(tenant, number, "\(number * 7919)")) }
    }
    try a.sync(b)
    try a.sync(c)
    let digests = try a.digestTexts
    try bench.seal("a")
    let pair = Pair(bench)
    let segment = try #require(try pair.logFiles(".segment").first)
    try pair.corruption(segment, at: 0.3)
    let one = try pair.repair(from: ["b"])
    #expect(!one.isWhole && Set(one.missing.map(\.partition)) == ["tenant=t1"])
    #expect(try pair.verify().losses.count > one.missing.count)
    #expect(try pair.repair(from: ["b", "c"]).isWhole)
    #expect(try bench.open("a").digestTexts == digests)
    #expect(try pair.verify().corruption.map(\.what) == [])
  }

  // MARK: Accepted losses

  /// Nodes `a` and `b` that wrote a few records, deleted some, and synced now and then. The history
  /// has conflicts of every kind.
  private struct Story {
    let bench: Bench
    var random: SplitMix64

    init(seed: UInt64) throws {
      bench = try Bench(seed: seed, segmentSize: seed % 2 == 0 ? 12_000 : 4000)
      random = SplitMix64(seed: seed)
      var nodes: [Node] = []
      for name in ["a", "b"] { nodes.append(try bench.node(name, RepairTests.schema)) }
      for step in 0..<30 {
        for node in nodes { try write(to: node, step) }
        if step % 6 == 5 { try nodes[0].sync(nodes[1]) }
        if step % 10 == 9 { try nodes[0].sealIfWanted() }
      }
    }

    mutating func write(to node: Node, _ step: Int) throws {
      for _ in 0..<(1 + Int(random.next() % 4)) {
        let model = random.next() % 4 == 0 ? "Pick" : "Row"
        let key = #"{"tenant":"t\#(random.next() % 2)","n":\#(random.next() % 6)}"#
        let text = "\(step) " + String(random.next(), radix: 36)
        switch random.next() % 8 {
        // A missing record cannot be deleted.
        case 0: _ = try node.refusal(#"{"op":"delete","model":"\#(model)","key":\#(key)}"#)
        case 1:
          try node.commit(#"{"op":"upsert","model":"\#(model)","key":\#(key),"fields":{"rank":null}}"#)
        default:
          let field = ["text", model == "Row" ? "note" : "text", "rank"][Int(random.next() % 3)]
          let value = field == "rank" ? "\(random.next() % 9)" : "\"\(text)\""
          try node.commit(
            #"{"op":"upsert","model":"\#(model)","key":\#(key),"fields":{"\#(field)":\#(value)}}"#)
        }
      }
    }

    /// Corrupts bytes of the log that are known to be durable.
    mutating func corruption() throws -> Comment {
      let folder = bench.path("a/log")
      let files = try FileManager.default.contentsOfDirectory(atPath: folder)
        .filter { $0.hasSuffix(".segment") || $0.hasSuffix(".journal") }.sorted()
      let path = folder + "/" + files[Int(random.next() % UInt64(files.count))]
      var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
      let offset = Int(random.next() % UInt64(bytes.count))
      for index in offset..<min(offset + 40, bytes.count) { bytes[index] ^= 0x5A }
      let handle = try #require(FileHandle(forWritingAtPath: path))
      try handle.write(contentsOf: bytes)
      try handle.close()
      return "\(path) at \(offset) of \(bytes.count)"
    }
  }

  /// The rows of a node.
  private static func rows(_ node: Node) throws -> [String] {
    var lines: [String] = []
    for model in node.schema.models {
      try node.query("SELECT * FROM \(model.tableName) ORDER BY 1, 2") { columns, row in
        lines.append(
          zip(columns, row).filter { !$0.0.hasPrefix("_") }.map { "\($0.0)=\($0.1)" }.joined(separator: " "))
      }
    }
    return lines
  }

  /// The node shows the same rows, passes `verify`, and finally equals a peer that has the lost
  /// events.
  @Test(arguments: 1...UInt64(Trials.count(8, long: 160)))
  func anAcceptedLossLeavesTheRowsAndConverges(seed: UInt64) throws {
    var story = try Story(seed: seed)
    let bench = story.bench
    let before = try Self.rows(try bench.open("a"))
    let comment = try story.corruption()
    let pair = Pair(bench)
    let lost = try pair.verify()
    let planned = try bench.open("a").repair(from: [], acceptsLoss: true, isDryRun: true) { _, _ in }
    #expect(planned.missing == lost.losses, comment)
    let report = try pair.repair(from: [], acceptsLoss: true)
    #expect(report.isWhole && report.missing == lost.losses && report.written == planned.written, comment)
    let a = try bench.open("a")
    try a.checkInvariants()
    let after = try Self.rows(a)
    #expect(
      before.filter { !after.contains($0) } == after.filter { !before.contains($0) }, comment)
    #expect(try pair.verify().corruption.map(\.what) == [], comment)
    // It can be written and synced again.
    for _ in 0..<3 { try story.write(to: a, 99) }
    let b = try bench.open("b")
    for _ in 0..<2 { try a.sync(b) }
    #expect(try Self.rows(a) == Self.rows(b), comment)
    #expect(try a.digestTexts == b.digestTexts, comment)
  }

  /// Each file operation of a repair and of an accepted loss fails, as if the process died. The
  /// node is then unchanged or complete.
  @Test(arguments: [false, true]) func aRepairThatDiesLeavesTheNodeCorruptOrWhole(accepts: Bool) throws {
    let pair = try Pair(20)
    let segment = try #require(try pair.logFiles(".segment").first)
    try pair.corruption(segment, at: 0.4, bytes: 8)
    let lost = try pair.verify().losses
    try #require(!lost.isEmpty)
    try pair.bench.copy("a", to: "kept")
    var outcomes: Set<Bool> = []
    for operation in stride(from: 1, to: 4000, by: Trials.stride(11)) {
      try pair.bench.replace("a", with: "kept")
      _ = try pair.bench.open("a")
      let files = FailingFileSystem()
      var isDone = true
      do {
        let node = try pair.bench.open("a", on: files)
        files.fail(from: operation)
        let peers = accepts ? [] : [RemotePeer(name: "b", address: pair.bench.path("b"))]
        _ = try node.repair(from: peers, acceptsLoss: accepts) { _, _ in }
      } catch { isDone = false }
      let report = try pair.verify()
      let comment: Comment = "died at operation \(operation)"
      outcomes.insert(report.losses.isEmpty)
      #expect(report.losses.isEmpty || report.losses == lost, comment)
      #expect(report.corruption.allSatisfy { $0.file.hasSuffix(segment) }, "\(comment): \(report.corruption)")
      let node = try pair.bench.open("a")
      try node.checkInvariants()
      #expect(try Pair.export(of: node) == pair.export, comment)
      if isDone { break }
    }
    #expect(outcomes == [false, true])
  }

  /// The error of a lost manifest names the command that rebuilds it. The node is then as before.
  @Test func theManifestIsMadeAnew() throws {
    let pair = try Pair(40)
    for name in ["manifest", "manifest.previous"] {
      try Data("nothing".utf8).write(to: URL(fileURLWithPath: pair.bench.path("a/log/" + name)))
    }
    let error = #expect(throws: NodeError.self) { try pair.bench.open("a") }
    guard case .log(.noManifest) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    let made = try Node.remakeManifest(at: pair.bench.path("a"), Node.OpeningOptions(mode: .write))
    #expect(made.files.count == 2 && made.missing == [])
    #expect(try Node.remakeManifest(at: pair.bench.path("a"), Node.OpeningOptions(mode: .write)).files == [])
    #expect(try pair.bench.open("a").digestTexts == pair.digests)
    #expect(try pair.verify().corruption.filter { $0.remedy != .none }.map(\.what) == [])
  }

  /// A rebuilt manifest listed the files that were there, and the node counted as complete.
  @Test func aSegmentThatIsLostWithTheManifestIsMissing() throws {
    let pair = try Pair(40)
    let segment = URL(fileURLWithPath: pair.bench.path("a/log/00000001.segment"))
    let bytes = try Data(contentsOf: segment)
    func loseAndRebuild() throws {
      for name in ["manifest", "manifest.previous", "00000001.segment"] {
        let path = pair.bench.path("a/log/" + name)
        if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
      }
      let made = try Node.remakeManifest(at: pair.bench.path("a"), Node.OpeningOptions(mode: .write))
      #expect(made.files.count == 1 && made.missing == ["00000001.segment"])
    }
    try loseAndRebuild()
    #expect(try !pair.bench.open("a", .read).status().isSound)
    #expect(try pair.verify().isCorrupt)
    try bytes.write(to: segment)
    let again = try Node.remakeManifest(at: pair.bench.path("a"), Node.OpeningOptions(mode: .write))
    #expect(again.files.count == 2 && again.missing == [])
    _ = try pair.repair()
    try pair.checkIsAsBefore("the file is back")
    try loseAndRebuild()
    #expect(try pair.repair().isWhole)
    try pair.checkIsAsBefore("from the peer")
  }

  /// The order of the peers decided: a corrupt one ended the repair.
  @Test func aCorruptPeerDoesNotEndTheRepair() throws {
    let pair = try Pair(40)
    let other = try pair.bench.node("c", Self.schema)
    try other.sync(pair.bench.open("b"))
    try pair.bench.seal("c")
    let segment = URL(fileURLWithPath: pair.bench.path("c/log/00000001.segment"))
    var bytes = try Data(contentsOf: segment)
    for place in bytes.count / 8..<bytes.count / 2 { bytes[place] ^= 0x5A }
    let handle = try #require(FileHandle(forWritingAtPath: segment.path))
    try handle.write(contentsOf: bytes)
    try handle.close()
    try pair.corruption("00000001.segment", at: 0.3)
    #expect(try pair.repair(from: ["c", "b"]).isWhole)
    try pair.checkIsAsBefore("from the second peer")
  }

  @Test func aFileThatTheManifestDoesNotListIsNamed() throws {
    let pair = try Pair(10)
    try Data("mine".utf8).write(to: URL(fileURLWithPath: pair.bench.path("a/log/00000088.segment")))
    let report = try pair.verify()
    #expect(!report.isCorrupt && report.corruption.map(\.remedy) == [.remove])
    #expect(report.corruption.first?.file.hasSuffix("log/00000088.segment") == true)
    #expect(try pair.bench.open("a").digestTexts == pair.digests)
  }
}
