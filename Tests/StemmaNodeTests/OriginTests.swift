import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSimulation
import Testing

/// Cases in which a node continues under a new origin, so that no sequence number is used twice.
/// (`DirectoryTests` covers copies and purges, `RepairTests` covers lost tables with a corrupt
/// log.)
@Suite struct OriginTests {
  static let create = DirectoryTests.create

  /// Node `a` wrote 1 and 2, and `b` has both; then `a` was set back to 1.
  private func nodeThatWasSetBack() throws -> Bench {
    let bench = try Bench()
    _ = try bench.node("b", DirectoryTests.note)
    try bench.node("a", DirectoryTests.note).commit(Self.create("1"))
    let before = try bench.contents("a")
    do {
      let a = try bench.open("a")
      try a.commit(Self.create("2"))
      try a.sync(try bench.open("b"))
    }
    try bench.setBack("a", to: before)
    return bench
  }

  @Test func aTailThatWasCutBeginsANewOrigin() throws {
    let bench = try Bench()
    try { _ = try bench.node("a", DirectoryTests.note).commit(Self.create("1")) }()
    let journal = URL(fileURLWithPath: bench.path("a/log/00000001.journal"))
    try (try Data(contentsOf: journal) + Data([1, 2, 3])).write(to: journal)
    #expect(try bench.open("a").metadata.origins.count == 2)
    #expect(try bench.open("a").metadata.origins.count == 2)
  }

  /// Reading a copy of a corrupt node does not change it.
  @Test func lookingAtACorruptCopyBeginsNoOrigin() throws {
    let bench = try Bench()
    try {
      let a = try bench.node("a", DirectoryTests.note)
      for number in 1...3 { try a.commit(Self.create("\(number)")) }
    }()
    for hasTables in [true, false] {
      try bench.replace("c", with: "a")
      let journal = URL(fileURLWithPath: bench.path("c/log/00000001.journal"))
      var bytes = try Data(contentsOf: journal)
      for index in 130..<140 { bytes[bytes.startIndex + index] ^= 0x5A }
      try bytes.write(to: journal)
      if !hasTables {
        for name in try bench.contents("c").keys where name.hasPrefix("tables") {
          try FileManager.default.removeItem(atPath: bench.path("c/" + name))
        }
      }
      let before = try bench.contents("c")
      let found = try Node.verify(at: bench.path("c"), options: Node.OpeningOptions())
      #expect(found.isCorrupt)
      // Only the corruption is recorded.
      var after = try bench.contents("c")
      #expect(try bench.open("c", .read, leavesFiles: true).metadata.origins.count == 1)
      #expect(after["stemma.json"] != before["stemma.json"])
      for name in ["stemma.json", "stemma.json.copy", "lock"] { after[name] = before[name] }
      #expect(after.filter { !$0.key.hasSuffix("-shm") } == before.filter { !$0.key.hasSuffix("-shm") })
    }
  }

  @Test func aPeerThatHoldsMoreOfThisOriginBeginsANewOne() throws {
    let bench = try nodeThatWasSetBack()
    let a = try bench.open("a")
    #expect(a.metadata.origins.count == 1)
    try a.sync(try bench.open("b"))
    #expect(a.metadata.origins.count == 2)
    #expect(try a.history.count == 2)
    try a.commit(Self.create("3"))
    try a.sync(try bench.open("b"))
    #expect(try a.digestTexts == (try bench.open("b").digestTexts))
  }

  @Test func aForkIsRefusedBeginsANewOriginAndIsMendedWithoutLoss() throws {
    let bench = try nodeThatWasSetBack()
    let a = try bench.open("a")
    try a.commit(Self.create("x"))
    try a.commit(#"{"op":"update","model":"Note","key":"x","fields":{"text":"mine"}}"#)
    try a.commit(#"{"op":"update","model":"Note","key":"1","fields":{"text":"after"}}"#)
    let error = #expect(throws: NodeError.self) { try a.sync(try bench.open("b")) }
    #expect(error.map(caseName) == "replication")
    // Later events are not part of the fork.
    #expect(a.metadata.origins.count == 2)
    try a.commit(#"{"op":"update","model":"Note","key":"x","fields":{"stars":5}}"#)
    let before = try a.fields("Note", #""x""#)
    let report = try a.repairFork(with: RemotePeer(name: "b", address: bench.path("b"))) { _, _ in }
    #expect(report.events == 4)
    #expect(try a.fields("Note", #""x""#) == before)
    let b = try bench.open("b")
    try a.sync(b)
    #expect(try a.digestTexts == (try bench.open("b").digestTexts))
    #expect(try a.history.count == 6)
    #expect(try a.fields("Note", #""2""#) != nil)
    #expect(try a.conflictTexts == [])
    #expect(try Node.verify(at: bench.path("a"), options: .init()).corruption.isEmpty)
    #expect(try a.repairFork(with: RemotePeer(name: "b", address: bench.path("b"))) { _, _ in }.events == 0)
  }

  /// The process dies at each file operation of the repair, or at every fourth one, and the next
  /// action is a write.
  @Test func anInterruptedRepairOfAForkWritesNothingTwice() throws {
    let bench = try nodeThatWasSetBack()
    do {
      let a = try bench.open("a")
      try a.commit(Self.create("x"))
      try a.commit(#"{"op":"update","model":"Note","key":"x","fields":{"text":"mine"}}"#)
      try a.commit(#"{"op":"update","model":"Note","key":"1","fields":{"text":"after"}}"#)
      #expect(throws: NodeError.self) { try a.sync(try bench.open("b")) }
    }
    let (a, b) = (try bench.contents("a"), try bench.contents("b"))
    let remote = RemotePeer(name: "b", address: bench.path("b"))
    var interruptions = 0
    let step = Trials.stride(4)
    for operation in stride(from: 1, to: .max, by: step) {
      try bench.setBack("a", to: a)
      try bench.setBack("b", to: b)
      let files = FailingFileSystem()
      var isInterrupted = false
      do {
        let node = try bench.open("a", on: files)
        files.fail(from: operation)
        _ = try node.repairFork(with: remote) { _, _ in }
      } catch let error as NodeError {
        #expect(caseName(error) == "log", "operation \(operation): \(error)")
        isInterrupted = true
      }
      let comment: Comment = "the repair ended at operation \(operation)"
      let node = try bench.open("a")
      try node.commit(#"{"op":"update","model":"Note","key":"x","fields":{"stars":5}}"#)
      try node.checkInvariants()
      _ = try node.repairFork(with: remote) { _, _ in }
      try node.checkInvariants()
      let peer = try bench.open("b")
      try node.sync(peer)
      #expect(try node.history.count == 6, comment)
      #expect(try node.conflictTexts == [], comment)
      #expect(try node.fields("Note", #""2""#) != nil, comment)
      #expect(try node.fields("Note", #""x""#)?.contains(#""stars":5"#) == true, comment)
      #expect(try node.digestTexts == peer.digestTexts, comment)
      try bench.open("b").checkInvariants()
      #expect(try Node.verify(at: bench.path("a"), options: .init()).corruption.isEmpty, comment)
      if !isInterrupted { break }
      interruptions += 1
    }
    #expect(interruptions * step > 20)
  }

  @Test func readingNeverBeginsANewOrigin() throws {
    let bench = try Bench()
    try { _ = try bench.node("a", DirectoryTests.note).commit(Self.create("1")) }()
    try bench.copy("a", to: "b")
    #expect(try bench.open("b", .read).metadata.origins.count == 1)
    #expect(try bench.open("b").metadata.origins.count == 2)
  }
}
