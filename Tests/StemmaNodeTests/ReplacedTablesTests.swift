import Foundation
import StemmaLog
import StemmaNode
import Synchronization
import Testing

/// Another process rebuilds the tables of a node that this process has open.
@Suite struct ReplacedTablesTests {
  private static func rebuild(_ path: String) throws {
    var options = Node.OpeningOptions(mode: .write)
    options.wait = 0
    _ = try Node.open(at: path, options).rebuild { _, _ in }
  }

  @Test func aReadGoesOnWithTheNewTables() throws {
    let bench = try Bench()
    let node = try bench.node("a", DirectoryTests.tenants)
    try node.commit(DirectoryTests.row("x"))
    let digests = try node.digestTexts
    for _ in 0..<3 {
      try Self.rebuild(node.directory)
      #expect(try node.digestTexts == digests)
    }
    try node.commit(DirectoryTests.row("y"))
    #expect(try node.history.count == 2)
  }

  @Test func anExchangeGoesOnAtAnyMoment() throws {
    let bench = try Bench()
    try { _ = try bench.node("a", DirectoryTests.tenants) }()
    try { _ = try bench.node("b", DirectoryTests.tenants) }()
    let paths = [bench.path("a"), bench.path("b")]
    let rebuilds = Mutex(0)
    var turn = 0
    while true {
      turn += 1
      let row = DirectoryTests.row("t\(turn)")
      try bench.open(turn % 2 == 0 ? "a" : "b").commit(row)
      let system = InterposedFileSystem(before: turn) {
        for path in paths {
          do {
            try Self.rebuild(path)
            rebuilds.withLock { $0 += 1 }
          } catch NodeError.log(.inUse) {} catch { Issue.record(error) }
        }
      }
      let node = try bench.open("a", on: system)
      let report = try node.exchange(
        with: RemotePeer(name: "b", address: paths[1]), pulls: true, pushes: true, partitions: [],
        progress: { _, _ in })
      #expect((report.pulled?.events ?? 0) + (report.pushed?.events ?? 0) == 1, "\(turn)")
      if !system.isOver { break }
    }
    #expect(rebuilds.withLock { $0 } > 20)
    let (a, b) = (try bench.open("a"), try bench.open("b"))
    #expect(try a.digestTexts == b.digestTexts)
    #expect(try a.history.count == turn)
  }
}

/// Real files. A hook runs before the operation with the given number.
private final class InterposedFileSystem: FileSystem {
  private let base = POSIXFileSystem()
  private let left: Mutex<Int>
  private let body: @Sendable () -> Void

  init(before turn: Int, _ body: @escaping @Sendable () -> Void) {
    left = Mutex(turn)
    self.body = body
  }

  /// Whether the hook has run.
  var isOver: Bool { left.withLock { $0 <= 0 } }

  private func count() {
    let isNow = left.withLock { left in
      left -= 1
      return left == 0
    }
    if isNow { body() }
  }

  func open(_ path: String, _ access: FileAccess) throws(LogError) -> any File {
    count()
    return try base.open(path, access)
  }
  func list(_ directory: String) throws(LogError) -> [String] {
    count()
    return try base.list(directory)
  }
  func isOwn(_ directory: String) throws(LogError) -> Bool {
    count()
    return try base.isOwn(directory)
  }
  func createDirectory(_ path: String) throws(LogError) { try base.createDirectory(path) }
  func rename(_ path: String, to target: String) throws(LogError) { try base.rename(path, to: target) }
  func remove(_ path: String) throws(LogError) { try base.remove(path) }
  func syncDirectory(_ path: String) throws(LogError) { try base.syncDirectory(path) }
}
