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
    try bench.node("a", DirectoryTests.note).commit(DirectoryTests.create("1"))
    let before = try bench.contents("a")
    let past = try bench.open("a")
    let events = try [
      #"{"op":"update","model":"Note","key":"1","fields":{"text":"b"}}"#, DirectoryTests.create("3"),
      #"{"op":"update","model":"Note","key":"3","fields":{"stars":9}}"#,
    ].flatMap { try past.rawEvents($0) }
    try past.sync(try bench.node("p", DirectoryTests.note))
    try bench.setBack("a", to: before)
    try bench.open("a").commit(#"{"op":"update","model":"Note","key":"1","fields":{"text":"a"}}"#)
    if isSealed { try bench.log("a").seal() }
    try bench.append(events, to: "a")
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
      let opened = try bench.open("a")
      #expect(try opened.history.count == 5, comment)
      let names = try opened.events.map { opened.description.name($0.dot) }
      #expect(try opened.event(named: names[3]).event.operation == .create, comment)
      let error = #expect(throws: NodeError.self) { try opened.event(named: names[1]) }
      guard case .inspection(.severalEvents(_, let found, _)) = try #require(error) else {
        throw try #require(error)
      }
      #expect(found.count == 2 && found[0].hasSuffix("@1.1") && found[1].hasSuffix(place), comment)
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

  /// A new origin built on what the tables showed, which could be of either past. The repair once left it, and its
  /// event named what the log did not have any more; then it refused, and there was no way out.
  @Test(arguments: [false, true]) func whatMayBuildOnEitherStandsBesideBoth(isSealed: Bool) throws {
    let bench = try Bench()
    try doubled(bench, isSealed: isSealed)
    let first = try #require(try bench.open("a", .read).events.last)
    let other = Origin(0xabcdef)
    func built(_ key: Key, _ number: UInt64, _ context: [Dot], _ version: UInt64, _ text: String) -> Event {
      var event = first
      event.key = key
      event.operation = .update
      event.dot = Dot(other, Sequence(number))
      event.context = .empty
      for dot in context { event.context.insert(dot) }
      event.version = Version(version)
      event.assignments = [Assignment("text", .string(text))]
      event.commit = CommitID(other, number)
      return event
    }
    let origin = first.dot.origin
    let keys = try bench.open("a", .read).events.map(\.key)
    // Note 1, which both have changed, and then again; note 3, which only the later past has.
    try bench.append(
      [
        built(keys[0], 1, [Dot(origin, Sequence(2))], 3, "c"),
        built(keys[0], 2, [Dot(origin, Sequence(2)), Dot(other, Sequence(1))], 4, "d"),
        built(keys[3], 3, [Dot(origin, Sequence(4))], 3, "e"),
      ], to: "a")
    try bench.copy("a", to: "kept")
    var interruptions = 0
    for operation in stride(from: 1, through: .max, by: isSealed ? 9 : 4) {
      try bench.replace("a", with: "kept")
      let files = FailingFileSystem()
      let node = try bench.open("a", on: files)
      files.fail(from: operation)
      do {
        let report = try node.repairDoubledNumbers { _, _ in }
        #expect(report.events == 6 && report.unsure == 3)
        break
      } catch { interruptions += 1 }
      _ = try bench.open("a").repairDoubledNumbers { _, _ in }
      try checkBoth(bench, "interrupted at \(operation)")
    }
    #expect(interruptions > 10)
    try checkBoth(bench, "at once")
    // Who holds the later past as it was comes to the same.
    let peer = RemotePeer(name: "a", address: bench.path("a"))
    #expect(try bench.open("p").repairFork(with: peer) { _, _ in }.events == 3)
    try bench.open("a").sync(try bench.open("p"))
    #expect(try bench.open("p").digestTexts == bench.open("a").digestTexts)
    try checkBoth(bench, "after a sync")
  }

  private func checkBoth(_ bench: Bench, _ comment: Comment) throws {
    #expect(try verify(bench).damage.isEmpty, comment)
    let node = try bench.open("a")
    try node.checkInvariants()
    #expect(try node.history.count == 8, comment)
    let conflicts = try node.conflictTexts
    #expect(conflicts.count == 2, comment)
    for text in ["a", "b", "d"] { #expect(conflicts.first?.contains("\"\(text)\"") == true, comment) }
    // The create of note 3 wrote that it has no text.
    #expect(conflicts.last?.contains("\"e\"") == true && conflicts.last?.contains("null") == true, comment)
    #expect(try node.fields("Note", #""3""#)?.contains("9") == true, comment)
    #expect(try node.fields("Note", #""3""#)?.contains("e") == true, comment)
    let digests = try node.digestTexts
    _ = try node.rebuild { _, _ in }
    #expect(try bench.open("a").digestTexts == digests, comment)
  }

  /// What was written before the mending was taken for a change of the later past, and what it had seen for unseen.
  @Test(arguments: [false, true]) func nothingIsWrittenOrExchangedBefore(hasLostTables: Bool) throws {
    let bench = try Bench()
    try doubled(bench, isSealed: false)
    if hasLostTables { try loseTables(bench) }
    let whole = try bench.node("q", DirectoryTests.note)
    try whole.commit(DirectoryTests.create("7"))
    func isRefused(_ body: () throws -> Void) throws {
      let error = #expect(throws: NodeError.self) { try body() }
      guard case .doubledNames(let node, let path, _, _) = try #require(error) else {
        throw try #require(error)
      }
      #expect(node == "a" && path == bench.path("a"))
    }
    try isRefused { try bench.open("a").commit(DirectoryTests.create("5")) }
    try isRefused { try bench.open("a").series { _ in } }
    for peer in ["p", "q"] {
      try isRefused { try bench.open("a").sync(try bench.open(peer)) }
      try isRefused { try bench.open(peer).sync(try bench.open("a")) }
      let remote = RemotePeer(name: "a", address: bench.path("a"))
      try isRefused { _ = try bench.open(peer).repairFork(with: remote) { _, _ in } }
      let own = RemotePeer(name: peer, address: bench.path(peer))
      try isRefused { _ = try bench.open("a").repairFork(with: own) { _, _ in } }
    }
    try isRefused {
      _ = try Node.clone(from: bench.path("a"), to: bench.path("b"), partitions: [], name: nil) { _, _ in }
    }
    #expect(!FileManager.default.fileExists(atPath: bench.path("b")))
    #expect(try bench.open("a").status().notices.contains { $0.contains("repair --fork") })
    #expect(try bench.open("a").repairDoubledNumbers { _, _ in }.events == 3)
    try check(bench, "tables lost \(hasLostTables)")
    try bench.open("a").sync(whole)
  }

  /// The first event under a name that was given before made a record, and the next one changed it: the tables had
  /// passed over the first, could not take the next, and the node could not be opened.
  @Test func aRecordThatOnlyTheLaterPastHasIsShown() throws {
    let bench = try Bench()
    _ = try bench.node("a", DirectoryTests.note)
    let before = try bench.contents("a")
    let past = try bench.open("a")
    let events = try [
      DirectoryTests.create("3"), #"{"op":"update","model":"Note","key":"3","fields":{"stars":9}}"#,
    ].flatMap { try past.rawEvents($0) }
    try bench.setBack("a", to: before)
    try bench.open("a").commit(DirectoryTests.create("1"))
    try bench.append(events, to: "a")
    #expect(try bench.open("a").fields("Note", #""3""#)?.contains("9") == true)
    #expect(try bench.open("a").repairDoubledNumbers { _, _ in }.events == 2)
    #expect(try verify(bench).damage.isEmpty)
    let node = try bench.open("a")
    try node.checkInvariants()
    #expect(try node.history.count == 3 && node.conflictTexts.isEmpty)
    #expect(try node.fields("Note", #""3""#)?.contains("9") == true)
  }

  /// A node whose tables were set back fetched again what its log had: the same events were there twice, and a repair
  /// would have taken out both.
  @Test(arguments: [false, true]) func whatIsThereTwiceStaysOnce(isSealed: Bool) throws {
    let bench = try Bench()
    let node = try bench.node("a", DirectoryTests.note)
    for key in ["1", "2", "3"] { try node.commit(DirectoryTests.create(key)) }
    let events = try node.events
    if isSealed { try bench.log("a").seal() }
    try bench.append(Array(events[1...]), to: "a")
    let damage = try verify(bench).damage
    #expect(damage.map { $0.what.contains("for the second time") } == [true])
    let report = try bench.open("a").repairDoubledNumbers { _, _ in }
    #expect(report.events == 0 && report.copies == 2)
    #expect(try verify(bench).damage.isEmpty)
    try bench.open("a").checkInvariants()
    #expect(try bench.open("a").events.map(\.dot) == events.map(\.dot))
    #expect(try bench.open("a").mark.retired.isEmpty)
    try bench.open("a").commit(DirectoryTests.create("5"))
  }
}

extension Node {
  /// As they are in the log, oldest first.
  fileprivate var events: [Event] {
    get throws {
      var events: [Event] = []
      try forEachEvent(LogFilter(), newestFirst: false) { stored, _ in
        events.append(stored.event)
        return true
      }
      return events
    }
  }
}
