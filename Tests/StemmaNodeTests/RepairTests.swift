import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import Testing

/// A node whose log is damaged goes on, says what is missing, and is what it was once a peer gave it back.
@Suite struct RepairTests {
  static let rows = """
    type Row @model { tenant: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! text: String }
    """

  /// Two equal nodes, `a` and `b`, with a sealed file of several blocks and a journal.
  private struct Pair {
    let bench: Bench
    let digests: [String]
    let export: [UInt8]

    /// `count`: records of each of four partitions.
    init(_ count: Int = 500) throws {
      bench = try Bench(segmentSize: 800 * count)
      let a = try bench.node("a", RepairTests.rows)
      for tenant in 0..<4 {
        let lines = try (0..<count).map { number in
          try mutation(
            #"{"op":"create","model":"Row","key":{"tenant":"t\#(tenant)","n":\#(number)},"fields":{"text":"\#(String(repeating: "\(number * 7919 % 1000) ", count: 80))"}}"#
          )
        }
        try a.write(CommitNote(note: "tenant \(tenant)")) { transaction throws(NodeError) in
          for line in lines { try transaction.perform(line) }
        }
      }
      try a.sealIfWanted()
      let b = try bench.node("b", RepairTests.rows)
      try a.commit(RepairTests.row("t0", 1000))
      try a.commit(RepairTests.row("t3", 1000))
      try a.sync(b)
      digests = try a.digestTexts
      export = try Self.export(of: a)
    }

    static func export(of node: Node) throws -> [UInt8] {
      var bytes: [UInt8] = []
      try node.export([]) { bytes += $0 }
      return bytes
    }

    /// Spoils bytes from a place on: more than one, so that what they were cannot be worked out.
    func damage(_ name: String, at place: Double, bytes count: Int = 64) throws {
      let url = URL(fileURLWithPath: bench.path("a/log/" + name))
      var bytes = try Data(contentsOf: url)
      let start = Int(Double(bytes.count - 1) * place)
      for index in start..<min(start + count, bytes.count) { bytes[index] ^= 0x5A }
      try bytes.write(to: url)
    }

    /// Leaves so little of a file that no block of it is whole.
    func cut(_ name: String) throws {
      let url = URL(fileURLWithPath: bench.path("a/log/" + name))
      try Data(contentsOf: url).prefix(300).write(to: url)
    }

    func removeTables() throws { try RepairTests.removeTables(bench) }

    func logFiles(_ suffix: String) throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: bench.path("a/log"))
        .filter { $0.hasSuffix(suffix) }.sorted()
    }

    func verify(_ name: String) throws -> Node.VerificationReport {
      try Node.verify(at: bench.path(name), options: Node.OpeningOptions())
    }

    func repair(from names: String...) throws -> RepairReport { try repair(from: names) }

    func repair(from names: [String], takesUnnoted: Bool = false) throws -> RepairReport {
      let peers = names.map { RemotePeer(name: $0, address: bench.path($0)) }
      return try bench.open("a").repair(from: peers, takesUnnoted: takesUnnoted) { _, _ in }
    }

    func repair() throws -> RepairReport {
      try repair(from: "b")
    }
  }

  static func row(_ tenant: String, _ number: Int) -> String {
    #"{"op":"create","model":"Row","key":{"tenant":"\#(tenant)","n":\#(number)}}"#
  }

  /// A block of one file is damaged, the end of the next, and the tables are gone: what the second held shows only when
  /// the first is whole. The first run ended with "still missing", and the next one would have mended it.
  @Test func damagesThatHideEachOtherAreMendedInOneRun() throws {
    let pair = try Pair()
    let a = try bench(pair).open("a")
    for tenant in 0..<4 {
      try a.write { transaction throws(NodeError) in
        for number in 2000..<2500 {
          let line: Mutation
          do {
            line = try mutation(
              #"{"op":"create","model":"Row","key":{"tenant":"t\#(tenant)","n":\#(number)},"fields":{"text":"\#(String(repeating: "\(number * 7907 % 1000) ", count: 80))"}}"#
            )
          } catch { throw .damaged(what: "\(error)") }
          try transaction.perform(line)
        }
      }
    }
    try a.sealIfWanted()
    try a.sync(try bench(pair).open("b"))
    let digests = try a.digestTexts
    let segments = try pair.logFiles(".segment")
    #expect(segments.count == 2)
    try pair.damage(segments[0], at: 0.4)
    let last = URL(fileURLWithPath: pair.bench.path("a/log/" + segments[1]))
    try (Data(contentsOf: last) + Data("xyz".utf8)).write(to: last)
    for suffix in ["", "-wal", "-shm"] {
      let path = pair.bench.path("a/tables.sqlite" + suffix)
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }
    let report = try pair.repair()
    #expect(report.isWhole && report.files.count == 2)
    #expect(try pair.verify("a").damage.isEmpty)
    #expect(try bench(pair).open("a").digestTexts == digests)
  }

  @Test func damageInASegmentTakesOnePartitionAndIsRepairedFromAPeer() throws {
    let pair = try Pair()
    let segment = try #require(try pair.logFiles(".segment").first)
    try pair.damage(segment, at: 0.4)
    // Opening notices nothing; verify does, and says exactly what is missing.
    let report = try pair.verify("a")
    #expect(report.damage.count == 1 && !report.isVague)
    let partition = try #require(report.losses.first?.partition)
    #expect(report.losses.allSatisfy { $0.partition == partition && $0.file == segment })
    #expect(report.losses.reduce(0) { $0 + $1.count } < 500)
    do {
      let a = try bench(pair).open("a")
      let tenant = String(partition.dropFirst("tenant=".count))
      // The tables lose nothing; the partition is read-only, the others are not.
      #expect(try a.digestTexts == pair.digests)
      #expect(try a.refusal(Self.row(tenant, 2000)) == "damagedPartition")
      let other = tenant == "t0" ? "t1" : "t0"
      #expect(try a.commit(Self.row(other, 2000)).count == 1)
      // What can be read is given, and then the damage.
      var count: UInt64 = 0
      let error = #expect(throws: NodeError.self) {
        try a.forEachEvent(LogFilter(), newestFirst: false) { _, _ in
          count += 1
          return true
        }
      }
      #expect(error.map(caseName) == "missing")
      #expect(count + report.losses.reduce(0) { $0 + $1.count } == 2003)
      // The rest is exchanged, and what was left out is said.
      let exchange = try a.sync(try bench(pair).open("b"))
      #expect(exchange.pushed?.events == 1 && exchange.notices.contains { $0.contains(partition) })
    }
    let repaired = try pair.repair()
    #expect(repaired.isWhole && repaired.files.count == 1)
    #expect(repaired.events == report.losses.reduce(0) { $0 + $1.count })
    let a = try bench(pair).open("a")
    #expect(a.notices == [])
    try a.checkInvariants()
    #expect(try a.digestTexts == (try bench(pair).open("b").digestTexts))
    #expect(try Pair.export(of: a) == Pair.export(of: try bench(pair).open("b")))
    #expect(try pair.verify("a").damage.isEmpty)
    #expect(try pair.repair().files == [])
    #expect(try a.history.count == 2003)
  }

  private func bench(_ pair: Pair) -> Bench { pair.bench }

  @Test(arguments: ["footer", "header", "journal", "missing"])
  func anyOtherDamageIsRepairedToo(kind: String) throws {
    let pair = try Pair()
    let segment = try #require(try pair.logFiles(".segment").first)
    let journal = try #require(try pair.logFiles(".journal").last)
    switch kind {
    case "footer": try pair.damage(segment, at: 0.999)
    case "header": try pair.damage(segment, at: 0.0001)
    case "journal": try pair.damage(journal, at: 0.6)
    default: try FileManager.default.removeItem(atPath: pair.bench.path("a/log/" + segment))
    }
    let report = try pair.verify("a")
    #expect(!report.damage.isEmpty && !report.isVague, "\(kind)")
    #expect(report.losses.isEmpty == ["footer", "header"].contains(kind), "\(kind)")
    let lost = Set((report.losses + report.rescuable).map(\.partition))
    #expect(!lost.isEmpty, "\(kind)")
    do {
      let a = try pair.bench.open("a")
      #expect(try a.digestTexts == pair.digests)
      #expect(try a.commit(Self.row("t9", 1)).count == 1)
      // What is whole is exchanged, and goes to new nodes; what is left out is said.
      let exchange = try a.sync(try pair.bench.open("b"))
      #expect(exchange.pushed?.events == 1, "\(kind)")
      let clone = try Node.clone(
        from: pair.bench.path("a"), to: pair.bench.path("c"), partitions: [], name: "c"
      ) { _, _ in }
      #expect(clone.partitions.contains("tenant=t9") && lost.isDisjoint(with: clone.partitions), "\(kind)")
      for partition in lost {
        #expect(exchange.notices.contains { $0.contains(partition) }, "\(kind)")
        #expect(clone.notices.contains { $0.contains(partition) }, "\(kind)")
      }
    }
    #expect(try pair.repair().isWhole)
    let (a, b) = (try pair.bench.open("a"), try pair.bench.open("b"))
    #expect(try a.digestTexts == b.digestTexts)
    #expect(try Pair.export(of: a) == Pair.export(of: b))
    #expect(try pair.verify("a").damage.isEmpty)
  }

  /// Header, footer or trailer is damaged, or one byte of a block: `inspect` read every event, and yet they were called
  /// lost, and giving up took them.
  @Test(arguments: ["header", "footer", "trailer", "block", "frame", "journal's header"])
  func whatTheFilesStillTellIsPutBackWithoutAnybody(kind: String) throws {
    let pair = try Pair()
    let segment = try #require(try pair.logFiles(".segment").first)
    let before = try stored(in: pair.bench.open("a"))
    switch kind {
    case "header": try pair.damage(segment, at: 0)
    // Nothing that can be read says where blocks are, and what their checksums were.
    case "footer": try pair.damage(segment, at: 0.985, bytes: .max / 2)
    case "trailer": try pair.damage(segment, at: 0.9999, bytes: 1)
    case "block": try pair.damage(segment, at: 0.4, bytes: 1)
    // The checksums of its frames cover log and number, which the node and the file's name tell, too.
    case "journal's header": try pair.damage(try #require(try pair.logFiles(".journal").last), at: 0)
    default: try pair.damage(try #require(try pair.logFiles(".journal").last), at: 0.6, bytes: 1)
    }
    let report = try pair.verify("a")
    let count = report.rescuable.reduce(0) { $0 + $1.count }
    #expect(report.isDamaged && report.losses.isEmpty && !report.isVague, "\(kind)")
    #expect(count > 0 && report.events + count == 2002, "\(kind)")
    #expect(report.commands == [kind == "footer" ? "stemma repair --from PEER" : "stemma repair"])
    let planned = try pair.bench.open("a").giveUp(isDryRun: true) { _, _ in }
    #expect(planned.record == nil && planned.rescued == count && planned.files.count == 1, "\(kind)")
    #expect(planned.unnoted == report.unnoted, "\(kind)")

    let repaired = try pair.repair(from: [], takesUnnoted: true)
    #expect(repaired.isWhole && repaired.rescued == count && repaired.events == 0, "\(kind)")
    let a = try pair.bench.open("a")
    try a.checkInvariants()
    #expect(try pair.verify("a").damage.isEmpty)
    #expect(try a.digestTexts == pair.digests && Pair.export(of: a) == pair.export)
    let after = try stored(in: a)
    #expect(Set(after.map(\.stored.event)) == Set(before.map(\.stored.event)), "\(kind)")
    // Where checksums vouch for the blocks, each event stands where it stood, and says who wrote it and why.
    #expect((report.unnoted > 0) == (kind == "footer") && repaired.unnoted == report.unnoted, "\(kind)")
    guard kind != "footer" else { return }
    #expect(after.map(\.stored) == before.map(\.stored), "\(kind)")
    #expect(after.map(\.note) == before.map(\.note), "\(kind)")
  }

  /// Without a footer nothing proves the notes of the blocks. A peer had them, and was not asked, or not at first: who had
  /// written the events, and why, was gone for good, and verify called it good.
  @Test(arguments: [false, true]) func notesThatNothingProvesAreFetched(areTablesLost: Bool) throws {
    let pair = try Pair(40)
    let before = try stored(in: pair.bench.open("a"))
    let segment = try #require(try pair.logFiles(".segment").first)
    try cutFooter(of: pair.bench.path("a/log/" + segment))
    if areTablesLost { try pair.removeTables() }
    let found = try pair.verify("a")
    #expect(found.unnoted > 0)
    let files = try pair.bench.contents("a").filter { $0.key.hasPrefix("log/") }
    let alone = try pair.repair(from: [])
    #expect(!alone.isWhole && alone.files.isEmpty && alone.rescued == 0)
    #expect(try pair.bench.contents("a").filter { $0.key.hasPrefix("log/") } == files)
    if !areTablesLost { #expect(alone.unnoted == found.unnoted && alone.rescuable == found.rescuable) }
    // A peer that has only some of them is not enough either.
    do {
      let some = try pair.bench.node("some", Self.rows, scope: ["tenant=t0"])
      _ = try some.exchange(
        with: RemotePeer(name: "b", address: pair.bench.path("b")), pulls: true, pushes: false, partitions: []
      ) { _, _ in }
      let rest = try pair.repair(from: "some")
      #expect(!rest.isWhole && rest.files.isEmpty && rest.unnoted < found.unnoted)
    }
    let repaired = try pair.repair()
    #expect(repaired.isWhole && repaired.unnoted == 0 && repaired.strangers.isEmpty)
    let after = try stored(in: pair.bench.open("a"))
    func notes(_ events: [NotedEvent]) -> [Event: CommitNote?] {
      Dictionary(uniqueKeysWithValues: events.map { ($0.stored.event, $0.note) })
    }
    #expect(notes(after) == notes(before))
  }

  /// Not much is left of a segment's footer, which has the checksums of its blocks. The trailer says where it begins.
  private func cutFooter(of path: String) throws {
    let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    let footer = bytes.suffix(108).prefix(8).reduce(0) { $0 << 8 | Int($1) }
    try bytes.prefix(footer + 9).write(to: URL(fileURLWithPath: path))
  }

  /// A block of which no checksum is left has a wrong byte in its origin: it tells events that nobody ever wrote. The peer
  /// that had the real ones was told that it lacked some, the file stayed as it was, and `--without-notes` took both in.
  @Test(arguments: [false, true]) func eventsOfAnOriginThatWasMisreadAreNotLost(areTablesLost: Bool) throws {
    let pair = try Pair(3)
    let before = try pair.bench.open("a").history
    let segment = try #require(try pair.logFiles(".segment").first)
    let url = URL(fileURLWithPath: pair.bench.path("a/log/" + segment))
    try cutFooter(of: url.path)
    var bytes = [UInt8](try Data(contentsOf: url))
    let origin = try pair.bench.open("a", .read).mark.origin.rawValue
    let place = try #require(
      bytes.indices.first { index in
        bytes[index...].starts(with: (0..<8).map { UInt8(truncatingIfNeeded: origin >> (56 - 8 * $0)) })
      })
    bytes[place + 6] ^= 4
    try Data(bytes).write(to: url)
    if areTablesLost { try pair.removeTables() }
    let alone = try pair.repair(from: [])
    #expect(!alone.isWhole && alone.files.isEmpty)
    let repaired = try pair.repair()
    #expect(repaired.isWhole && repaired.unnoted == 0 && repaired.strangers.isEmpty, "\(repaired)")
    #expect(try pair.verify("a").damage.isEmpty)
    let a = try pair.bench.open("a")
    try a.checkInvariants()
    #expect(try a.digestTexts == pair.digests && Set(a.history) == Set(before))
  }

  @Test func notesThatNothingProvesAreGivenUpInSoManyWords() throws {
    let pair = try Pair(40)
    let segment = try #require(try pair.logFiles(".segment").first)
    try cutFooter(of: pair.bench.path("a/log/" + segment))
    let unnoted = try pair.verify("a").unnoted
    let report = try pair.bench.open("a").giveUp(isDryRun: false) { _, _ in }
    #expect(report.record == nil && report.rescued > 0 && report.unnoted == unnoted && unnoted > 0)
    #expect(try pair.verify("a").damage.isEmpty && pair.bench.open("a").digestTexts == pair.digests)
  }

  /// The tables are gone, one bit of a frame is wrong, and all frames number their events: nothing is lost. Giving up
  /// said that it had given up and rescued, and had mended nothing.
  @Test(arguments: [false, true]) func whatTheFramesTellIsNotVague(givesUp: Bool) throws {
    let bench = try Bench()
    try {
      let node = try bench.node("a", Self.rows)
      for number in 0..<3 { try node.commit(Self.row("t0", number)) }
    }()
    let journal = URL(fileURLWithPath: bench.path("a/log/00000001.journal"))
    var bytes = try Data(contentsOf: journal)
    bytes[bytes.startIndex + 130] ^= 4
    try bytes.write(to: journal)
    try Self.removeTables(bench)
    let found = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(found.isDamaged && !found.isVague && found.losses.isEmpty)
    if givesUp {
      let report = try bench.open("a").giveUp(isDryRun: false) { _, _ in }
      #expect(report.record == nil && report.rescued == 1 && report.files.count == 1)
    } else {
      let report = try bench.open("a").repair(from: []) { _, _ in }
      #expect(report.isWhole && !report.isVague && report.rescued == 1)
    }
    let node = try bench.open("a")
    try node.checkInvariants()
    #expect(node.notices == [] && node.mark.givenUp.isEmpty && node.mark.pendingGivingUp == nil)
    #expect(try node.history.count == 3 && node.commit(Self.row("t0", 9)).count == 1)
    let verified = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(!verified.isDamaged)
  }

  private static func removeTables(_ bench: Bench) throws {
    for suffix in ["", "-wal", "-shm"] {
      let path = bench.path("a/tables.sqlite" + suffix)
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }
  }

  private func stored(in node: Node) throws -> [NotedEvent] {
    var events: [NotedEvent] = []
    try node.forEachEvent(LogFilter(), newestFirst: false) { stored, note in
      events.append(NotedEvent(stored: stored, note: note))
      return true
    }
    return events
  }

  /// The header of a file is damaged, and the middle of it: what others hold is kept, and the rest is given up.
  @Test func onlyWhatCannotBeReadAtAllIsGivenUp() throws {
    let pair = try Pair()
    let segment = try #require(try pair.logFiles(".segment").first)
    try pair.damage(segment, at: 0)
    try pair.damage(segment, at: 0.4)
    let report = try pair.verify("a")
    let partitions = Set(report.losses.map(\.partition))
    // Another block of that partition is whole.
    #expect(partitions.count == 1 && Set(report.rescuable.map(\.partition)).count == 3)
    let told = report.rescuable.reduce(0) { $0 + $1.count }
    #expect(told > 1000 && told + report.losses.reduce(0) { $0 + $1.count } == 1500)
    let planned = try pair.bench.open("a").giveUp(isDryRun: true) { _, _ in }
    let done = try pair.bench.open("a").giveUp(isDryRun: false) { _, _ in }
    #expect(planned.rescued == told && done.rescued == told)
    #expect(planned.record?.losses == report.losses && planned.record?.standIns == done.record?.standIns)
    #expect(done.record?.events == report.losses.reduce(0) { $0 + $1.count })
    let a = try pair.bench.open("a")
    try a.checkInvariants()
    #expect(a.mark.givenUp.map(\.partitions) == [partitions.sorted()])
    #expect(try Pair.export(of: a) == pair.export)
    #expect(try pair.verify("a").damage.isEmpty)
    #expect(try a.commit(Self.row("t0", 3000)).count == 1)
  }

  @Test func aRepairWithoutPeersLeavesAloneWhatItCannotTell() throws {
    let pair = try Pair()
    try pair.cut(try #require(try pair.logFiles(".segment").first))
    let losses = try pair.verify("a").losses
    let files = try pair.bench.contents("a").filter { $0.key.hasPrefix("log/") }
    let report = try pair.repair(from: [])
    #expect(!report.isWhole && report.files.isEmpty && report.missing == losses && !losses.isEmpty)
    #expect(try pair.bench.contents("a").filter { $0.key.hasPrefix("log/") } == files)
    for name in ["tables.sqlite", "tables.sqlite-wal", "tables.sqlite-shm"] {
      let path = pair.bench.path("a/" + name)
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }
    #expect(try !pair.repair(from: []).isWhole)
    #expect(try pair.verify("a").isVague)
    #expect(try pair.repair().isWhole)
  }

  @Test func whereNobodyKnowsWhatWasLostAllThatThePeerHasIsFetched() throws {
    let pair = try Pair()
    let segment = try #require(try pair.logFiles(".segment").first)
    try FileManager.default.removeItem(atPath: pair.bench.path("a/log/" + segment))
    for name in ["tables.sqlite", "tables.sqlite-wal", "tables.sqlite-shm"] {
      let path = pair.bench.path("a/" + name)
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }
    #expect(try pair.verify("a").isVague)
    let repaired = try pair.repair()
    #expect(repaired.isWhole && repaired.isVague && repaired.events > 0)
    let (a, b) = (try pair.bench.open("a"), try pair.bench.open("b"))
    try a.checkInvariants()
    #expect(try a.digestTexts == b.digestTexts)
    #expect(try Pair.export(of: a) == Pair.export(of: b))
  }

  /// What a process had written before it died, and nothing but the indices of a journal told of, was dropped by the
  /// repair, which said that all was mended.
  @Test func whatOnlyTheIndicesOfAJournalTellOfIsFetchedToo() throws {
    let bench = try Bench()
    let node = try bench.node("a", Self.rows)
    let peer = try bench.node("b", Self.rows)
    let past = try bench.node("past", Self.rows)
    for tenant in ["x", "y", "z"] { try past.commit(Self.row(tenant, 1)) }
    try peer.sync(past)
    // The tables remember this, and nothing that comes then.
    try node.commit(Self.row("w", 1))
    try node.sync(try bench.node("c", Self.rows))
    try peer.sync(try bench.open("c"))
    var events: [Event] = []
    try past.forEachEvent(LogFilter(), newestFirst: false) { stored, _ in
      events.append(stored.event)
      return true
    }
    let log = try Log.open(
      in: bench.path("a/log"), id: node.mark.logID, fileSystem: POSIXFileSystem(),
      options: Log.Options(mode: .readWrite))
    for event in events {
      try log.append([Commit([event])])
      try log.sync()
    }
    let journal = URL(fileURLWithPath: bench.path("a/log/00000001.journal"))
    var bytes = try Data(contentsOf: journal)
    let name = try #require(bytes.range(of: Data("tenant=y".utf8)))
    // More than a checksum mends.
    for index in name { bytes[index] ^= 0x5A }
    try bytes.write(to: journal)
    let report = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(report.damage.count == 1 && report.isVague)
    let remote = RemotePeer(name: "b", address: bench.path("b"))
    let repaired = try bench.open("a").repair(from: [remote]) { _, _ in }
    #expect(repaired.isWhole && repaired.isVague && repaired.events == 1)
    #expect(try bench.open("a").digestTexts == peer.digestTexts)
  }

  @Test func tablesThatAreLostTooShowWhatStandsBeforeTheDamage() throws {
    let pair = try Pair()
    try pair.damage(try #require(try pair.logFiles(".segment").first), at: 0.4)
    for name in ["tables.sqlite", "tables.sqlite-wal", "tables.sqlite-shm"] {
      let path = pair.bench.path("a/" + name)
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }
    let before = try pair.bench.open("b").mark.names.count
    #expect(before > 0)
    do {
      let a = try pair.bench.open("a")
      // Numbers of this node may be among what is lost.
      #expect(a.mark.origins.count == 2)
      #expect(a.notices.contains { $0.contains("cannot be read") })
      let whole = Set(pair.digests)
      #expect(whole.subtracting(try a.digestTexts).count == 1)
    }
    // Such tables answer as if they were whole, whoever opens them: so it is said each time.
    for _ in 0..<2 {
      let a = try pair.bench.open("a", .read)
      #expect(throws: NodeError.self) { try a.checkTablesAreWhole() }
    }
    #expect(try pair.repair().isWhole)
    #expect(try pair.bench.open("a").digestTexts == pair.digests)
    try pair.bench.open("a").checkTablesAreWhole()
  }

  /// Rot in the only frame looks like a torn write where the watermark is gone, too. The tables knew better, and nobody
  /// asked them: verify said that all was good, and the next command dropped their rows.
  @Test func eventsThatOnlyTheTablesRememberAreMissedByVerify() throws {
    let bench = try Bench()
    try { _ = try bench.node("a", Self.rows).commit(Self.row("t0", 1), Self.row("t0", 2)) }()
    let journal = URL(fileURLWithPath: bench.path("a/log/00000001.journal"))
    var bytes = try Data(contentsOf: journal)
    bytes[bytes.startIndex + 120] ^= 1
    try bytes.write(to: journal)
    try Data().write(to: URL(fileURLWithPath: bench.path("a/log/watermark")))
    let report = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(report.isDamaged && report.damage.contains { $0.what.contains("2 events that cannot be read") })
    #expect(try bench.open("a").fields("Row", #"{"tenant":"t0","n":1}"#) == nil)
  }

  /// The open journal is gone, while the one before it waits to be sealed, and the tables were behind both: only the
  /// watermark tells of it. A repair took it for whole when the tables had followed, and so did giving up.
  @Test func aJournalOfWhichOnlyTheWatermarkTellsIsNotForgiven() throws {
    let bench = try Bench(seed: 52)
    let tables = bench.path("a/tables.sqlite")
    func commit(_ numbers: Range<Int>) throws {
      let node = try bench.open("a")
      for number in numbers { try node.commit(Self.row("t0", number)) }
    }
    _ = try bench.node("a", Self.rows)
    try commit(0..<5)
    let behind = try ["", "-wal"].filter { FileManager.default.fileExists(atPath: tables + $0) }
      .map { (tables + $0, try Data(contentsOf: URL(fileURLWithPath: tables + $0))) }
    try commit(5..<8)
    let first = URL(fileURLWithPath: bench.path("a/log/00000001.journal"))
    let journal = try Data(contentsOf: first)
    try bench.seal("a")
    try commit(8..<12)
    let digests = try bench.open("a").digestTexts
    try bench.node("b", Self.rows).sync(try bench.open("a"))
    for name in ["00000001.segment", "00000002.journal"] {
      try FileManager.default.removeItem(atPath: bench.path("a/log/" + name))
    }
    try journal.write(to: first)
    try Self.removeTables(bench)
    for (path, data) in behind { try data.write(to: URL(fileURLWithPath: path)) }
    try bench.copy("a", to: "lost")
    func expectLoss() throws {
      let report = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
      #expect(report.isVague && report.losses.isEmpty && report.events == 8 && report.unconfirmed == 0)
      #expect(report.damage.map { $0.file.hasPrefix(bench.path("a/log/00000002.")) } == [true])
    }
    try expectLoss()
    for _ in 0..<2 {
      let report = try bench.open("a").repair(from: []) { _, _ in }
      #expect(!report.isWhole && report.isVague && report.files.isEmpty)
      try expectLoss()
    }
    let peer = RemotePeer(name: "b", address: bench.path("b"))
    #expect(try bench.open("a").repair(from: [peer]) { _, _ in }.isWhole)
    #expect(try bench.open("a").digestTexts == digests)
    #expect(try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).damage.isEmpty)

    try bench.replace("a", with: "lost")
    let plan = try bench.open("a", .read, leavesFiles: true).giveUp(isDryRun: true) { _, _ in }
    let given = try bench.open("a").giveUp(isDryRun: false) { _, _ in }
    #expect(plan.record?.isVague == true && given.record?.isVague == true)
    // The file in its place names the one before it, when that is sealed, too.
    try bench.seal("a")
    let after = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(after.damage.isEmpty && after.events == 8 && after.givenUp.map(\.isVague) == [true])
  }

  /// A log that has lost its first file, and has no other events, stands at its start. The tables were once taken for
  /// new and empty ones then, and made anew: the second opening took what the first had kept.
  @Test func aLogThatLostItsBeginningDoesNotEmptyTheTables() throws {
    let bench = try Bench()
    let rows = try bench.node("a", Self.rows)
    for number in 0..<5 { try rows.commit(Self.row("t0", number)) }
    let digests = try rows.digestTexts
    let journal = URL(fileURLWithPath: bench.path("a/log/00000001.journal"))
    var bytes = try Data(contentsOf: journal)
    try Data(bytes.map { $0 ^ 0x5A }).write(to: journal)
    for _ in 0..<3 {
      #expect(try bench.open("a").digestTexts == digests)
      let report = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
      #expect(report.losses.map(\.count) == [5] && !report.isVague)
    }
    // With one wrong byte the header is read as it was; with more the frames are, behind a header that says nothing.
    for place in [17, 16] {
      bytes[place] ^= 1
      try bytes.write(to: journal)
      let report = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
      #expect(report.losses.isEmpty && report.rescuable.map(\.count) == [5], "\(place)")
      #expect(try bench.open("a").digestTexts == digests, "\(place)")
    }
  }

  /// Tables that are behind the log, as a crash leaves them, know nothing of its last events. What a damaged file tells of
  /// these was once in nobody's count, and a repair wrote the file anew without it.
  @Test(arguments: ["header", "last frame", "both ends"])
  func whatTheTablesHaveNotTakenInIsNotDropped(kind: String) throws {
    let bench = try Bench()
    func commit(_ numbers: Range<Int>) throws -> [String] {
      let node = try bench.open("a")
      for number in numbers { try node.commit(Self.row("t\(number % 3)", number)) }
      return try node.digestTexts
    }
    _ = try bench.node("a", Self.rows)
    _ = try commit(0..<20)
    let tables = ["", "-wal"].map { bench.path("a/tables.sqlite" + $0) }
    let behind = try tables.filter(FileManager.default.fileExists).map {
      ($0, try Data(contentsOf: URL(fileURLWithPath: $0)))
    }
    let digests = try commit(20..<40)
    try Self.removeTables(bench)
    for (path, data) in behind { try data.write(to: URL(fileURLWithPath: path)) }
    let journal = URL(fileURLWithPath: bench.path("a/log/00000001.journal"))
    var bytes = try Data(contentsOf: journal)
    let last = try #require(bytes.range(of: Data("FRM1".utf8), options: .backwards)).lowerBound
    if kind != "last frame" { bytes[20] ^= 4 }
    if kind != "header" { bytes[last + 60] ^= 4 }
    try bytes.write(to: journal)
    let report = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    let told = report.rescuable.reduce(0) { $0 + $1.count }
    #expect(report.events + told == 40 && report.losses.isEmpty && !report.isVague, "\(report)")
    let repaired = try bench.open("a").repair(from: []) { _, _ in }
    #expect(repaired.rescued == told && repaired.missing.isEmpty)
    #expect(try bench.open("a").digestTexts == digests)
    #expect(try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).events == 40)
  }

  @Test func aPeerWithOtherEventsIsNotBelieved() throws {
    let pair = try Pair()
    try pair.damage(try #require(try pair.logFiles(".segment").first), at: 0.4)
    let losses = try pair.verify("a").losses
    let c = try pair.bench.node("c", Self.rows)
    let address = c.mark.name
    try c.commit(Self.row("t1", 1))
    let report = try pair.repair(from: "c")
    #expect(report.missing == losses && report.files == [] && report.strangers == [address])
    let error = #expect(throws: NodeError.self) { try pair.repair(from: "a") }
    #expect(error.map(caseName) == "notAPeer")
    #expect(try pair.repair().isWhole)
  }

  /// Peers that gave nothing were named as those whose events were put back, by the names that they have for themselves; and one
  /// that holds other partitions was taken for a wrong one.
  @Test func whoGaveNothingIsNotNamedAsGiver() throws {
    let pair = try Pair()
    try pair.damage(try #require(try pair.logFiles(".segment").first), at: 0.4)
    let lost = try pair.verify("a").losses.first?.partition
    _ = try pair.bench.node("c", Self.rows, scope: [lost == "tenant=t0" ? "tenant=t1" : "tenant=t0"])
    _ = try pair.bench.node("d", Self.rows)
    let peers = ["b", "c", "d"].map { RemotePeer(name: "my-\($0)", address: pair.bench.path($0)) }
    let report = try pair.bench.open("a").repair(from: peers) { _, _ in }
    #expect(report.isWhole && report.givers == ["my-b"])
    #expect(report.strangers == ["my-c", "my-d"] && report.unconcerned == ["my-c"])
  }

  /// Two peers hold half of the partitions each. One of them once helped with nothing, in any order.
  @Test(arguments: ["journal", "missing", "cut"])
  func peersThatHoldHalfOfItHealOneAfterTheOtherOrTogether(kind: String) throws {
    for together in [true, false] {
      let pair = try Pair()
      let bench = pair.bench
      for (name, tenants) in [("c", ["t0", "t1"]), ("d", ["t2", "t3"])] {
        let node = try bench.node(name, Self.rows, scope: tenants.map { "tenant=" + $0 })
        try node.sync(try bench.open("b"))
      }
      switch kind {
      case "journal": try pair.damage(try #require(try pair.logFiles(".journal").last), at: 0, bytes: 1 << 30)
      case "cut": try pair.cut(try #require(try pair.logFiles(".segment").first))
      default:
        try FileManager.default.removeItem(
          atPath: bench.path("a/log/" + (try #require(try pair.logFiles(".segment").first))))
      }
      let lost = Set(try pair.verify("a").losses.map(\.partition))
      // The journal lost events of t0 and t3, the sealed file of t0, t1 and t2.
      let other = try #require(lost.max())
      #expect(lost.contains("tenant=t0") && other > "tenant=t1", "\(kind)")
      let tenant = String(other.dropFirst("tenant=".count))
      if together {
        #expect(try pair.repair(from: "c", "d").isWhole, "\(kind)")
      } else {
        let half = try pair.repair(from: "c")
        #expect(half.events > 0 && !half.isWhole, "\(kind)")
        #expect(half.givers == ["c"] && half.strangers.isEmpty, "\(kind)")
        #expect(
          Set(half.missing.map(\.partition)) == lost.subtracting(["tenant=t0", "tenant=t1"]), "\(kind)")
        let a = try bench.open("a")
        // What is whole again is written to and exchanged; the tables have lost nothing.
        #expect(try a.digestTexts == pair.digests, "\(kind)")
        #expect(try a.commit(Self.row("t0", 3000)).count == 1, "\(kind)")
        #expect(try a.refusal(Self.row(tenant, 3000)) == "damagedPartition", "\(kind)")
        #expect(try a.sync(try bench.open("b")).pushed?.events == 1, "\(kind)")
        #expect(try pair.verify("a").losses == half.missing, "\(kind)")
        #expect(try pair.repair(from: "d").isWhole, "\(kind)")
      }
      let a = try bench.open("a")
      try a.checkInvariants()
      #expect(try pair.verify("a").damage.isEmpty, "\(kind)")
      #expect(try a.digestTexts == (try bench.open("b").digestTexts), "\(kind)")
      #expect(try Pair.export(of: a) == Pair.export(of: try bench.open("b")), "\(kind)")
    }
  }

  /// A peer that is behind holds a part of what a file lost of a partition: it was called missing, and no word said that
  /// it is there.
  @Test func whatAPeerCouldGiveIsCounted() throws {
    let pair = try Pair(1)
    let bench = pair.bench
    for number in 2000..<2003 { try bench.open("a").commit(Self.row("t0", number)) }
    let a = try bench.open("a")
    try a.sync(try bench.node("c", Self.rows))
    for number in 3000..<3005 { try a.commit(Self.row("t0", number)) }
    try pair.damage(try #require(try pair.logFiles(".journal").last), at: 0, bytes: 1 << 30)
    let lost = try pair.verify("a").losses.reduce(0) { $0 + $1.count }
    let half = try pair.repair(from: "c")
    let missing = half.missing.reduce(0) { $0 + $1.count }
    #expect(missing >= 8 && half.waiting == missing - 5 && half.events == lost - missing, "\(half)")
    try bench.open("c").sync(try bench.open("b"))
    let (again, all) = (try pair.repair(from: "c"), try pair.repair(from: "b", "c"))
    #expect(again.waiting == half.waiting && all.waiting == half.waiting, "\(again) \(all)")
  }

  @Test func whatIsStillMissingAfterAPartialRepairCanBeGivenUp() throws {
    let pair = try Pair()
    let bench = pair.bench
    let node = try bench.node("c", Self.rows, scope: ["tenant=t0", "tenant=t1"])
    try node.sync(try bench.open("b"))
    try pair.cut(try #require(try pair.logFiles(".segment").first))
    let half = try pair.repair(from: "c")
    #expect(half.events == 1000 && half.missing.reduce(0) { $0 + $1.count } == 500)
    let a = try bench.open("a")
    let given = try a.giveUp(isDryRun: false) { _, _ in }
    #expect(given.record?.events == 500)
    #expect(try Pair.export(of: a) == pair.export)
    #expect(try pair.verify("a").damage.isEmpty)
    try a.checkInvariants()
  }

  // MARK: Bytes that are missing or too many

  /// Ten missing bytes hid all that stood behind them in a sealed file, and ten zeros hid one block: as much was given up.
  @Test func aFileThatLostBytesIsReadLikeOneWithWrongBytes() throws {
    let pair = try Pair(300)
    let name = try #require(try pair.logFiles(".segment").first)
    let url = URL(fileURLWithPath: pair.bench.path("a/log/" + name))
    let bytes = try Data(contentsOf: url)
    let place = bytes.count * 2 / 5
    let (before, behind) = (bytes.prefix(place), bytes.dropFirst(place + 10))
    try (before + Data(repeating: 0, count: 10) + behind).write(to: url)
    let zeroed = try pair.verify("a")
    let planned = try pair.bench.open("a", .read, leavesFiles: true).giveUp(isDryRun: true) { _, _ in }
    #expect(!zeroed.losses.isEmpty && zeroed.rescuable.isEmpty)
    for other in [before + behind, before + Data(repeating: 7, count: 25) + behind] {
      try other.write(to: url)
      let found = try pair.verify("a")
      #expect(found.losses == zeroed.losses && found.rescuable.isEmpty && found.events == zeroed.events)
      let alike = try pair.bench.open("a", .read, leavesFiles: true).giveUp(isDryRun: true) { _, _ in }
      #expect(alike.record?.losses == planned.record?.losses && alike.record?.again == planned.record?.again)
      var count: UInt64 = 0
      #expect(throws: NodeError.self) {
        try pair.bench.open("a", .read).forEachEvent(LogFilter(), newestFirst: true) { _, _ in
          count += 1
          return true
        }
      }
      #expect(count == zeroed.events)
      try bytes.write(to: url)
      #expect(try pair.verify("a").damage.isEmpty)
    }
    try (before + behind).write(to: url)
    #expect(try pair.repair().isWhole)
    try expectWhole(pair, pair.digests, pair.export)
  }

  /// Behind bytes that somebody put in, the frames of a journal do not stand where they were written. `inspect` read them,
  /// and a repair did not take them.
  @Test func framesThatWereMovedAreTaken() throws {
    let bench = try Bench()
    try {
      let node = try bench.node("a", Self.rows)
      for number in 0..<6 { try node.commit(Self.row("t\(number)", 1)) }
    }()
    let url = URL(fileURLWithPath: bench.path("a/log/00000001.journal"))
    let bytes = try Data(contentsOf: url)
    let place = try #require(bytes.range(of: Data("tenant=t2".utf8))).lowerBound
    try (bytes.prefix(place) + Data([1, 2, 3]) + bytes.dropFirst(place + 1)).write(to: url)
    let found = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(found.losses.map(\.partition) == ["tenant=t2"])
    #expect(found.rescuable.map(\.partition) == ["tenant=t3", "tenant=t4", "tenant=t5"])
    let repaired = try bench.open("a").repair(from: []) { _, _ in }
    #expect(repaired.rescued == 3 && repaired.missing.map(\.partition) == ["tenant=t2"])
    #expect(try bench.open("a").commit(Self.row("t5", 2)).count == 1)
  }

  // MARK: Files that the log never had

  /// A copy under a higher number made all numbers between missing, and a repair wrote an empty file for each.
  @Test(arguments: ["segment", "journal"])
  func aCopyUnderANumberThatWasNeverGivenCountsForNothing(kind: String) throws {
    let pair = try Pair(30)
    let name = try #require(try pair.logFiles("." + kind).last)
    let stray = "00000099." + kind
    try FileManager.default.copyItem(
      atPath: pair.bench.path("a/log/" + name), toPath: pair.bench.path("a/log/" + stray))
    let files = try pair.bench.contents("a").filter { $0.key.hasPrefix("log/") }
    let report = try pair.verify("a")
    #expect(report.damage.count == 1 && report.damage[0].file.hasSuffix(stray) && !report.isDamaged)
    #expect(report.damage[0].what.contains("copy of \(name)") && report.commands.isEmpty)
    // It may be the only one that is whole.
    #expect(
      report.damage[0].what.hasSuffix("; take it away, or put it in that one's place if that is damaged"))
    #expect(try pair.repair(from: []).files == [])
    #expect(try pair.bench.contents("a").filter { $0.key.hasPrefix("log/") } == files)
    let a = try pair.bench.open("a")
    #expect(a.notices == [])
    #expect(try a.digestTexts == pair.digests && a.commit(Self.row("t9", 1)).count == 1)
    try a.checkInvariants()
    try FileManager.default.removeItem(atPath: pair.bench.path("a/log/" + stray))
    #expect(try pair.verify("a").damage.isEmpty)
  }

  // MARK: Files under other names

  /// `a` and `b`, whose log has three sealed files; each of them has events of each stream.
  private func threeFiles(_ count: Int = 500) throws -> Pair {
    let pair = try Pair(count)
    let a = try pair.bench.open("a")
    for number in 1...2 {
      try a.write { transaction throws(NodeError) in
        for tenant in 0..<4 {
          for row in 0..<(count * 3 / 10) {
            let text = String(repeating: "\(row * 7907 % 1000) ", count: 200)
            let line: Mutation
            do {
              line = try mutation(
                #"{"op":"create","model":"Row","key":{"tenant":"t\#(tenant)","n":\#(number * 5000 + row)},"fields":{"text":"\#(text)"}}"#
              )
            } catch { throw .damaged(what: "\(error)") }
            try transaction.perform(line)
          }
        }
      }
      try a.sealIfWanted()
    }
    try a.sync(try pair.bench.open("b"))
    #expect(try pair.logFiles(".segment").count == 3)
    return pair
  }

  /// Two neighbours of which nothing says what they held. All was looked for in the first, and a repair wrote the second
  /// anew, empty, although every event could be read there.
  @Test(arguments: [false, true]) func neighboursWithoutFootersKeepWhatTheyTell(isOneGone: Bool) throws {
    let pair = try threeFiles(50)
    let digests = try pair.bench.open("a").digestTexts
    let export = try Pair.export(of: try pair.bench.open("a"))
    let names = try pair.logFiles(".segment")
    for name in names.prefix(2) {
      let url = URL(fileURLWithPath: pair.bench.path("a/log/" + name))
      let bytes = try Data(contentsOf: url)
      try bytes.prefix(isOneGone && name == names[1] ? 100 : bytes.count - 30).write(to: url)
    }
    let files = try pair.bench.contents("a").filter { $0.key.hasPrefix("log/") }
    let report = try pair.verify("a")
    #expect(report.losses.isEmpty != isOneGone)
    let alone = try pair.repair(from: [], takesUnnoted: true)
    #expect(alone.isWhole != isOneGone)
    // What the first tells is told, and waits for the other one.
    #expect(report.rescuable.reduce(0) { $0 + $1.count } > 0)
    #expect(alone.rescued == (isOneGone ? 0 : report.rescuable.reduce(0) { $0 + $1.count }))
    if isOneGone {
      #expect(try pair.bench.contents("a").filter { $0.key.hasPrefix("log/") } == files)
      #expect(try pair.repair().isWhole)
    }
    try expectWhole(pair, digests, export)
  }

  /// A file that lost its header and a block told whole blocks of a partition of which others are gone. Where other partitions of it could
  /// be proven, it was written anew without these blocks, and nobody could use them any more.
  @Test func whatNothingProvesYetStaysWhereItIs() throws {
    let pair = try Pair()
    let segment = try #require(try pair.logFiles(".segment").first)
    try pair.damage(segment, at: 0)
    try pair.damage(segment, at: 0.4)
    let files = try pair.bench.contents("a").filter { $0.key.hasPrefix("log/") }
    let planned = try pair.bench.open("a").giveUp(isDryRun: true) { _, _ in }
    #expect(planned.rescued > 0)
    let alone = try pair.repair(from: [])
    #expect(!alone.isWhole && alone.files.isEmpty && alone.rescued == 0)
    #expect(try pair.bench.contents("a").filter { $0.key.hasPrefix("log/") } == files)
    #expect(try pair.repair().isWhole)
    try expectWhole(pair, pair.digests, pair.export)
  }

  private func path(_ pair: Pair, _ number: UInt64) -> String {
    pair.bench.path("a/log/0000000\(number).segment")
  }

  private func move(_ pair: Pair, _ from: UInt64, to other: UInt64) throws {
    try FileManager.default.moveItem(atPath: path(pair, from), toPath: path(pair, other))
  }

  private func copy(_ pair: Pair, _ from: UInt64, over other: UInt64) throws {
    try FileManager.default.removeItem(atPath: path(pair, other))
    try FileManager.default.copyItem(atPath: path(pair, from), toPath: path(pair, other))
  }

  private func expectWhole(_ pair: Pair, _ digests: [String], _ export: [UInt8]) throws {
    let report = try pair.verify("a")
    #expect(report.damage.isEmpty && report.losses.isEmpty && !report.isVague)
    let a = try pair.bench.open("a")
    try a.checkInvariants()
    #expect(try a.digestTexts == digests)
    #expect(try Pair.export(of: a) == export)
    #expect(try a.commit(Self.row("t9", 1)).count == 1)
    #expect(try pair.verify("a").damage.isEmpty)
  }

  /// Two files renamed into each other were each taken for the file of its name: a repair put the events of either into
  /// the place of the other, where nothing could read them, and removed what was whole.
  @Test(arguments: [false, true])
  func filesThatHaveEachOthersNamesAreRenamed(three: Bool) throws {
    let pair = try threeFiles()
    let digests = try pair.bench.open("a").digestTexts
    let export = try Pair.export(of: try pair.bench.open("a"))
    let files = try pair.logFiles(".segment")
    let numbers = files.map { UInt64($0.prefix(8)) ?? 0 }
    let bytes = try numbers.map { try Data(contentsOf: URL(fileURLWithPath: path(pair, $0))) }
    try move(pair, numbers[0], to: 9)
    try move(pair, numbers[1], to: numbers[0])
    if three { try move(pair, numbers[2], to: numbers[1]) }
    try move(pair, 9, to: three ? numbers[2] : numbers[1])
    let report = try pair.verify("a")
    #expect(report.damage.count { $0.what.contains("under another name") } == (three ? 3 : 2))
    #expect(report.losses.isEmpty && report.commands == ["stemma repair"])
    let repaired = try pair.repair(from: [])
    #expect(repaired.isWhole && repaired.files.count == (three ? 3 : 2))
    #expect(try pair.logFiles(".segment") == files)
    for (number, content) in zip(numbers, bytes) {
      #expect(try Data(contentsOf: URL(fileURLWithPath: path(pair, number))) == content)
    }
    try expectWhole(pair, digests, export)
  }

  /// A file that has a number which was never given made all numbers before that one missing.
  @Test func aFileThatIsOnlyRenamedGetsItsNameBack() throws {
    let pair = try threeFiles()
    let digests = try pair.bench.open("a").digestTexts
    let export = try Pair.export(of: try pair.bench.open("a"))
    let files = try pair.logFiles(".segment")
    let number = try #require(files.dropFirst().first.flatMap { UInt64($0.prefix(8)) })
    try move(pair, number, to: 9)
    let report = try pair.verify("a")
    #expect(report.damage.count == 1 && report.losses.isEmpty)
    #expect(try pair.repair(from: []).isWhole)
    #expect(try pair.logFiles(".segment") == files)
    try expectWhole(pair, digests, export)
  }

  /// Such a file counted for nothing in the size of the log, and nobody said why no journal was sealed any more.
  @Test func statusSaysWhatAFileUnderAnotherNameHoldsUp() throws {
    let pair = try threeFiles()
    let before = try pair.bench.open("a").status()
    let number = try #require(
      try pair.logFiles(".segment").dropFirst().first.flatMap { UInt64($0.prefix(8)) })
    try move(pair, number, to: 9)
    do {
      let a = try pair.bench.open("a")
      let found = try a.status()
      #expect(found.logBytes == before.logBytes && found.files == before.files)
      #expect(!found.notices.contains { $0.contains("not sealed") })
      let text = String(repeating: "long ", count: 90_000)
      try a.commit(
        #"{"op":"create","model":"Row","key":{"tenant":"t9","n":1},"fields":{"text":"\#(text)"}}"#)
      try a.sealIfWanted()
      #expect(try a.status().notices.contains { $0.contains("not sealed") })
    }
    #expect(try pair.repair(from: []).isWhole)
    let a = try pair.bench.open("a")
    #expect(!(try a.status()).notices.contains { $0.contains("not sealed") })
    let sealed = try pair.logFiles(".segment").count
    try a.sealIfWanted()
    #expect(try pair.logFiles(".segment").count == sealed + 1)
  }

  /// A file that is missing is none, for nobody.
  @Test func statusCountsTheFilesThatAreThere() throws {
    let pair = try threeFiles()
    let before = try pair.bench.open("a").status()
    let gone = path(pair, try #require(UInt64(try pair.logFiles(".segment")[0].prefix(8))))
    let size = UInt64(try Data(contentsOf: URL(fileURLWithPath: gone)).count)
    try FileManager.default.removeItem(atPath: gone)
    let after = try pair.bench.open("a").status()
    #expect(after.files == before.files - 1 && after.logBytes == before.logBytes - size)
    #expect(try pair.verify("a").files == after.files)
  }

  /// One file copied over another: that one is lost, and what stands in its place tells nothing of it, be its header
  /// whole or not.
  @Test(arguments: [(0, 1), (1, 0)], ["peer", "nobody", "header"])
  func aFileCopiedOverAnotherIsALostOne(files: (from: Int, to: Int), help: String) throws {
    let pair = try threeFiles()
    let digests = try pair.bench.open("a").digestTexts
    let export = try Pair.export(of: try pair.bench.open("a"))
    let names = try pair.logFiles(".segment")
    let numbers = names.map { UInt64($0.prefix(8)) ?? 0 }
    try copy(pair, numbers[files.from], over: numbers[files.to])
    if help == "header" { try pair.damage(names[files.to], at: 0.0001, bytes: 40) }
    let report = try pair.verify("a")
    let lost = report.losses.reduce(0) { $0 + $1.count }
    #expect(lost > 0 && report.rescuable.isEmpty && !report.isVague)
    // Alone it changes nothing, and says what is missing.
    let alone = try pair.repair(from: [])
    #expect(alone.files == [] && alone.missing == report.losses && !alone.isWhole)
    #expect(try pair.logFiles(".segment") == names && pair.verify("a").losses == report.losses)
    if help == "nobody" {
      let given = try pair.bench.open("a").giveUp(isDryRun: false) { _, _ in }
      #expect(given.record?.events == lost)
      #expect(try pair.verify("a").damage.isEmpty)
      let a = try pair.bench.open("a")
      try a.checkInvariants()
      #expect(try Pair.export(of: a) == export)
    } else {
      let repaired = try pair.repair()
      #expect(repaired.isWhole && repaired.events == lost)
      try expectWhole(pair, digests, export)
    }
  }

  /// Where no header tells whose name a file has, the order of the streams does: nothing is put where it could not be
  /// read.
  @Test func filesThatExchangedTheirNamesAndLostTheirHeadersAreMended() throws {
    let pair = try threeFiles()
    let digests = try pair.bench.open("a").digestTexts
    let export = try Pair.export(of: try pair.bench.open("a"))
    let names = try pair.logFiles(".segment")
    let numbers = names.map { UInt64($0.prefix(8)) ?? 0 }
    let exchange = {
      try move(pair, numbers[0], to: 9)
      try move(pair, numbers[1], to: numbers[0])
      try move(pair, 9, to: numbers[1])
    }
    try exchange()
    for name in names.prefix(2) { try pair.damage(name, at: 0.0001, bytes: 40) }
    let report = try pair.verify("a")
    #expect(!report.losses.isEmpty)
    // Alone it changes nothing.
    let alone = try pair.repair(from: [])
    #expect(!alone.isWhole && alone.files == [])
    #expect(try pair.logFiles(".segment") == names)
    let repaired = try pair.repair()
    #expect(repaired.isWhole, "\(repaired)")
    try expectWhole(pair, digests, export)
  }

  /// What the footer of a file says that it held was believed of the file whose name it has: a repair called it missing for
  /// ever, or wrote files between which events were missing.
  @Test(arguments: ["first over second", "second over first", "second for first"], [true, false])
  func whatAFileUnderAnotherNameSaysOfItselfIsNotTakenForTheOther(kind: String, hasTables: Bool) throws {
    let pair = try threeFiles()
    let digests = try pair.bench.open("a").digestTexts
    let export = try Pair.export(of: try pair.bench.open("a"))
    let names = try pair.logFiles(".segment")
    let numbers = names.map { UInt64($0.prefix(8)) ?? 0 }
    switch kind {
    case "first over second": try copy(pair, numbers[0], over: numbers[1])
    case "second over first": try copy(pair, numbers[1], over: numbers[0])
    default:
      try FileManager.default.removeItem(atPath: path(pair, numbers[0]))
      try move(pair, numbers[1], to: numbers[0])
    }
    for name in try pair.logFiles(".segment").prefix(2) { try pair.damage(name, at: 0.0001, bytes: 40) }
    if !hasTables { try pair.removeTables() }
    let repaired = try pair.repair()
    #expect(repaired.isWhole, "\(repaired)")
    try expectWhole(pair, digests, export)
  }
}
