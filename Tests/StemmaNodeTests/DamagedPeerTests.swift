import Foundation
import StemmaEvents
import StemmaReplication
import Testing

@testable import StemmaLog
@testable import StemmaNode

/// What comes from a node that is damaged, and does not know it yet.
@Suite struct DamagedPeerTests {
  /// Readers of the log stop where its journal cannot be read, as at its end.
  @Test func theDamagedEndOfAJournalIsNotTheEndOfWhatThereIs() throws {
    let bench = try Bench(seed: 37)
    let node = try bench.node("source", "type Book @model { id: ID! title: String }")
    for book in 0..<20 {
      try node.commit(#"{"op":"create","model":"Book","key":"\#(book)","fields":{"title":"of \#(book)"}}"#)
    }
    let path = bench.path("source/log/00000001.journal")
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    let last = try #require(bytes.lastIndex { $0 != 0 })
    bytes[last - 20] ^= 1
    let handle = try #require(FileHandle(forWritingAtPath: path))
    try handle.write(contentsOf: bytes)
    try handle.close()

    func isAboutTheJournal(_ error: any Error) -> Bool {
      guard let error = error as? NodeError else { return false }
      return Explanations.text(of: error).contains(path)
    }
    #expect {
      _ = try Node.clone(
        from: bench.path("source"), to: bench.path("clone"), partitions: [], name: "clone"
      ) { _, _ in }
    } throws: { isAboutTheJournal($0) }
    let clone = try bench.open("clone")
    #expect(clone.mark.unfinishedClone != nil)
    #expect(try clone.history.count == 19)
    #expect {
      _ = try clone.exchange(
        with: RemotePeer(name: "source", address: bench.path("source")), pulls: true, pushes: false,
        partitions: []
      ) { _, _ in }
    } throws: { isAboutTheJournal($0) }
    #expect(try bench.open("clone", .read).mark.unfinishedClone != nil)
  }
}
