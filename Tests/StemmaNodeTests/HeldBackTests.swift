import Foundation
import StemmaEvents
import StemmaImport
import StemmaNode
import Testing

/// Consecutive series of an import: the tables wait for the last series, the log does not.
@Suite struct HeldBackTests {
  static let schema = """
    type Note @model { id: ID! text: String }
    type Tag @model { id: ID! noteId: ID @index(name: "authorAndMessage") name: String }
    """

  /// Creates, changes and deletes of a few records, several of each.
  private static let lines = (0..<120).map { number in
    let id = number / 3
    return switch number % 3 {
    case 0: #"{"op":"create","model":"Note","key":{"id":"\#(id)"},"fields":{"text":"a\#(number)"}}"#
    case 1: #"{"op":"upsert","model":"Note","key":{"id":"\#(id / 2)"},"fields":{"text":"b\#(number)"}}"#
    default:
      number % 5 == 0
        ? #"{"op":"delete","model":"Note","key":{"id":"\#(id)"}}"#
        : #"{"op":"create","model":"Tag","key":{"id":"\#(id)"},"fields":{"noteId":"\#(id)","name":"c"}}"#
    }
  }

  /// Imports lines into a node. Each commit of ten lines is a separate series.
  @discardableResult
  private func importLines(
    _ bench: Bench, _ node: Node, _ lines: [String], memory: Int = 256 << 20,
    progress: @escaping (Import.Summary) throws -> Void = { _ in }
  ) throws -> Import.Summary {
    let path = bench.path("lines.ndjson")
    try lines.joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
    var options = Import.Options()
    options.batch = 10
    options.memory = memory
    var work = Import(into: node, options: options)
    var seconds: UInt64 = 0
    work.progress = { summary in
      seconds += 1
      bench.clock.set(FixedClock.start + seconds * 1000)
      try progress(summary)
    }
    return try work.run(path: path)
  }

  /// The rows in the tables of a node.
  private func rows(_ bench: Bench, _ name: String) throws -> [String] {
    let node = try bench.open(name, .read)
    return try ["Note", "Tag"].flatMap { model in
      try (0..<40).map { try node.fields(model, #"{"id":"\#($0)"}"#) ?? "none" }
    }
  }

  @Test func tablesThatFollowLaterAreTheSame() throws {
    let bench = try Bench()
    var waits = 0
    try importLines(bench, try bench.node("held", Self.schema), Self.lines) { _ in
      if FileManager.default.fileExists(atPath: bench.path("held/importing")) { waits += 1 }
    }
    #expect(waits > 0)
    #expect(!FileManager.default.fileExists(atPath: bench.path("held/importing")))
    // Without memory, the tables follow each series immediately.
    try importLines(bench, try bench.node("plain", Self.schema), Self.lines, memory: 0) { _ in
      #expect(!FileManager.default.fileExists(atPath: bench.path("plain/importing")))
    }
    let (held, plain) = (try rows(bench, "held"), try rows(bench, "plain"))
    #expect(held == plain)
    #expect(held.contains { $0 != "none" })
    #expect(try bench.open("held", .read).history == bench.open("plain", .read).history)
    // The tables are current, and a rebuild gives the same rows.
    try bench.open("held").checkInvariants()
    try FileManager.default.removeItem(atPath: bench.path("held/tables.sqlite"))
    #expect(try rows(bench, "held") == held)
  }

  @Test func readersSeeTheTablesAsTheyWereAndAreTold() throws {
    let bench = try Bench()
    var told = 0
    try importLines(bench, try bench.node("a", Self.schema), Self.lines) { _ in
      guard told == 0, FileManager.default.fileExists(atPath: bench.path("a/importing")) else { return }
      let reader = try bench.open("a", .read)
      #expect(reader.notices.contains { $0.description.contains("importing") })
      #expect(try reader.fields("Note", #"{"id":"0"}"#) == nil)
      told += 1
    }
    #expect(told == 1)
    let reader = try bench.open("a", .read)
    #expect(reader.notices.isEmpty)
    #expect(try reader.fields("Note", #"{"id":"0"}"#) != nil)
  }

  /// Another process writes and first applies the pending events to the tables.
  @Test func anotherWriterInBetweenFindsAllAndLosesNothing() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    let create = try (0..<3).map {
      try mutation(#"{"op":"create","model":"Note","key":{"id":"\#($0)"},"fields":{"text":"x"}}"#)
    }
    func series(_ number: Int, holdsBack: Bool) throws {
      try node.series { series in
        try series.commit(CommitMessage(), durable: {}) { transaction throws(NodeError) in
          _ = try transaction.perform(create[number])
        }
        series.holdsBack = holdsBack
      }
    }
    try series(0, holdsBack: true)
    let other = try bench.open("a")
    #expect(try other.fields("Note", #"{"id":"0"}"#) == #"{"text":"x"}"#)
    try other.commit(#"{"op":"update","model":"Note","key":{"id":"0"},"fields":{"text":"y"}}"#)
    try series(1, holdsBack: true)
    // The importing node itself can write with pending events.
    try node.commit(#"{"op":"update","model":"Note","key":{"id":"1"},"fields":{"text":"z"}}"#)
    try series(2, holdsBack: false)
    let texts = try (0..<3).map { try bench.open("a", .read).fields("Note", #"{"id":"\#($0)"}"#) }
    #expect(texts == [#"{"text":"y"}"#, #"{"text":"z"}"#, #"{"text":"x"}"#])
    #expect(try node.history.count == 5)
    try node.checkInvariants()
  }

  /// A process that dies leaves outdated tables, which are refreshed at the next opening.
  @Test func tablesCatchUpAfterAProcessThatHeldBackHasDied() throws {
    let bench = try Bench()
    var node: Node? = try bench.node("a", Self.schema)
    let create = try mutation(#"{"op":"create","model":"Note","key":{"id":"0"},"fields":{"text":"x"}}"#)
    try node?.series { series in
      try series.commit(CommitMessage(), durable: {}) { transaction throws(NodeError) in
        _ = try transaction.perform(create)
      }
      series.holdsBack = true
    }
    // Simulates the dead process: the file exists, but no process locks it.
    node = nil
    try Data().write(to: URL(fileURLWithPath: bench.path("a/importing")))
    let reader = try bench.open("a", .read)
    #expect(reader.notices.isEmpty)
    #expect(try reader.fields("Note", #"{"id":"0"}"#) == #"{"text":"x"}"#)
  }

  @Test func aRefusedLineLeavesAllBeforeIt() throws {
    let bench = try Bench()
    let again = #"{"op":"create","model":"Note","key":{"id":"5"}}"#
    let lines = Array(Self.lines[..<65]) + [again] + Self.lines[65...]
    #expect(throws: NodeError.self) { try importLines(bench, try bench.node("a", Self.schema), lines) }
    let held = try rows(bench, "a")
    try importLines(bench, try bench.node("b", Self.schema), Array(Self.lines[..<60]), memory: 0)
    #expect(try held == rows(bench, "b"))
  }

  /// Applying many events costs more than a rebuild.
  @Test func tablesThatAreFarBehindAreRebuilt() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.schema)
    try node.commit(#"{"op":"create","model":"Tag","key":{"id":"0"},"fields":{"name":"x"}}"#)
    let before = try FileManager.default.attributesOfItem(atPath: bench.path("a/tables.sqlite"))
    let creates = try (0..<5000).map {
      try mutation(#"{"op":"create","model":"Note","key":{"id":"\#($0)"},"fields":{"text":"x"}}"#)
    }
    try node.series { series in
      try series.commit(CommitMessage(), durable: {}) { transaction throws(NodeError) in
        for create in creates { _ = try transaction.perform(create) }
      }
      series.holdsBack = true
    }
    let other = try bench.open("a")
    let after = try FileManager.default.attributesOfItem(atPath: bench.path("a/tables.sqlite"))
    #expect(before[.systemFileNumber] as? Int != after[.systemFileNumber] as? Int)
    #expect(try other.fields("Note", #"{"id":"4999"}"#) == #"{"text":"x"}"#)
    try node.commit(#"{"op":"update","model":"Note","key":{"id":"0"},"fields":{"text":"y"}}"#)
    #expect(try bench.open("a", .read).fields("Note", #"{"id":"0"}"#) == #"{"text":"y"}"#)
  }
}
