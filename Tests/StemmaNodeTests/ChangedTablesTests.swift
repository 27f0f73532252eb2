import Foundation
import StemmaEvents
import StemmaNode
import StemmaSimulation
import StemmaTables
import Testing

/// Tables are a cache with arbitrary contents after corruption. Nothing traps, and a rebuild
/// restores them.
@Suite struct ChangedTablesTests {
  static let schema = """
    type Row @model { tenant: ID! @primaryKey(sortKeyFields: ["n"]) n: Int! text: String parent: Part @belongsTo }
    type Part @model { id: ID! weight: Float rows: [Row] @hasMany }
    """

  @Test func bytesThatChangedInTheTablesAreToldOrRebuilt() throws {
    let bench = try Bench(seed: 11)
    let node = try bench.node("a", Self.schema)
    for number in 0..<40 {
      try node.commit(
        #"{"op":"create","model":"Part","key":{"id":"p\#(number)"},"fields":{"weight":\#(number)}}"#)
    }
    for number in 0..<300 {
      try node.commit(
        #"{"op":"create","model":"Row","key":{"tenant":"t\#(number % 3)","n":\#(number)},"fields":{"text":"\#(String(repeating: "x", count: number % 90))"}}"#
      )
    }
    for number in stride(from: 0, to: 300, by: 7) {
      try node.commit(#"{"op":"delete","model":"Row","key":{"tenant":"t\#(number % 3)","n":\#(number)}}"#)
    }
    let digests = try node.digestTexts
    _ = try node.rebuild { _, _ in }
    try bench.copy("a", to: "kept")
    var random = SplitMix64(seed: 11)
    var told = 0
    let rounds = Trials.count(30)
    for round in 0..<rounds {
      try bench.replace("a", with: "kept")
      let url = URL(fileURLWithPath: bench.path("a/tables.sqlite"))
      var bytes = try Data(contentsOf: url)
      let count = [16, 64, 512, 4096][Int(random.next() % 4)]
      let offset = Int(random.next() % UInt64(bytes.count - count))
      let isZero = random.next() % 2 == 0
      for place in offset..<offset + count { bytes[place] = isZero ? 0 : UInt8(random.next() & 0xFF) }
      try bytes.write(to: url)
      let context: Comment = "round \(round): \(count) bytes at \(offset)"
      do {
        let changed = try bench.open("a")
        _ = try changed.digestTexts
        _ = try changed.conflictTexts
        for model in changed.schema.models {
          try changed.query("SELECT * FROM \(model.tableName)") { _, _ in }
        }
      } catch is NodeError { told += 1 }
      let report = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
      #expect(report.corruption.allSatisfy { $0.file.contains("tables") }, context)
      _ = try bench.open("a").rebuild { _, _ in }
      #expect(try bench.open("a").digestTexts == digests, context)
    }
    #expect(told > rounds / 6)
  }

  /// A disk that lost one write returns an old page with valid checksums. If the page holds the
  /// head of a stream, a writer could reuse sequence numbers.
  @Test func pagesThatAreAsTheyWereSomeTimeAgoMakeNoNumberTwice() throws {
    let bench = try Bench(seed: 12)
    var node = try bench.node("a", Self.schema)
    for number in 0..<200 {
      try node.commit(
        #"{"op":"create","model":"Row","key":{"tenant":"t\#(number)","n":1},"fields":{"text":"\#(number)"}}"#)
    }
    _ = try node.rebuild { _, _ in }
    let tables = URL(fileURLWithPath: bench.path("a/tables.sqlite"))
    let before = try Data(contentsOf: tables)
    node = try bench.open("a")
    for number in 0..<40 {
      try node.commit(
        #"{"op":"update","model":"Row","key":{"tenant":"t\#(number * 5)","n":1},"fields":{"text":"new"}}"#)
    }
    try Tables.open(at: tables.path, schema: node.schema, mode: .readWrite).checkpoint()
    let digests = try node.digestTexts
    try bench.copy("a", to: "kept")
    for sidecar in ["-wal", "-shm"] {
      try FileManager.default.removeItem(atPath: bench.path("kept/tables.sqlite" + sidecar))
    }
    let after = try Data(contentsOf: tables)
    let mutations = try (0..<200).map { number in
      try mutation(
        #"{"op":"upsert","model":"Row","key":{"tenant":"t\#(number)","n":2},"fields":{"text":"x"}}"#)
    }
    let size = 4096
    var stale = 0
    for page in 0..<min(before.count, after.count) / size {
      let range = page * size..<(page + 1) * size
      guard after[range] != before[range] else { continue }
      stale += 1
      try bench.replace("a", with: "kept")
      var bytes = after
      bytes.replaceSubrange(range, with: before[range])
      try bytes.write(to: URL(fileURLWithPath: bench.path("a/tables.sqlite")))
      let changed = try bench.open("a")
      try changed.write { transaction throws(NodeError) in
        for mutation in mutations { try transaction.perform(mutation) }
      }
      _ = try changed.rebuild { _, _ in }
      try changed.checkInvariants()
      #expect(try changed.digestTexts.count == digests.count)
      #expect(try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).corruption.isEmpty)
    }
    #expect(stale > 5)
  }

  private func edit(_ path: String, _ statement: String) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["sqlite3", path, statement]
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
  }

  private static func row(_ number: Int) -> String {
    #"{"op":"create","model":"Row","key":{"tenant":"t\#(number % 3)","n":\#(number)},"fields":{"text":"\#(number)"}}"#
  }

  /// A node "a" whose tables are behind the log, as after a crash between the two.
  private func nodeWithTablesBehind(_ bench: Bench) throws -> [String] {
    let node = try bench.node("a", Self.schema)
    for number in 0..<200 { try node.commit(Self.row(number)) }
    let tables = bench.path("a/tables.sqlite")
    try Tables.open(at: tables, schema: node.schema, mode: .readWrite).checkpoint()
    let before = try Data(contentsOf: URL(fileURLWithPath: tables))
    for number in 200..<230 { try bench.open("a").commit(Self.row(number)) }
    let digests = try bench.open("a").digestTexts
    for sidecar in ["", "-wal", "-shm"] {
      let path = tables + sidecar
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }
    try before.write(to: URL(fileURLWithPath: tables))
    return digests
  }

  @Test func tablesThatDidNotFollowYetAreCompared() throws {
    let bench = try Bench(seed: 13)
    let digests = try nodeWithTablesBehind(bench)
    func corruption() throws -> [String] {
      try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).corruption.map(\.what)
    }
    #expect(try corruption() == [])
    try edit(bench.path("a/tables.sqlite"), "UPDATE rows SET text = 'forged' WHERE n = 3")
    #expect(try corruption() == ["the rows of partition tenant=t0 are not what the log says"])
    _ = try bench.open("a").rebuild { _, _ in }
    #expect(try bench.open("a").digestTexts == digests)
  }

  @Test func tablesThatCannotFollowAreMadeAnew() throws {
    let bench = try Bench(seed: 14)
    let digests = try nodeWithTablesBehind(bench)
    try bench.copy("a", to: "kept")
    let tables = URL(fileURLWithPath: bench.path("a/tables.sqlite"))
    let pages = try Data(contentsOf: tables).count / 4096
    #expect(pages > 10)
    for page in 1..<pages {
      try bench.replace("a", with: "kept")
      var bytes = try Data(contentsOf: tables)
      for place in page * 4096..<page * 4096 + 12 { bytes[place] = 0xFF }
      try bytes.write(to: tables)
      let node = try bench.open("a")
      try node.commit(Self.row(1000))
      _ = try bench.open("a").rebuild { _, _ in }
      #expect(try bench.open("a").digestTexts.count == digests.count, "page \(page)")
    }
  }

  /// A change of a record whose row was lost or outdated has not seen the missing events, so both
  /// are siblings. The context of the next change covers both. Every node merges this, however
  /// often it happens.
  @Test(
    arguments: [
      "DELETE FROM rows WHERE n = 3",
      "ATTACH '%' AS old; REPLACE INTO rows SELECT * FROM old.rows WHERE n = 3",
    ], 1...7)
  func changesOfARowThatTheTablesLostAreMerged(corruption: String, changes: Int) throws {
    let bench = try Bench(seed: 17)
    var node = try bench.node("a", Self.schema)
    let peer = try bench.node("b", Self.schema)
    let last = 5
    func change(_ text: String) throws {
      try node.commit(
        #"{"op":"upsert","model":"Row","key":{"tenant":"t0","n":3},"fields":{"text":"\#(text)"}}"#)
    }
    for version in 1...last {
      try change("v\(version)")
      if version == 2 {
        try Tables.open(at: bench.path("a/tables.sqlite"), schema: node.schema, mode: .readWrite).checkpoint()
        try bench.copy("a", to: "old")
      }
    }
    try node.sync(peer)
    try Tables.open(at: bench.path("a/tables.sqlite"), schema: node.schema, mode: .readWrite).checkpoint()
    try edit(
      bench.path("a/tables.sqlite"),
      corruption.replacingOccurrences(of: "%", with: bench.path("old/tables.sqlite")))
    node = try bench.open("a")
    for number in 1...changes { try change("late \(number)") }
    #expect(try bench.open("a").rebuild { _, _ in }.events == UInt64(last + changes))
    node = try bench.open("a")
    #expect(try node.conflictTexts.isEmpty == (changes > 1))
    let digests = try node.digestTexts
    try node.sync(peer)
    let empty = try bench.node("c", Self.schema)
    try empty.sync(peer)
    #expect(try peer.digestTexts == digests)
    #expect(try empty.digestTexts == digests)
    for name in ["a", "b", "c"] {
      _ = try bench.open(name).rebuild { _, _ in }
      #expect(try bench.open(name).digestTexts == digests, "\(name)")
      #expect(try Node.verify(at: bench.path(name), options: Node.OpeningOptions()).corruption.isEmpty)
    }
  }

  /// A purge removes the last commits of an origin and keeps their number.
  @Test func aPurgeLeavesNothingToMend() throws {
    let bench = try Bench(seed: 15)
    let node = try bench.node("a", DirectoryTests.tenants)
    try node.commit(DirectoryTests.row("y"))
    try node.commit(DirectoryTests.row("x"))
    _ = try node.changeScope(adding: ["!tenant=x"], removing: [], discards: true)
    #expect(try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).corruption.isEmpty)
  }

  /// Without its tombstone, a record would be created as if it had never existed, and a rebuild
  /// would delete it.
  @Test func aLostTombstoneTakesNoCreationAlong() throws {
    let bench = try Bench(seed: 17)
    let node = try bench.node("a", Self.schema)
    for number in 0..<6 { try node.commit(Self.row(number)) }
    for number in 0..<3 {
      try node.commit(#"{"op":"delete","model":"Row","key":{"tenant":"t\#(number)","n":\#(number)}}"#)
    }
    try edit(
      bench.path("a/tables.sqlite"),
      "DELETE FROM _stemma_tombstones WHERE key = (SELECT min(key) FROM _stemma_tombstones)")
    #expect(throws: NodeError.self) { try bench.open("a", .read).status() }
    let opened = try bench.open("a")
    for number in 0..<3 { try opened.commit(Self.row(number)) }
    let digests = try opened.digestTexts
    #expect(try opened.conflictTexts == [])
    _ = try bench.open("a").rebuild { _, _ in }
    #expect(try bench.open("a").digestTexts == digests)
    #expect(try bench.open("a").conflictTexts == [])
  }

  @Test func aConflictWhoseRowIsLostIsNotHidden() throws {
    let bench = try Bench(seed: 18)
    let nodes = [try bench.node("a", Self.schema), try bench.node("b", Self.schema)]
    try nodes[0].commit(Self.row(1), Self.row(2))
    try nodes[0].sync(nodes[1])
    for (node, text) in zip(nodes, ["x", "y"]) {
      try node.commit(
        #"{"op":"update","model":"Row","key":{"tenant":"t1","n":1},"fields":{"text":"\#(text)"}}"#)
    }
    try nodes[0].sync(nodes[1])
    let listed = try bench.open("a", .read).conflictTexts
    #expect(listed.count == 1)
    try edit(bench.path("a/tables.sqlite"), "DELETE FROM _stemma_conflicts")
    #expect(throws: NodeError.self) { try bench.open("a", .read).conflictTexts }
    #expect(try bench.open("a").conflictTexts == listed)
    #expect(try bench.open("a", .read).conflictTexts == listed)
  }

  /// The tables list the ended conflict in a wrong place. The commit is in the log, so it must
  /// succeed.
  @Test func aCommitThatEndsAConflictWhoseRowWasChangedIsMade() throws {
    let bench = try Bench(seed: 22)
    let nodes = [try bench.node("a", Self.schema), try bench.node("b", Self.schema)]
    try nodes[0].commit(Self.row(1))
    try nodes[0].sync(nodes[1])
    func update(_ text: String) -> String {
      #"{"op":"update","model":"Row","key":{"tenant":"t1","n":1},"fields":{"text":"\#(text)"}}"#
    }
    for (node, text) in zip(nodes, ["x", "y"]) { try node.commit(update(text)) }
    try nodes[0].sync(nodes[1])
    try edit(bench.path("a/tables.sqlite"), "UPDATE _stemma_conflicts SET key = key || x'00'")
    let node = try bench.open("a")
    try node.commit(update("z"))
    #expect(node.notices.contains { $0.contains("rebuilt from the log") }, "\(node.notices)")
    #expect(try node.conflictTexts == [])
    #expect(try node.fields("Row", #"{"tenant":"t1","n":1}"#)?.contains("\"z\"") == true)
    try node.checkInvariants()
  }

  @Test(
    arguments: [
      "DELETE FROM rows WHERE n = 2", "INSERT INTO parts (id, _version, _state) VALUES ('x', 1, x'')",
    ])
  func recordsThatSomebodyTookOrAddedAreNotCounted(change: String) throws {
    let bench = try Bench(seed: 21)
    let node = try bench.node("a", Self.schema)
    for number in 0..<5 { try node.commit(Self.row(number)) }
    #expect(try bench.open("a", .read).status().records == 5)
    try edit(bench.path("a/tables.sqlite"), change)
    let error = #expect(throws: NodeError.self) { try bench.open("a", .read).status() }
    #expect(error.map { Explanations.text(of: $0).contains("rebuild") } == true)
    _ = try bench.open("a").rebuild { _, _ in }
    #expect(try bench.open("a", .read).status().records == 5)
    // A purge updates the count.
    _ = try bench.open("a").changeScope(adding: ["!tenant=t1"], removing: [], discards: true)
    #expect(try bench.open("a", .read).status().records == 3)
  }

  /// Groups of commits, of which some fail, and of which some write early because they look up
  /// children. The stored counts always match the rows.
  @Test func whatIsCountedIsWhatIsThere() throws {
    let bench = try Bench(seed: 19)
    let node = try bench.node("a", Self.schema)
    var random = SplitMix64(seed: 19)
    for _ in 0..<60 {
      let requests = try (0..<4).map { _ in
        var lines: [String] = []
        for _ in 0..<3 {
          let part = random.next() % 4
          let key = #"{"tenant":"t","n":\#(random.next() % 6)}"#
          lines += [
            #"{"op":"upsert","model":"Part","key":"p\#(part)","fields":{}}"#,
            #"{"op":"upsert","model":"Row","key":\#(key),"fields":{"parent":"p\#(part)"}}"#,
            #"{"op":"delete","model":"Part","key":"p\#(part)"}"#,
            #"{"op":"delete","model":"Row","key":\#(key)}"#,
          ].filter { _ in random.next() % 2 == 0 }
        }
        let mutations = try lines.map(mutation)
        return Node.CommitRequest(CommitMessage()) { transaction throws(NodeError) in
          for mutation in mutations { try transaction.perform(mutation) }
        }
      }
      let outcomes = try node.write(requests)
      #expect(outcomes.count == 4)
      try node.checkInvariants()
      _ = try bench.open("a")
      #expect(!(try bench.open("a").notices.contains { $0.contains("rebuilt") }))
      _ = try bench.open("a", .read).status()
    }
  }

  /// A changed clock value must not report events from the distant future.
  @Test func aChangedClockIsNotBelieved() throws {
    let bench = try Bench(seed: 20)
    let node = try bench.node("a", Self.schema)
    try node.commit(Self.row(1))
    let tables = bench.path("a/tables.sqlite")
    try edit(tables, "UPDATE _stemma_meta SET value = value + (1 << 60) WHERE name = 'clock'")
    #expect(throws: NodeError.self) { try bench.open("a", .read).status() }
    try bench.open("a").commit(Self.row(2))
    #expect(try bench.open("a").status().notices == [])
  }

  /// Otherwise events that no peer holds could be purged unintentionally.
  @Test func whatAPeerConfirmedIsNotTakenFromAChangedByte() throws {
    let bench = try Bench(seed: 16)
    let node = try bench.node("a", DirectoryTests.tenants)
    try node.commit(DirectoryTests.row("x"))
    try node.sync(try bench.node("b", DirectoryTests.tenants))
    try node.commit(#"{"op":"create","model":"Row","key":{"tenant":"x","n":2}}"#)
    try edit(bench.path("a/tables.sqlite"), "UPDATE _stemma_acknowledged SET sequence = 2")
    #expect(throws: NodeError.self) {
      try bench.open("a").changeScope(adding: ["!tenant=x"], removing: [], discards: false)
    }
    try node.sync(try bench.open("b"))
    #expect(try node.changeScope(adding: ["!tenant=x"], removing: [], discards: false) == ["tenant=x"])
  }
}
