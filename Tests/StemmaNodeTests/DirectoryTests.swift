import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSimulation
import Testing

@Suite struct DirectoryTests {
  static let note = WritingTests.note
  static func create(_ key: String) -> String { #"{"op":"create","model":"Note","key":"\#(key)"}"# }

  /// A lock for the lifetime of a process would exclude scripts while an application has the node
  /// open.
  @Test func twoInstancesWriteInTurn() throws {
    let bench = try Bench()
    let a = try bench.node("a", Self.note)
    let b = try bench.open("a")
    for round in 0..<3 {
      try a.commit(Self.create("a\(round)"))
      try b.commit(Self.create("b\(round)"))
      #expect(try a.refusal(Self.create("b\(round)")) == "alreadyExists")
    }
    #expect(try a.history == (try b.history))
    #expect(try a.history.count == 6)
  }

  @Test func aLockThatIsHeldForTooLongIsReported() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.note)
    let lock = try WriterLock(bench.path("a/lock"), fileSystem: POSIXFileSystem(), wait: 0, pid: 4711)
    let error = #expect(throws: NodeError.self) { try node.commit(Self.create("n")) }
    guard case .log(.inUse(_, pid: 4711)) = error else {
      Issue.record("not in use but \(String(describing: error))")
      return
    }
    lock.release()
    #expect(try node.commit(Self.create("n")).count == 1)
  }

  /// A directory in place of the copy of `stemma.json` must not block changes or `verify`.
  @Test(arguments: ["directory", "link", "pipe"]) func aCopyOfTheMarkThatIsNoFileIsMadeAnew(kind: String)
    throws
  {
    let bench = try Bench()
    _ = try bench.node("p", Self.note)
    let node = try bench.node("a", Self.note)
    let copy = bench.path("a/stemma.json.copy")
    try FileManager.default.removeItem(atPath: copy)
    switch kind {
    case "directory":
      try FileManager.default.createDirectory(atPath: copy, withIntermediateDirectories: false)
    case "link": try FileManager.default.createSymbolicLink(atPath: copy, withDestinationPath: "nowhere")
    default: #expect(mkfifo(copy, 0o600) == 0)
    }
    let corruption = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).corruption
    #expect(corruption.map(\.file) == [copy])
    try node.addRemote("p", bench.path("p"))
    #expect(try Data(contentsOf: URL(fileURLWithPath: copy)) == bench.contents("a")["stemma.json"])
    #expect(try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).corruption.isEmpty)
  }

  @Test func tablesCatchUpAfterAnOlderCopyTookTheirPlace() throws {
    let bench = try Bench()
    try bench.node("a", Self.note).commit(Self.create("1"))
    let older = try bench.contents("a").filter { $0.key.hasPrefix("tables.sqlite") }
    let digests = try { () throws -> [String] in
      let node = try bench.open("a")
      try node.commit(Self.create("2"))
      return try node.digestTexts
    }()
    for name in try bench.contents("a").keys where name.hasPrefix("tables.sqlite") {
      try FileManager.default.removeItem(atPath: bench.path("a/" + name))
    }
    for (name, bytes) in older { try bytes.write(to: URL(fileURLWithPath: bench.path("a/" + name))) }
    #expect(try bench.open("a").digestTexts == digests)
  }

  @Test func aFailedExchangeThatCannotBeRecordedIsANotice() throws {
    let bench = try Bench()
    let files = FailingFileSystem()
    try { _ = try bench.node("b", Self.note) }()
    let node = try bench.node("a", Self.note, on: files)
    try node.addRemote("b", bench.path("b"))
    let before = node.notices
    files.fail(from: 1)
    #expect(throws: NodeError.self) {
      try node.exchange(
        with: node.metadata.remotes[0], pulls: true, pushes: false, partitions: [], progress: { _, _ in })
    }
    #expect(node.notices.count == before.count + 1)
  }

  /// The log was restored from a backup, but not the tables, so they hold events that the log
  /// lacks.
  @Test func aRestoredOlderLogIsNoticedByTheTables() throws {
    let bench = try Bench()
    try bench.node("a", Self.note).commit(Self.create("1"))
    try bench.copy("a/log", to: "backup")
    try bench.open("a").commit(Self.create("2"))
    try bench.replace("a/log", with: "backup")
    let corruption = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).corruption
    #expect(
      corruption.count == 1 && corruption[0].what.contains("1 event that the log does not have"),
      "\(corruption)")
    let node = try bench.open("a")
    #expect(node.notices.contains { $0.contains("lacks 1 event that the tables had applied") })
    #expect(try node.history == [#"create Note 1 {"stars":3}"#])
    #expect(try node.fields("Note", #""2""#) == nil)
    #expect(try node.digestTexts.count == 1)
  }

  /// Only the tables reveal the change, because files and inodes are the same.
  @Test(arguments: [true, false]) func numbersOfALogThatWasSetBackInPlaceAreNotUsedAgain(isCut: Bool) throws {
    let bench = try Bench()
    let names = ["00000001.journal", "watermark"]
    func contents(_ name: String) throws -> Data {
      try Data(contentsOf: URL(fileURLWithPath: bench.path("a/log/" + name)))
    }
    var origin: Origin?
    do {
      let a = try bench.node("a", Self.note)
      try a.commit(Self.create("1"))
      origin = a.metadata.origin
    }
    let before = try names.map { try contents($0) }
    try bench.open("a").commit(Self.create("2"))
    for (name, bytes) in zip(names, before) where !isCut || name != "watermark" {
      let handle = try #require(FileHandle(forWritingAtPath: bench.path("a/log/" + name)))
      try handle.truncate(atOffset: 0)
      try handle.write(contentsOf: bytes)
      try handle.close()
    }
    if isCut { try FileManager.default.removeItem(atPath: bench.path("a/log/watermark")) }
    #expect(try !Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).corruption.isEmpty)
    let reader = try bench.open("a", .read)
    #expect(reader.notices.contains { $0.contains("lacks 1 event that the tables had applied") })
    let node = try bench.open("a")
    #expect(node.metadata.origin != origin)
    try node.commit(Self.create("3"))
    #expect(try node.history.count == 2)
  }

  /// The position alone matches: the restored log grew by as much as it had lost, with other
  /// events.
  @Test func aRestoredLogThatGrewAgainIsNoticedByItsChain() throws {
    let bench = try Bench()
    try bench.node("a", Self.note).commit(Self.create("1"))
    try bench.copy("a", to: "backup")
    try bench.open("a").commit(Self.create("2"))
    try bench.copy("a", to: "later")
    try bench.replace("a", with: "backup")
    try bench.open("a").commit(Self.create("3"))
    for name in try bench.contents("later").keys where name.hasPrefix("tables.sqlite") {
      try bench.replace("a/" + name, with: "later/" + name)
    }
    let node = try bench.open("a")
    #expect(try node.fields("Note", #""2""#) == nil)
    #expect(try node.fields("Note", #""3""#) != nil)
  }

  /// Otherwise both would continue the sequence of one origin.
  @Test func aCopiedDirectoryWritesAsANewOriginAndSyncsWithoutLoss() throws {
    let bench = try Bench()
    let a = try bench.node("a", Self.note)
    try a.commit(Self.create("1"))
    try bench.copy("a", to: "b")
    let b = try bench.open("b")
    #expect(b.metadata.origin != a.metadata.origin)
    try a.commit(Self.create("2"))
    try b.commit(Self.create("3"))
    try a.sync(b)
    #expect(try a.history.count == 3)
    #expect(try a.digestTexts == (try bench.open("b").digestTexts))
  }

  @Test func openingForReadingChangesNothing() throws {
    let bench = try Bench()
    try { _ = try bench.node("a", Self.note).commit(Self.create("1")) }()
    try bench.copy("a", to: "b")
    _ = try bench.open("a", .read).history
    let before = try bench.contents("a")
    let copy = try bench.contents("b")
    _ = try bench.open("a", .read).history
    let reader = try bench.open("b", .read)
    #expect(try reader.fields("Note", #""1""#) != nil)
    #expect(try bench.contents("a") == before)
    let after = try bench.contents("b")
    for (name, bytes) in copy where !name.hasSuffix("-shm") { #expect(after[name] == bytes, "\(name)") }
  }

  @Test func modelsAndFieldsOfANewerPeerAppearWithTheSchema() throws {
    let bench = try Bench()
    let newer = Self.note.dropLast() + " mood: String } type Tag @model { id: ID! }"
    let a = try bench.node("a", String(newer))
    let b = try bench.node("b", Self.note)
    let c = try bench.node("c", String(newer))
    try a.commit(
      #"{"op":"create","model":"Note","key":"n","fields":{"mood":"good"}}"#,
      #"{"op":"create","model":"Tag","key":"t"}"#)
    try b.sync(a)
    try b.sync(c)
    #expect(try c.digestTexts == (try a.digestTexts))
    #expect(try b.fields("Note", #""n""#) == #"{"text":null,"stars":3}"#)
    _ = try b.apply(schema: String(newer))
    #expect(try b.fields("Note", #""n""#) == #"{"text":null,"stars":3,"mood":"good"}"#)
    #expect(try b.fields("Tag", #""t""#) == "{}")
    #expect(try b.digestTexts == (try a.digestTexts))
  }

  // MARK: Scope

  static let tenants = "type Row @model { tenant: ID! @primaryKey(sortKeyFields: [\"n\"]) n: Int! }"
  static func row(_ tenant: String) -> String {
    #"{"op":"create","model":"Row","key":{"tenant":"\#(tenant)","n":1}}"#
  }

  /// Otherwise a sequence number could be used twice after the purge.
  @Test func aPurgeOfOwnWritesBeginsANewOrigin() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.tenants)
    try node.commit(Self.row("x"), Self.row("y"))
    let origin = node.metadata.origin
    #expect(throws: NodeError.self) {
      try node.changeScope(adding: ["!tenant=x"], removing: [], discards: false)
    }
    #expect(try node.changeScope(adding: ["!tenant=x"], removing: [], discards: true) == ["tenant=x"])
    #expect(node.metadata.origin != origin)
    #expect(try node.history == ["create Row tenant=y n=1"])
    #expect(try node.fields("Row", #"{"tenant":"x","n":1}"#) == nil)
    #expect(try node.refusal(Self.row("x")) == "outsideScope")
    #expect(try node.commit(#"{"op":"create","model":"Row","key":{"tenant":"y","n":2}}"#).count == 1)
  }

  /// Otherwise two nodes could both purge because the other one holds the events.
  @Test func whatAPeerHasPurgedIsNotConfirmedAnyMore() throws {
    let bench = try Bench()
    let (a, b) = (try bench.node("a", Self.tenants), try bench.node("b", Self.tenants))
    try a.commit(Self.row("x"), Self.row("y"))
    try a.sync(b)
    #expect(try b.changeScope(adding: ["!tenant=x"], removing: [], discards: false) == ["tenant=x"])
    try a.sync(b)
    #expect(throws: NodeError.self) {
      try a.changeScope(adding: ["!tenant=x"], removing: [], discards: false)
    }
    #expect(try a.changeScope(adding: ["!tenant=y"], removing: [], discards: false) == ["tenant=y"])
    // The same applies if the partition is in its scope again but empty.
    _ = try b.changeScope(adding: [], removing: ["!tenant=x"], discards: false)
    _ = try a.exchange(
      with: RemotePeer(name: "b", address: b.directory), pulls: true, pushes: false, partitions: []
    ) {
      _, _ in
    }
    #expect(throws: NodeError.self) {
      try a.changeScope(adding: ["!tenant=x"], removing: [], discards: false)
    }
    try a.sync(b)
    #expect(try a.changeScope(adding: ["!tenant=x"], removing: [], discards: false) == ["tenant=x"])
  }

  /// Each of the two nodes has the confirmation of the other.
  @Test func theLastTwoCopiesAreNotBothPurged() throws {
    for firstIsMaker in [true, false] {
      let bench = try Bench()
      let (a, b) = (try bench.node("a", Self.tenants), try bench.node("b", Self.tenants))
      try a.commit(Self.row("x"), Self.row("y"))
      try a.sync(b)
      try b.addRemote("a", a.directory)
      // A second name for one node is neither a second copy nor a second lock.
      try b.addRemote("again", a.directory)
      if firstIsMaker { try a.addRemote("b", b.directory) }
      let (first, second) = firstIsMaker ? (a, b) : (b, a)
      #expect(try first.changeScope(adding: ["!tenant=x"], removing: [], discards: false) == ["tenant=x"])
      let refusal = #expect(throws: NodeError.self) {
        try second.changeScope(adding: ["!tenant=x"], removing: [], discards: false)
      }
      #expect(refusal.map { caseName($0) } == "unacknowledged")
      #expect(second.metadata.scope == .everything && second.metadata.pendingScope == nil)
      #expect(try second.changeScope(adding: ["!tenant=x"], removing: [], discards: true) == ["tenant=x"])
    }
  }

  /// A copy without writes has the origins of the original node, and `pull` accepts it like `sync`.
  @Test func anUntouchedCopyIsPulledFrom() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.tenants)
    try node.commit(Self.row("x"))
    try bench.copy("a", to: "copy")
    let report = try node.exchange(
      with: RemotePeer(name: "copy", address: bench.path("copy")), pulls: true, pushes: false, partitions: []
    ) { _, _ in }
    #expect(report.pulled?.events == 0)
    try node.commit(Self.row("y"))
    try node.sync(try bench.open("copy"))
    #expect(try bench.open("copy").history.count == 2)
  }

  /// Without its metadata, the node does not know its own events.
  @Test func aNodeThatLostItsMarkPurgesNothingThatNobodyElseIsKnownToHold() throws {
    let bench = try Bench()
    try bench.node("a", Self.tenants).commit(Self.row("x"))
    for name in ["stemma.json", "stemma.json.copy"] {
      try FileManager.default.removeItem(atPath: bench.path("a/" + name))
    }
    try Node.recreateMetadata(at: bench.path("a"), name: "a", .init(mode: .write))
    let a = try bench.open("a")
    #expect(throws: NodeError.self) {
      try a.changeScope(adding: ["!tenant=x"], removing: [], discards: false)
    }
    try a.sync(try bench.node("b", Self.tenants))
    #expect(
      try bench.open("a").changeScope(adding: ["!tenant=x"], removing: [], discards: false) == ["tenant=x"])
  }

  /// An abandoned purge would leave events that the node claims not to hold.
  @Test func anInterruptedPurgeIsFinishedAtOpen() throws {
    let bench = try Bench()
    try { _ = try bench.node("a", Self.tenants).commit(Self.row("x"), Self.row("y")) }()
    let url = URL(fileURLWithPath: bench.path("a/stemma.json"))
    let text = try String(contentsOf: url, encoding: .utf8).replacing(#/  "checksum".*\n/#, with: "")
    try Data(text.replacing(#""scope" :"#, with: #""pendingScope": ["*", "!tenant=x"], "scope" :"#).utf8)
      .write(to: url)
    let node = try bench.open("a")
    #expect(node.metadata.pendingScope == nil && node.metadata.scope.patterns.contains("!tenant=x"))
    #expect(try node.history == ["create Row tenant=y n=1"])
  }

  /// Two policies would derive two rows from the same events.
  @Test func peersWithAnotherConflictPolicyAreRefused() throws {
    let bench = try Bench()
    let a = try bench.node("a", Self.note)
    let b = try bench.node("b", Self.note.replacing("@model", with: "@model @conflict(policy: LATEST)"))
    try a.commit(Self.create("1"))
    let error = #expect(throws: NodeError.self) { try a.sync(b) }
    guard case .replication = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(try b.history == [])
  }

  // MARK: Convergence

  @Test(arguments: [1, 2] as [UInt64])
  func threeNodesInARingConverge(seed: UInt64) throws {
    print("seed \(seed)")
    let bench = try Bench(seed: seed, segmentSize: 2000)
    var random = SplitMix64(seed: seed)
    let nodes = try ["a", "b", "c"].map { try bench.node($0, ReferenceTests.tree) }
    for _ in 0..<4 {
      for node in nodes {
        for _ in 0..<6 {
          let key = random.below(4)
          let lines = [
            #"{"op":"upsert","model":"Team","key":"\#(key)"}"#,
            #"{"op":"upsert","model":"Player","key":"\#(key)","fields":{"teamId":"\#(random.below(4))"}}"#,
            #"{"op":"upsert","model":"Fan","key":"\#(key)","fields":{"teamId":"\#(random.below(4))"}}"#,
            #"{"op":"delete","model":"Team","key":"\#(key)"}"#,
          ]
          _ = try node.refusal(lines[random.below(lines.count)])
        }
      }
      let index = random.below(3)
      try nodes[index].sync(nodes[(index + 1) % 3])
      for node in nodes {
        let live = try node.digestTexts
        try node.checkInvariants()
        _ = try node.rebuild { _, _ in }
        #expect(try node.digestTexts == live)
        try node.checkInvariants()
      }
    }
    for index in [0, 1, 2, 0, 1] { try nodes[index].sync(nodes[(index + 1) % 3]) }
    let last = try nodes.map { node in try bench.open(node.metadata.name).digestTexts }
    #expect(last[0] == last[1] && last[1] == last[2])
    #expect(!last[0].isEmpty)
  }

  @Test func aLogWithoutAMarkIsToldFromANode() throws {
    let bench = try Bench()
    try bench.node("a", Self.note).commit(Self.create("1"))
    try FileManager.default.removeItem(atPath: bench.path("a") + "/stemma.json")
    #expect {
      _ = try Node.create(at: bench.path("a"), schema: Self.note)
    } throws: { error in
      if case .logWithoutMetadata? = error as? NodeError { true } else { false }
    }
  }

  /// A node without models has a schema file that states this.
  @Test func anEmptySchemaIsNone() throws {
    let bench = try Bench()
    _ = try bench.node("a", Self.note)
    _ = try bench.node("none", "")
    try Data().write(to: URL(fileURLWithPath: bench.path("a") + "/schema.graphql"))
    #expect {
      _ = try bench.open("a")
    } throws: { error in
      if case .noSchema? = error as? NodeError { true } else { false }
    }
    _ = try bench.open("none")
  }

  /// The error names the node's own schema file.
  @Test func aSchemaThatCannotBeReadIsNamed() throws {
    let bench = try Bench()
    _ = try bench.node("a", Self.note)
    let path = bench.path("a") + "/schema.graphql"
    let text = try Data(contentsOf: URL(fileURLWithPath: path))
    for (first, what) in [(UInt8(ascii: "X"), "1:1: unknown definition"), (0xFF, "it is not UTF-8")] {
      try Data([first] + text.dropFirst()).write(to: URL(fileURLWithPath: path))
      #expect {
        _ = try bench.open("a")
      } throws: { error in
        guard case .badSchema(path, let found)? = error as? NodeError else { return false }
        return found.hasPrefix(what)
      }
    }
    try text.write(to: URL(fileURLWithPath: path))
    _ = try bench.open("a")
  }

  /// A wrong byte in the metadata must neither lock out the log nor narrow the scope.
  @Test func aWrongByteInTheMarkChangesNothing() throws {
    let bench = try Bench()
    let whole = try {
      let node = try bench.node("a", Self.note)
      try node.commit(Self.create("1"))
      return node.metadata
    }()
    let url = URL(fileURLWithPath: bench.path("a/stemma.json"))
    let bytes = try Data(contentsOf: url)
    for index in bytes.indices {
      var wrong = bytes
      wrong[index] ^= 1 << (index % 8)
      try wrong.write(to: url)
      var metadata = try bench.open("a", .read, leavesFiles: true).metadata
      metadata.watermark = whole.watermark
      #expect(metadata == whole, "byte \(index)")
    }
    try Data(bytes.dropFirst()).write(to: url)
    let found = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(!found.isCorrupt && found.corruption.map(\.file) == [url.path])
    let node = try bench.open("a")
    try node.commit(Self.create("2"))
    #expect(try node.history.count == 2 && node.metadata.origins.count == 2)
    #expect(try Data(contentsOf: url) == Data(contentsOf: url.appendingPathExtension("copy")))
    let recovered = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(recovered.corruption.isEmpty)
    // Without both files, the owner of the log is unknown.
    for name in ["a/stemma.json", "a/stemma.json.copy"] {
      try Data([1, 2, 3]).write(to: URL(fileURLWithPath: bench.path(name)))
    }
    #expect {
      _ = try bench.open("a")
    } throws: { error in
      if case .badMetadata(url.path, _)? = error as? NodeError { true } else { false }
    }
  }
}
