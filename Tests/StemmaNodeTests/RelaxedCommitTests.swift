import Foundation
import StemmaEvents
import StemmaLog
import StemmaHistory
import StemmaNode
import StemmaReplication
import StemmaSimulation
import Testing

/// Commits that are acknowledged before they are synced. A crash may lose the newest of them, but
/// never a durable one. No sequence number that another node has seen is reused.
@Suite struct RelaxedCommitTests {
  private static let create = DirectoryTests.create

  /// Simulates a crash with real files. The journal is cut to its last synced length and the tables
  /// are kept, which is the worst case.
  private static func loseJournal(of name: String, to before: [String: Data], in bench: Bench) throws {
    for (file, bytes) in before where file.hasSuffix(".journal") || file.hasSuffix("watermark") {
      let handle = try #require(FileHandle(forWritingAtPath: bench.path(name + "/" + file)))
      try handle.truncate(atOffset: 0)
      try handle.write(contentsOf: bytes)
      try handle.close()
    }
  }

  @Test func nothingIsSyncedBeforeTheNextSync() throws {
    let bench = try Bench()
    let disk = try PowerLossTests.disk(for: bench, seed: 1)
    try FileManager.default.createDirectory(atPath: bench.path("a"), withIntermediateDirectories: true)
    let node = try bench.node("a", DirectoryTests.note, on: disk)
    func syncs(_ body: () throws -> Void) rethrows -> Int {
      let before = disk.operations.count
      try body()
      return disk.operations[before...].count { $0.hasPrefix("fdatasync") }
    }
    func commit(_ keys: String...) throws { for key in keys { try node.commitRelaxed(Self.create(key)) } }

    #expect(try syncs { try commit("1", "2", "3") } == 0)
    #expect(!node.isSynced)
    #expect(try node.fields("Note", "\"3\"") != nil)
    #expect(syncs { node.syncOrNote() } == 1)
    #expect(node.isSynced)
    #expect(syncs { node.syncOrNote() } == 0)
    // A durable commit makes earlier ones durable, and so does a commit without events.
    try commit("4")
    #expect(try syncs { try node.commit(Self.create("5")) } == 1)
    #expect(node.isSynced)
    try commit("6")
    #expect(try syncs { try node.commit() } == 1)
    #expect(node.isSynced)
    // A group is as durable as its strictest commit.
    let mutations = try ["7", "8"].map { try mutation(Self.create($0)) }
    #expect(
      try syncs {
        _ = try node.write(
          zip(mutations, [true, false]).map { mutation, isRelaxed in
            Node.CommitRequest(CommitMessage(), isRelaxed: isRelaxed) { transaction throws(NodeError) in
              try transaction.perform(mutation)
            }
          })
      } == 1)
    disk.crash()
    let again = try bench.open("a", on: disk)
    for key in 1...8 { #expect(try again.fields("Note", "\"\(key)\"") != nil) }
    #expect(again.notices == [])
    try again.checkInvariants()
  }

  /// Other work on a node requires a durable log.
  @Test(arguments: ["verify", "exchange", "rebuild", "seal", "schema", "series", "reader", "scope"])
  func otherWorkSyncsFirst(work: String) throws {
    let bench = try Bench()
    let disk = try PowerLossTests.disk(for: bench, seed: 1)
    for name in ["a", "b"] {
      try FileManager.default.createDirectory(atPath: bench.path(name), withIntermediateDirectories: true)
    }
    let node = try bench.node("a", DirectoryTests.note, on: disk)
    let peer = try bench.node("b", DirectoryTests.note, on: disk)
    try node.commitRelaxed(Self.create("1"))
    switch work {
    case "exchange": try node.sync(peer)
    case "rebuild": _ = try node.rebuild { _, _ in }
    case "seal": _ = try bench.open("a", on: disk).sealIfWanted()
    case "schema": _ = try node.apply(schema: DirectoryTests.note + "\ntype Later @model { id: ID! }\n")
    case "series": try node.series { _ in }
    case "reader": #expect(try bench.open("a", .read, on: disk).fields("Note", "\"1\"") != nil)
    case "scope": _ = try node.changeScope(adding: ["Note"], removing: [], discards: false)
    default:
      var options = Node.OpeningOptions()
      options.ports.fileSystem = disk
      let report = try Node.verify(at: node.directory, options: options)
      #expect(!report.isCorrupt && report.unconfirmed == 1)
      return
    }
    disk.crash()
    let again = try bench.open("a", on: disk)
    #expect(try again.history.count == 1)
    #expect(again.metadata.origins.count == 1)
    try again.checkInvariants()
  }

  /// The tables are then ahead of the log. That must not be mistaken for a log that was set back.
  @Test func whatACrashTookWasNeverThere() throws {
    let bench = try Bench()
    var lost: [Event] = []
    let before = try {
      let node = try bench.node("a", DirectoryTests.note)
      try node.commit(Self.create("1"))
      let before = try bench.contents("a")
      for key in ["2", "3"] { lost += try node.commitRelaxed(Self.create(key)) }
      return before
    }()
    try Self.loseJournal(of: "a", to: before, in: bench)
    #expect(!(try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).isCorrupt))
    let node = try bench.open("a")
    #expect(node.metadata.origins.count == 1 && node.metadata.corruption == nil)
    #expect(node.notices.count == 1)
    #expect(try node.history.count == 1)
    #expect(try node.fields("Note", "\"2\"") == nil)
    #expect(try node.rawEvents(Self.create("4")).map(\.id) == [lost[0].id])
    try node.checkInvariants()
  }

  /// Synced events may have been sent. A log that lacks them was set back.
  @Test func whatWasSyncedIsNotGivenTwice() throws {
    let bench = try Bench()
    let before = try {
      let node = try bench.node("a", DirectoryTests.note)
      try node.commit(Self.create("1"))
      let before = try bench.contents("a")
      try node.commitRelaxed(Self.create("2"))
      node.syncOrNote()
      return before
    }()
    try Self.loseJournal(of: "a", to: before, in: bench)
    #expect(try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).isCorrupt)
    let node = try bench.open("a")
    #expect(node.metadata.origins.count == 2)
    try node.checkInvariants()
  }

  /// A process died after its relaxed commits, but the machine did not. Nothing is lost, and the
  /// next process makes them durable.
  @Test func theEndOfAProcessTakesNothing() throws {
    let bench = try Bench()
    try {
      let node = try bench.node("a", DirectoryTests.note)
      for key in ["1", "2"] { try node.commitRelaxed(Self.create(key)) }
    }()
    let node = try bench.open("a")
    #expect(try node.history.count == 2)
    #expect(node.notices == [])
    try node.checkInvariants()
  }

  /// If another process holds the lock, a peer cannot be synced and sends only durable events.
  @Test func aPeerGetsOnlyWhatIsDurable() throws {
    let bench = try Bench()
    let node = try bench.node("a", DirectoryTests.note)
    let reader = try bench.node("b", DirectoryTests.note)
    try node.commit(Self.create("1"))
    try node.commitRelaxed(Self.create("2"))
    do {
      let lock = try WriterLock(bench.path("a/lock"), fileSystem: POSIXFileSystem(), wait: 0)
      defer { lock.release() }
      _ = try reader.exchange(
        with: RemotePeer(name: "a", address: bench.path("a")), pulls: true, pushes: false, partitions: [],
        progress: { _, _ in })
      #expect(try reader.history.count == 1)
    }
    try reader.sync(node)
    #expect(try reader.history.count == 2)
    #expect(try reader.digestTexts == node.digestTexts)
  }

  /// Only the tables, which are ahead of a corrupt log, know the events that the crash lost. These
  /// count as lost, so that no event id is used twice.
  @Test func commitsThatACrashTookFromACorruptLogCountAsLost() throws {
    let bench = try Bench()
    func other(_ key: Int) -> String { #"{"op":"create","model":"Other","key":"\#(key)"}"# }
    try {
      let node = try bench.node("a", DirectoryTests.note + "\ntype Other @model { id: ID! }\n")
      for key in ["1", "2"] { try node.commit(Self.create(key)) }
    }()
    try bench.seal("a")
    let (before, lost) = try {
      let node = try bench.open("a")
      try node.commit(other(1))
      let before = try bench.contents("a")
      return (before, try node.commitRelaxed(other(2)))
    }()
    let segment = URL(fileURLWithPath: bench.path("a/log/00000001.segment"))
    var bytes = try Data(contentsOf: segment)
    bytes[60] ^= 0x40
    let handle = try #require(FileHandle(forWritingAtPath: segment.path))
    try handle.write(contentsOf: bytes)
    try handle.close()
    try Self.loseJournal(of: "a", to: before, in: bench)

    let node = try bench.open("a")
    for line in [Self.create("3"), other(3)] { #expect(throws: NodeError.self) { try node.commit(line) } }
    _ = try node.repair(from: [], acceptsLoss: true) { _, _ in }
    let repaired = try bench.open("a")
    let new = try repaired.rawEvents(other(3))
    #expect(Set(lost.map(\.id)).isDisjoint(with: new.map(\.id)))
    for key in 1...3 { #expect(try repaired.fields("Other", "\"\(key)\"") != nil) }
    #expect(try !Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).isCorrupt)
  }

  /// Any mix of durable and relaxed commits, exchanges and syncs, until power fails. The tables, on
  /// another disk, have an earlier state or are ahead of the log.
  @Test(arguments: 1...UInt64(Trials.count(20))) func powerFailsBehindAnyMix(seed: UInt64) throws {
    let bench = try Bench(seed: seed)
    let disk = try PowerLossTests.disk(for: bench, seed: seed)
    var random = SplitMix64(seed: seed &* 7919)
    for name in ["a", "p"] {
      try FileManager.default.createDirectory(atPath: bench.path(name), withIntermediateDirectories: true)
    }
    var (made, durable, kept) = (0, 0, 0)
    let keepsTablesOf = random.below(2) == 0 ? random.below(14) : nil
    var seen: [Event] = []
    try {
      let node = try bench.node("a", DirectoryTests.note, on: disk)
      let peer = try bench.node("p", DirectoryTests.note, on: disk)
      for step in 0..<14 {
        switch random.below(8) {
        case 0...4:
          made += 1
          try node.commitRelaxed(Self.create("\(made)"))
        case 5:
          made += 1
          try node.commit(Self.create("\(made)"))
          durable = made
        case 6:
          node.syncOrNote()
          durable = made
        default:
          try node.sync(peer)
          durable = made
          try peer.adoptOthers()
          seen = try peer.allEvents
        }
        if step == keepsTablesOf { try bench.keepTables("a") }
        kept = node.isSynced ? made : kept
      }
      #expect(durable == kept)
    }()
    disk.crash()
    disk.checkInvariants()
    if keepsTablesOf != nil { try bench.putTablesBack("a") }
    var options = Node.OpeningOptions()
    options.ports.fileSystem = disk
    let found = try Node.verify(at: bench.path("a"), options: options)
    #expect(!found.isCorrupt, "\(found.corruption)")

    let node = try bench.open("a", on: disk)
    #expect(node.metadata.corruption == nil)
    let held = try node.allEvents
    #expect(try (durable...made).contains(held.count) && (node.history.count == held.count))
    for number in 1...made + 1 {
      #expect(try (node.fields("Note", "\"\(number)\"") != nil) == (number <= held.count))
    }
    // Only loss that looks like a torn tail of durable events begins a new origin.
    #expect(node.metadata.origins.count == 1 || node.notices.contains { $0.contains("torn") })
    for event in seen { #expect(held.contains(event)) }
    let new = try node.rawEvents(Self.create("after"))
    #expect(Set(held.map(\.id)).isDisjoint(with: new.map(\.id)))
    try node.checkInvariants()
    let peer = try bench.open("p", on: disk)
    try node.sync(peer)
    #expect(try peer.digestTexts == node.digestTexts)
    try peer.adoptOthers()
    #expect(try peer.allEvents.count == held.count + 1)
  }
}

extension Node {
  @discardableResult
  fileprivate func commitRelaxed(_ line: String) throws -> [Event] {
    let mutation = try mutation(line)
    var events: [Event] = []
    let request = CommitRequest(CommitMessage(), isRelaxed: true) { transaction throws(NodeError) in
      try transaction.perform(mutation)
      events = transaction.events
    }
    for outcome in try write([request]) { try outcome.get() }
    return events
  }

  fileprivate var allEvents: [Event] {
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

extension Bench {
  private func tables(_ name: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path(name)).filter {
      $0.hasPrefix("tables.sqlite") && !$0.hasSuffix("-shm")
    }
  }

  /// Copies the current tables.
  fileprivate func keepTables(_ name: String) throws {
    try FileManager.default.createDirectory(atPath: path("kept"), withIntermediateDirectories: true)
    for file in try tables(name) {
      try FileManager.default.copyItem(atPath: path(name + "/" + file), toPath: path("kept/" + file))
    }
  }

  fileprivate func putTablesBack(_ name: String) throws {
    for file in try FileManager.default.contentsOfDirectory(atPath: path(name)) where file.hasPrefix("tables")
    {
      try FileManager.default.removeItem(atPath: path(name + "/" + file))
    }
    for file in try FileManager.default.contentsOfDirectory(atPath: path("kept")) {
      try FileManager.default.copyItem(atPath: path("kept/" + file), toPath: path(name + "/" + file))
    }
  }
}
