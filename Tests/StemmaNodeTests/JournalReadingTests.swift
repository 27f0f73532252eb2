import Foundation
import StemmaEvents
import StemmaHistory
import StemmaNode
import StemmaReplication
import StemmaSimulation
import Testing

/// The amount of a sender's journal that a transfer reads.
@Suite struct JournalReadingTests {
  private static let schema = """
    type Doc @model {
      folder: ID! @primaryKey(sortKeyFields: ["id"])
      id: ID!
      text: String
    }
    """

  /// A journal that exceeds one scan chunk, with more events than a sender keeps in memory between
  /// planning and shipping.
  private func sender(_ bench: Bench) throws -> (node: Node, journal: UInt64) {
    let node = try bench.node("a", Self.schema)
    var random = SplitMix64(seed: 1)
    for number in 0..<60 {
      let text = (0..<2500).map { _ in String(random.next(), radix: 36) }.joined()
      try node.commit(
        #"{"op":"create","model":"Doc","key":{"folder":"f\#(number % 6)","id":"\#(number)"},"fields":{"text":"\#(text)"}}"#
      )
    }
    let files = try node.logFiles()
    #expect(files.count == 1 && files[0].rawBytes > UInt64(ReplicationLimits.keptJournal))
    // Includes the preallocated zeros, which a scan also reads.
    let journal = UInt64(
      try Data(contentsOf: URL(fileURLWithPath: bench.path("a/log/00000001.journal"))).count)
    #expect(journal < 2 * files[0].storedBytes)
    return (node, journal)
  }

  /// Opening, planning and shipping share one read.
  @Test(arguments: [[], ["folder=f2"]])
  func aCloneReadsTheJournalOnce(partitions: [String]) throws {
    let bench = try Bench()
    let (node, journal) = try sender(bench)
    let report = try Node.clone(
      from: bench.path("a"), to: bench.path("b"), partitions: partitions, name: "b"
    ) { _, _ in }
    #expect(report.events == (partitions.isEmpty ? 60 : 10))
    // Plus the watermark, and the header again.
    #expect(report.bytesRead >= journal && report.bytesRead <= journal + 2048)
    let scope = try Scope(patterns: partitions.isEmpty ? ["*"] : partitions)
    let copy = try bench.open("b", .read)
    #expect(try copy.digests(within: [scope]).map(\.log) == node.digests(within: [scope]).map(\.log))
  }

  @Test func aPullReadsTheJournalOnce() throws {
    let bench = try Bench()
    let (_, journal) = try sender(bench)
    let node = try bench.node("b", Self.schema)
    let report = try node.exchange(
      with: RemotePeer(name: "a", address: bench.path("a")), pulls: true, pushes: false, partitions: []
    ) { _, _ in }
    let pulled = try #require(report.pulled)
    #expect(pulled.events == 60 && pulled.bytesRead <= journal + 2048)
  }
}
