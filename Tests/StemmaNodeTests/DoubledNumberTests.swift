import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import Testing

/// A log that has numbers of a stream twice, as a machine that was set back could leave it before writers noticed such
/// tables: nothing could be rebuilt, sealed or sent any more, and nobody said what to do.
@Suite struct DoubledNumberTests {
  /// Note 1 with a text, and behind that three events of another past, which gave it another text, made note 3 and
  /// changed it. Node "p" knows that past.
  private func doubled(_ bench: Bench, isSealed: Bool) throws {
    let node = try bench.node("a", DirectoryTests.note)
    try node.commit(DirectoryTests.create("1"))
    let before = try bench.contents("a")
    let past = try bench.open("a")
    let events = try [
      #"{"op":"update","model":"Note","key":"1","fields":{"text":"b"}}"#, DirectoryTests.create("3"),
      #"{"op":"update","model":"Note","key":"3","fields":{"stars":9}}"#,
    ].flatMap { try past.rawEvents($0) }
    try past.sync(try bench.node("p", DirectoryTests.note))
    try bench.setBack("a", to: before)
    try bench.open("a").commit(#"{"op":"update","model":"Note","key":"1","fields":{"text":"a"}}"#)
    let log = try Log.open(
      in: bench.path("a/log"), id: node.mark.logID, fileSystem: POSIXFileSystem(),
      options: Log.Options(mode: .readWrite))
    if isSealed { try log.seal() }
    try log.append(events.map { Commit([$0]) })
    try log.sync()
  }

  private func loseTables(_ bench: Bench) throws {
    for name in ["tables.sqlite", "tables.sqlite-wal", "tables.sqlite-shm"] {
      let path = bench.path("a/" + name)
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }
  }

  private func verify(_ bench: Bench) throws -> Node.VerificationReport {
    try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
  }

  /// That all of both pasts is there, once.
  private func check(_ bench: Bench, _ comment: Comment) throws {
    #expect(try verify(bench).damage.isEmpty, comment)
    let node = try bench.open("a")
    try node.checkInvariants()
    #expect(try node.history.count == 5, comment)
    #expect(try node.fields("Note", #""3""#)?.contains("9") == true, comment)
    #expect(try node.conflictTexts.map { $0.contains(#""a""#) && $0.contains(#""b""#) } == [true], comment)
    let digests = try node.digestTexts
    _ = try node.rebuild { _, _ in }
    #expect(try bench.open("a").digestTexts == digests, comment)
  }

  @Test(arguments: [(false, false), (true, false), (false, true), (true, true)])
  func whatCameLaterIsWrittenAgain(isSealed: Bool, hasLostTables: Bool) throws {
    let bench = try Bench()
    try doubled(bench, isSealed: isSealed)
    if hasLostTables { try loseTables(bench) }
    let comment: Comment = "sealed \(isSealed), tables lost \(hasLostTables)"
    for _ in 0..<2 {
      let report = try verify(bench)
      #expect(report.commands == ["stemma repair --fork"], comment)
      let place = isSealed ? "@2.0" : "@1.2"
      #expect(report.damage.map { $0.what.contains(place) && $0.what.contains("@1.1") } == [true], comment)
      // Reading goes on; the second round is about a node that somebody has opened.
      #expect(try bench.open("a").history.count == 5, comment)
    }
    #expect(try bench.open("a").repairDoubledNumbers { _, _ in }.events == 3, comment)
    try check(bench, comment)
    #expect(try bench.open("a").repairDoubledNumbers { _, _ in }.events == 0, comment)
    // Who holds the other past under its old names does the same, and all is there once.
    let error = #expect(throws: NodeError.self) { try bench.open("a").sync(try bench.open("p")) }
    guard case .replication(let reason) = try #require(error) else { throw try #require(error) }
    #expect(reason.fork != nil)
    let peer = RemotePeer(name: "a", address: bench.path("a"))
    #expect(try bench.open("p").repairFork(with: peer) { _, _ in }.events == 3, comment)
    try bench.open("a").sync(try bench.open("p"))
    try check(bench, comment)
    #expect(try bench.open("p").digestTexts == bench.open("a").digestTexts, comment)
    try bench.open("a").commit(DirectoryTests.create("5"))
  }

  @Test(arguments: [false, true]) func anInterruptedRepairIsRepeated(isSealed: Bool) throws {
    let bench = try Bench()
    try doubled(bench, isSealed: isSealed)
    try bench.copy("a", to: "kept")
    var interruptions = 0
    for operation in 1... {
      try bench.replace("a", with: "kept")
      let files = FailingFileSystem()
      let node = try bench.open("a", on: files)
      files.fail(from: operation)
      do {
        _ = try node.repairDoubledNumbers { _, _ in }
        break
      } catch { interruptions += 1 }
      _ = try bench.open("a").repairDoubledNumbers { _, _ in }
      try check(bench, "interrupted at \(operation)")
    }
    #expect(interruptions > 20)
  }

  /// A new origin builds on what the tables show, and its context could mean events of either past: then nothing is
  /// renamed or removed.
  @Test func whatBuildsOnBothIsLeftAsItIs() throws {
    let bench = try Bench()
    try doubled(bench, isSealed: false)
    try bench.copy("a", to: "copy")
    try bench.open("copy").commit(#"{"op":"update","model":"Note","key":"3","fields":{"stars":4}}"#)
    let error = #expect(throws: NodeError.self) {
      try bench.open("copy").repairDoubledNumbers { _, _ in }
    }
    guard case .damaged = try #require(error) else { throw try #require(error) }
    #expect(try bench.open("copy").history.count == 6)
    #expect(try bench.open("copy").fields("Note", #""3""#)?.contains("4") == true)
    // A repair with a peer would give both events of a name the same new one.
    let peer = RemotePeer(name: "p", address: bench.path("p"))
    #expect(throws: NodeError.self) { try bench.open("a").repairFork(with: peer) { _, _ in } }
    #expect(try bench.open("a").repairDoubledNumbers { _, _ in }.events == 3)
    try check(bench, "after a refusal")
  }
}
