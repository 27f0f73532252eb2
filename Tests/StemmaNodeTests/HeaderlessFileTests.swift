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
  fileprivate static let count = 4

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
  fileprivate struct Pair {
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

  fileprivate static var numbers: ClosedRange<Int> { 1...count }

  /// By the number that a file had, and the one that it has.
  fileprivate static func forEachMove(_ body: (_ from: Int, _ to: Int) throws -> Void) rethrows {
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

/// A segment is gone, and nothing of another one can be read that tells which it is: that one was taken for the first, and what
/// it had held itself had no place any more. Repairs ended with a log that was out of order.
@Suite struct HollowFileTests {
  enum Ruin: CaseIterable {
    case empty, zeros, noise, fewBytes, noEnds

    fileprivate func strike(_ bytes: inout Data) {
      switch self {
      case .empty: bytes = Data()
      case .zeros: bytes = Data(count: bytes.count)
      case .noise:
        var random = SplitMix64(seed: 7)
        bytes = Data((0..<bytes.count).map { _ in UInt8(truncatingIfNeeded: random.next()) })
      case .fewBytes: bytes = bytes.prefix(20)
      case .noEnds:
        // Its block stands there whole.
        bytes.replaceSubrange(0..<80, with: Data(count: 80))
        bytes.replaceSubrange((bytes.count - 40)..., with: Data(count: 40))
      }
    }
  }

  @Test(arguments: HeaderlessFileTests.Streams.allCases, Ruin.allCases) func eachIsAHoleOfItsOwn(
    streams: HeaderlessFileTests.Streams, ruin: Ruin
  ) throws {
    let pair = try HeaderlessFileTests.Pair(streams)
    let peer = RemotePeer(name: "b", address: pair.bench.path("b"))
    HeaderlessFileTests.forEachMove { gone, ruined in
      for isRepairedBefore in [false, true] {
        let story = "\(streams) \(ruin) \(ruined), \(gone) gone, \(isRepairedBefore)"
        do {
          try pair.lose(gone, and: ruined, ruin)
          if isRepairedBefore { _ = try pair.bench.open("a").repair(from: []) { _, _ in } }
          let report = try pair.bench.open("a").repair(from: [peer]) { _, _ in }
          #expect(report.isWhole, "\(story): \(report)")
          guard report.isWhole else { continue }
          #expect(try pair.bench.open("a").digestTexts == pair.digests, "\(story)")
          try pair.checkIsGood(story)
        } catch { Issue.record("\(story): \(error)") }
      }
    }
  }

  /// Its blocks tell which one it is. What it has the name of is gone, too, and nothing may take its own with it.
  @Test(arguments: [false, true]) func oneUnderAnothersNameIsKnownByItsBlocks(isRepairedBefore: Bool) throws {
    let pair = try HeaderlessFileTests.Pair(.one)
    let peer = RemotePeer(name: "b", address: pair.bench.path("b"))
    HeaderlessFileTests.forEachMove { from, to in
      // One between them would be what stands for the first.
      for third in HeaderlessFileTests.numbers where from < to && !(from...to).contains(third) {
        let story = "\(from) over \(to), \(third) empty, \(isRepairedBefore)"
        do {
          try pair.move(from, over: to, .oneByte)
          try pair.ruin(to, .noEnds)
          try pair.ruin(third, .empty)
          if isRepairedBefore { _ = try pair.bench.open("a").repair(from: []) { _, _ in } }
          let report = try pair.bench.open("a").repair(from: [peer]) { _, _ in }
          #expect(report.isWhole, "\(story): \(report)")
          guard report.isWhole else { continue }
          #expect(try pair.bench.open("a").digestTexts == pair.digests, "\(story)")
          try pair.checkIsGood(story)
        } catch { Issue.record("\(story): \(error)") }
      }
    }
  }

  /// A file that was made in the place of another one has a number behind all of them.
  @Test(arguments: [Ruin.empty, .noEnds], [false, true]) func oneThatReplacedAnotherStandsForIt(
    ruin: Ruin, isJournalSealed: Bool
  ) throws {
    let pair = try HeaderlessFileTests.Pair(.one)
    let peer = RemotePeer(name: "b", address: pair.bench.path("b"))
    for replaced in HeaderlessFileTests.numbers.dropLast() {
      for gone in HeaderlessFileTests.numbers {
        let story = "\(ruin), \(replaced) replaced, \(gone) gone, \(isJournalSealed)"
        do {
          try pair.bench.replace("a", with: "whole")
          try FileManager.default.removeItem(atPath: pair.path(replaced))
          #expect(try pair.bench.open("a").repair(from: [peer]) { _, _ in }.isWhole, "\(story)")
          if isJournalSealed { try pair.bench.seal("a") }
          if gone != replaced { try FileManager.default.removeItem(atPath: pair.path(gone)) }
          try pair.ruin(HeaderlessFileTests.count + 2, ruin)
          let report = try pair.bench.open("a").repair(from: [peer]) { _, _ in }
          #expect(report.isWhole, "\(story): \(report)")
          guard report.isWhole else { continue }
          #expect(try pair.bench.open("a").digestTexts == pair.digests, "\(story)")
          try pair.checkIsGood(story)
        } catch { Issue.record("\(story): \(error)") }
      }
    }
  }

  @Test(arguments: HeaderlessFileTests.Streams.allCases, [Ruin.empty, .noise, .noEnds])
  func givingUpTakesNoMore(
    streams: HeaderlessFileTests.Streams, ruin: Ruin
  ) throws {
    let pair = try HeaderlessFileTests.Pair(streams)
    HeaderlessFileTests.forEachMove { gone, ruined in
      let story = "\(streams) \(ruin) \(ruined), \(gone) gone"
      do {
        try pair.lose(gone, and: ruined, ruin)
        let report = try pair.bench.open("a").giveUp(isDryRun: false) { _, _ in }
        let lost = report.record?.losses.reduce(0) { $0 + $1.count }
        #expect(lost == (ruin == .noEnds ? 1 : 2), "\(story): \(report)")
        try pair.checkIsGood(story)
      } catch { Issue.record("\(story): \(error)") }
    }
  }

  /// It would be a hole that no damage tells of, before events that can be read: no command could take them in.
  @Test func nothingIsMendedAroundAHoleWithoutAFile() throws {
    let pair = try HeaderlessFileTests.Pair(.one)
    try pair.lose(1, and: 3, .noise)
    let before = try pair.bench.contents("a").filter { $0.key.hasPrefix("log/") }
    let log = try pair.bench.log("a")
    var survey = try log.survey(try log.verify(), held: nil)
    #expect(survey.lost.map(\.place) == [1, 3])
    survey.lost[0].place = nil
    let mended = try log.mend(survey, with: [Offer(Array(pair.truth))])
    #expect(mended.files.isEmpty && mended.missing.map(\.from) == survey.lost.map(\.from))
    #expect(try pair.bench.contents("a").filter { $0.key.hasPrefix("log/") } == before)
  }
}

extension HeaderlessFileTests.Pair {
  /// The log as it was, without one file, and with little of another one.
  fileprivate func lose(_ gone: Int, and ruined: Int, _ ruin: HollowFileTests.Ruin) throws {
    try bench.replace("a", with: "whole")
    try FileManager.default.removeItem(atPath: path(gone))
    try self.ruin(ruined, ruin)
  }

  fileprivate func ruin(_ number: Int, _ ruin: HollowFileTests.Ruin) throws {
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path(number)))
    ruin.strike(&bytes)
    try bytes.write(to: URL(fileURLWithPath: path(number)))
  }
}
