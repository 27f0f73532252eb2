import StemmaEvents
import StemmaHistory
import StemmaNode
import Testing

/// Points in history as users write them.
@Suite struct PointInTimeTests {
  @Test(arguments: ["@2", "@100000", "@\(UInt64.max - 1)", "@\(UInt64.max)"])
  func aPositionBehindTheLastEventIsRefused(text: String) throws {
    let bench = try Bench()
    let node = try bench.node("a", "type Team @model { id: ID! }")
    try node.commit(#"{"op":"create","model":"Team","key":"t"}"#)
    #expect(throws: NodeError.self) { try node.pointInTime(text) }
    #expect(throws: NodeError.self) { try node.event(named: text) }
  }

  /// `undo 5718` took an event whose digest begins so, where position 5718 was meant.
  @Test(arguments: ["2024", "5718", "1234567"]) func fewDigitsAreNoDigest(text: String) throws {
    let node = try Bench().node("a", "type Team @model { id: ID! }")
    #expect {
      try node.event(named: text)
    } throws: { error in
      if case NodeError.inspection(.notAnEvent) = error { true } else { false }
    }
  }

  private func count(_ node: Node, _ filter: LogFilter, newestFirst: Bool) throws -> Int {
    var count = 0
    try node.forEachEvent(filter, newestFirst: newestFirst) { _, _ in
      count += 1
      return true
    }
    guard filter.needsNoEvents else { return count }
    var scanned = 0
    try node.scan(filter, newestFirst: newestFirst) { _ in
      scanned += 1
      return true
    }
    #expect(scanned == count)
    return count
  }
}
