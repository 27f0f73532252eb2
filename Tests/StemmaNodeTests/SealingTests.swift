import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import Testing

/// A segment is written while other processes write.
@Suite struct SealingTests {
  @Test func othersWriteWhileASegmentIsWritten() throws {
    let bench = try Bench(segmentSize: 1)
    _ = try bench.node("a", DirectoryTests.note)
    // One thread uses them while the other waits.
    nonisolated(unsafe) let other = try bench.open("a")
    nonisolated(unsafe) var theirs: [String] = []
    let files = InterruptedFileSystem(at: bench.path("a/log/00000001.segment.partial")) {
      do { theirs = try other.commit(DirectoryTests.create("theirs")) } catch { Issue.record(error) }
    }
    let node = try bench.open("a", on: files)
    try node.commit(DirectoryTests.create("own"))
    #expect(theirs.count == 1 && node.notices == [])
    let names = try FileManager.default.contentsOfDirectory(atPath: bench.path("a/log"))
    #expect(names.contains("00000001.segment") && !names.contains { $0.hasSuffix(".partial") })
    #expect(try node.history.count == 2 && bench.open("a", .read).history.count == 2)
    #expect(try Node.verify(at: bench.path("a"), options: .init()).corruption.isEmpty)
  }

  /// As in the library: a seal that begins with one commit ends with a later one, or at the end.
  @Test func commitsGoOnWhileASegmentIsMade() throws {
    let bench = try Bench(segmentSize: 200)
    let node = try bench.node("a", DirectoryTests.note)
    func commit(_ key: String) throws {
      let mutation = try mutation(DirectoryTests.create(key))
      let outcomes = try node.write([
        Node.CommitRequest(CommitMessage()) { transaction throws(NodeError) in
          _ = try transaction.perform(mutation)
        }
      ])
      for outcome in outcomes { try outcome.get() }
    }
    for number in 0..<40 {
      try commit("\(number)")
      let names = try FileManager.default.contentsOfDirectory(atPath: bench.path("a/log"))
      #expect(names.count { $0.hasSuffix(".journal") } <= 2)
      if number == 20 { #expect(try bench.open("a", .read).history.count == 21) }
    }
    try node.sealIfWanted()
    #expect(node.notices == [])
    let names = try FileManager.default.contentsOfDirectory(atPath: bench.path("a/log"))
    #expect(names.count { $0.hasSuffix(".journal") } == 1)
    #expect(names.count { $0.hasSuffix(".segment") } > 3)
    #expect(try node.history.count == 40)
    try node.checkInvariants()
  }
}

/// Real files. A hook runs at the first write to a new file at the given path.
private final class InterruptedFileSystem: FileSystem {
  private let base = POSIXFileSystem()
  private let path: String
  private let body: @Sendable () -> Void

  init(at path: String, _ body: @escaping @Sendable () -> Void) {
    self.path = path
    self.body = body
  }

  func open(_ path: String, _ access: FileAccess) throws(LogError) -> any File {
    let file = try base.open(path, access)
    guard path == self.path, access == .create else { return file }
    return InterruptedFile(file, body)
  }
  func list(_ directory: String) throws(LogError) -> [String] { try base.list(directory) }
  func createDirectory(_ path: String) throws(LogError) { try base.createDirectory(path) }
  func rename(_ path: String, to target: String) throws(LogError) { try base.rename(path, to: target) }
  func remove(_ path: String) throws(LogError) { try base.remove(path) }
  func syncDirectory(_ path: String) throws(LogError) { try base.syncDirectory(path) }
  func isOwn(_ directory: String) throws(LogError) -> Bool { try base.isOwn(directory) }
}

private final class InterruptedFile: File {
  private let base: any File
  private let body: Mutex<(@Sendable () -> Void)?>

  init(_ base: any File, _ body: @escaping @Sendable () -> Void) {
    self.base = base
    self.body = Mutex(body)
  }

  func write(_ bytes: [UInt8], at offset: UInt64) throws(LogError) {
    let body = body.withLock { body in
      let first = body
      body = nil
      return first
    }
    body?()
    try base.write(bytes, at: offset)
  }
  func read(at offset: UInt64, count: Int) throws(LogError) -> [UInt8] {
    try base.read(at: offset, count: count)
  }
  func sync() throws(LogError) { try base.sync() }
  func truncate(to size: UInt64) throws(LogError) { try base.truncate(to: size) }
  func size() throws(LogError) -> UInt64 { try base.size() }
  func identity() throws(LogError) -> FileIdentity { try base.identity() }
  func tryLock() throws(LogError) -> Bool { try base.tryLock() }
  func enqueue() throws(LogError) { try base.enqueue() }
  func isBehindOthers() throws(LogError) -> Bool { try base.isBehindOthers() }
  func close() { base.close() }
}
