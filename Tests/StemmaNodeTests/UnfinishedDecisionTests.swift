import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import Testing

/// A process dies over a change of scope, the mending of a fork, or a giving up. `verify` of what it leaves accuses nothing
/// that is whole, says what is unfinished, and does not finish it.
@Suite struct UnfinishedDecisionTests {
  private static func row(_ tenant: String, _ number: Int) -> String {
    let text = String(repeating: "\(number * 7919 % 1000) ", count: 60)
    return
      #"{"op":"upsert","model":"Row","key":{"tenant":"\#(tenant)","n":\#(number)},"fields":{"text":"\#(text)"}}"#
  }

  /// Node `a` with several segments, and a journal that goes on with the same streams.
  private static func bench() throws -> Bench {
    let bench = try Bench(segmentSize: 4000)
    let a = try bench.node("a", GivingUpTests.schema)
    for number in 0..<30 {
      for tenant in ["t0", "t1"] { try a.commit(row(tenant, number)) }
      if number < 27 { try a.sealIfWanted() }
    }
    return bench
  }

  private static func verify(_ bench: Bench) throws -> Node.VerificationReport {
    try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
  }

  private static func mark(_ bench: Bench) throws -> NodeMark {
    try bench.open("a", .read, leavesFiles: true).mark
  }

  /// Lets `change` die at every third file operation, and gives what `verify` says of what it left, with the mark of then. The next
  /// writer finds everything in order. Returns how often it died.
  private static func interrupt(
    _ bench: Bench, _ change: (Node) throws -> Void,
    _ check: (NodeMark, Node.VerificationReport, Comment) throws -> Void
  ) throws -> Int {
    // A copy begins an origin, before anything is counted.
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
      let mark = try mark(bench)
      let comment: Comment = "died at operation \(operation)"
      let report = try verify(bench)
      try check(mark, report, comment)
      #expect(try Self.mark(bench) == mark, comment)
      let node = try bench.open("a")
      try node.checkInvariants()
      guard mark.pendingGivingUp != nil else { continue }
      let givenUp = try node.giveUp(isDryRun: false) { _, _ in }
      #expect(givenUp.record == node.mark.givenUp.last && node.mark.givenUp.count == 1, comment)
      #expect(!node.notices.contains { $0.contains("damaged") }, "\(comment): \(node.notices)")
      #expect(node.notices.last?.hasPrefix("a giving up that was interrupted is finished: ") == true, comment)
    }
    Issue.record("no end")
    return deaths
  }

  @Test func aPurgeIsNoDamage() throws {
    let bench = try Self.bench()
    var pending = 0
    let deaths = try Self.interrupt(bench) { node in
      _ = try node.changeScope(adding: ["!tenant=t1"], removing: [], discards: true)
    } _: { mark, report, comment in
      #expect(report.damage.map(\.what) == [], comment)
      let isPending = mark.pendingScope != nil
      let sentence = "a change of scope to * !tenant=t1 is unfinished; the next write finishes it"
      #expect(report.pending == (isPending ? [sentence] : []), comment)
      if isPending { pending += 1 }
    }
    #expect(pending > 20 && deaths > pending)
  }

  /// Only what was damaged before is, and the record of what is given up is there at every moment.
  @Test func aGivingUpAccusesNothingThatIsWhole() throws {
    let bench = try Self.bench()
    let segments = try bench.contents("a").keys.filter { $0.hasSuffix(".segment") }.sorted()
    try #require(segments.count > 2)
    let url = URL(fileURLWithPath: bench.path("a/" + segments[1]))
    var bytes = try Data(contentsOf: url)
    for index in 0..<40 { bytes[bytes.count / 2 + index] ^= 0x5A }
    try bytes.write(to: url)
    let losses = try Self.verify(bench).losses
    let count = losses.reduce(0) { $0 + $1.count }
    try #require(count > 1)
    var pending = 0
    let deaths = try Self.interrupt(bench) { node in
      _ = try node.giveUp(isDryRun: false) { _, _ in }
    } _: { mark, report, comment in
      #expect(report.damage.allSatisfy { $0.file.hasSuffix(segments[1]) }, "\(comment): \(report.damage)")
      if mark.pendingGivingUp == nil {
        #expect(report.givenUp.isEmpty == !report.damage.isEmpty && report.pending.isEmpty, comment)
        return
      }
      pending += 1
      let sentence =
        "giving up \(count) lost events of tenant=t0, tenant=t1, which was decided on 2023-11-14, is unfinished; the next write, "
        + "or `stemma repair --give-up`, finishes it"
      #expect(report.pending == [sentence] && report.beingGivenUp?.losses == losses, comment)
      #expect(report.commands == (report.damage.isEmpty ? [] : ["stemma repair --give-up"]), comment)
      let reader = try bench.open("a", .read)
      #expect(reader.notices == [sentence], comment)
      do throws(NodeError) {
        _ = try reader.rebuild(into: bench.path("x.sqlite"), upTo: nil) { _, _ in }
      } catch {
        #expect(Explanations.text(of: error) == sentence, comment)
      }
    }
    #expect(pending > 20 && deaths > pending)
  }

  /// With such tables nothing could be finished, nor done before that: all commands ended with the name of one of them.
  @Test(arguments: [false, true]) func damagedTablesLetItBeFinished(givesUp: Bool) throws {
    let bench = try Self.bench()
    if givesUp {
      let segment = try #require(
        bench.contents("a").keys.filter { $0.hasSuffix(".segment") }.sorted().dropFirst().first)
      let url = URL(fileURLWithPath: bench.path("a/" + segment))
      var bytes = try Data(contentsOf: url)
      for index in 0..<40 { bytes[bytes.count / 2 + index] ^= 0x5A }
      try bytes.write(to: url)
      _ = try Self.verify(bench)
    }
    var met = 0
    try bench.copy("a", to: "kept")
    // Until it is pending, and then some steps further.
    for operation in stride(from: 1, to: 2000, by: 7) {
      try bench.replace("a", with: "kept")
      _ = try bench.open("a")
      let files = FailingFileSystem()
      do {
        let node = try bench.open("a", on: files)
        files.fail(from: operation)
        if givesUp {
          _ = try node.giveUp(isDryRun: false) { _, _ in }
        } else {
          _ = try node.changeScope(adding: ["!tenant=t1"], removing: [], discards: true)
        }
        break
      } catch {}
      let mark = try Self.mark(bench)
      guard mark.pendingScope != nil || mark.pendingGivingUp != nil else { continue }
      try bench.copy("a", to: "died\(operation)")
      let size = try Data(contentsOf: URL(fileURLWithPath: bench.path("a/tables.sqlite"))).count
      for page in 1..<size / 4096 {
        try bench.replace("a", with: "died\(operation)")
        let tables = try FileHandle(forUpdating: URL(fileURLWithPath: bench.path("a/tables.sqlite")))
        try tables.seek(toOffset: UInt64(page * 4096))
        try tables.write(contentsOf: Data(repeating: 0x5A, count: 4096))
        try tables.close()
        let node = try bench.open("a")
        if node.notices.contains(where: { $0.hasPrefix("the tables were damaged") }) { met += 1 }
        #expect(node.mark.pendingScope == nil && node.mark.pendingGivingUp == nil)
        // What was not met is there still.
        _ = try node.rebuild { _, _ in }
        try node.checkInvariants()
        #expect(try Self.verify(bench).damage.map(\.what) == [], "operation \(operation), page \(page)")
      }
    }
    print("\(met) times damaged tables were met")
    #expect(met > 5)
  }

  @Test func theMendingOfAForkIsNoDamage() throws {
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
    } _: { mark, report, comment in
      #expect(report.damage.map(\.what) == [], comment)
      let isPending = mark.pendingFork != nil
      let sentence = "the mending of a fork is unfinished; the next write finishes it"
      #expect(report.pending == (isPending ? [sentence] : []), comment)
      if isPending { pending += 1 }
    }
    #expect(pending > 20 && deaths > pending)
  }
}
