import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaSchema
import Testing

@testable import StemmaTables
import StemmaSimulation

private struct AcceptedLoss: Error {}

@Suite struct TransactionTests {
  private let key = Key(.string("t1"))

  private func sample() throws -> (Tables, Writers) {
    var writers = Writers(try sampleSchema())
    try writers.write(.create, "Team", key, ["name": .string("one")])
    let tables = try Tables.inMemory(schema: writers.schema)
    try tables.apply(writers.events)
    return (tables, writers)
  }

  @Test func stateIsSeenInsideOfTheTransactionThatMadeIt() throws {
    var (tables, writers) = try sample()
    let team = try #require(writers.schema.model(named: "Team"))
    let update = try writers.write(.update, "Team", key, ["name": .string("two")])
    try tables.write { transaction throws(TablesError) in
      try transaction.apply(update)
      let state = try transaction.state(of: key, in: team)
      #expect(state?.value(of: "name", MergeRules(team)) == .string("two"))
      #expect(try transaction.reader().get("Team", key)?.value(of: "name") == .string("two"))
      #expect(try transaction.head(update.partition, Origin(1)).sequence == SequenceNumber(2))
      #expect(try transaction.highestCommit(of: Origin(1)) == 2)
      #expect(try transaction.clock() == .zero)
      try transaction.keep(clock: update.timestamp)
      #expect(try transaction.clock() == update.timestamp)
    }
  }

  @Test func errorRollsTheWholeTransactionBack() throws {
    var (tables, writers) = try sample()
    let before = try (tables.exported(), tables.digests())
    let update = try writers.write(.update, "Team", key, ["name": .string("two")])
    #expect(throws: AcceptedLoss.self) {
      try tables.write({ _ in AcceptedLoss() }) { transaction throws(AcceptedLoss) in
        do throws(TablesError) {
          try transaction.apply(update)
          _ = try transaction.reader()
        } catch { Issue.record(error) }
        throw AcceptedLoss()
      }
    }
    #expect(try tables.exported() == before.0)
    #expect(try tables.digests() == before.1)
    try tables.apply([update])
    try tables.check()
  }

  /// Several commits share one transaction and one sync. A failing commit rolls back only itself.
  ///
  /// `reads`: a query runs in between, so changes are written before they are rolled back.
  @Test(arguments: [false, true], [false, true])
  func savepointUndoesOneCommitOfAGroup(reads: Bool, nests: Bool) throws {
    var (tables, writers) = try sample()
    let first = try writers.write(.update, "Team", key, ["name": .string("two")])
    var other = writers
    let failed = try other.write(.delete, "Team", key)
    let failedToo = try other.write(.create, "Counter", Key(.int(1)))
    let inner = try other.write(.create, "Counter", Key(.int(2)))
    let second = try writers.write(.create, "Team", Key(.string("t2")), ["name": .string("new")])
    try tables.write { transaction throws(TablesError) in
      try transaction.savepoint { () throws(TablesError) in
        try transaction.apply(first)
        transaction.checkInvariants()
        transaction.advance(to: token(7))
      }
      transaction.checkInvariants()
      do throws(AcceptedLoss) {
        try transaction.savepoint({ _ in AcceptedLoss() }) { () throws(AcceptedLoss) in
          do throws(TablesError) {
            try transaction.apply(failed)
            try transaction.apply(failedToo)
            transaction.advance(to: token(9))
            transaction.checkInvariants()
            if reads { _ = try transaction.reader() }
            transaction.checkInvariants()
            if nests {
              try transaction.savepoint { () throws(TablesError) in try transaction.apply(inner) }
            }
            transaction.checkInvariants()
          } catch { Issue.record(error) }
          throw AcceptedLoss()
        }
        Issue.record("the savepoint did not pass the error on")
      } catch {}
      transaction.checkInvariants()
      #expect(try transaction.head(first.partition, Origin(1)).sequence == SequenceNumber(2))
      try transaction.savepoint { () throws(TablesError) in try transaction.apply(second) }
    }
    try tables.check()
    let expected = try Tables.inMemory(schema: writers.schema)
    try expected.apply(writers.events)
    #expect(try tables.exported() == expected.exported())
    #expect(try tables.digests() == expected.digests())
    #expect(try tables.read { reader throws(TablesError) in try reader.token() } == token(7))
  }

  /// Stream heads are cached between transactions while no other connection writes.
  @Test func whatAnotherConnectionWritesIsSeenByTheNextTransaction() throws {
    let folder = try TemporaryFolder()
    var writers = Writers(try sampleSchema())
    try writers.write(.create, "Team", key, ["name": .string("one")])
    for text in ["two", "three", "four"] {
      try writers.write(.update, "Team", key, ["name": .string(text)])
    }
    let both = try (0..<2).map { _ in
      try Tables.open(at: folder.tables, schema: writers.schema, mode: .readWrite)
    }
    for (turn, event) in writers.events.enumerated() {
      try both[turn % 2].write { transaction throws(TablesError) in
        #expect(try transaction.head(event.partition, Origin(1)).sequence == SequenceNumber(UInt64(turn)))
        #expect(try transaction.highestCommit(of: Origin(1)) == UInt64(turn))
        try transaction.apply(event)
        transaction.advance(to: token(turn + 1))
      }
    }
    for tables in both { try tables.check() }
    let expected = try Tables.inMemory(schema: writers.schema)
    try expected.apply(writers.events)
    #expect(try both[0].digests() == expected.digests())
    #expect(try both[0].read { reader throws(TablesError) in try reader.token() } == token(4))
  }

  /// A recently written record is cached for the next transaction, but not a record that was only
  /// read, nor a large one.
  @Test func smallRecordsAreKeptForTheNextTransaction() throws {
    var (tables, writers) = try sample()
    let team = try #require(writers.schema.model(named: "Team"))
    var kept = 0
    func count() throws { try tables.write { transaction in kept = transaction.records.count } }
    try count()
    #expect(kept == 1)
    try tables.write { transaction throws(TablesError) in
      _ = try transaction.state(of: Key(.string("other")), in: team)
    }
    try count()
    #expect(kept == 0)
    try tables.apply([writers.write(.update, "Team", key, ["name": .string("two")])])
    try count()
    #expect(kept == 1)
    try tables.apply([writers.write(.delete, "Team", key)])
    try count()
    #expect(kept == 1)
    let large = String(repeating: "x", count: 1 << 18)
    try tables.apply([writers.write(.create, "Team", key, ["name": .string(large)])])
    try count()
    #expect(kept == 0)
    try tables.apply([writers.write(.update, "Team", key, ["name": .string("three")])])
    try tables.check()
    let expected = try Tables.inMemory(schema: writers.schema)
    try expected.apply(writers.events, batch: 1)
    #expect(try tables.digests() == expected.digests())
  }

  /// A failed commit of a group also reverts its change in a record that an earlier transaction
  /// cached.
  @Test func keptRecordIsTakenBackWithTheCommitThatChangedIt() throws {
    var (tables, writers) = try sample()
    let update = try writers.write(.update, "Team", key, ["name": .string("two")])
    for asksForRows in [false, true] {
      try tables.write { transaction throws(TablesError) in
        #expect(transaction.records.count == 1)
        do throws(AcceptedLoss) {
          try transaction.savepoint({ _ in AcceptedLoss() }) { () throws(AcceptedLoss) in
            do throws(TablesError) {
              try transaction.apply(update)
              if asksForRows { _ = try transaction.reader() }
            } catch { Issue.record(error) }
            throw AcceptedLoss()
          }
        } catch {}
      }
      try tables.check()
      #expect(try tables.exported().contains("one"))
    }
    try tables.apply([update])
    try tables.check()
    #expect(try tables.exported().contains("two"))
  }

  /// A cached record is not mistaken for one of another partition.
  @Test func keptRecordStaysInItsPartition() throws {
    var (tables, writers) = try sample()
    let good = try writers.write(.create, "File", Key(.string("a"), .string("b")))
    try tables.apply([good])
    var foreign = try writers.write(.update, "File", good.key)
    foreign.partition = Partition("folder=z")
    foreign.id = EventID(foreign.id.origin, SequenceNumber(1))
    try tables.write { transaction throws(TablesError) in
      #expect(transaction.records.count == 2)
      #expect(throws: TablesError.foreignPartition(foreign.partition, model: "File", good.key)) {
        try transaction.apply(foreign)
      }
    }
    try tables.check()
  }

  @Test func gapInAStreamIsRefusedAndNothingChanges() throws {
    var (tables, writers) = try sample()
    _ = try writers.write(.update, "Team", key, ["name": .string("lost")])
    let late = try writers.write(.update, "Team", key, ["name": .string("late")])
    #expect(throws: TablesError.gap(late.partition, late.id, held: SequenceNumber(1))) {
      try tables.apply([late])
    }
    try tables.check()
  }

  @Test func hostileEventsAreRefused() throws {
    var (tables, writers) = try sample()
    let good = try writers.write(.create, "File", Key(.string("a"), .string("b")))
    var foreign = good
    foreign.partition = Partition("folder=z")
    #expect(throws: TablesError.foreignPartition(foreign.partition, model: "File", good.key)) {
      try tables.apply([foreign])
    }
    for key in [
      Key(.string("a")), Key(.int(1), .string("b")), Key(.string("a"), .string("b"), .string("c")),
      Key(trusted: []), Key(trusted: [2, 97]), Key(trusted: [99]),
    ] {
      var unfit = good
      unfit.key = key
      #expect(throws: TablesError.unfitKey(model: "File", key)) { try tables.apply([unfit]) }
    }
    var wrong = good
    wrong.version = Version(5)
    #expect(throws: TablesError.self) { try tables.apply([wrong]) }
    try tables.check()
    try tables.apply([good])
    try tables.check()
  }

  @Test func deletedAndCreatedAnewKeepsItsHistory() throws {
    var (tables, writers) = try sample()
    let delete = try writers.write(.delete, "Team", key)
    try tables.apply([delete])
    try tables.check()
    #expect(try tables.exported().isEmpty)
    #expect(try tables.lines("SELECT count(*) FROM _stemma_tombstones") == [[.int(1)]])
    let again = try writers.write(.create, "Team", key, ["name": .string("again")])
    #expect(again.version == Version(3))
    try tables.apply([again])
    try tables.check()
    #expect(try tables.lines("SELECT count(*) FROM _stemma_tombstones") == [[.int(0)]])
    #expect(try tables.lines("SELECT name, _version FROM teams") == [[.string("again"), .int(3)]])
  }

  @Test func purgeRemovesExactlyThePartitions() throws {
    var generator = SplitMix64(seed: 5)
    let writers = try randomHistory(seed: 5, count: 400)
    let isPurged: (Partition) -> Bool = {
      ["folder=a", "folder=b%25", "Team", "station=10", "Unheard"].contains($0.description)
    }
    let tables = try Tables.inMemory(schema: writers.schema)
    try tables.apply(writers.shuffled(&generator))
    let removed = try tables.write { transaction throws(TablesError) in
      func confirm(_ numbers: [(partition: String, sequence: UInt64)]) throws(TablesError) {
        let held = numbers.map {
          Acknowledgement(
            peer: "p", partition: Partition($0.partition), origin: Origin(1),
            sequence: SequenceNumber($0.sequence))
        }
        try transaction.confirm(held, by: "p", in: { $0 != Partition("Unasked") })
      }
      try confirm([("Team", 3), ("Member", 2), ("Gone", 1), ("Unasked", 5)])
      try confirm([("Team", 3), ("Member", 4)])
      try confirm([("Team", 3), ("Member", 3)])
      return try transaction.purge(isPurged)
    }
    #expect(removed.map(\.description) == ["Team", "Unheard", "folder=a", "folder=b%25", "station=10"])
    try tables.check()
    let expected = try Tables.inMemory(schema: writers.schema)
    try expected.apply(writers.events.filter { !isPurged($0.partition) })
    #expect(try tables.exported() == expected.exported())
    #expect(try tables.digests() == expected.digests())
    let partitions = try tables.read { reader throws(TablesError) in try reader.partitions() }
    #expect(try expected.read { reader throws(TablesError) in try reader.partitions() } == partitions)
    #expect(
      try tables.read { reader throws(TablesError) in try reader.acknowledgements() } == [
        Acknowledgement(
          peer: "p", partition: Partition("Member"), origin: Origin(1), sequence: SequenceNumber(3)),
        Acknowledgement(
          peer: "p", partition: Partition("Unasked"), origin: Origin(1), sequence: SequenceNumber(5)),
      ])
  }
}
