import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import Testing

/// Files that a repair made behind a journal that was not sealed yet, and that journal sealed later: each repair wrote such
/// files anew, and the next `verify` found that two others did not name the files before them.
@Suite struct RewrittenFileTests {
  private static let rows = """
    type Row @model { tenant: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! text: String }
    """

  private static func row(_ number: Int) -> String {
    let text = String(repeating: "text ", count: 600)
    return
      #"{"op":"create","model":"Row","key":{"tenant":"t\#(number % 3)","n":\#(number)},"fields":{"text":"\#(text)"}}"#
  }

  /// A node `a` with two sealed files and a journal, or two where a process died while it sealed the first; and `b`, which
  /// has all that `a` has.
  private struct Pair {
    let bench: Bench
    /// Of the last journal.
    let number: UInt64

    init(diesSealing: Bool) throws {
      bench = try Bench(segmentSize: 2000)
      let a = try bench.node("a", RewrittenFileTests.rows)
      for number in 0..<2 {
        try a.commit(RewrittenFileTests.row(number))
        try a.sealIfWanted()
      }
      try a.commit(#"{"op":"create","model":"Row","key":{"tenant":"t9","n":1}}"#)
      try a.sync(try bench.node("b", RewrittenFileTests.rows))
      number = diesSealing ? 4 : 3
      if diesSealing {
        let log = try Log.open(in: bench.path("a/log"), id: a.mark.logID, fileSystem: POSIXFileSystem())
        _ = try log.beginSealing()
      }
      #expect(FileManager.default.fileExists(atPath: path(number, "journal")))
    }

    func path(_ number: UInt64, _ kind: String) -> String {
      bench.path("a/log/0000000\(number).\(kind)")
    }

    func write(_ bytes: Data, _ number: UInt64, _ kind: String) throws {
      try bytes.write(to: URL(fileURLWithPath: path(number, kind)))
    }

    /// The first segment with a header that cannot be read.
    var headless: Data {
      get throws {
        var bytes = try Data(contentsOf: URL(fileURLWithPath: path(1, "segment")))
        bytes[2] ^= 16
        return bytes
      }
    }

    func remove(_ name: String) throws {
      try FileManager.default.removeItem(atPath: bench.path("a/log/" + name))
    }
  }

  enum Story: CaseIterable {
    case copyWithoutHeader, missingSegmentGivenUp, lostWatermark, firstOneAndItsCopy, lostOpenJournal
  }

  @Test(arguments: Story.allCases) func everyFileNamesTheOneBeforeIt(story: Story) throws {
    let pair = try Pair(diesSealing: story == .lostOpenJournal)
    let next = pair.number + 1
    switch story {
    case .copyWithoutHeader: try pair.write(try pair.headless, next, "segment")
    case .missingSegmentGivenUp:
      try pair.remove("00000002.segment")
      try pair.write(Data(), next, "journal")
    case .lostWatermark:
      try pair.remove("watermark")
      try pair.write(Data(), next, "journal")
    case .firstOneAndItsCopy:
      let bytes = try pair.headless
      try pair.write(bytes, 1, "segment")
      try pair.write(bytes, next, "segment")
    case .lostOpenJournal: try pair.remove("0000000\(pair.number).journal")
    }
    do {
      let a = try pair.bench.open("a")
      if story == .missingSegmentGivenUp {
        #expect(try a.giveUp(isDryRun: false) { _, _ in }.record != nil)
      } else {
        let peers = [RemotePeer(name: "b", address: pair.bench.path("b"))]
        #expect(try a.repair(from: peers) { _, _ in }.isWhole)
      }
    }
    for number in 10..<16 {
      let a = try pair.bench.open("a")
      try a.commit(Self.row(number))
      try a.sealIfWanted()
      try a.checkInvariants()
      let report = try Node.verify(at: a.directory, options: Node.OpeningOptions())
      #expect(report.damage.isEmpty, "\(number): \(report.damage)")
    }
    let (a, b) = (try pair.bench.open("a"), try pair.bench.open("b"))
    try a.sync(b)
    #expect(try a.digestTexts == b.digestTexts)
  }
}
