import Foundation
import StemmaEvents
import StemmaLog
import StemmaImport
import StemmaNode
import Synchronization
import Testing

/// Several commits in one transaction of the tables, each durable by itself.
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
        try series.commit(CommitMessage(text: id), durable: { durable.append(id) }) {
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
        try series.commit(CommitMessage(), durable: { durable += 1 }) { transaction throws(NodeError) in
          _ = try transaction.perform(first)
        }
        try series.commit(CommitMessage(), durable: { durable += 1 }) { transaction throws(NodeError) in
          _ = try transaction.perform(second)
          _ = try transaction.perform(first)
        }
      }
    }
    #expect(durable == 1)
    // Nothing of the second commit remains, and the next one continues after the first.
    #expect(
      try node.commit(#"{"op":"update","model":"Note","key":{"id":"a"},"fields":{"text":"x"}}"#).count == 1)
    #expect(try node.fields("Note", #"{"id":"a"}"#) == #"{"text":"x"}"#)
    #expect(try node.fields("Note", #"{"id":"b"}"#) == nil)
    #expect(try node.history.count == 2)
  }

  @Test func aSeriesEndsWhenItHasKeptOthersOutForASecond() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    let other = try bench.open("a")
    let first = try create("a")
    try node.series { series in
      try series.commit(CommitMessage(), durable: {}) { transaction throws(NodeError) in
        _ = try transaction.perform(first)
      }
      #expect(throws: NodeError.self) {
        try other.commit(#"{"op":"create","model":"Note","key":{"id":"b"},"fields":{"text":"b"}}"#)
      }
      bench.clock.set(FixedClock.start + 999)
      #expect(!series.isFull)
      bench.clock.set(FixedClock.start + 1000)
      #expect(series.isFull)
    }
    try other.commit(#"{"op":"create","model":"Note","key":{"id":"b"},"fields":{"text":"b"}}"#)
    #expect(try bench.open("a", .read).history.count == 2)
  }

  /// A waiting writer gets the lock before a long import ends.
  @Test func anImportLetsOthersIn() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    let path = bench.path("lines.ndjson")
    let lines = (0..<200).map {
      #"{"op":"create","model":"Note","key":{"id":"\#($0)"},"fields":{"text":"x"}}"#
    }
    try lines.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
    var opening = Node.OpeningOptions(mode: .write)
    opening.wait = 60
    // Only the other thread uses it until that thread ends.
    nonisolated(unsafe) let other = try Node.open(at: bench.path("a"), opening)
    let isIn = Atomic(false)
    var theirs: MadeAhead<Void>?
    var options = Import.Options()
    options.batch = 1
    var work = Import(into: node, options: options)
    var seconds: UInt64 = 0
    work.progress = { _ in
      // Each commit takes a second until the other writer has written.
      if !isIn.load(ordering: .acquiring) { seconds += 1 }
      bench.clock.set(FixedClock.start + seconds * 1000)
      if theirs != nil { return }
      theirs = MadeAhead {
        do {
          try other.commit(#"{"op":"create","model":"Note","key":{"id":"theirs"},"fields":{"text":"y"}}"#)
        } catch { Issue.record(error) }
        isIn.store(true, ordering: .releasing)
      }
    }
    _ = try work.run(path: path)
    theirs?.take()
    let history = try node.history
    #expect(history.count == 201)
    #expect(history.firstIndex { $0.contains("theirs") } ?? 200 < 200)
  }

  @Test func anErrorOfTheCallersOwnComesThrough() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    #expect(throws: Stop.self) { try node.series { _ in throw Stop() } }
    #expect(try node.history.isEmpty)
  }
}
