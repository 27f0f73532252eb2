import Foundation
import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaHistory
@testable import StemmaNode

/// The cost of tables of the past, and of comparisons with it, depends on the number of later
/// changes.
@Suite struct PastTablesTests {
  private static let schema = """
    type Owner @model {
      id: ID!
      pet: Pet @hasOne(references: ["ownerID"])
    }

    type Pet @model {
      id: ID!
      name: String
      size: Int @default(value: "3")
      ownerID: ID
      owner: Owner @belongsTo(references: ["ownerID"])
    }

    type Note @model {
      folder: ID! @primaryKey(sortKeyFields: ["id"])
      id: ID!
      text: String
    }
    """

  private static func line(_ random: inout SplitMix64, _ number: Int) -> String {
    let operation = ["create", "update", "update", "delete"][Int(random.next() % 4)]
    let key = random.next() % 6
    let (model, record, fields) =
      switch random.next() % 3 {
      case 0: ("Owner", #""o\#(key % 3)""#, "{}")
      case 1: ("Pet", #""p\#(key)""#, #"{"name":"n\#(number)","ownerID":"o\#(random.next() % 3)"}"#)
      default: ("Note", #"{"folder":"f\#(key % 2)","id":"\#(key)"}"#, #"{"text":"t\#(number)"}"#)
      }
    let rest = operation == "delete" ? "" : #","fields":\#(fields)"#
    return #"{"op":"\#(operation)","model":"\#(model)","key":\#(record)\#(rest)}"#
  }

  /// Two nodes that write a few records, with deletions, and sync now and then.
  private func history(_ bench: Bench, seed: UInt64) throws -> Node {
    var random = SplitMix64(seed: seed)
    let nodes = try ["a", "b"].map { try bench.node($0, Self.schema) }
    for number in 0..<120 {
      bench.clock.set(FixedClock.start + UInt64(number) * 1000)
      let mutation = try mutation(Self.line(&random, number))
      do throws(NodeError) {
        try nodes[Int(random.next() % 2)].write { transaction throws(NodeError) in
          _ = try transaction.perform(mutation)
        }
      } catch {
        guard case .mutation = error else { throw error }
      }
      if random.next() % 12 == 0 {
        _ = try nodes[0].exchange(
          with: RemotePeer(name: "b", address: bench.path("b")), pulls: true, pushes: true, partitions: []
        ) { _, _ in }
      }
    }
    return try bench.open("a")
  }

  /// Everything that the tables show.
  private func contents(_ node: Node) throws -> [String] {
    var texts = try node.digests().map { "\($0)" }
    try node.export([]) { texts.append(String(decoding: $0, as: UTF8.self)) }
    try node.openConflicts(ConflictFilter()) { texts.append("\($0)") }
    return texts
  }

  @Test(arguments: 1...4)
  func rewoundTablesAreThoseOfARebuild(seed: UInt64) throws {
    let bench = try Bench(seed: seed, segmentSize: 2000)
    let node = try history(bench, seed: seed)
    var events: [StoredEvent] = []
    try node.forEachEvent(LogFilter(), newestFirst: false) { stored, _ in
      events.append(stored)
      return true
    }
    var random = SplitMix64(seed: seed)
    for number in 0..<8 {
      let event = events[Int(random.next() % UInt64(events.count))]
      let pointInTime: PointInTime =
        number % 2 == 0 ? .position(event.position) : .time(event.event.timestamp)
      let rebuilt = try node.withTables(asOf: pointInTime, rebuilds: true) { try contents($0) }
      #expect(try node.withTables(asOf: pointInTime) { try contents($0) } == rebuilt)
      #expect(try node.rewindTables(to: pointInTime, at: bench.path("past\(number)")))
      // Compares each point in time with another one, by record lookups and by the whole log.
      let other = PointInTime.time(events[Int(random.next() % UInt64(events.count))].event.timestamp)
      var found: [RecordDifference] = []
      try node.forEachDifference(from: pointInTime, to: other) { found.append($0) }
      var expected: [RecordDifference] = []
      try node.forEachRecord(asOf: [pointInTime, other]) { model, key, rules, states in
        if let difference = RecordDifference(model, key, from: states[0], to: states[1], rules) {
          expected.append(difference)
        }
      }
      #expect(found == expected)
    }
  }

  /// The read includes only the end of the log.
  @Test func aMomentNearTheEndReadsLittleOfTheLog() throws {
    let bench = try Bench(segmentSize: 20_000)
    let node = try bench.node("a", Self.schema)
    var random = SplitMix64(seed: 1)
    for number in 0..<150 {
      bench.clock.set(FixedClock.start + UInt64(number) * 1000)
      let text = (0..<200).map { _ in String(random.next(), radix: 36) }.joined()
      try node.commit(
        #"{"op":"create","model":"Note","key":{"folder":"f","id":"\#(number)"},"fields":{"text":"\#(text)"}}"#
      )
    }
    bench.clock.set(FixedClock.start + 200_000)
    try node.commit(
      #"{"op":"update","model":"Note","key":{"folder":"f","id":"149"},"fields":{"text":"new"}}"#)
    let files = try node.logFiles()
    #expect(files.count > 5)
    let size = files.reduce(0) { $0 + Int($1.storedBytes) }

    let system = FailingFileSystem()
    let reader = try bench.open("a", .read, on: system)
    let pointInTime = try reader.pointInTime("2023-11-14T22:15:40Z")
    func read(_ body: () throws -> Void) throws -> Int {
      let before = system.bytesRead
      try body()
      return system.bytesRead - before
    }
    var differences = 0
    let compared = try read {
      try reader.forEachDifference(from: pointInTime, to: .now) { _ in differences += 1 }
    }
    // The notes of the last ten seconds.
    #expect(differences == 9)
    #expect(compared < size / 2)
    var rows = 0
    let queried = try read {
      try reader.withTables(asOf: pointInTime) { past in
        try past.query("SELECT 1 FROM notes") { _, _ in rows += 1 }
      }
    }
    #expect(rows == 141)
    #expect(queried < size / 2)
    let rebuilt = try read { try reader.withTables(asOf: pointInTime, rebuilds: true) { _ in } }
    #expect(rebuilt > size / 2 && rebuilt > queried && rebuilt > compared)
  }
}
