import StemmaEvents
import StemmaNode
import Testing

/// Points in history as people write them.
@Suite struct MomentTests {
  /// ⚑ The highest index that can be written has none behind it, and whoever named it in a file that was not the last one
  /// ended the program.
  @Test(arguments: ["@1.99999", "@1.\(UInt64.max)"])
  func aPositionBehindTheLastOfItsFileIsTheEndOfThatFile(text: String) throws {
    let bench = try Bench()
    try bench.node("a", "type Team @model { id: ID! name: String }").commit(
      #"{"op":"create","model":"Team","key":"t","fields":{"name":"One"}}"#,
      #"{"op":"update","model":"Team","key":"t","fields":{"name":"Two"}}"#)
    try bench.seal("a")
    let node = try bench.open("a")
    try node.commit(#"{"op":"update","model":"Team","key":"t","fields":{"name":"Three"}}"#)
    let moment = try node.moment(text)
    let model = try #require(node.schema.model(named: "Team"))
    let key = try node.key(try JSON.parse(#""t""#), of: model)

    #expect(try node.row(model, key, asOf: moment)?["fields"]?.text == #"{"name":"Two"}"#)
    let shown = try node.withTables(asOf: moment) { past in try past.fields("Team", #""t""#) }
    #expect(shown == #"{"name":"Two"}"#)
    for newestFirst in [false, true] {
      var until = LogFilter()
      until.until = moment
      #expect(try count(node, until, newestFirst: newestFirst) == 2)
      var since = LogFilter()
      since.since = moment
      #expect(try count(node, since, newestFirst: newestFirst) == 1)
      until.model = model
      until.key = key
      #expect(try count(node, until, newestFirst: newestFirst) == 2)
    }
    var texts: [String] = []
    try node.forEachDifference(from: try node.moment("@1.0"), to: moment) { difference in
      texts += difference.descriptions(node.description).map { "\($0.from.text)→\($0.to.text)" }
    }
    #expect(texts == [#""One"→"Two""#])
    #expect(try node.restoration(of: model, key: key, asOf: moment, fields: []).changes.count == 1)
    #expect(throws: NodeError.self, "no event is there") { try node.event(named: text) }
  }

  /// Neither is any event at the highest position of all.
  @Test(arguments: ["@9.\(UInt64.max)", "@\(UInt64.max).0", "@\(UInt64.max).\(UInt64.max)"])
  func aPositionBehindTheLastFileIsRefused(text: String) throws {
    let bench = try Bench()
    let node = try bench.node("a", "type Team @model { id: ID! }")
    try node.commit(#"{"op":"create","model":"Team","key":"t"}"#)
    #expect(throws: NodeError.self) { try node.moment(text) }
    #expect(throws: NodeError.self) { try node.event(named: text) }
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
