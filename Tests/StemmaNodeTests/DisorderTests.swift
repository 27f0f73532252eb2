import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import Testing

/// A log in which events precede their causes. `verify` reports it.
@Suite struct DisorderTests {
  enum Disorder: CaseIterable { case seenLater, streamWithoutItsBeginning }

  @Test(arguments: Disorder.allCases) func whatStandsBeforeItsCausesIsToldByVerify(
    _ disorder: Disorder
  ) throws {
    let bench = try Bench()
    let b = try bench.node("b", DirectoryTests.note)
    var events = try b.rawEvents(DirectoryTests.create("1"))
    let c = try bench.node("c", DirectoryTests.note)
    try c.sync(b)
    events += try c.rawEvents(#"{"op":"update","model":"Note","key":"1","fields":{"text":"c"}}"#)
    try b.sync(c)
    events += try b.rawEvents(#"{"op":"update","model":"Note","key":"1","fields":{"text":"b"}}"#)
    for name in ["ordered", "a"] { _ = try bench.node(name, DirectoryTests.note) }
    func verify(_ name: String) throws -> Node.VerificationReport {
      try Node.verify(at: bench.path(name), options: Node.OpeningOptions())
    }
    try bench.append(events, to: "ordered")
    #expect(try !verify("ordered").isDamaged)

    switch disorder {
    case .seenLater: try bench.append([events[1], events[0], events[2]], to: "a")
    case .streamWithoutItsBeginning:
      try bench.append(events, to: "a")
      try bench.log("a").purge({ _ in true }) { $0.event == events[0] }
    }
    let report = try verify("a")
    #expect(report.isDamaged && report.damage.map(\.remedy) == [.clone], "\(report.damage)")
    let what = try #require(report.damage.first).what
    let count = disorder == .seenLater ? "1 event of" : "2 events of"
    #expect(what.hasPrefix(count) && what.contains("(\(events[1].dot) on \(events[0].dot))"), "\(what)")
    // A stream without its beginning is not offered.
    guard disorder == .seenLater else { return }
    #expect(throws: NodeError.self) {
      try Node.clone(from: bench.path("a"), to: bench.path("clone"), partitions: [], name: nil) { _, _ in }
    }
  }
}
