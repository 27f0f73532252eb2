import Foundation
import StemmaEvents
import StemmaImport
import StemmaNode
import StemmaReplication
import StemmaSimulation
import StemmaTables
import Testing

/// A changed byte in a row must not reach the log with the record's next event. A context with
/// events that never existed would make the log unusable for rebuild, verification and clone.
@Suite struct ChangedRowsTests {
  private static let schema = """
    type Plain @model { id: ID! name: String n: Int f: Float ok: Boolean tags: [String] }
    type Whole @model @conflict(policy: OPTIMISTIC) { id: ID! name: String n: Int f: Float ok: Boolean tags: [String] }
    """

  private let bench: Bench
  private let tables: URL
  /// The intact tables.
  private let bytes: Data

  /// A node "a" with a row and a tombstone of each model, from two origins.
  init() throws {
    bench = try Bench(seed: 41)
    tables = URL(fileURLWithPath: bench.path("a/tables.sqlite"))
    let nodes = [try bench.node("a", Self.schema), try bench.node("b", Self.schema)]
    for model in ["Plain", "Whole"] {
      for key in ["row", "gone"] {
        try nodes[0].commit(
          #"{"op":"create","model":"\#(model)","key":"\#(key)","fields":{"name":"\#(model) \#(key)","n":77,"f":0.3,"tags":["t"]}}"#
        )
      }
    }
    try nodes[1].sync(nodes[0])
    for model in ["Plain", "Whole"] {
      try nodes[1].commit(#"{"op":"update","model":"\#(model)","key":"row","fields":{"ok":true}}"#)
      try nodes[1].commit(#"{"op":"delete","model":"\#(model)","key":"gone"}"#)
    }
    try nodes[0].sync(nodes[1])
    // Removes remains of earlier contents.
    _ = try nodes[0].rebuild { _, _ in }
    try Tables.open(at: tables.path, schema: nodes[0].schema, mode: .readWrite).checkpoint()
    bytes = try Data(contentsOf: tables)
  }

  private func putTables(_ bytes: Data) throws {
    for sidecar in ["-wal", "-shm"] where FileManager.default.fileExists(atPath: tables.path + sidecar) {
      try FileManager.default.removeItem(atPath: tables.path + sidecar)
    }
    try bytes.write(to: tables)
  }

  /// The range of the bytes that a query returns as hexadecimal digits.
  private func place(of sql: String) throws -> Range<Int> {
    var found: [String] = []
    try bench.open("a").query(sql) { _, row in found += row.map { "\($0)" } }
    let digits = try #require(found.first?.firstMatch(of: /[0-9A-F]{8,}/)?.output)
    var wanted = Data()
    var index = digits.startIndex
    while index < digits.endIndex {
      let next = digits.index(index, offsetBy: 2)
      wanted.append(try #require(UInt8(digits[index..<next], radix: 16)))
      index = next
    }
    let place = try #require(bytes.range(of: wanted))
    #expect(bytes.range(of: wanted, in: place.upperBound..<bytes.count) == nil)
    return place
  }

  /// The events of a line, rolled back, without the parts that differ between runs.
  private func events(of line: String) throws -> [String] {
    let mutation = try mutation(line)
    var events: [Event] = []
    let node = try bench.open("a")
    do throws(NodeError) {
      try node.write { transaction throws(NodeError) in
        try transaction.perform(mutation)
        events = transaction.events
        throw .abandoned
      }
    } catch {
      guard case .abandoned = error else { throw error }
    }
    return events.map { "\($0.operation) \($0.id) \($0.context) \($0.version) \($0.assignments)" }
  }

  @Test(arguments: ["Plain", "Whole"])
  func noChangedBitOfARowOrTombstoneGoesIntoTheLog(model: String) throws {
    let update = #"{"op":"update","model":"\#(model)","key":"row","fields":{"n":5}}"#
    let create = #"{"op":"create","model":"\#(model)","key":"gone","fields":{"n":5}}"#
    let table = "\(model.lowercased())s"
    let name = try place(of: "SELECT hex(name) FROM \(table)")
    let state = try place(of: "SELECT hex(_state) FROM \(table)")
    let tombstone = try place(of: "SELECT hex(state) FROM _stemma_tombstones WHERE model = '\(model)'")
    // The version precedes the state. An OPTIMISTIC event also contains all values.
    let isPlain = model == "Plain"
    var ranges = [(update, name.lowerBound..<(isPlain ? state.upperBound : state.lowerBound))]
    if isPlain { ranges.append((create, tombstone.lowerBound - 1..<tombstone.upperBound)) }
    for (line, range) in ranges {
      try putTables(bytes)
      let wanted = try events(of: line)
      #expect(wanted.count == 1)
      let step = Trials.stride(8)
      for offset in range {
        for bit in stride(from: offset % step, to: 8, by: step) {
          var changed = bytes
          changed[offset] ^= 1 << UInt8(bit)
          try putTables(changed)
          #expect(try events(of: line) == wanted, "byte \(offset - range.lowerBound), bit \(bit)")
        }
      }
    }
    try putTables(bytes)
    let node = try bench.open("a")
    try node.commit(update, create)
    #expect(try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).corruption.isEmpty)
  }

  /// Changes a bit in the context of a `Plain` row.
  private func spoil() throws {
    let state = try place(of: "SELECT hex(_state) FROM plains")
    var changed = bytes
    changed[state.lowerBound + 3] ^= 1
    try putTables(changed)
  }

  private func expectWholeLog(events: UInt64) throws {
    #expect(try bench.open("a").rebuild { _, _ in }.events == events)
    #expect(try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).corruption.isEmpty)
    try bench.node("c", Self.schema).sync(try bench.open("a"))
  }

  private static let update = #"{"op":"update","model":"Plain","key":"row","fields":{"n":5}}"#

  private func requests(_ lines: String...) throws -> [Node.CommitRequest] {
    try lines.map(mutation).map { mutation in
      Node.CommitRequest(CommitMessage()) { transaction throws(NodeError) in try transaction.perform(mutation)
      }
    }
  }

  @Test func aGroupOfCommitsIsMadeInTablesThatWereMadeAnew() throws {
    try spoil()
    let node = try bench.open("a")
    var calls: [String] = []
    var requests = try requests(
      #"{"op":"create","model":"Plain","key":"new"}"#, Self.update,
      #"{"op":"delete","model":"Plain","key":"nobody"}"#)
    for (index, request) in requests.enumerated() {
      requests[index].body = { transaction throws(NodeError) in
        calls.append("\(index)")
        try request.body(transaction)
      }
    }
    let outcomes = try node.write(requests, takingBack: { calls.append("taken back") })
    #expect(calls == ["0", "1", "taken back", "0", "1", "2"])
    for outcome in outcomes[..<2] { #expect(throws: Never.self) { try outcome.get() } }
    let error = #expect(throws: NodeError.self) { try outcomes[2].get() }
    #expect(error.map { Explanations.text(of: $0).contains("nobody") } == true, "its own")
    #expect(node.notices.contains { $0.contains("rebuilt from the log") }, "\(node.notices)")
    try node.checkInvariants()
    try expectWholeLog(events: 10)
  }

  /// The log is corrupt too, so the tables cannot be rebuilt. Commits that do not need the corrupt
  /// rows succeed.
  @Test func whatCannotBeMendedIsToldToWhoMeetsIt() throws {
    let journal = URL(fileURLWithPath: bench.path("a/log/00000001.journal"))
    var log = try Data(contentsOf: journal)
    let name = try #require(log.range(of: Data("Whole row".utf8)))
    log[name.lowerBound] ^= 1
    try log.write(to: journal)
    _ = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    try spoil()
    let node = try bench.open("a")
    let (update, other) = (
      try mutation(Self.update), try mutation(#"{"op":"create","model":"Plain","key":"hidden"}"#)
    )
    // Continues despite the error.
    let hiding = Node.CommitRequest(CommitMessage()) { transaction throws(NodeError) in
      do throws(NodeError) { try transaction.perform(update) } catch { transaction.note(error) }
      try transaction.perform(other)
    }
    let outcomes = try node.write(
      try requests(
        Self.update, #"{"op":"create","model":"Plain","key":"new"}"#,
        #"{"op":"create","model":"Whole","key":"new"}"#) + [hiding])
    var errors: [String] = []
    for outcome in outcomes {
      if case .failure(let error) = outcome { errors.append(caseName(error)) } else { errors.append("") }
    }
    #expect(errors == ["tables", "", "corruptPartition", "tables"])
    #expect(try node.fields("Plain", #""hidden""#) == nil)
  }

  /// The corrupt index page is read only after the commit is in the log.
  @Test func aCommitInTheLogIsShownWhateverTheTablesWere() throws {
    let (bench, node) = try spoiledIndex()
    try node.commit(#"{"op":"create","model":"Item","key":"new","fields":{"name":"9"}}"#)
    #expect(node.notices.contains { $0.contains("rebuilt from the log") }, "\(node.notices)")
    var count = 0
    try bench.open("a", .read).query("SELECT name FROM items") { _, _ in count += 1 }
    #expect(try count == 7 && node.history.count == 7)
    try node.checkInvariants()
  }

  @Test func anImportGoesOnWithTablesThatWereMadeAnew() throws {
    try spoil()
    let file = bench.path("lines.ndjson")
    try Data((Self.update + "\n").utf8).write(to: URL(fileURLWithPath: file))
    var rejected = 0
    var importing = Import(into: try bench.open("a"), options: Import.Options())
    importing.reject = { _, _, _ in rejected += 1 }
    let summary = try importing.run(path: file)
    #expect(summary.events == 1)
    #expect(rejected == 0)
    try expectWholeLog(events: 9)
  }

  @Test func aSyncThatMeetsAChangedRowMakesTheTablesAnew() throws {
    try bench.open("b").commit(Self.update)
    try spoil()
    try bench.open("a").sync(try bench.open("b"))
    try expectWholeLog(events: 9)
    #expect(try bench.open("a").digestTexts == bench.open("b").digestTexts)
  }

  @Test func aChangedChecksumIsToldByVerify() throws {
    let state = try place(of: "SELECT hex(_state) FROM plains")
    var changed = bytes
    changed[state.upperBound - 1] ^= 1
    try putTables(changed)
    let report = try Node.verify(at: bench.path("a"), options: Node.OpeningOptions())
    #expect(report.corruption.map(\.remedy) == [.rebuild])
  }

  /// A node "a" with six items and an unreadable index in its tables.
  private func spoiledIndex() throws -> (Bench, Node) {
    let bench = try Bench(seed: 43)
    let tables = URL(fileURLWithPath: bench.path("a/tables.sqlite"))
    var root = 0
    do {
      let a = try bench.node("a", #"type Item @model { id: ID! name: String @index(name: "byName") }"#)
      for number in 0..<6 { try a.commit(Self.item(number)) }
      _ = try a.rebuild { _, _ in }
      try a.query("SELECT rootpage FROM sqlite_schema WHERE name = 'Item.byName'") { _, row in
        root = row.compactMap { Int("\($0)".filter(\.isNumber)) }.first ?? 0
      }
      try Tables.open(at: tables.path, schema: a.schema, mode: .readWrite).checkpoint()
    }
    #expect(root > 1)
    var bytes = try Data(contentsOf: tables)
    bytes[(root - 1) * 4096] ^= 1
    try bytes.write(to: tables)
    return (bench, try bench.open("a"))
  }

  private static func item(_ number: Int) -> String {
    #"{"op":"create","model":"Item","fields":{"name":"\#(number)"}}"#
  }

  /// The corruption of the tables appears after the import's commits are in the log. An error would
  /// make the user import everything twice.
  @Test func aSeriesInTheLogStandsWhateverTheTablesAre() throws {
    let (bench, a) = try spoiledIndex()
    defer { withExtendedLifetime(bench) {} }
    var durable = 0
    try a.series { series in
      for number in 6..<9 {
        let line = try mutation(Self.item(number))
        try series.commit(CommitMessage(), durable: { durable += 1 }) { transaction throws(NodeError) in
          try transaction.perform(line)
        }
      }
    }
    #expect(durable == 3)
    #expect(a.notices.contains { $0.contains("rebuilt from the log") }, "\(a.notices)")
    var count = 0
    try a.query("SELECT name FROM items") { _, _ in count += 1 }
    #expect(try count == 9 && a.history.count == 9)
    try a.checkInvariants()
  }
}
