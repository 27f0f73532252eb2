import Foundation
import StemmaEvents
import StemmaImport
import StemmaNode
import StemmaReplication
import StemmaSimulation
import Testing

/// A clock that shows a fixed time until it is set.
final class SetClock: Clock {
  private let now: Mutex<UInt64>
  init(_ date: String) throws { now = Mutex(try Self.milliseconds(date)) }
  func milliseconds() -> UInt64 { now.withLock { $0 } }
  func set(_ date: String) throws {
    let milliseconds = try Self.milliseconds(date)
    now.withLock { $0 = milliseconds }
  }

  private static func milliseconds(_ date: String) throws -> UInt64 {
    UInt64(try Date(date, strategy: .iso8601).timeIntervalSince1970) * 1000
  }
}

final class SeededRandom: RandomSource {
  private let generator: Mutex<SplitMix64>
  init(seed: UInt64) { generator = Mutex(SplitMix64(seed: seed)) }
  func next() -> UInt64 { generator.withLock { $0.next() } }
}

/// Nodes of the real data sets with fixed ids and times, so all output about them is reproducible.
/// They are made once per process, and tests may only read them. `STEMMA_FIXED_NODES` names a
/// folder that keeps them between runs:
///
/// - `git`: git-grdb.
/// - `a`, `b`: nodes-grdb. Both began with the base, diverged and synced.
enum FixedNodes {
  /// The folder that holds them.
  static let folder = Result { try make() }

  private static func make() throws -> String {
    PortableDeflate.isOn = true
    defer { PortableDeflate.isOn = false }
    if let kept = ProcessInfo.processInfo.environment["STEMMA_FIXED_NODES"], !kept.isEmpty {
      if !FileManager.default.fileExists(atPath: kept) {
        try fill(kept + ".partial")
        try FileManager.default.moveItem(atPath: kept + ".partial", toPath: kept)
      }
      return kept
    }
    let folder = NSTemporaryDirectory() + "/stemma-fixed-\(ProcessInfo.processInfo.processIdentifier)"
    atexit {
      if case .success(let folder) = FixedNodes.folder { try? FileManager.default.removeItem(atPath: folder) }
    }
    try fill(folder)
    return folder
  }

  private static func fill(_ folder: String) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try makeGit(folder)
    try makeNodes(folder)
  }

  private static func options(_ clock: SetClock, seed: UInt64) -> Node.OpeningOptions {
    var options = Node.OpeningOptions(mode: .write)
    options.ports = Ports(clock: clock, random: SeededRandom(seed: seed))
    return options
  }

  private static func schema(_ name: String) throws -> String {
    try String(contentsOfFile: RealData.path("\(name)/schema.graphql"), encoding: .utf8)
  }

  /// Imports each commit of a file separately. Within one import, the number of commits per journal
  /// frame depends on the speed of the machine, and pages show frames.
  private static func load(_ path: String, into node: Node, by: String) throws {
    var options = Import.Options()
    options.author = by
    // The log stores the file name and the line numbers, so both are preserved.
    let folder = NSTemporaryDirectory() + "/stemma-lines-\(UUID().uuidString)"
    let copy = URL(fileURLWithPath: folder + "/" + URL(fileURLWithPath: path).lastPathComponent)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var reader = try LineReader(path: path)
    var isAtEnd = false
    while !isAtEnd {
      options.firstLine = reader.lineNumber + 1
      var lines = Data(repeating: UInt8(ascii: "\n"), count: reader.lineNumber)
      for _ in 0..<options.batch {
        guard let line = try reader.next({ Data($0) }) else {
          isAtEnd = true
          break
        }
        lines += line + [UInt8(ascii: "\n")]
      }
      try lines.write(to: copy)
      _ = try Import(into: node, options: options).run(path: copy.path)
    }
  }

  private static func data(_ name: String) -> String { RealData.path("\(name).ndjson.gz") }

  private static func makeGit(_ folder: String) throws {
    var options = options(try SetClock("2026-01-05T09:00:00Z"), seed: 1)
    options.segmentSize = 1 << 20
    let node = try Node.create(
      at: folder + "/git", schema: try schema("git-grdb"), name: "git", options: options)
    try load(data("git-grdb/mutations"), into: node, by: "gwendal")
  }

  private static func makeNodes(_ folder: String) throws {
    // The base has no timestamps. The following changes have them, from August 2015 on.
    let clock = try SetClock("2015-07-01T09:00:00Z")
    let a = try Node.create(
      at: folder + "/a", schema: try schema("nodes-grdb"), name: "a", options: options(clock, seed: 2))
    try load(data("nodes-grdb/base"), into: a, by: "ann")
    let b = try Node.create(
      at: folder + "/b", schema: try schema("nodes-grdb"), name: "b", options: options(clock, seed: 3))
    try meet(b, a)
    try clock.set("2026-01-05T09:00:00Z")
    try load(data("nodes-grdb/node-a"), into: a, by: "ann")
    try load(data("nodes-grdb/node-b"), into: b, by: "bob")
    try meet(b, a)
  }

  // MARK: The shop

  private static let opening = """
    {"op":"create","model":"Customer","key":"ada","fields":{"name":"Ada"},"ts":1767603600}
    {"op":"create","model":"Team","key":"blue","fields":{"name":"Blue"},"ts":1767603601}
    {"op":"create","model":"Badge","key":"b7","fields":{"label":"Seven","team":"green"},"ts":1767603602}

    """
  private static let inTheShop = """
    {"op":"create","model":"Cart","key":"k2","fields":{"note":"by phone","customer":"ada"},"ts":1767607200}
    {"op":"update","model":"Customer","key":"ada","fields":{"name":"Ada Lovelace"},"ts":1767607201}
    {"op":"update","model":"Team","key":"blue","fields":{"name":"Bleu"},"ts":1767607202}

    """
  private static let inTheField = """
    {"op":"create","model":"Cart","key":"k1","fields":{"customer":"ada"},"ts":1767605400}
    {"op":"update","model":"Customer","key":"ada","fields":{"name":"Ada King"},"ts":1767605401}
    {"op":"delete","model":"Team","key":"blue","ts":1767605402}

    """

  /// Makes `shop` and `field` in a folder: small nodes that diverged and synced, with a conflict of
  /// each kind.
  static func makeShop(in folder: String) throws {
    let clock = try SetClock("2026-01-05T12:00:00Z")
    let shop = try Node.create(
      at: folder + "/shop", schema: Shop.schema, name: "shop", options: options(clock, seed: 4))
    let field = try Node.create(
      at: folder + "/field", schema: Shop.schema, name: "field", options: options(clock, seed: 5))
    let path = folder + "/lines.ndjson"
    for (lines, node, by) in [
      (opening, shop, "ann"), (inTheField, field, "bob"), (inTheShop, shop, "ann"),
    ] {
      // Both nodes know the opening, but not each other's later work.
      if node === field { try meet(field, shop) }
      try Data(lines.utf8).write(to: URL(fileURLWithPath: path))
      try load(path, into: node, by: by)
    }
    try FileManager.default.removeItem(atPath: path)
    try meet(field, shop)
  }

  private static func meet(_ node: Node, _ peer: Node) throws {
    _ = try node.exchange(
      with: RemotePeer(name: peer.metadata.name, address: peer.directory), pulls: true, pushes: true,
      partitions: [], progress: { _, _ in })
  }
}
