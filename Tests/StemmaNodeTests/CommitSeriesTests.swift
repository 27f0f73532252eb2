import StemmaEvents
import StemmaNode
import Testing

/// Several commits, each durable by itself, in one transaction of the tables.
@Suite struct CommitSeriesTests {
  static let schema = "type Note @model { id: ID! text: String }"

  private struct Stop: Error {}

  private func create(_ id: String) throws -> Mutation {
    try mutation(#"{"op":"create","model":"Note","key":{"id":"\#(id)"},"fields":{"text":"\#(id)"}}"#)
  }

  @Test func commitsAreReportedInOrderWhenTheyAreDurable() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    var durable: [String] = []
    try node.series { series in
      for id in ["a", "b", "c"] {
        let mutation = try create(id)
        try series.commit(CommitNote(note: id), durable: { durable.append(id) }) {
          transaction throws(NodeError) in _ = try transaction.perform(mutation)
        }
      }
    }
    #expect(durable == ["a", "b", "c"])
    #expect(try node.history.count == 3)
    #expect(try bench.open("a", .read).fields("Note", #"{"id":"c"}"#) == #"{"text":"c"}"#)
  }

  @Test func commitsBeforeAnErrorStayAndTheTablesCatchUp() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    let (first, second) = (try create("a"), try create("b"))
    var durable = 0
    #expect(throws: NodeError.self) {
      try node.series { series in
        try series.commit(CommitNote(), durable: { durable += 1 }) { transaction throws(NodeError) in
          _ = try transaction.perform(first)
        }
        try series.commit(CommitNote(), durable: { durable += 1 }) { transaction throws(NodeError) in
          _ = try transaction.perform(second)
          _ = try transaction.perform(first)
        }
      }
    }
    #expect(durable == 1)
    // Nothing of the second commit is left, and the next one goes on behind the first.
    #expect(
      try node.commit(#"{"op":"update","model":"Note","key":{"id":"a"},"fields":{"text":"x"}}"#).count == 1)
    #expect(try node.fields("Note", #"{"id":"a"}"#) == #"{"text":"x"}"#)
    #expect(try node.fields("Note", #"{"id":"b"}"#) == nil)
    #expect(try node.history.count == 2)
  }

  @Test func anErrorOfTheCallersOwnComesThrough() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    #expect(throws: Stop.self) { try node.series { _ in throw Stop() } }
    #expect(try node.history.isEmpty)
  }
}
