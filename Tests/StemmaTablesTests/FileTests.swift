import Foundation
import StemmaEvents
import StemmaSchema
import Testing

@testable import StemmaTables

/// The file as a cache: a rebuild repairs every corruption, and nothing traps.
@Suite struct FileTests {
  private func sqlite3(_ path: String, _ sql: String) throws {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["sqlite3", path, sql]
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
  }

  private func made(_ folder: TemporaryFolder, seed: UInt64) throws -> Writers {
    let writers = try randomHistory(seed: seed, count: 150)
    let tables = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    try tables.apply(writers.events)
    try tables.close()
    return writers
  }

  @Test func rowChangedByHandIsMendedByARebuild() throws {
    let folder = try TemporaryFolder()
    let writers = try made(folder, seed: 1)
    let before = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readOnly)
    let (export, digests) = (try before.exported(), try before.digests())
    try before.close()
    try sqlite3(folder.tables, "UPDATE members SET name = 'forged'")
    let changed = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readOnly)
    #expect(try changed.exported() != export)
    #expect(try changed.digests() != digests)
    try changed.close()
    try Tables.rebuild(at: folder.tables, writers.schema, writers.events)
    let recovered = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readOnly)
    #expect(try recovered.exported() == export)
    #expect(try recovered.digests() == digests)
  }

  /// A reused statement must report only the corruption of its current run.
  @Test func aStatementTellsWhatItMetSinceItWasAskedForAlone() throws {
    let folder = try TemporaryFolder()
    var writers = Writers(try sampleSchema())
    // In one page. SQLite examines the fourth of seven keys first.
    for key in "1234567" {
      let name = Value.string(String(repeating: "a", count: key == "1" ? 20_000 : 1))
      try writers.write(.create, "Team", Key(.string(String(key))), ["name": name])
    }
    let whole = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    try whole.apply(writers.events)
    try whole.close()
    // The first overflow page of the name refers to a next page beyond the end of the file.
    let url = URL(fileURLWithPath: folder.tables)
    var bytes = try Data(contentsOf: url)
    let page = stride(from: 0, to: bytes.count, by: 4096).first { start in
      bytes[start + 4..<start + 4096].allSatisfy { $0 == UInt8(ascii: "a") }
    }
    let start = try #require(page)
    bytes.replaceSubrange(start..<start + 4, with: [0x7F, 0xFF, 0xFF, 0xFF])
    try bytes.write(to: url)
    let tables = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    // SQLite then commits nothing.
    #expect {
      try tables.write { transaction throws(TablesError) in
        for (key, isCorrupt) in [("1", true), ("4", false)] {
          let statement = try transaction.prepare("SELECT name FROM teams WHERE id = ?")
          statement.bind(1, .string(key))
          do throws(TablesError) {
            #expect(try statement.step() && !isCorrupt)
            statement.reset()
          } catch { #expect(isCorrupt) }
          #expect((statement.corruption != nil) == isCorrupt)
        }
      }
    } throws: { isCorruption($0) }
  }

  /// New events would continue a nonexistent stream, or be refused by every peer with the right
  /// events.
  @Test(arguments: [
    "UPDATE _stemma_meta SET value = value - 1 WHERE name = 'stream' AND value > 1",
    "UPDATE _stemma_meta SET value = value + 1 WHERE name = 'stream'",
    "UPDATE _stemma_meta SET hash = replace(hash, 'a', 'b') WHERE name = 'stream'",
    "UPDATE _stemma_meta SET origin = replace(origin, '1', '9') WHERE name = 'stream'",
    "UPDATE _stemma_meta SET partition = partition || 'x' WHERE name = 'stream'",
  ])
  func changedHeadsOfStreamsAreNotBelieved(change: String) throws {
    let folder = try TemporaryFolder()
    let writers = try made(folder, seed: 1)
    let tables = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    try sqlite3(folder.tables, change)
    #expect {
      try tables.read { reader throws(TablesError) in try reader.versionVector() }
    } throws: { isCorruption($0) }
    try expectNoWriterOpens(folder, writers)
  }

  /// Without the row, a writer would restart a stream that the log continues.
  @Test(arguments: [
    "DELETE FROM _stemma_meta WHERE name = 'stream' AND rowid_of = 1",
    "DELETE FROM _stemma_meta WHERE name = 'stream'", "DELETE FROM _stemma_meta WHERE name = 'commit'",
    "UPDATE _stemma_meta SET name = 'strean' WHERE name = 'stream'",
    "UPDATE _stemma_meta SET hash = NULL WHERE name = 'stream'",
    "UPDATE _stemma_meta SET value = substr(value, 1, length(value) - 1) WHERE name = 'position'",
    "DELETE FROM _stemma_meta WHERE name = 'position'",
  ])
  func tablesThatLackAHeadAreMadeAnewBeforeAnybodyWrites(change: String) throws {
    let folder = try TemporaryFolder()
    let writers = try made(folder, seed: 1)
    try sqlite3(
      folder.tables,
      change.replacingOccurrences(
        of: "rowid_of = 1",
        with: "(partition, origin) = (SELECT partition, origin FROM _stemma_streams LIMIT 1)"))
    try expectNoWriterOpens(folder, writers)
  }

  private func expectNoWriterOpens(_ folder: TemporaryFolder, _ writers: Writers) throws {
    #expect {
      try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    } throws: { isCorruption($0) }
  }

  @Test(arguments: ["value = value - 1", "value = value * 2", "hash = NULL"])
  func changedNumbersOfCommitsAreNotBelieved(change: String) throws {
    let folder = try TemporaryFolder()
    let writers = try made(folder, seed: 1)
    let tables = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    try sqlite3(folder.tables, "UPDATE _stemma_meta SET \(change) WHERE name = 'commit'")
    let origin = try #require(writers.events.first?.commit.origin)
    #expect {
      try tables.read { reader throws(TablesError) in try reader.highestCommit(of: origin) }
    } throws: { isCorruption($0) }
  }

  /// A trigger can silently discard a write.
  @Test(arguments: [
    "DROP TABLE members", "ALTER TABLE members RENAME COLUMN _state TO state",
    "DROP TABLE _stemma_tombstones", "DROP VIEW _stemma_streams",
    "CREATE TRIGGER t BEFORE INSERT ON members BEGIN SELECT RAISE(IGNORE); END",
    "CREATE UNIQUE INDEX own ON members (name)", "CREATE INDEX own ON members (lower(name))",
    "CREATE VIEW own AS SELECT * FROM members", "CREATE TABLE own (x UNIQUE)",
  ])
  func tablesThatSomebodyChangedAreNotOpened(change: String) throws {
    let folder = try TemporaryFolder()
    let writers = try made(folder, seed: 1)
    try sqlite3(folder.tables, change)
    for mode in [Tables.Mode.readOnly, .readWrite] {
      #expect {
        try Tables.open(at: folder.tables, schema: writers.schema, mode: mode)
      } throws: { isCorruption($0) }
    }
  }

  /// This also applies to open tables, and to a commit that the object would not refuse.
  @Test(arguments: [
    "CREATE UNIQUE INDEX own ON members (name)", "CREATE VIEW own AS SELECT 1",
    "CREATE TRIGGER t BEFORE INSERT ON members BEGIN SELECT RAISE(IGNORE); END",
  ])
  func objectsOfOtherSoftwareAreFoundByTheNextWrite(change: String) throws {
    let folder = try TemporaryFolder()
    let writers = try made(folder, seed: 1)
    let tables = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    try tables.apply([])
    try tables.write { _ throws(TablesError) in }
    try sqlite3(folder.tables, change)
    #expect { try tables.write { _ throws(TablesError) in } } throws: { isCorruption($0) }
    try tables.checkInvariants()
  }

  @Test func statisticsOfSQLiteStay() throws {
    let folder = try TemporaryFolder()
    let writers = try made(folder, seed: 1)
    try sqlite3(folder.tables, "ANALYZE")
    for mode in [Tables.Mode.readOnly, .readWrite] {
      try Tables.open(at: folder.tables, schema: writers.schema, mode: mode).check()
    }
  }

  private func isCorruption(_ error: any Error) -> Bool {
    guard case .needsRebuild(_, .corrupt)? = error as? TablesError else { return false }
    return true
  }

  @Test func missingFileNeedsARebuildToRead() throws {
    let folder = try TemporaryFolder()
    #expect(throws: TablesError.needsRebuild(path: folder.tables, .missing)) {
      try Tables.open(at: folder.tables, schema: try sampleSchema(), mode: .readOnly)
    }
  }

  /// Each bit of the header, and one bit of each byte in the rest of the page. That is SQLite's
  /// catalog: the root page and definition of each table.
  @Test func corruptFirstPageIsReportedOrHarmless() throws {
    let folder = try TemporaryFolder()
    var writers = try made(folder, seed: 2)
    // Longer than a page: the usable page size determines the place of the overflow.
    let long = String(repeating: "long ", count: 4000)
    try writers.write(.create, "Team", Key(.string("long")), ["name": .string(long)])
    try Tables.rebuild(at: folder.tables, writers.schema, writers.events)
    let good = try Data(contentsOf: URL(fileURLWithPath: folder.tables))
    let whole = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readOnly)
    let export = try whole.exported()
    try whole.close()
    let header = 108
    let headerBits = Array(0..<(8 * header))
    let others = (header..<4096).map { 8 * $0 + $0 * 5 % 8 }
    for (mode, bits) in [(Tables.Mode.readOnly, headerBits + others), (.readWrite, headerBits)] {
      var refused = 0
      for bit in bits {
        var bad = good
        bad[bit / 8] ^= 1 << UInt8(bit % 8)
        try bad.write(to: URL(fileURLWithPath: folder.tables))
        FileReplacement.removeSidecars(of: folder.tables)
        do {
          let tables = try Tables.open(at: folder.tables, schema: writers.schema, mode: mode)
          if mode == .readWrite {
            try tables.write { transaction throws(TablesError) in
              let held = Acknowledgement(
                peer: "p", partition: Partition("p"), origin: Origin(9), sequence: SequenceNumber(4))
              try transaction.confirm([held], by: "p", in: { _ in true })
            }
          }
          #expect(try tables.exported() == export, "bit \(bit), \(mode)")
          try tables.close()
        } catch TablesError.needsRebuild { refused += 1 } catch {
          Issue.record("bit \(bit), \(mode): \(error)")
        }
      }
      #expect(refused > 200, "\(mode)")
    }
    // The complete repair, over the corrupt file.
    try Tables.rebuild(at: folder.tables, writers.schema, writers.events)
    let recovered = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readOnly)
    #expect(try recovered.exported() == export)
  }

  @Test func fileThatIsNoDatabaseNeedsARebuild() throws {
    let folder = try TemporaryFolder()
    for content in ["", "hello", String(repeating: "x", count: 10_000)] {
      try Data(content.utf8).write(to: URL(fileURLWithPath: folder.tables))
      #expect {
        _ = try Tables.open(at: folder.tables, schema: try sampleSchema(), mode: .readWrite)
      } throws: { error in
        guard case TablesError.needsRebuild = error else { return false }
        return true
      }
    }
  }

  /// Opening must neither wait for the other end of a pipe nor fail with a bare SQLite code.
  @Test(arguments: ["pipe", "directory", "dead link", "device"], ["", "-wal", "-shm", "-journal"])
  func whatIsNoFileIsMovedAsideByARebuild(kind: String, suffix: String) throws {
    let folder = try TemporaryFolder()
    let writers = suffix.isEmpty ? try randomHistory(seed: 2, count: 50) : try made(folder, seed: 2)
    let name = folder.tables + suffix
    if FileManager.default.fileExists(atPath: name) { try FileManager.default.removeItem(atPath: name) }
    switch kind {
    case "pipe": #expect(mkfifo(name, 0o600) == 0)
    case "directory":
      try FileManager.default.createDirectory(atPath: name, withIntermediateDirectories: false)
    default:
      let target = kind == "device" ? "/dev/zero" : "nowhere"
      try FileManager.default.createSymbolicLink(atPath: name, withDestinationPath: target)
    }
    for mode in [Tables.Mode.readOnly, .readWrite] {
      #expect {
        try Tables.open(at: folder.tables, schema: writers.schema, mode: mode)
      } throws: { isCorruption($0) }
    }
    try Tables.rebuild(at: folder.tables, writers.schema, writers.events)
    try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite).check()
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(names.contains("tables.sqlite\(suffix).aside0"))
  }

  @Test func corruptStateIsReportedWithItsKey() throws {
    let folder = try TemporaryFolder()
    var writers = Writers(try sampleSchema())
    try writers.write(.create, "Team", Key(.string("t1")))
    try Tables.rebuild(at: folder.tables, writers.schema, writers.events)
    try sqlite3(folder.tables, "UPDATE teams SET _state = x'ff'")
    let tables = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    #expect {
      _ = try tables.read { reader throws(TablesError) in try reader.get("Team", Key(.string("t1"))) }
    } throws: { error in
      guard case TablesError.needsRebuild(_, .corrupt(let what)) = error else { return false }
      return what.contains("row of Team") && what.contains("t1")
    }
  }

  @Test func otherFormatOrSchemaNeedsARebuild() throws {
    let folder = try TemporaryFolder()
    let writers = try made(folder, seed: 3)
    let other = try SDL.read("type Team @model { id: ID! name: Int }").schema
    #expect(throws: TablesError.needsRebuild(path: folder.tables, .schema)) {
      try Tables.open(at: folder.tables, schema: other, mode: .readWrite)
    }
    try sqlite3(folder.tables, "UPDATE _stemma_meta SET value = 99 WHERE name = 'format'")
    #expect(throws: TablesError.needsRebuild(path: folder.tables, .format(found: 99))) {
      try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    }
    try sqlite3(folder.tables, "DROP TABLE _stemma_meta")
    #expect(throws: TablesError.needsRebuild(path: folder.tables, .format(found: nil))) {
      try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    }
  }

  /// The write-ahead log of a replaced file must not be replayed into the new file.
  @Test func rebuildReplacesTheFileWhileItIsReadAndWritten() throws {
    let folder = try TemporaryFolder()
    let writers = try randomHistory(seed: 4, count: 150)
    let old = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    try old.apply(Array(writers.events.prefix(60)))
    #expect(FileManager.default.fileExists(atPath: folder.tables + "-wal"))
    let before = try old.exported()
    let reader = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readOnly)
    try old.read { reader throws(TablesError) in
      var cursor = try reader.export()
      var bytes: [UInt8] = []
      _ = try cursor.next(into: &bytes)
      do { try Tables.rebuild(at: folder.tables, writers.schema, writers.events) } catch {
        Issue.record(error)
      }
      while try cursor.next(into: &bytes) {}
      #expect(String(decoding: bytes, as: UTF8.self) == before)
    }
    #expect(old.isReplaced)
    #expect(throws: TablesError.replaced(path: folder.tables)) {
      try old.apply(Array(writers.events.suffix(10)))
    }
    let new = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    let full = try Tables.inMemory(schema: writers.schema)
    try full.apply(writers.events)
    #expect(try new.exported() == full.exported())
    #expect(try reader.isReplaced && reader.exported() == before)
    try old.close()
    #expect(!new.isReplaced)
    try new.check()
    #expect(try new.exported() == full.exported())
  }

  @Test func failedRebuildLeavesTheOldTables() throws {
    let folder = try TemporaryFolder()
    let writers = try made(folder, seed: 6)
    struct Unreadable: Error {}
    var count = 0
    #expect(throws: Unreadable.self) {
      try Tables.rebuild(
        at: folder.tables, schema: writers.schema, versionVector: nil, token: token(0),
        next: {
          count += 1
          if count > 3 { throw Unreadable() }
          return StoredEvent(writers.events[0], at: token(0).position)
        })
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(!names.contains { $0.contains("building") })
    let tables = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readOnly)
    try tables.check()
  }

  @Test func rebuildKeepsAcknowledgements() throws {
    let folder = try TemporaryFolder()
    let writers = try made(folder, seed: 7)
    let tables = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    try tables.write { transaction throws(TablesError) in
      let held = Acknowledgement(
        peer: "p", partition: Partition("é=1"), origin: Origin(9), sequence: SequenceNumber(4))
      try transaction.confirm([held], by: "p", in: { _ in true })
    }
    try tables.close()
    try Tables.rebuild(at: folder.tables, writers.schema, writers.events)
    let rebuilt = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readOnly)
    #expect(
      try rebuilt.read { reader throws(TablesError) in try reader.acknowledgements() } == [
        Acknowledgement(
          peer: "p", partition: Partition("é=1"), origin: Origin(9), sequence: SequenceNumber(4))
      ])
  }

  @Test func tablesOfThePastShowTheEventsUpToThen() throws {
    let folder = try TemporaryFolder()
    let writers = try randomHistory(seed: 8, count: 150)
    let middle = writers.events[70].timestamp
    for (filter, count) in [
      (RebuildFilter.time(middle), 71), (.position(Position(100)), 100),
    ] {
      try Tables.rebuild(at: folder.tables, writers.schema, writers.events, filter: filter)
      #expect(throws: TablesError.needsRebuild(path: folder.tables, .asOf)) {
        try Tables.open(at: folder.tables, schema: writers.schema, mode: .readOnly)
      }
      let past = try Tables.openForReading(at: folder.tables, schema: writers.schema)
      let expected = try Tables.inMemory(schema: writers.schema)
      try expected.apply(Array(writers.events.prefix(count)))
      #expect(try past.exported() == expected.exported())
      #expect(try past.digests() == expected.digests())
    }
  }

  /// A cause whose clock was ahead: at that time neither event is visible.
  @Test func effectBeforeItsCauseInTimeIsNotShownWithoutIt() throws {
    let folder = try TemporaryFolder()
    var writers = Writers(try sampleSchema())
    let key = Key(.string("t"))
    try writers.write(.create, "Team", key, ["name": .string("one")], milliseconds: 100)
    try writers.write(.update, "Team", key, ["name": .string("two")], milliseconds: 900)
    try writers.write(.update, "Team", key, ["name": .string("three")], milliseconds: 200)
    try Tables.rebuild(
      at: folder.tables, writers.schema, writers.events, filter: .time(Timestamp(milliseconds: 300)))
    let past = try Tables.openForReading(at: folder.tables, schema: writers.schema)
    #expect(try past.lines("SELECT name FROM teams") == [[.string("one")]])
  }

  @Test func secondProcessSeesWhatTheFirstCommitted() throws {
    let folder = try TemporaryFolder()
    let writers = try randomHistory(seed: 9, count: 60)
    let writer = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    let reader = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readOnly)
    let other = try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    try writer.apply(Array(writers.events.prefix(30)))
    #expect(try reader.exported() == writer.exported())
    try other.apply(Array(writers.events.suffix(30)))
    #expect(try reader.exported() == other.exported())
    try writer.check()
  }
}
