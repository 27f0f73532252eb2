import Foundation
import StemmaEvents
import StemmaReplication
import Testing

@testable import StemmaLog
@testable import StemmaNode

/// Trust in segment indexes: a node trusts only indexes of logs that belong to the user who runs
/// the command.
@Suite struct BeliefTests {
  private static let schema = "type Book @model { id: ID! title: String }"

  /// The index of a segment contains a wrong event time, but all checksums match. The segment is
  /// large enough to be transferred as a whole.
  private func bench() throws -> Bench {
    let bench = try Bench(seed: 31)
    let node = try bench.node("source", Self.schema)
    let text = String(repeating: "A page of it. ", count: 4_000)
    for book in 0..<40 {
      try node.commit(#"{"op":"create","model":"Book","key":"\#(book)","fields":{"title":"\#(text)"}}"#)
    }
    try bench.seal("source")
    let log = try bench.log("source")
    let file = try #require(try log.files().first { $0.kind == .segment })
    let sealed = try #require(try log.sealedFile(at: file.positions.lowerBound)).contents().0
    var footer = sealed.footer
    footer.blocks[0].highestTimestamp = Timestamp(rawValue: footer.blocks[0].highestTimestamp.rawValue + 1)
    let encoded = footer.encoded().bytes
    var sizes = sealed.sizes
    sizes.footer = encoded.count
    let blocks = sealed.bytes.dropLast(sealed.sizes.footer + sealed.sizes.filter)
    let bytes = blocks + encoded + sealed.bytes.suffix(sealed.sizes.filter)
    let lying = try SealedContents(bytes, sizes)
    let opened = try POSIXFileSystem().open(file.path, .write)
    defer { opened.close() }
    let header = try SegmentHeader(of: opened, path: file.path, log: log.id, number: file.number)
    try opened.truncate(to: 0)
    _ = try lying.write(header, to: opened)
    let folder = bench.path("source/log")
    for name in ["manifest", "manifest.previous"] {
      try FileManager.default.removeItem(atPath: folder + "/" + name)
    }
    _ = try Log.remakeManifest(in: folder, id: log.id, fileSystem: POSIXFileSystem())
    return bench
  }

  @Test(arguments: [true, false])
  func indexesOfOthersAreComparedWithTheirBlocks(isOwn: Bool) throws {
    let bench = try bench()
    var options = Node.OpeningOptions(mode: .write)
    options.ports.fileSystem = OwnedFileSystem(isOwn: isOwn)
    options.segmentSize = 1
    let clone = {
      try Node.clone(
        from: bench.path("source"), to: bench.path("clone"), partitions: [], name: "clone", options: options
      ) { _, _ in }
    }
    guard isOwn else {
      #expect { try clone() } throws: { "\($0)".contains("times of events are not what its index says") }
      return
    }
    _ = try clone()
    #expect(try !Node.verify(at: bench.path("clone"), options: Node.OpeningOptions()).corruption.isEmpty)
  }
}

/// Real files with a chosen owner.
private struct OwnedFileSystem: FileSystem {
  let isOwn: Bool
  private let base = POSIXFileSystem()

  init(isOwn: Bool) { self.isOwn = isOwn }

  func open(_ path: String, _ access: FileAccess) throws(LogError) -> any File { try base.open(path, access) }
  func list(_ directory: String) throws(LogError) -> [String] { try base.list(directory) }
  func createDirectory(_ path: String) throws(LogError) { try base.createDirectory(path) }
  func rename(_ path: String, to target: String) throws(LogError) { try base.rename(path, to: target) }
  func remove(_ path: String) throws(LogError) { try base.remove(path) }
  func syncDirectory(_ path: String) throws(LogError) { try base.syncDirectory(path) }
  func isOwn(_ directory: String) -> Bool { isOwn }
}
