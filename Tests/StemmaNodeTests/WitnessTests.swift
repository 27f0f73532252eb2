import Foundation
import StemmaEvents
import StemmaNode
import StemmaReplication
import Testing

/// The watermark and the open journal were both deleted: nothing in the log told that anything was missing. `verify` said
/// that all was good, and the next command, a repair too, made tables that knew of nothing.
@Suite struct WitnessTests {
  private let bench: Bench
  private let digests: [String]
  private let export: [UInt8]

  /// Equal nodes "a" and "b". The last file of "a" holds three events of t0 and one of t1, and is gone, with its watermark.
  init() throws {
    bench = try Bench(seed: 51)
    let a = try bench.node("a", RepairTests.rows)
    for number in 0..<6 { try a.commit(Self.row("t\(number % 3)", number)) }
    try bench.seal("a")
    let last = try #require(try Self.journal(bench))
    for number in 10..<13 { try a.commit(Self.row("t0", number)) }
    try a.commit(Self.row("t1", 20))
    try a.sync(try bench.node("b", RepairTests.rows))
    digests = try a.digestTexts
    export = try Self.export(of: a)
    try bench.copy("a", to: "before")
    for name in [last, "watermark"] {
      try FileManager.default.removeItem(atPath: bench.path("a/log/" + name))
    }
  }

  private static func journal(_ bench: Bench) throws -> String? {
    try FileManager.default.contentsOfDirectory(atPath: bench.path("a/log")).filter {
      $0.hasSuffix(".journal")
    }.max()
  }

  private static func row(_ tenant: String, _ number: Int) -> String { RepairTests.row(tenant, number) }

  private static func export(of node: Node) throws -> [UInt8] {
    var bytes: [UInt8] = []
    try node.export([]) { bytes += $0 }
    return bytes
  }

  private func verify() throws -> Node.VerificationReport {
    try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
  }

  private var peer: RemotePeer { RemotePeer(name: "b", address: bench.path("b")) }

  private func expectLoss(_ report: Node.VerificationReport) {
    #expect(report.isDamaged && report.damage.contains { $0.what.contains("4 events that cannot be read") })
    #expect(report.losses.map(\.partition) == ["tenant=t0", "tenant=t1"])
    #expect(report.losses.map(\.from) == [3, 3] && report.losses.map(\.to) == [5, 3])
    #expect(report.events == 6 && report.commands == ["stemma repair --from PEER"])
  }

  private func removeTables() throws {
    for suffix in ["", "-wal", "-shm"] {
      let path = bench.path("a/tables.sqlite" + suffix)
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }
  }

  @Test func theTablesTellOfEventsThatNoFileHolds() throws {
    for _ in 0..<2 {
      let report = try verify()
      expectLoss(report)
      #expect(report.damage.contains { $0.file == bench.path("a/log/watermark") && $0.remedy == .write })
    }
    let origin = try bench.open("b").mark.origins
    let a = try bench.open("a")
    #expect(a.mark.origins.count == 2 && a.mark.origins != origin)
    #expect(try Self.export(of: a) == export)
    #expect(a.notices.contains { $0.contains("4 events of 2 partitions cannot be read") }, "\(a.notices)")
    #expect(throws: NodeError.self) { try a.commit(Self.row("t0", 30)) }
    #expect(throws: NodeError.self) { try a.rebuild { _, _ in } }
    try a.commit(Self.row("t2", 30))
    let report = try verify()
    #expect(report.losses.map(\.to) == [5, 3] && report.events == 7 && report.damage.count == 1)
    #expect(try bench.open("a", .read).notices.contains { $0.contains("cannot be read") })
  }

  /// Without a peer it says what is lost, again and again, also when the tables are gone by then.
  @Test func aRepairWithoutAPeerForgetsNothing() throws {
    for isWithTables in [true, true, false] {
      if !isWithTables { try removeTables() }
      let report = try bench.open("a").repair(from: []) { _, _ in }
      #expect(!report.isWhole && report.missing.map(\.to) == [5, 3])
      expectLoss(try verify())
    }
  }

  @Test func aPeerGivesThemBack() throws {
    let report = try bench.open("a").repair(from: [peer]) { _, _ in }
    #expect(report.isWhole && report.events == 4 && report.givers == ["b"])
    #expect(try bench.open("a").digestTexts == digests)
    #expect(try verify().damage.isEmpty)
    let a = try bench.open("a")
    try a.commit(Self.row("t0", 30))
    try a.sync(try bench.open("b"))
    #expect(try a.digestTexts == bench.open("b").digestTexts)
  }

  @Test func theLossIsAccepted() throws {
    let plan = try bench.open("a", .read, leavesFiles: true).giveUp(isDryRun: true) { _, _ in }
    #expect(plan.record?.events == 4)
    let report = try bench.open("a").giveUp(isDryRun: false) { _, _ in }
    #expect(report.record?.events == 4 && report.record?.standIns == 4)
    #expect(try Self.export(of: bench.open("a")) == export)
    let after = try verify()
    #expect(!after.isDamaged && after.damage.isEmpty && after.givenUp.map(\.events) == [4])
    let a = try bench.open("a")
    try a.commit(Self.row("t0", 30))
    // Who turns up with them sends them: no name stands for two events.
    try a.sync(try bench.open("b"))
    #expect(try a.digestTexts == bench.open("b").digestTexts)
    try a.checkInvariants()
  }

  @Test func filesThatArePutBackEndIt() throws {
    _ = try bench.open("a")
    #expect(try verify().isDamaged)
    for name in try bench.contents("a").keys where name.hasPrefix("log/") {
      try FileManager.default.removeItem(atPath: bench.path("a/" + name))
    }
    for (name, bytes) in try bench.contents("before") where name.hasPrefix("log/") {
      try bytes.write(to: URL(fileURLWithPath: bench.path("a/" + name)))
    }
    _ = try verify()
    #expect(try verify().damage.isEmpty)
    #expect(try bench.open("a").digestTexts == digests)
  }

  /// Without it the last commits are not known to be durable: they are counted apart.
  @Test func aMissingWatermarkIsToldAndMadeAnew() throws {
    try bench.replace("a", with: "before")
    try FileManager.default.removeItem(atPath: bench.path("a/log/watermark"))
    for isWithTables in [true, false] {
      if !isWithTables { try removeTables() }
      let report = try verify()
      #expect(report.damage.map(\.file) == [bench.path("a/log/watermark")] && !report.isDamaged)
      #expect(report.unconfirmed > 0 && report.events + report.unconfirmed == 10)
    }
    try bench.open("a").commit(Self.row("t0", 30))
    let report = try verify()
    #expect(report.damage.isEmpty && report.events == 11 && report.unconfirmed == 0)
  }
}
