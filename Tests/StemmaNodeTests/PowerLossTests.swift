import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaSimulation
import Testing

/// Power fails at each file operation of a node's life. Its own files and its log are on the
/// simulated disk; its tables, which are a cache, are on a real one. Acknowledged events, remotes
/// and schemas survive.
@Suite struct PowerLossTests {
  private static let later = DirectoryTests.note + "\ntype Later @model { id: ID! }\n"

  /// The acknowledged changes of a node.
  private struct Told {
    var isMade = false
    var keys: [String] = []
    var remotes: [String] = []
    var hasSchema = false
    var origins: [Origin] = []
  }

  private static func live(_ bench: Bench, on disk: SimulatedFileSystem, _ told: inout Told) throws {
    let node = try bench.node("a", DirectoryTests.note, on: disk)
    told.isMade = true
    told.origins = node.metadata.origins
    func commit(_ key: String) throws {
      try node.commit(DirectoryTests.create(key))
      told.keys.append(key)
    }
    try commit("1")
    try node.addRemote("p", bench.path("p"))
    told.remotes.append("p")
    try commit("2")
    _ = try node.apply(schema: Self.later)
    told.hasSchema = true
    try node.removeRemote("p")
    told.remotes = []
    try commit("3")
  }

  static func disk(for bench: Bench, seed: UInt64) throws -> SimulatedFileSystem {
    let disk = SimulatedFileSystem(seed: seed)
    var path = ""
    for part in bench.folder.split(separator: "/") {
      path += "/" + part
      try disk.createDirectory(path)
      let parent = String(path.dropLast(part.count + 1))
      try disk.syncDirectory(parent.isEmpty ? "/" : parent)
    }
    return disk
  }

  @Test func whatANodeHasConfirmedOutlivesPowerLossAtEveryOperation() throws {
    var operation = 0
    var losses = 0
    while true {
      operation += 1
      let bench = try Bench()
      _ = try bench.node("p", DirectoryTests.note)
      // The directory of SQLite's files; the simulated directory is separate.
      try FileManager.default.createDirectory(atPath: bench.path("a"), withIntermediateDirectories: true)
      let disk = try Self.disk(for: bench, seed: UInt64(operation))
      try disk.plant(at: bench.path("p"), like: bench)
      let before = disk.operations.count
      disk.inject([.init(operation: before + operation, errno: 5, isLasting: true)])
      var told = Told()
      var isInterrupted = false
      do { try Self.live(bench, on: disk, &told) } catch let error as NodeError {
        #expect(["log", "poisoned"].contains(caseName(error)), "operation \(operation): \(error)")
        isInterrupted = true
      }
      disk.crash()
      disk.checkInvariants()
      let comment: Comment = "power failed at operation \(operation), \(disk.operations.last ?? "")"
      do {
        let node = try bench.open("a", on: disk)
        for key in told.keys { #expect(try node.fields("Note", "\"\(key)\"") != nil, comment) }
        #expect(try node.history.count >= told.keys.count, comment)
        if told.hasSchema { #expect(node.schema.model(named: "Later") != nil, comment) }
        let known = node.metadata.remotes.map(\.name)
        // An interrupted change may be present or absent.
        if isInterrupted == false { #expect(known == told.remotes, comment) }
        #expect(Set(told.origins).isSubset(of: node.metadata.origins), comment)
        let numbers = try node.rawEvents(DirectoryTests.create("after")).map(\.id)
        #expect(numbers.allSatisfy { $0.origin == node.metadata.origin }, comment)
        #expect(try node.history.count >= told.keys.count + 1, comment)
        try node.checkInvariants()
      } catch NodeError.noNode, NodeError.lostMetadata {
        #expect(!told.isMade, comment)
      }
      if !isInterrupted { break }
      losses += 1
    }
    #expect(losses > 50)
  }

  /// Each operation fails once, with each error in turn, and the same node continues as far as it
  /// can. All acknowledged changes exist, also after a power loss, and no file remains open.
  @Test(arguments: stride(from: 0, to: FaultSuite.errors.count, by: Trials.stride(3)).map { $0 })
  func eachFileOperationMayFailOnce(turn: Int) throws {
    var failures = 0
    for operation in 1... {
      let bench = try Bench()
      _ = try bench.node("p", DirectoryTests.note)
      try FileManager.default.createDirectory(atPath: bench.path("a"), withIntermediateDirectories: true)
      let disk = try Self.disk(for: bench, seed: UInt64(operation))
      try disk.plant(at: bench.path("p"), like: bench)
      let (before, errno) = (
        disk.operations.count, FaultSuite.errors[(operation + turn) % FaultSuite.errors.count]
      )
      let pages = SimulatedFileSystem.DroppedPages.allCases[operation % 2]
      disk.inject([.init(operation: before + operation, errno: errno, pages: pages)])
      let comment: Comment = "operation \(operation) fails with \(errno)"
      var keys: [String] = []
      var isMade = false
      try Self.goOn(bench, on: disk, comment, &isMade, &keys)
      let isDone = disk.operations.count < before + operation
      disk.inject([])
      #expect(disk.openPaths == [], comment)
      for isAfterCrash in [false, true] {
        if isAfterCrash { disk.crash() }
        do {
          let node = try bench.open("a", on: disk)
          for key in keys { #expect(try node.fields("Note", "\"\(key)\"") != nil, comment) }
          #expect(
            node.metadata.corruption == nil && node.notices.allSatisfy { !$0.contains("corruption") }, comment
          )
          let key = "after \(isAfterCrash)"
          try node.commit(DirectoryTests.create(key))
          keys.append(key)
          try node.checkInvariants()
        } catch NodeError.noNode, NodeError.lostMetadata {
          #expect(!isMade, comment)
        }
        #expect(disk.openPaths == [], comment)
      }
      if isDone { break }
      failures += 1
    }
    #expect(failures > 50)
  }

  /// A node's life in steps, each of which may end with a disk error.
  private static func goOn(
    _ bench: Bench, on disk: SimulatedFileSystem, _ comment: Comment, _ isMade: inout Bool,
    _ keys: inout [String]
  ) throws {
    func step(_ body: () throws -> Void) throws -> Bool {
      do {
        try body()
        return true
      } catch let error as NodeError {
        #expect(["log", "poisoned"].contains(caseName(error)), "\(comment): \(error)")
        return false
      }
    }
    var made: Node?
    isMade = try step { made = try bench.node("a", DirectoryTests.note, on: disk) }
    guard let node = made else { return }
    if try step({ try node.commit(DirectoryTests.create("1")) }) { keys.append("1") }
    _ = try step { try node.addRemote("p", bench.path("p")) }
    if try step({ try node.commit(DirectoryTests.create("2")) }) { keys.append("2") }
    _ = try step { _ = try node.apply(schema: later) }
    _ = try step { try node.sealIfWanted() }
    if try step({ try node.commit(DirectoryTests.create("3")) }) { keys.append("3") }
    _ = try step { try node.checkInvariants() }
  }

  /// A node must not read written but unsynced bytes after a failed sync, because the kernel may
  /// have dropped them. Otherwise it would record corruption and make the partitions read-only.
  @Test(arguments: SimulatedFileSystem.DroppedPages.allCases)
  func whatAFailedSyncHasDroppedIsNoCorruption(pages: SimulatedFileSystem.DroppedPages) throws {
    for seed in 1...12 as ClosedRange<UInt64> {
      let bench = try Bench()
      try FileManager.default.createDirectory(atPath: bench.path("a"), withIntermediateDirectories: true)
      let disk = try Self.disk(for: bench, seed: seed)
      let node = try bench.node("a", DirectoryTests.note, on: disk)
      let journal = "fdatasync " + bench.path("a/log/00000001.journal")
      var syncedAfter = 0
      for key in ["1", "2"] {
        let before = disk.operations.count
        try node.commit(DirectoryTests.create(key))
        syncedAfter = try #require(disk.operations[before...].firstIndex(of: journal)) + 1 - before
      }
      let held = try node.history
      disk.inject([.init(operation: disk.operations.count + syncedAfter, errno: 5, pages: pages)])
      #expect(throws: NodeError.self) { try node.commit(DirectoryTests.create("3")) }
      #expect(disk.operations.last { $0.hasPrefix("fdatasync") } == journal)
      #expect(throws: NodeError.self) { try node.commit(DirectoryTests.create("4")) }
      #expect(try node.history == held && held.count == 2)
      #expect(try node.fields("Note", "\"3\"") == nil)

      let again = try bench.open("a", on: disk)
      #expect(again.metadata.corruption == nil)
      try again.commit(DirectoryTests.create("5"))
      let shown = try again.history
      #expect(shown.starts(with: held) && [3, 4].contains(shown.count))
      try again.checkInvariants()
      disk.crash()
      #expect(try bench.open("a", on: disk).history == shown)
    }
  }
}

extension SimulatedFileSystem {
  /// Copies a real node's metadata and schema, so that it can be named as a remote.
  fileprivate func plant(at directory: String, like bench: Bench) throws {
    try createDirectory(directory)
    for name in ["stemma.json", "schema.graphql"] {
      let bytes = try Data(contentsOf: URL(fileURLWithPath: directory + "/" + name))
      plant(Array(bytes), at: directory + "/" + name)
    }
    try syncDirectory(bench.folder)
  }
}
