import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// What a damaged log says is missing, and what putting it back makes of it.
@Suite struct MendingTests {
  /// A log with a sealed, an adopted and a purged file, a closed and an open journal; and what it holds.
  private struct Sample {
    let disk = SimulatedFileSystem()
    var events: [Event] = []
    var held = Knowledge()

    init() throws {
      var maker = EventMaker(seed: 21)
      let log = try Log.create(
        in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 2000, level: 6))
      func commit(_ events: [Event], _ note: String? = nil) throws {
        _ = try log.append([Commit(events, note: CommitNote(note: note))])
        try log.sync()
      }
      for number in 0..<4 { try commit(maker.commit(10), "commit \(number)") }
      try log.seal()
      _ = try log.adopt(AdoptedEvents(maker.commit(20, origin: Origin(9))))
      for _ in 0..<3 { try commit(maker.commit(5)) }
      try log.seal()
      try log.purge { $0 == Partition("tenant=c") }
      maker.partitions = ["a", "b"]
      for _ in 0..<4 { try commit(maker.commit(3)) }
      events = try log.allEvents()
      held = try log.streams()
      log.close()
    }

    func open(_ disk: SimulatedFileSystem) throws -> Log {
      try Log.open(
        in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 2000, level: 6))
    }
  }

  private func damaged(_ disk: SimulatedFileSystem, _ name: String, at index: Int) throws
    -> SimulatedFileSystem
  {
    let copy = disk.copy()
    var bytes = try #require(copy.contents("/log/" + name))
    bytes[index] ^= 0x10
    copy.plant(bytes, at: "/log/" + name)
    return copy
  }

  /// What can be read and what is said to be lost make up all that was held.
  private func check(_ survey: Survey, _ log: Log, _ sample: Sample, _ comment: Comment) throws {
    var reader = log.events(around: Omissions())
    var found = Set(try reader.rest().map(\.event))
    #expect(found.isSubset(of: sample.events), comment)
    for range in survey.lost {
      let lost = sample.events.filter {
        $0.partition == range.partition && $0.dot.origin == range.origin
          && (range.from...range.to).contains($0.dot.sequence)
      }
      #expect(lost.count == Int(range.count) && found.isDisjoint(with: lost), comment)
      #expect(range.place != nil, comment)
      found.formUnion(lost)
    }
    #expect(found == Set(sample.events), comment)
  }

  private func checkMended(_ log: Log, _ sample: Sample, _ comment: Comment) throws {
    #expect(log.recovery.damage == [], comment)
    #expect(try log.verify() == [], comment)
    #expect(try log.streams() == sample.held, comment)
    var reader = log.events()
    var heads = Knowledge()
    var events: [Event] = []
    while let event = try reader.next()?.event {
      events.append(event)
      // Causes before effects, each stream in its order.
      #expect(event.dot.sequence == heads[event.partition, event.dot.origin].sequence.next, comment)
      for entry in event.context.entries {
        #expect(heads[event.partition, entry.origin].sequence >= entry.sequence, comment)
      }
      heads[event.partition, event.dot.origin].sequence = event.dot.sequence
    }
    #expect(Set(events) == Set(sample.events) && events.count == sample.events.count, comment)
    log.checkInvariants()
  }

  @Test func whatIsLostIsNamedExactlyAndPutBack() throws {
    let sample = try Sample()
    for name in try sample.disk.list("/log") where name != LogFileName.watermarkName {
      let size = try #require(sample.disk.contents("/log/" + name)).count
      for index in stride(from: 0, to: size, by: 31) {
        let comment: Comment = "\(name), byte \(index)"
        let disk = try damaged(sample.disk, name, at: index)
        let log = try sample.open(disk)
        let damage = try log.verify()
        #expect(!damage.isEmpty, comment)
        let survey = try log.survey(damage, held: sample.held)
        #expect(survey.vague == [], comment)
        try check(survey, log, sample, comment)
        if survey.eventCount > 0 {
          let none = try log.mend(survey, with: [Offer([])])
          #expect(none.missing == survey.lost && none.events == 0, comment)
          var forged = sample.events
          for place in forged.indices { forged[place].timestamp = Timestamp(milliseconds: 1) }
          #expect(try !log.mend(survey, with: [Offer(forged)]).forged.isEmpty, comment)
          try check(try log.survey(damage, held: sample.held), log, sample, comment)
        }
        let again = try log.survey(try log.verify(), held: sample.held)
        let mended = try log.mend(again, with: [Offer(sample.events)])
        #expect(mended.missing.isEmpty && mended.forged.isEmpty, comment)
        #expect(mended.events == again.eventCount, comment)
        try checkMended(log, sample, comment)
        log.close()
        try checkMended(try sample.open(disk), sample, comment)
      }
    }
  }

  /// Two peers have every other lost partition each: what one has is put back, the rest stays lost, and is named, until
  /// the other comes; and both at once are enough.
  @Test func whatOnePeerLacksAnotherHas() throws {
    let sample = try Sample()
    let partitions = Array(Set(sample.events.map(\.partition))).sorted()
    var partial = 0
    for name in try sample.disk.list("/log") where name != LogFileName.watermarkName {
      let size = try #require(sample.disk.contents("/log/" + name)).count
      for index in stride(from: 0, to: size, by: 53) {
        let comment: Comment = "\(name), byte \(index)"
        let disk = try damaged(sample.disk, name, at: index)
        let log = try sample.open(disk)
        let survey = try log.survey(try log.verify(), held: sample.held)
        let halves = (0..<2).map { half in
          Offer(
            sample.events.filter { partitions.firstIndex(of: $0.partition).map { $0 % 2 == half } ?? false })
        }
        let both = try sample.open(disk.copy())
        #expect(try both.mend(survey, with: halves).missing.isEmpty, comment)
        try checkMended(both, sample, comment)

        let first = try log.mend(survey, with: [halves[0]])
        #expect(first.forged.isEmpty, comment)
        if !first.missing.isEmpty, first.events > 0 { partial += 1 }
        let again = try sample.open(disk)
        let damage = try again.verify()
        #expect(damage.isEmpty == first.missing.isEmpty, comment)
        guard !damage.isEmpty else { continue }
        let rest = try again.survey(damage, held: sample.held)
        #expect(Set(rest.lost.map(\.partition)) == Set(first.missing.map(\.partition)), comment)
        #expect(rest.eventCount == survey.eventCount - first.events, comment)
        try check(rest, again, sample, comment)
        // A header that cannot be read may stand for several files: then nothing is put back by halves.
        let second = try again.mend(rest, with: first.events == 0 ? halves : [halves[1]])
        #expect(second.missing.isEmpty && second.forged.isEmpty, comment)
        try checkMended(again, sample, comment)
        again.close()
        try checkMended(try sample.open(disk), sample, comment)
      }
    }
    #expect(partial > 10)
  }

  /// A journal was sealed behind a file that stood behind it already, and power failed before it was removed: it was there for
  /// ever, as a file that somebody was to take away.
  @Test func aJournalThatWasSealedOutOfTurnGoes() throws {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 5)
    var events: [Event] = []
    do {
      let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
      func commit() throws {
        events += maker.commit(3)
        _ = try log.append([Commit(Array(events.suffix(3)))])
        try log.sync()
      }
      try commit()
      try commit()
      // A process dies that was about to seal it.
      _ = try log.beginSealing()
      try commit()
      try commit()
      log.close()
    }
    let damaged = try damaged(disk, "00000002.journal", at: 100)
    let path = "/log/00000001.journal"
    let journal = try #require(damaged.contents(path))
    do {
      let log = try Log.open(in: "/log", id: testLog, fileSystem: damaged)
      #expect(try log.mend(log.survey(log.verify(), held: nil), with: [Offer(events)]).missing == [])
      try log.seal()
      #expect(try damaged.list("/log").contains("00000004.segment") && damaged.contents(path) == nil)
      log.close()
    }
    let header = Array(journal.prefix(JournalHeader.size))
    for (left, isSealed) in [(journal, true), (header, false)] {
      damaged.plant(left, at: path)
      for mode in [Log.Mode.readOnly, .readWrite] {
        let log = try Log.open(in: "/log", id: testLog, fileSystem: damaged, options: .init(mode: mode))
        #expect(log.outsiders.map(\.path) == (isSealed ? [] : [path]))
        #expect(try log.verify() == [])
        #expect(try Set(log.allEvents()) == Set(events) && log.allEvents().count == events.count)
        if mode == .readWrite { log.checkInvariants() }
        log.close()
      }
      #expect((damaged.contents(path) == nil) == isSealed)
    }
  }

  /// Readers of a file with a gap meet it wherever what is lacking may have stood.
  @Test func aGapIsMetByEveryReader() throws {
    let sample = try Sample()
    let name = try #require(try sample.disk.list("/log").first { $0.hasSuffix(".journal") })
    let disk = try damaged(sample.disk, name, at: 100)
    let log = try sample.open(disk)
    let survey = try log.survey(try log.verify(), held: sample.held)
    let lost = try #require(survey.partitions.last)
    let mended = try log.mend(survey, with: [Offer(sample.events.filter { $0.partition != lost })])
    #expect(mended.events > 0 && Set(mended.missing.map(\.partition)) == [lost])
    func flaw(_ reader: EventReader) -> Flaw? {
      var reader = reader
      do throws(LogError) {
        _ = try reader.rest()
        return nil
      } catch { return error.damage?.flaw }
    }
    #expect(flaw(log.events()) == .gap)
    #expect(flaw(log.events(partitions: { $0 == lost })) == .gap)
    #expect(flaw(log.events(partitions: { $0 != lost })) == nil)
    #expect(flaw(log.eventsNewestFirst()) == .gap)
    #expect(flaw(try log.eventsByKey()) == .gap)
    for event in sample.events {
      let found = flaw(log.events(of: RecordKey(event)))
      #expect(found == (event.partition == lost ? .gap : nil))
      let hidden = try log.verify().compactMap { try log.records(hiddenBy: $0) }
      #expect(hidden.contains { $0.contains(RecordKey(event)) } == (event.partition == lost))
    }
  }

  @Test func aMissingFileIsMadeAgain() throws {
    let sample = try Sample()
    for name in try sample.disk.list("/log") where name != LogFileName.watermarkName {
      let disk = sample.disk.copy()
      try disk.remove("/log/" + name)
      let log = try sample.open(disk)
      #expect(
        !log.recovery.damage.isEmpty && log.recovery.damage.allSatisfy { $0.flaw == .missing }, "\(name)")
      let survey = try log.survey([], held: sample.held)
      try check(survey, log, sample, "\(name)")
      #expect(try log.mend(survey, with: [Offer(sample.events)]).missing == [], "\(name)")
      try checkMended(log, sample, "\(name)")
    }
  }

  @Test func withoutAnyMemoryTheLossAtTheEndIsSaidToBeVague() throws {
    let sample = try Sample()
    let disk = sample.disk.copy()
    let journal = try #require(try disk.list("/log").last { $0.hasSuffix(".journal") })
    try disk.remove("/log/" + journal)
    let survey = try sample.open(disk).survey([], held: nil)
    #expect(survey.vague.map { $0.path.dropLast(8) } == ["/log/" + journal.dropLast(8)])
  }

  @Test func aCrashWhileMendingLeavesTheLogDamagedOrMended() throws {
    let sample = try Sample()
    let name = try #require(try sample.disk.list("/log").first { $0.hasSuffix(".segment") })
    let disk = try damaged(sample.disk, name, at: 300)
    for operation in 1... {
      let copy = disk.copy(seed: UInt64(operation))
      let log = try sample.open(copy)
      let survey = try log.survey(try log.verify(), held: sample.held)
      let before = copy.operations.count
      copy.inject([.init(operation: before + operation, errno: System.inputOutput, isLasting: true)])
      do {
        _ = try log.mend(survey, with: [Offer(sample.events)])
        break
      } catch {}
      copy.crash()
      let again = try sample.open(copy)
      let next = try again.survey(try again.verify(), held: sample.held)
      try check(next, again, sample, "operation \(operation)")
      _ = try again.mend(next, with: [Offer(sample.events)])
      try checkMended(again, sample, "operation \(operation)")
    }
  }
}
