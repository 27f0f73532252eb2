import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSimulation
import StemmaTables
import Testing

/// A node gives up what damage has taken: it shows what it showed, can be written again, and agrees with its peers.
@Suite struct GivingUpTests {
  static let schema = """
    type Row @model { tenant: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! text: String note: String rank: Int }
    type Pick @model @conflict(policy: OPTIMISTIC) {
      tenant: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! text: String rank: Int
    }
    """

  /// Nodes `a` and `b` that have written to few records, deleted some, and exchanged now and then, so that there
  /// are conflicts of every kind.
  private struct Story {
    let bench: Bench
    var random: SplitMix64

    init(seed: UInt64) throws {
      bench = try Bench(seed: seed, segmentSize: seed % 2 == 0 ? 12_000 : 4000)
      random = SplitMix64(seed: seed)
      var nodes: [Node] = []
      for name in ["a", "b"] { nodes.append(try bench.node(name, GivingUpTests.schema)) }
      for step in 0..<30 {
        for node in nodes { try write(to: node, step) }
        if step % 6 == 5 { try nodes[0].sync(nodes[1]) }
        if step % 10 == 9 { try nodes[0].sealIfWanted() }
      }
    }

    mutating func write(to node: Node, _ step: Int) throws {
      var lines: [String] = []
      for _ in 0..<(1 + Int(random.next() % 4)) {
        let model = random.next() % 4 == 0 ? "Pick" : "Row"
        let key = #"{"tenant":"t\#(random.next() % 2)","n":\#(random.next() % 6)}"#
        let text = "\(step) " + String(random.next(), radix: 36)
        switch random.next() % 8 {
        case 0: lines.append(#"{"op":"delete","model":"\#(model)","key":\#(key)}"#)
        case 1: lines.append(#"{"op":"upsert","model":"\#(model)","key":\#(key),"fields":{"rank":null}}"#)
        default:
          let field = ["text", model == "Row" ? "note" : "text", "rank"][Int(random.next() % 3)]
          let value = field == "rank" ? "\(random.next() % 9)" : "\"\(text)\""
          lines.append(#"{"op":"upsert","model":"\#(model)","key":\#(key),"fields":{"\#(field)":\#(value)}}"#)
        }
      }
      for line in lines {
        // What is not there cannot be deleted.
        if line.contains("delete"), try node.refusal(line) != "" { continue }
        if !line.contains("delete") { try node.commit(line) }
      }
    }

    /// Spoils bytes of the log that every writer knows to be durable.
    mutating func damage(_ name: String) throws -> String {
      let folder = bench.path(name + "/log")
      let files = try FileManager.default.contentsOfDirectory(atPath: folder)
        .filter { $0.hasSuffix(".segment") || $0.hasSuffix(".journal") }.sorted()
      let file = files[Int(random.next() % UInt64(files.count))]
      let url = URL(fileURLWithPath: folder + "/" + file)
      var bytes = try Data(contentsOf: url)
      let offset = Int(random.next() % UInt64(bytes.count))
      let pattern = UInt8(1 + random.next() % 255)
      for index in offset..<min(offset + 40, bytes.count) { bytes[index] ^= pattern }
      try bytes.write(to: url)
      return "\(file) at \(offset) of \(bytes.count)"
    }
  }

  /// What a node shows: rows with their versions, and open conflicts.
  private func shown(_ node: Node) throws -> [String] {
    var lines: [String] = []
    for model in node.schema.models {
      try node.query("SELECT * FROM \(model.tableName)") { columns, row in
        let values = zip(columns, row).filter { $0.0 != "_state" }.map { "\($0.0)=\($0.1)" }
        lines.append("\(model.name) " + values.joined(separator: " "))
      }
    }
    return lines.sorted() + (try node.conflictTexts)
  }

  private func giveUp(_ bench: Bench, isDryRun: Bool = false) throws -> GivingUpReport {
    if isDryRun { return try bench.open("a", .read, leavesFiles: true).giveUp(isDryRun: true) { _, _ in } }
    return try bench.open("a").giveUp(isDryRun: false) { _, _ in }
  }

  /// 16 loses the whole log; in 18 a lost write is in conflict; in 31 only the order of origins decides what is shown.
  @Test(arguments: [5, 8, 16, 18, 23, 31] as [UInt64])
  func whatIsShownStaysAndPeersAgree(seed: UInt64) throws {
    var story = try Story(seed: seed)
    let bench = story.bench
    let before = try shown(bench.open("a"))
    let count = try bench.open("a").history.count
    let place = try story.damage("a")
    let planned = try giveUp(bench, isDryRun: true)
    let report = try giveUp(bench)
    let context: Comment = "seed \(seed), \(place)"
    #expect(planned.record?.losses == report.record?.losses, context)
    let a = try bench.open("a")
    #expect(planned.rescued == report.rescued && (report.record != nil || report.rescued > 0), context)
    #expect(planned.record?.again == report.record?.again, context)
    #expect(planned.record?.fillers == report.record?.fillers, context)
    // Every event that came or went is accounted for.
    let lost = report.record.map { Int($0.events) - Int($0.standIns + $0.fillers) } ?? 0
    #expect(try a.history.count == count - lost, context)
    try a.checkInvariants()
    #expect(try shown(a) == before, context)
    let verified = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(verified.damage.isEmpty, context)
    _ = try a.rebuild { _, _ in }
    #expect(try shown(a) == before, context)
    for tenant in ["t0", "t1"] {
      try a.commit(#"{"op":"upsert","model":"Row","key":{"tenant":"\#(tenant)","n":99},"fields":{"rank":1}}"#)
    }
    // One peer has never seen what was lost, the other has.
    try a.sync(try bench.node("c", Self.schema))
    // An empty node's tables are made anew when it pulls a file.
    let c = try bench.open("c")
    #expect(try c.digestTexts == a.digestTexts, context)
    let b = try bench.open("b")
    try a.sync(b)
    try b.sync(c)
    for node in [a, b, c] { try node.checkInvariants() }
    #expect(try a.digestTexts == b.digestTexts && b.digestTexts == c.digestTexts, context)
  }

  /// What stands in for lost events can be lost itself.
  @Test(arguments: [5, 8, 16, 18, 23, 31] as [UInt64])
  func aSecondLossIsGivenUpOnTopOfTheFirst(seed: UInt64) throws {
    var story = try Story(seed: seed)
    let bench = story.bench
    var losses = 0
    for round in 1...2 {
      let before = try shown(bench.open("a"))
      let place = try story.damage("a")
      if try giveUp(bench).record != nil { losses += 1 }
      let context: Comment = "seed \(seed), round \(round), \(place)"
      let a = try bench.open("a")
      try a.checkInvariants()
      #expect(try shown(a) == before, context)
      #expect(a.mark.givenUp.count == losses, context)
      _ = try a.rebuild { _, _ in }
      #expect(try shown(a) == before, context)
      for step in 40..<50 { try story.write(to: a, step * round) }
      try a.sealIfWanted()
    }
    #expect(losses > 0)
    let (a, b, c) = (try bench.open("a"), try bench.open("b"), try bench.node("c", Self.schema))
    try a.sync(c)
    try a.sync(b)
    try b.sync(c)
    for node in [a, b, c] { try node.checkInvariants() }
    #expect(try a.digestTexts == b.digestTexts && b.digestTexts == c.digestTexts, "seed \(seed)")
  }

  // MARK: Plain

  private static func row(_ number: Int, _ text: String) -> String {
    #"{"op":"upsert","model":"Row","key":{"tenant":"t0","n":\#(number)},"fields":{"text":"\#(text)"}}"#
  }

  /// A node whose only segment lost a part of its middle, and the losses.
  private func damaged(_ rows: Int) throws -> (bench: Bench, losses: [RecordedDamage.Loss]) {
    let bench = try Bench(segmentSize: rows * 350)
    let a = try bench.node("a", Self.schema)
    for number in 0..<rows {
      try a.commit(Self.row(number, String(repeating: "\(number * 7919 % 1000) ", count: 100)))
    }
    try a.sealIfWanted()
    let segment = try #require(
      try FileManager.default.contentsOfDirectory(atPath: bench.path("a/log")).first {
        $0.hasSuffix(".segment")
      })
    let url = URL(fileURLWithPath: bench.path("a/log/" + segment))
    var bytes = try Data(contentsOf: url)
    for index in 0..<40 { bytes[bytes.count / 2 + index] ^= 0x5A }
    try bytes.write(to: url)
    return (bench, try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).losses)
  }

  @Test func whatIsGivenUpIsRecordedAndSaid() throws {
    let (bench, losses) = try damaged(400)
    let lost = losses.reduce(0) { $0 + $1.count }
    #expect(lost > 0 && lost < 400)
    let rows = try shown(bench.open("a"))
    #expect(try bench.open("a").refusal(Self.row(1000, "new")) == "damagedPartition")
    let before = try bench.contents("a")
    let planned = try giveUp(bench, isDryRun: true)
    #expect(try Set(bench.contents("a").keys) == Set(before.keys) && bench.contents("a") == before)
    #expect(planned.record?.losses == losses && planned.record?.standIns == lost)

    let report = try giveUp(bench)
    #expect(report.record?.losses == losses && report.record?.unknown == 0)
    let a = try bench.open("a")
    #expect(a.mark.givenUp == [report.record].compactMap(\.self) && a.mark.damage == nil)
    #expect(a.notices == [] && a.mark.pendingGivingUp == nil)
    #expect(try shown(a) == rows)
    #expect(try a.history.count == 400)
    #expect(try a.commit(Self.row(1000, "new")).count == 1)
    let verified = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(verified.damage.isEmpty && verified.givenUp == a.mark.givenUp)
    // Once more there is nothing to give up.
    #expect(try giveUp(bench).record == nil)
    #expect(try bench.open("a").mark == a.mark)
  }

  private func removeTables(_ bench: Bench) throws {
    for name in ["tables.sqlite", "tables.sqlite-wal", "tables.sqlite-shm"] {
      let path = bench.path("a/" + name)
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }
  }

  @Test func withoutTablesOnlyWhatCanBeReadIsLeftAndThatIsSaid() throws {
    let (bench, losses) = try damaged(400)
    try removeTables(bench)
    let lost = losses.reduce(0) { $0 + $1.count }
    // It began an origin, recorded the damage, and made tables, of which it said that they lost nothing.
    let before = try bench.contents("a")
    let planned = try giveUp(bench, isDryRun: true)
    #expect(try bench.contents("a") == before)
    let record = try #require(try giveUp(bench).record)
    #expect(planned.record == record)
    #expect(record.standIns == 0 && record.unknown == lost && record.losses == losses)
    let a = try bench.open("a")
    try a.checkInvariants()
    #expect(try shown(a).count == 400 - Int(lost))
    #expect(try a.commit(Self.row(1000, "new")).count == 1)
  }

  /// Of tables with a damaged row, giving up said that a rebuild makes them anew, and a rebuild that the log must be repaired
  /// first.
  @Test func tablesWithADamagedRowAreNoReasonToKeepTheDamage() throws {
    let (bench, losses) = try damaged(400)
    let lost = losses.reduce(0) { $0 + $1.count }
    let path = bench.path("a/tables.sqlite")
    try Tables.open(at: path, schema: bench.open("a").schema, mode: .readWrite).checkpoint()
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    // Of a row that is still told by the log.
    let row = try #require(bytes.range(of: Data("919 919 919".utf8)))
    bytes[row.lowerBound] ^= 1
    try bytes.write(to: URL(fileURLWithPath: path))
    let before = try bench.contents("a")
    let planned = try giveUp(bench, isDryRun: true)
    #expect(try bench.contents("a")["tables.sqlite"] == before["tables.sqlite"])
    let record = try #require(try giveUp(bench).record)
    #expect(planned.record == record && record.standIns == 0 && record.losses == losses)
    let a = try bench.open("a")
    try a.checkInvariants()
    #expect(try shown(a).count == 400 - Int(lost))
    #expect(try Node.verify(at: a.directory, options: Node.OpeningOptions()).damage.isEmpty)
    #expect(try a.commit(Self.row(1000, "new")).count == 1)
  }

  /// Tables are gone, so nobody remembers what a file held whose end is spoiled, nor one that is missing. The first told
  /// its events all the same, and they were given up with those of the other.
  @Test func whatOnlyASpoiledFileTellsIsNotGivenUp() throws {
    let bench = try Bench(segmentSize: 2000)
    try {
      let a = try bench.node("a", Self.schema)
      for file in 0..<7 {
        let lines = try (0..<20).map { number in
          let text = String(repeating: "\(number * 7919 % 1000) ", count: 30)
          let key = #"{"tenant":"\#(number % 2 == 0 ? "all" : "t\(file)")","n":\#(file * 20 + number)}"#
          return try mutation(#"{"op":"create","model":"Row","key":\#(key),"fields":{"text":"\#(text)"}}"#)
        }
        try a.write { transaction throws(NodeError) in for line in lines { try transaction.perform(line) } }
        try a.sealIfWanted()
      }
      try a.sync(try bench.node("b", Self.schema))
    }()
    let segments = try bench.contents("a").keys.filter { $0.hasSuffix(".segment") }.sorted()
    try #require(segments.count == 7)
    let third = URL(fileURLWithPath: bench.path("a/" + segments[2]))
    var bytes = try Data(contentsOf: third)
    for index in bytes.indices.suffix(100) { bytes[index] ^= UInt8(truncatingIfNeeded: index | 1) }
    try bytes.write(to: third)
    try FileManager.default.removeItem(atPath: bench.path("a/" + segments[5]))
    try removeTables(bench)

    let before = try bench.contents("a")
    let planned = try giveUp(bench, isDryRun: true)
    #expect(try bench.contents("a") == before)
    let report = try giveUp(bench)
    #expect(planned.record == report.record && planned.rescued == report.rescued && report.rescued == 20)
    // Ten are behind the missing file in the stream of "all".
    #expect(report.record?.events == 10 && report.record?.again == 10 && report.record?.isVague == true)
    let a = try bench.open("a")
    try a.checkInvariants()
    #expect(try a.history.count == 120)
    let texts = try a.digestTexts
    let b = try bench.open("b")
    #expect(try b.digestTexts.filter { $0.hasPrefix("tenant=t2 ") && texts.contains($0) }.count == 1)
    try a.sync(b)
    #expect(try a.digestTexts == b.digestTexts)
  }

  /// Tables are gone, the end of a file with the checksums of its blocks, and a block in its middle: all that stood behind
  /// the first missing number of a stream was given up, although whole blocks told it; and verify did not name it.
  @Test func whatWholeBlocksTellIsKeptAlsoWhereOthersOfItsStreamAreGone() throws {
    let bench = try Bench(segmentSize: 300_000)
    let count = 1200
    try {
      let a = try bench.node("a", Self.schema)
      // Numbers do not rise with the keys.
      let lines = try (0..<count).map { number in
        let text = (0..<60).map { String((number * 7919 + $0 * 104_729) % 1000) }.joined(separator: " ")
        return try mutation(Self.row(number * 487 % count, text))
      }
      try a.write { transaction throws(NodeError) in for line in lines { try transaction.perform(line) } }
      try a.sealIfWanted()
    }()
    let name = try #require(try bench.contents("a").keys.first { $0.hasSuffix(".segment") })
    let url = URL(fileURLWithPath: bench.path("a/" + name))
    var bytes = try Data(contentsOf: url).dropLast(120)
    let middle = bytes.count / 2
    for index in middle..<middle + 60 { bytes[index] ^= 0x5A }
    try bytes.write(to: url)
    try removeTables(bench)
    var told = 0
    try inspect(try InspectedFile(path: url.path, fileSystem: POSIXFileSystem()), as: .segment) { part in
      told += part.block?.count ?? 0
    }
    try #require(told > count / 2 && told < count)
    let verified = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(verified.rescuable.reduce(0) { $0 + $1.count } == told)
    #expect(verified.losses.reduce(0) { $0 + $1.count } <= count - told)
    let planned = try giveUp(bench, isDryRun: true)
    let report = try giveUp(bench)
    #expect(planned.record == report.record && report.rescued == told)
    #expect(report.record?.losses == verified.losses)
    let a = try bench.open("a")
    try a.checkInvariants()
    #expect(try shown(a).count == told && a.history.count == told)
    #expect(try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).damage.isEmpty)
    #expect(try a.commit(Self.row(5000, "new")).count == 1)
  }

  /// Each operation of giving up on the files of log and mark is the last one of its process; the next process finishes it.
  @Test func aGivingUpThatIsInterruptedIsFinishedAndSaysNothingTwice() throws {
    let (bench, losses) = try damaged(60)
    let rows = try shown(bench.open("a"))
    try bench.copy("a", to: "kept")
    var interruptions = 0
    for operation in 1... {
      try bench.replace("a", with: "kept")
      // A copy begins an origin, before anything is counted.
      _ = try bench.open("a")
      let failing = FailingFileSystem()
      var isDone = true
      do {
        let node = try bench.open("a", on: failing)
        failing.fail(from: operation)
        _ = try node.giveUp(isDryRun: false) { _, _ in }
      } catch let error as NodeError {
        #expect(caseName(error) == "log", "\(operation): \(error)")
        isDone = false
        interruptions += 1
      }
      if isDone { break }
      if try bench.open("a").mark.givenUp.isEmpty { _ = try giveUp(bench) }
      let a = try bench.open("a")
      try a.checkInvariants()
      #expect(try shown(a) == rows, "\(operation)")
      #expect(a.mark.givenUp.count == 1 && a.mark.givenUp.first?.losses == losses, "\(operation)")
      #expect(try a.history.count == 60, "\(operation)")
    }
    #expect(interruptions > 55)
  }
}
