import Foundation
import StemmaEvents
import StemmaImport
import StemmaNode
import StemmaTables
import Testing

/// A node follows a source that is imported repeatedly under one name.
@Suite struct SnapshotTests {
  static let schema = """
    type Team @model { id: ID! name: String! size: Int members: [Member] @hasMany(references: ["teamId"]) }
    type Member @model { id: ID! name: String teamId: ID team: Team @belongsTo(fields: ["teamId"]) }
    """

  private static func team(_ id: String, _ name: String, _ size: Int = 1) -> String {
    #"{"model":"Team","key":"\#(id)","fields":{"name":"\#(name)","size":\#(size)}}"#
  }

  private static func member(_ id: String, _ team: String) -> String {
    #"{"model":"Member","key":"\#(id)","fields":{"teamId":"\#(team)"}}"#
  }

  private static func update(_ id: String, _ fields: String) -> String {
    #"{"op":"update","model":"Team","key":"\#(id)","fields":\#(fields)}"#
  }

  private let bench: Bench

  init() throws { bench = try Bench() }

  /// Imports sources under a name.
  ///
  /// - Returns: the counts of created, changed, deleted and unchanged records.
  @discardableResult
  private func follow(
    _ node: Node, _ sources: [String]..., name: String = "crm", keepsMissing: Bool = false,
    allowsEmpty: Bool = false, rejects: Bool = false, isDryRun: Bool = false, batch: Int = 1000
  ) throws -> [Int] {
    let snapshot = try Import.Snapshot(
      name, of: node, keepsMissing: keepsMissing, allowsEmpty: allowsEmpty, isDryRun: isDryRun)
    var options = Import.Options()
    options.isDryRun = isDryRun
    options.batch = batch
    var work = Import(into: node, options: options)
    work.snapshot = snapshot
    var rejected = 0
    if rejects { work.reject = { _, _, _ in rejected += 1 } }
    for (number, lines) in sources.enumerated() {
      let path = bench.path("\(number).ndjson")
      try lines.map { $0 + "\n" }.joined().write(toFile: path, atomically: true, encoding: .utf8)
      _ = try work.run(path: path)
    }
    _ = try work.deleteVanished(isComplete: rejected == 0)
    let counts = snapshot.counts
    return [counts.created, counts.changed, counts.deleted, counts.kept]
  }

  private func teams(_ node: Node) throws -> [String] {
    try ["red", "blue", "green"].compactMap { id in
      try node.fields("Team", #"{"id":"\#(id)"}"#).map { "\(id) \($0)" }
    }
  }

  @Test(arguments: [1, 2, 1000]) func aSecondImportWritesNothing(batch: Int) throws {
    let node = try bench.node("a", Self.schema)
    let rows = [Self.team("red", "Red"), Self.team("blue", "Blue"), Self.member("m", "red")]
    #expect(try follow(node, rows, batch: batch) == [3, 0, 0, 0])
    let history = try node.history
    #expect(history.count == 3)
    #expect(try follow(node, rows, batch: batch) == [0, 0, 0, 0])
    #expect(try follow(try bench.open("a"), rows.reversed(), batch: batch) == [0, 0, 0, 0])
    #expect(try node.history == history)
    #expect(try Node.verify(at: bench.path("a"), options: Node.OpeningOptions()).corruption.isEmpty)
  }

  /// A nightly import keeps changes made in the node.
  @Test(arguments: [1, 1000]) func editsFromElsewhereStay(batch: Int) throws {
    let node = try bench.node("a", Self.schema)
    try follow(node, [Self.team("red", "Red"), Self.team("blue", "Blue")])
    try node.commit(Self.update("red", #"{"name":"Rouge"}"#))
    #expect(
      try follow(node, [Self.team("red", "Red"), Self.team("blue", "Blue")], batch: batch) == [0, 0, 0, 0])
    // The source changes another field, then the same one.
    #expect(
      try follow(node, [Self.team("red", "Red", 2), Self.team("blue", "Blue")], batch: batch) == [0, 1, 0, 0])
    #expect(try teams(node).first == #"red {"name":"Rouge","size":2}"#)
    #expect(
      try follow(node, [Self.team("red", "Rot", 2), Self.team("blue", "Blue")], batch: batch) == [0, 1, 0, 0])
    #expect(try teams(node).first == #"red {"name":"Rot","size":2}"#)
    // A value that the node already shows is not a change.
    try node.commit(Self.update("blue", #"{"size":7}"#))
    let rows = [Self.team("red", "Rot", 2), Self.team("blue", "Blue", 7)]
    #expect(try follow(node, rows, batch: batch) == [0, 0, 0, 0])
  }

  @Test func rowsThatVanishAreDeleted() throws {
    let node = try bench.node("a", Self.schema)
    try node.commit(#"{"op":"create","model":"Team","key":"green","fields":{"name":"Own"}}"#)
    try follow(node, [Self.team("red", "Red"), Self.team("blue", "Blue"), Self.member("m", "blue")])
    let rows = [Self.team("red", "Red"), Self.member("m", "blue")]
    #expect(try follow(node, rows, keepsMissing: true) == [0, 0, 0, 1])
    #expect(try teams(node).count == 3)
    #expect(try follow(node, rows) == [0, 0, 1, 0])
    // Records that the source never had remain, and a reference to the deleted record is cleared.
    #expect(try teams(node).map { $0.prefix { $0 != " " } } == ["red", "green"])
    #expect(try node.fields("Member", #"{"id":"m"}"#) == #"{"name":null,"teamId":null}"#)
    #expect(try follow(node, rows) == [0, 0, 0, 0])
    #expect(try follow(node, rows + [Self.team("blue", "Blue")]) == [1, 0, 0, 0])
  }

  @Test func anEmptySourceDeletesNothingUnlessThatIsAllowed() throws {
    let node = try bench.node("a", Self.schema)
    let rows = [Self.team("red", "Red"), Self.member("m", "red")]
    try follow(node, rows)
    let history = try node.history
    // An empty source, and one that lacks all rows of one model.
    for left in [[], [rows[0]], [rows[1]]] {
      let error = #expect(throws: NodeError.self) { try follow(node, left) }
      #expect(error.map { caseName($0) } == "malformedInput")
      let dry = #expect(throws: NodeError.self) { try follow(node, left, isDryRun: true) }
      #expect(dry.map { caseName($0) } == "malformedInput")
      #expect(try follow(node, left, keepsMissing: true)[3] == rows.count - left.count)
    }
    #expect(try node.history == history)
    #expect(try follow(node, [rows[0]], allowsEmpty: true) == [0, 0, 1, 0])
    #expect(try node.fields("Member", #"{"id":"m"}"#) == nil)
  }

  @Test func aRecordDeletedElsewhereIsCreatedAgainOnlyWhenTheSourceChangesIt() throws {
    let node = try bench.node("a", Self.schema)
    try follow(node, [Self.team("red", "Red"), Self.team("blue", "Blue")])
    try node.commit(#"{"op":"delete","model":"Team","key":"red"}"#)
    #expect(try follow(node, [Self.team("red", "Red"), Self.team("blue", "Blue")]) == [0, 0, 0, 0])
    #expect(try teams(node).count == 1)
    #expect(try follow(node, [Self.team("red", "Red", 2), Self.team("blue", "Blue")]) == [1, 0, 0, 0])
    #expect(try teams(node).first == #"red {"name":"Red","size":2}"#)
  }

  @Test func conflictsStayOpen() throws {
    let a = try bench.node("a", Self.schema)
    let b = try bench.node("b", Self.schema)
    let rows = [Self.team("red", "Red"), Self.team("blue", "Blue")]
    try follow(a, rows)
    try a.sync(b)
    try a.commit(Self.update("red", #"{"name":"Rouge"}"#))
    try b.commit(Self.update("red", #"{"name":"Rot"}"#))
    try a.sync(b)
    let conflicts = try a.conflictTexts
    #expect(conflicts.count == 1)
    #expect(try follow(a, rows) == [0, 0, 0, 0])
    #expect(try follow(a, [Self.team("red", "Red", 2), rows[1]]) == [0, 1, 0, 0])
    #expect(try a.conflictTexts == conflicts)
  }

  @Test func aFirstSnapshotWritesWhatDiffersAndDeletesNothing() throws {
    let node = try bench.node("a", Self.schema)
    try node.commit(
      #"{"op":"create","model":"Team","key":"red","fields":{"name":"Rouge","size":1}}"#,
      #"{"op":"create","model":"Team","key":"blue","fields":{"name":"Blue","size":1}}"#,
      #"{"op":"create","model":"Team","key":"green","fields":{"name":"Green"}}"#)
    #expect(try follow(node, [Self.team("red", "Red"), Self.team("blue", "Blue")]) == [0, 1, 0, 0])
    #expect(try teams(node).count == 3)
    #expect(try teams(node).first == #"red {"name":"Red","size":1}"#)
  }

  @Test func namesAreApartAndSourcesOfOneImportAreOne() throws {
    let node = try bench.node("a", Self.schema)
    #expect(try follow(node, [Self.team("red", "Red")], [Self.member("m", "red")]) == [2, 0, 0, 0])
    #expect(try follow(node, [Self.team("blue", "Blue")], name: "other") == [1, 0, 0, 0])
    #expect(try follow(node, [Self.member("m", "red")], [Self.team("red", "Red")]) == [0, 0, 0, 0])
    #expect(try teams(node).count == 2)
  }

  @Test func aRowThatIsThereTwiceIsRefusedIfItDiffers() throws {
    let node = try bench.node("a", Self.schema)
    let row = Self.team("red", "Red")
    #expect(try follow(node, [row, row], [row], batch: 1) == [1, 0, 0, 0])
    for batch in [1, 2] {
      let error = #expect(throws: NodeError.self) {
        try follow(node, [row, Self.team("red", "Rot")], batch: batch)
      }
      #expect(error.map { caseName($0) } == "importLine")
    }
    #expect(try teams(node) == [#"red {"name":"Red","size":1}"#])
    for line in [Self.update("red", "{}"), #"{"op":"delete","model":"Team","key":"red"}"#] {
      #expect(throws: NodeError.self) { try follow(node, [line]) }
    }
  }

  @Test func nothingIsDeletedAfterARefusedRow() throws {
    let node = try bench.node("a", Self.schema)
    try follow(node, [Self.team("red", "Red"), Self.team("blue", "Blue")])
    let refused = #"{"model":"Team","key":"blue","fields":{"size":"x"}}"#
    #expect(try follow(node, [Self.team("red", "Red"), refused], rejects: true) == [0, 0, 0, 1])
    #expect(try teams(node).count == 2)
    #expect(try follow(node, [Self.team("red", "Red")]) == [0, 0, 1, 0])
  }

  @Test func aDryRunCountsAndChangesNoFile() throws {
    let node = try bench.node("a", Self.schema)
    #expect(try follow(node, [Self.team("red", "Red")], isDryRun: true) == [1, 0, 0, 0])
    try follow(node, [Self.team("red", "Red"), Self.team("blue", "Blue"), Self.member("m", "red")])
    let before = try bench.contents("a").filter { !$0.key.hasPrefix("tables.sqlite") }
    let rows = [Self.team("red", "Red", 2), Self.team("green", "Green"), Self.member("m", "red")]
    #expect(try follow(try bench.open("a", .read), rows, isDryRun: true) == [1, 1, 1, 0])
    #expect(try bench.contents("a").filter { !$0.key.hasPrefix("tables.sqlite") } == before)
    #expect(try follow(node, rows) == [1, 1, 1, 0])
  }

  @Test func recordsThatOthersMayNotLoseGoAfterThem() throws {
    let node = try bench.node(
      "a",
      """
      type A @model { id: ID! bs: [B] @hasMany(references: ["aId"], onDelete: RESTRICT) }
      type B @model { id: ID! aId: ID a: A @belongsTo(fields: ["aId"]) }
      """)
    func a(_ id: Int) -> String { #"{"model":"A","key":"\#(id)"}"# }
    func b(_ id: Int, _ a: Int) -> String { #"{"model":"B","key":"\#(id)","fields":{"aId":"\#(a)"}}"# }
    try follow(node, [a(1), a(2), a(3), b(1, 1), b(2, 2), b(3, 3)])
    #expect(try follow(node, [a(1), b(1, 1)]) == [0, 0, 4, 0])
    // Refused deletions are reported after the other ones.
    try follow(node, [a(1), a(2), a(3), b(1, 1), b(3, 3)])
    try node.commit(#"{"op":"create","model":"B","key":"own","fields":{"aId":"2"}}"#)
    let error = #expect(throws: NodeError.self) { try follow(node, [a(1), b(1, 1)]) }
    guard case .mutation(.restricted)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(try node.fields("A", #"{"id":"2"}"#) != nil && node.fields("A", #"{"id":"3"}"#) == nil)
  }

  /// A process that dies between the two steps leaves digests behind the log.
  @Test func digestsBehindTheLogChangeNothing() throws {
    let node = try bench.node("a", Self.schema)
    let first = [Self.team("red", "Red"), Self.team("blue", "Blue")]
    try follow(node, first)
    let digests = try bench.contents("a")["snapshots.sqlite"]
    let rows = [Self.team("red", "Rot"), Self.team("green", "Green")]
    #expect(try follow(node, rows) == [1, 1, 1, 0])
    let history = try node.history
    try digests?.write(to: URL(fileURLWithPath: bench.path("a/snapshots.sqlite")))
    #expect(try follow(node, rows) == [0, 0, 0, 0])
    #expect(try node.history == history)
    // Without the file, the next import counts as the first.
    try FileManager.default.removeItem(atPath: bench.path("a/snapshots.sqlite"))
    try node.commit(Self.update("red", #"{"size":9}"#))
    #expect(try follow(node, [rows[0]]) == [0, 1, 0, 0])
    #expect(try teams(node).count == 2)
  }

  /// Digests of events that are not durable would skip their rows forever.
  @Test func digestsAreNeverAheadOfTheLog() throws {
    _ = try bench.node("a", Self.schema)
    let files = FailingFileSystem()
    var rows: [String] = []
    var operations = 0
    for round in 1... {
      // The source has different values in each round.
      rows = ["red", "blue", "green"].map { Self.team($0, "\($0)\(round)", round) }
      operations += 1
      let node = try bench.open("a", on: files)
      files.fail(from: operations)
      do {
        try follow(node, rows, batch: 1)
        break
      } catch is NodeError {}
      files.fail(from: .max)
      let healed = try bench.open("a")
      try follow(healed, rows, batch: 1)
      #expect(
        try teams(healed)
          == ["red", "blue", "green"].map { #"\#($0) {"name":"\#($0)\#(round)","size":\#(round)}"# },
        "operation \(operations)")
    }
    #expect(operations > 5)
  }

  @Test func aCorruptFileIsRefused() throws {
    let node = try bench.node("a", Self.schema)
    try follow(node, [Self.team("red", "Red")])
    let file = URL(fileURLWithPath: bench.path("a/snapshots.sqlite"))
    let whole = try Data(contentsOf: file)
    let history = try node.history
    // A file that is no database, and one of another layout, according to byte 60 of the header.
    var newer = whole
    newer[63] = 2
    for bytes in [Data(repeating: 65, count: 4096), newer] {
      try bytes.write(to: file)
      let error = #expect(throws: NodeError.self) { try follow(node, [Self.team("red", "Rot")]) }
      #expect(error.map { caseName($0) } == "tables")
      #expect(try Data(contentsOf: file) == bytes)
    }
    #expect(try node.history == history)
    try whole.write(to: file)
    #expect(try follow(node, [Self.team("red", "Rot")]) == [0, 1, 0, 0])
  }
}
