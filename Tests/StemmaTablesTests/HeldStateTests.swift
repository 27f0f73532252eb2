import Foundation
import StemmaEvents
import StemmaLog
import StemmaSchema
import Testing

@testable import StemmaTables

/// A connection that keeps its read snapshot still shows every commit, and blocks no other
/// connection.
@Suite struct HeldStateTests {
  private let folder: TemporaryFolder
  private let tables: Tables
  private var writers: Writers
  private var count = 0

  init() throws {
    folder = try TemporaryFolder()
    writers = Writers(try sampleSchema())
    tables = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
  }

  /// A commit that changes one team's name.
  private mutating func commit(_ name: String) throws {
    count += 1
    let key = Key([.string("a")])
    let event = try writers.write(count == 1 ? .create : .update, "Team", key, ["name": .string(name)])
    let number = count
    try tables.write { transaction throws(TablesError) in
      try transaction.apply(event)
      transaction.advance(to: token(number))
    }
  }

  private func name(_ reader: ReadConnection) throws -> String {
    let statement = try reader.statement("SELECT name FROM teams")
    var name = ""
    while try statement.step() { name = statement.text(0) }
    return name
  }

  @Test mutating func aHeldStateGivesWayToTheNextCommit() throws {
    let reader = try ReadConnection(folder.tables)
    for number in 1...50 {
      try commit("\(number)")
      for _ in 0..<2 {
        try reader.holdState()
        #expect(try name(reader) == "\(number)")
      }
      if number.isMultiple(of: 7) { reader.releaseState() }
      if number.isMultiple(of: 9) { try tables.checkpoint() }
    }
  }

  @Test mutating func whatIsHeldIsOneState() throws {
    let reader = try ReadConnection(folder.tables)
    try commit("old")
    try reader.holdState()
    #expect(try name(reader) == "old")
    try commit("new")
    #expect(try name(reader) == "old")
    #expect(try reader.snapshot { try name(reader) } == "old")
    reader.releaseState()
    #expect(try name(reader) == "new")
  }

  /// SQLite truncates its write-ahead log when it is fully copied and no connection holds a
  /// snapshot. A reader of single keys holds one all the time.
  @Test mutating func theLogIsCutShortBesideAReaderThatHoldsStates() throws {
    let reader = try ReadConnection(folder.tables)
    let text = String(repeating: "0123456789", count: 10_000)
    for number in 0..<500 {
      try commit("\(number) \(text)")
      try reader.holdState()
      #expect(try name(reader).hasPrefix("\(number) "))
    }
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.tables + "-wal")
    let bytes = try #require(attributes[.size] as? Int)
    // All commits together wrote more than 12,000 pages of 4 KiB.
    #expect(bytes < 7000 * 4096)
  }

  @Test func theTablesOfAStatementAreKnown() throws {
    let reader = try ReadConnection(folder.tables)
    func tables(_ sql: String) throws -> Set<String>? { try reader.modelTables(readBy: sql) }
    #expect(try tables("SELECT count(*) FROM Teams") == ["teams"])
    let both = try tables("SELECT 1 FROM teams WHERE id IN (SELECT teamId FROM members)")
    #expect(both == ["teams", "members"])
    #expect(try tables("SELECT 1") == [])
    // Any commit changes these tables.
    #expect(try tables("SELECT teams.id FROM teams, _stemma_streams") == nil)
    #expect(throws: TablesError.self) { try tables("SELECT 1 FROM nowhere") }
    // Other statements are prepared as before.
    #expect(try reader.statement("SELECT name FROM teams").step() == false)
  }
}
