import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import Testing

/// A log in which events precede their causes. `verify` reports it.
@Suite struct DisorderTests {
  enum OrderViolation: CaseIterable { case seenLater, streamWithoutItsBeginning }

  @Test(arguments: OrderViolation.allCases) func whatStandsBeforeItsCausesIsToldByVerify(
    _ orderViolations: OrderViolation
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
    func verify(_ name: String) throws -> VerificationReport {
      try Node.verify(at: bench.path(name), options: Node.OpeningOptions())
    }
    try bench.append(events, to: "ordered")
    #expect(try !verify("ordered").isCorrupt)

    switch orderViolations {
    case .seenLater: try bench.append([events[1], events[0], events[2]], to: "a")
    case .streamWithoutItsBeginning:
      try bench.append(events, to: "a")
      try bench.log("a").purge({ _ in true }) { $0.event == events[0] }
    }
    let report = try verify("a")
    #expect(report.isCorrupt && report.corruption.map(\.remedy) == [.clone], "\(report.corruption)")
    let what = try #require(report.corruption.first).what
    let count = orderViolations == .seenLater ? "1 event of" : "2 events of"
    #expect(what.hasPrefix(count) && what.contains("(\(events[1].id) on \(events[0].id))"), "\(what)")
    // A stream without its beginning is not offered.
    guard orderViolations == .seenLater else { return }
    #expect(throws: NodeError.self) {
      try Node.clone(from: bench.path("a"), to: bench.path("clone"), partitions: [], name: nil) { _, _ in }
    }
  }
}
