import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSimulation
import Testing

/// A process dies during a scope change or the repair of a fork. `verify` then reports no intact
/// data as corrupt. It reports the unfinished operation and does not finish it.
@Suite struct UnfinishedDecisionTests {
  private static func row(_ tenant: String, _ number: Int) -> String {
    let text = String(repeating: "\(number * 7919 % 1000) ", count: 60)
    return
      #"{"op":"upsert","model":"Row","key":{"tenant":"\#(tenant)","n":\#(number)},"fields":{"text":"\#(text)"}}"#
  }

  /// Node `a` with several segments, and a journal that continues the same streams.
  private static func bench() throws -> Bench {
    let bench = try Bench(segmentSize: 4000)
    let a = try bench.node("a", RepairTests.schema)
    for number in 0..<30 {
      for tenant in ["t0", "t1"] { try a.commit(row(tenant, number)) }
      if number < 27 { try a.sealIfWanted() }
    }
    return bench
  }

  private static func verify(_ bench: Bench) throws -> VerificationReport {
    try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
  }

  private static func metadata(_ bench: Bench) throws -> NodeMetadata {
    try bench.open("a", .read, leavesFiles: true).metadata
  }

  /// Interrupts `change` at every third file operation and passes the result of `verify` and the
  /// metadata to `check`. The next writer finds everything in order. Returns the number of
  /// interruptions.
  private static func interrupt(
    _ bench: Bench, _ change: (Node) throws -> Void,
    _ check: (NodeMetadata, VerificationReport, Comment) throws -> Void
  ) throws -> Int {
    // A copy begins an origin, before operations are counted.
    try bench.copy("a", to: "kept")
    var deaths = 0
    for operation in stride(from: 1, to: 2000, by: 3) {
      try bench.replace("a", with: "kept")
      _ = try bench.open("a")
      let files = FailingFileSystem()
      var isDone = true
      do {
        let node = try bench.open("a", on: files)
        files.fail(from: operation)
        try change(node)
      } catch { isDone = false }
      if isDone { return deaths }
      deaths += 1
      let metadata = try metadata(bench)
      let comment: Comment = "died at operation \(operation)"
      let report = try verify(bench)
      try check(metadata, report, comment)
      #expect(try Self.metadata(bench) == metadata, comment)
      let node = try bench.open("a")
      try node.checkInvariants()
    }
    Issue.record("no end")
    return deaths
  }

  @Test func aPurgeIsNoCorruption() throws {
    let bench = try Self.bench()
    var pending = 0
    let deaths = try Self.interrupt(bench) { node in
      _ = try node.changeScope(adding: ["!tenant=t1"], removing: [], discards: true)
    } _: { metadata, report, comment in
      #expect(report.corruption.map(\.what) == [], comment)
      let isPending = metadata.pendingScope != nil
      let sentence = "a change of scope to * !tenant=t1 is unfinished; the next write finishes it"
      #expect(report.pending.map(\.description) == (isPending ? [sentence] : []), comment)
      if isPending { pending += 1 }
    }
    #expect(pending > 20 && deaths > pending)
  }

  /// Corrupt tables must not block the completion, because every later command depends on it.
  @Test func corruptTablesLetItBeFinished() throws {
    let bench = try Self.bench()
    var met = 0
    try bench.copy("a", to: "kept")
    // Until the change is pending, and for some operations after that.
    for operation in stride(from: 1, to: 2000, by: 7) {
      try bench.replace("a", with: "kept")
      _ = try bench.open("a")
      let files = FailingFileSystem()
      do {
        let node = try bench.open("a", on: files)
        files.fail(from: operation)
        _ = try node.changeScope(adding: ["!tenant=t1"], removing: [], discards: true)
        break
      } catch {}
      let metadata = try Self.metadata(bench)
      guard metadata.pendingScope != nil else { continue }
      try bench.copy("a", to: "died\(operation)")
      let size = try Data(contentsOf: URL(fileURLWithPath: bench.path("a/tables.sqlite"))).count
      let step = Trials.stride(3)
      for page in stride(from: 1 + operation % step, to: size / 4096, by: step) {
        try bench.replace("a", with: "died\(operation)")
        let tables = try FileHandle(forUpdating: URL(fileURLWithPath: bench.path("a/tables.sqlite")))
        try tables.seek(toOffset: UInt64(page * 4096))
        try tables.write(contentsOf: Data(repeating: 0x5A, count: 4096))
        try tables.close()
        let node = try bench.open("a")
        if node.notices.contains(where: { $0.hasPrefix("the tables were corrupt") }) { met += 1 }
        #expect(node.metadata.pendingScope == nil)
        // Unread corruption is still present.
        _ = try node.rebuild { _, _ in }
        try node.checkInvariants()
        #expect(try Self.verify(bench).corruption.map(\.what) == [], "operation \(operation), page \(page)")
      }
    }
    print("\(met) times corrupt tables were met")
    #expect(met * Trials.stride(3) > 5)
  }

  @Test func theMendingOfAForkIsNoCorruption() throws {
    let bench = try Bench()
    let a = try bench.node("a", DirectoryTests.note)
    try a.commit(DirectoryTests.create("1"))
    let before = try bench.contents("a")
    try a.commit(DirectoryTests.create("2"))
    try a.sync(try bench.node("p", DirectoryTests.note))
    try bench.setBack("a", to: before)
    for key in ["x", "y", "z"] {
      try bench.open("a").commit(DirectoryTests.create(key))
      try bench.seal("a")
    }
    let peer = RemotePeer(name: "p", address: bench.path("p"))
    var pending = 0
    let deaths = try Self.interrupt(bench) { node in
      _ = try node.repairFork(with: peer) { _, _ in }
    } _: { metadata, report, comment in
      #expect(report.corruption.map(\.what) == [], comment)
      let isPending = metadata.pendingFork != nil
      let sentence = "the repair of a fork is unfinished; the next write finishes it"
      #expect(report.pending.map(\.description) == (isPending ? [sentence] : []), comment)
      if isPending { pending += 1 }
    }
    #expect(pending > 20 && deaths > pending)
  }
}
