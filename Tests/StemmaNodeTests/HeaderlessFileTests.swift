import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSimulation
import Testing

/// A segment has the name of another one, which is gone, and its header cannot be read: neither its name nor anything that it
/// says at its beginning tells which one it is. Its own number counted as replaced, or it was taken for the file of its name:
/// repairs, of whatever kind, ended with a log that was out of order, or never.
@Suite struct HeaderlessFileTests {
  private static let count = 4

  enum Streams: CaseIterable { case one, ofPartitions, ofOrigins }

  /// What is done to the header.
  enum Loss: CaseIterable {
    case oneByte, allBytes

    fileprivate func strike(_ bytes: inout Data) {
      switch self {
      case .oneByte: bytes[79] ^= 8
      case .allBytes: bytes.replaceSubrange(0..<80, with: Data(count: 80))
      }
    }
  }

  /// A node `a` with segments of one event each, and a journal, and `b`, which has all that `a` has.
  private struct Pair {
    let bench: Bench
    let digests: [String]
    let truth: Set<Event>

    init(_ streams: Streams) throws {
      bench = try Bench(segmentSize: 2000)
      let a = try bench.node("a", RepairTests.rows)
      let b = try bench.node("b", RepairTests.rows)
      let text = String(repeating: "text ", count: 600)
      for number in 0..<HeaderlessFileTests.count {
        let tenant = streams == .ofPartitions ? number % 2 : 0
        let (op, row) = streams == .ofOrigins ? (number == 0 ? "create" : "update", 0) : ("create", number)
        let writer = streams == .ofOrigins && number % 2 == 1 ? b : a
        try writer.commit(
          #"{"op":"\#(op)","model":"Row","key":{"tenant":"t\#(tenant)","n":\#(row)},"fields":{"text":"\#(number) \#(text)"}}"#
        )
        try a.sync(b)
        try a.sealIfWanted()
      }
      try a.commit(RepairTests.row("t0", 1000))
      try a.sync(b)
      digests = try a.digestTexts
      truth = try Self.events(of: a)
      try bench.copy("a", to: "whole")
      let names = try FileManager.default.contentsOfDirectory(atPath: bench.path("a/log")).sorted()
      #expect(names.prefix(HeaderlessFileTests.count) == HeaderlessFileTests.numbers.map(Self.name)[...])
      #expect(names.dropFirst(HeaderlessFileTests.count).map { $0.suffix(8) } == [".journal", "atermark"])
    }

    static func name(_ number: Int) -> String { "0000000\(number).segment" }

    func path(_ number: Int) -> String { bench.path("a/log/" + Self.name(number)) }

    static func events(of node: Node) throws -> Set<Event> {
      var events: Set<Event> = []
      try node.forEachEvent(LogFilter(), newestFirst: false) { stored, _ in
        events.insert(stored.event).inserted
      }
      return events
    }

    /// The log as it was, with one file under the name of another.
    func move(_ number: Int, over other: Int, _ loss: Loss) throws {
      try bench.replace("a", with: "whole")
      var bytes = try Data(contentsOf: URL(fileURLWithPath: path(number)))
      loss.strike(&bytes)
      try FileManager.default.removeItem(atPath: path(number))
      try bytes.write(to: URL(fileURLWithPath: path(other)))
    }

    func verify() throws -> Node.VerificationReport {
      try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    }

    /// Others can take the log as it is, and it can be written to.
    func checkIsGood(_ story: String) throws {
      let report = try verify()
      #expect(!report.isDamaged && report.losses.isEmpty, "\(story): \(report.damage)")
      if report.isDamaged { return }
      let a = try bench.open("a")
      try a.checkInvariants()
      let cloned = try Node.clone(
        from: a.directory, to: bench.path("clone"), partitions: [], name: nil, progress: { _, _ in })
      #expect(try cloned.events == UInt64(Self.events(of: a).count), "\(story)")
      try FileManager.default.removeItem(atPath: bench.path("clone"))
      #expect(try a.refusal(RepairTests.row("t0", 2000)) == "", "\(story)")
    }
  }

  private static var numbers: ClosedRange<Int> { 1...count }

  /// By the number that a file had, and the one that it has.
  private static func forEachMove(_ body: (_ from: Int, _ to: Int) throws -> Void) rethrows {
    for from in numbers { for to in numbers where from != to { try body(from, to) } }
  }

  @Test(arguments: Streams.allCases, Loss.allCases) func aPeerMakesTheLogWhatItWas(
    streams: Streams, loss: Loss
  ) throws {
    let pair = try Pair(streams)
    let peer = RemotePeer(name: "b", address: pair.bench.path("b"))
    Self.forEachMove { from, to in
      let story = "\(streams) \(loss) \(from) over \(to)"
      do {
        try pair.move(from, over: to, loss)
        let report = try pair.bench.open("a").repair(from: [peer]) { _, _ in }
        #expect(report.isWhole, "\(story): \(report)")
        guard report.isWhole else { return }
        #expect(try pair.bench.open("a").digestTexts == pair.digests, "\(story)")
        try pair.checkIsGood(story)
      } catch { Issue.record("\(story): \(error)") }
    }
  }

  @Test(arguments: Streams.allCases, Loss.allCases) func givingUpTakesNothingThatIsTold(
    streams: Streams, loss: Loss
  ) throws {
    try checkGivingUp(streams, loss, isRepairedBefore: false)
  }

  @Test(arguments: Streams.allCases, Loss.allCases) func aRepairWithoutAPeerLeavesNothingOutOfOrder(
    streams: Streams, loss: Loss
  ) throws {
    try checkGivingUp(streams, loss, isRepairedBefore: true)
  }

  private func checkGivingUp(_ streams: Streams, _ loss: Loss, isRepairedBefore: Bool) throws {
    let pair = try Pair(streams)
    Self.forEachMove { from, to in
      let story = "\(streams) \(loss) \(from) over \(to)"
      do {
        try pair.move(from, over: to, loss)
        if isRepairedBefore {
          let report = try pair.bench.open("a").repair(from: []) { _, _ in }
          #expect(!report.isWhole, "\(story)")
          let after = try pair.verify()
          #expect(after.isDamaged, "\(story)")
          #expect(after.damage.allSatisfy { $0.remedy == .repair }, "\(story): \(after.damage)")
          #expect(after.losses.map { $0.count } == [1], "\(story): \(after.losses)")
          let peer = RemotePeer(name: "b", address: pair.bench.path("b"))
          try pair.bench.copy("a", to: "repaired")
          #expect(try pair.bench.open("a").repair(from: [peer]) { _, _ in }.isWhole, "\(story)")
          #expect(try pair.bench.open("a").digestTexts == pair.digests, "\(story)")
          try pair.checkIsGood(story)
          try pair.bench.replace("a", with: "repaired")
          try FileManager.default.removeItem(atPath: pair.bench.path("repaired"))
        }
        let report = try pair.bench.open("a").giveUp(isDryRun: false) { _, _ in }
        #expect(report.record?.losses.map { $0.count } == [1], "\(story): \(report)")
        try pair.checkIsGood(story)
      } catch { Issue.record("\(story): \(error)") }
    }
  }
}
