import Foundation
import StemmaEvents
import StemmaReplication
import Testing

@testable import StemmaLog
@testable import StemmaNode

/// Exchanges with a peer whose corruption is not recorded yet.
@Suite struct CorruptPeerTests {
  private let bench: Bench
  private let journal: String

  /// A node `source` whose journal has twenty events, the last of them unreadable.
  init() throws {
    bench = try Bench(seed: 37)
    journal = bench.path("source/log/00000001.journal")
    let node = try bench.node("source", "type Book @model { id: ID! title: String }")
    for book in 0..<20 {
      try node.commit(#"{"op":"create","model":"Book","key":"\#(book)","fields":{"title":"of \#(book)"}}"#)
    }
    var bytes = try Data(contentsOf: URL(fileURLWithPath: journal))
    let last = try #require(bytes.lastIndex { $0 != 0 })
    bytes[last - 20] ^= 1
    let handle = try #require(FileHandle(forWritingAtPath: journal))
    try handle.write(contentsOf: bytes)
    try handle.close()
  }

  private func metadata() throws -> Data {
    try Data(contentsOf: URL(fileURLWithPath: bench.path("source/stemma.json")))
  }

  /// Log readers stop at a corrupt journal frame as at its end.
  @Test func theCorruptEndOfAJournalIsNotTheEndOfWhatThereIs() throws {
    let before = try metadata()
    let cloned = try Node.clone(
      from: bench.path("source"), to: bench.path("clone"), partitions: [], name: "clone"
    ) { _, _ in }
    let missing = try #require(cloned.missing)
    #expect(
      Explanations.text(of: missing).contains("source has lost 1 event of partition Book"), "\(missing)")
    let clone = try bench.open("clone")
    #expect(clone.metadata.unfinishedClone != nil)
    // As with recorded corruption, partitions that may lack events are left out.
    #expect(try clone.history.isEmpty)
    let report = try clone.exchange(
      with: RemotePeer(name: "source", address: bench.path("source")), pulls: true, pushes: false,
      partitions: []
    ) { _, _ in }
    #expect(report.notices.contains { $0.contains("was left out: source has lost events of it") })
    #expect(report.missing != nil)
    #expect(try bench.open("clone", .read).metadata.unfinishedClone != nil)
    #expect(try metadata() == before, "a node that is only read is not changed")
  }

  /// The digests in the tables include the lost events and equal those of an intact node.
  @Test(arguments: [true, false]) func whoReadsACorruptNodeKnowsWhatIsLost(canRecord: Bool) throws {
    let before = try metadata()
    let lock =
      canRecord
      ? nil : try WriterLock(bench.path("source/lock"), fileSystem: POSIXFileSystem(), wait: 0)
    defer { lock?.release() }
    let reader = try bench.open("source", .read)
    let partitions = try reader.digests().map(\.partition)
    #expect(partitions.count == 1)
    #expect {
      try reader.checkLogIsWhole(in: Set(partitions))
    } throws: { error in
      guard case NodeError.missing(let missing)? = error as? NodeError else { return false }
      return missing.losses.map(\.partition) == partitions && missing.isTold
    }
    #expect(reader.notices.contains { $0.contains("00000001.journal is corrupt") }, "\(reader.notices)")
    #expect(try (metadata() != before) == canRecord)
  }
}
