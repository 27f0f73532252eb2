import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Power fails, operations fail: what was acknowledged is there, and what is there was written.
@Suite struct CrashTests {
  private func reopen(_ disk: SimulatedFileSystem) throws -> Log? {
    do {
      return try Log.open(
        in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 3000, level: 1))
    } catch LogError.noLog { return nil }
  }

  /// The same suites that `simulate faults` runs on a larger log, each with every case.
  private func expectNone(
    _ suite: FaultSuite, every step: Int = 1, _ location: SourceLocation = #_sourceLocation
  ) {
    #expect(suite.cases > 0, sourceLocation: location)
    for index in stride(from: 0, to: suite.cases, by: step) {
      #expect(suite.violations(index) == [], "\(suite.name), case \(index)", sourceLocation: location)
    }
  }

  @Test func acknowledgedEventsOutliveACrashAtEveryOperation() throws {
    expectNone(try FaultSuite.crashes(.small, seed: 1))
  }

  @Test func aSecondCrashDuringRecoveryChangesNothing() throws {
    // `simulate faults` has all of them; every second one meets each operation.
    expectNone(try FaultSuite.secondCrashes(.small, seed: 2), every: 2)
    for suite in try FaultSuite.interruptedRecoveries(.small, seed: 2) { expectNone(suite) }
  }

  @Test func anyOperationMayFailOnceOrForEver() throws {
    expectNone(try FaultSuite.failures(.small, seed: 3))
  }

  @Test func whatCannotBeReadIsNeverTakenForDamagedOrEmpty() throws {
    expectNone(try FaultSuite.failedReads(.small, seed: 9))
  }

  @Test func whatOthersDidIsTakenInOrTheErrorIsSaid() throws {
    expectNone(try FaultSuite.failedRefreshes(.small, seed: 10))
  }

  @Test func aSegmentThatIsTornAtAnyByteLeavesTheJournal() throws {
    expectNone(try FaultSuite.tornSeals(.small, seed: 4))
  }

  @Test func aWatermarkThatIsTornAtAnyByteIsWrittenAnew() throws {
    expectNone(try FaultSuite.tornWatermarks(.small, seed: 5))
  }

  /// Behind missing bytes nothing of a sealed file was read, although its end tells where everything stands.
  @Test func allIsReadButTheBlocksInWhichBytesAreMissingOrTooMany() throws {
    for suite in try FaultSuite.shifts(.small, seed: 8) { expectNone(suite) }
  }

  @Test func aDamagedFileIsFoundWhereTheWatermarkIsBadToo() throws {
    expectNone(try FaultSuite.flipsWithoutWatermark(.small, seed: 11))
  }

  @Test func mendingAndGivingUpMayFailAtAnyOperation() throws {
    // `simulate faults` has all of them; 17 meets every way of failing.
    for suite in try FaultSuite.remedies(.small, seed: 6) { expectNone(suite, every: 17) }
  }

  /// Threads unpack blocks ahead of a reader. They held the reader's file, so that one who stopped reading left it open
  /// until they had come to an end.
  @Test func readersThatStopLeaveNoFileOpen() throws {
    let disk = SimulatedFileSystem(seed: 7)
    var maker = EventMaker(seed: 7)
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    for _ in 0..<30 { _ = try log.append([Commit(maker.commit(40, textLength: 900))]) }
    try log.sync()
    try log.seal()
    log.close()
    for count in 0..<60 {
      do {
        let log = try #require(try reopen(disk))
        var reader = log.events()
        for _ in 0...count * 20 { _ = try reader.next() }
        let merge = try log.recordFiles.open()
        for _ in 0...count where try merge.nextRecord() {
          while let source = merge.nextSource() {
            var cursor = source.cursor
            while try source.nextOfRecord(&cursor) {}
          }
        }
        log.close()
      }
      #expect(disk.openFiles == 0, "after \(count * 20) events")
    }
  }

  /// The suites are only worth what they find: a disk that confirms syncs without doing them must be noticed by
  /// each one that crashes, and one that loses what is written after a failed sync by the one that goes on writing.
  @Test(arguments: FaultSuite.Lie.allCases)
  func aDiskThatLiesIsFound(lie: FaultSuite.Lie) throws {
    var suites = [try FaultSuite.failures(.small, seed: 1, on: lie)]
    if lie != .writesOverDroppedPages {
      suites.append(try FaultSuite.crashes(.small, seed: 1, on: lie))
      suites.append(try FaultSuite.secondCrashes(.small, seed: 1, on: lie))
    }
    for suite in suites {
      let isFound = (0..<suite.cases).contains { !suite.violations($0).isEmpty }
      #expect(isFound, "\(suite.name) does not notice that the disk lies about \(lie)")
    }
  }

  @Test func anUnfinishedWriteLeavesTheLogUsable() throws {
    let disk = SimulatedFileSystem()
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    var maker = EventMaker(seed: 4)
    let first = maker.commit(3)
    _ = try log.append([Commit(first)])
    try log.sync()
    disk.inject([.init(operation: disk.operations.count + 1, errno: System.noSpace)])
    let second = maker.commit(3)
    #expect(
      throws: LogError.system(path: "/log/00000001.journal", operation: "pwrite", errno: System.noSpace)
    ) {
      _ = try log.append([Commit(second)])
    }
    #expect(try log.allEvents() == first)
    _ = try log.append([Commit(second)])
    try log.sync()
    #expect(try log.allEvents() == first + second)
    #expect(try reopen(disk)?.recovery.cuts == [])
  }

  /// A sync failed once and would succeed the next time, while the disk never got the bytes.
  @Test(arguments: SimulatedFileSystem.DroppedPages.allCases)
  func aFailedSyncIsFinalUntilTheLogIsOpenedAgain(pages: SimulatedFileSystem.DroppedPages) throws {
    var counts: Set<Int> = []
    for seed in 1...40 as ClosedRange<UInt64> {
      let disk = SimulatedFileSystem(seed: seed)
      let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
      var maker = EventMaker(seed: 5)
      let first = maker.commit(3)
      _ = try log.append([Commit(first)])
      try log.sync()
      let second = maker.commit(3)
      _ = try log.append([Commit(second)])
      disk.inject([.init(operation: disk.operations.count + 1, errno: System.inputOutput, pages: pages)])
      #expect(
        throws: LogError.system(
          path: "/log/00000001.journal", operation: "fdatasync", errno: System.inputOutput)
      ) {
        try log.sync()
      }
      #expect(throws: LogError.poisoned(path: "/log")) { try log.sync() }
      #expect(throws: LogError.poisoned(path: "/log")) { _ = try log.append([Commit(maker.commit(1))]) }
      #expect(throws: LogError.poisoned(path: "/log")) { try log.seal() }
      // A reader sees nothing of what was not synced, nor does the log itself.
      let reader = try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: .readOnly))
      #expect(try reader.allEvents() == first)
      #expect(try log.allEvents() == first)
      #expect(log.end == reader.end)
      // Opening writes what there is of the tail again, so that a crash keeps it.
      let shown = try #require(try reopen(disk)).allEvents()
      #expect(shown == first || shown == first + second)
      disk.crash()
      #expect(try reopen(disk)?.allEvents() == shown)
      counts.insert(shown.count)
    }
    #expect(counts == (pages == .kept ? [6] : [3, 6]))
  }

  @Test func tornTailIsCutKeptAsideAndReported() throws {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 6)
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    let first = maker.commit(2)
    _ = try log.append([Commit(first)])
    try log.sync()
    let path = "/log/00000001.journal"
    let whole = try #require(disk.contents(path))
    _ = try log.append([Commit(maker.commit(2)), Commit(maker.commit(1))])
    let longer = try #require(disk.contents(path))
    log.close()
    for count in whole.count..<longer.count {
      let other = disk.copy()
      other.plant(Array(longer[..<count]), at: path)
      let log = try #require(try reopen(other))
      let events = try log.allEvents()
      #expect(events.starts(with: first))
      if events.count == first.count {
        #expect(other.contents(path) == whole)
        if count > whole.count {
          // Zeros at the end say nothing: they may have been written ahead.
          let tail = longer[whole.count..<count]
          let kept = Array(tail[...(try #require(tail.lastIndex { $0 != 0 }))])
          #expect(
            log.recovery.cuts == [
              .init(
                path: path, offset: UInt64(whole.count), bytes: UInt64(kept.count),
                keptAt: "/log/00000001.cut0")
            ])
          #expect(log.recovery.keptTails == ["00000001.cut0"])
          #expect(other.contents("/log/00000001.cut0") == kept)
        }
      }
      let again = try #require(try reopen(other))
      #expect(again.recovery.cuts == [])
      #expect(again.recovery.keptTails == log.recovery.keptTails)
    }
  }

  /// Where many small groups are written, zeros are written ahead; a crash among them loses nothing either.
  @Test(arguments: 1...12 as ClosedRange<UInt64>)
  func zerosThatWereWrittenAheadAreTheEnd(seed: UInt64) throws {
    let disk = SimulatedFileSystem(seed: seed)
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    let other = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    var maker = EventMaker(seed: seed)
    var events: [Event] = []
    for _ in 0..<60 {
      let commit = maker.commit(4, textLength: 150)
      _ = try log.append([Commit(commit)])
      try log.sync()
      events += commit
    }
    let path = "/log/00000001.journal"
    let bytes = try #require(disk.contents(path))
    #expect(bytes.count >= Int(log.journals[0].size) + 4096 && bytes.suffix(4096).allSatisfy { $0 == 0 })
    #expect(try other.refresh() && !other.refresh())
    #expect(try other.allEvents() == events)
    // The next one is torn somewhere, zeros behind it.
    _ = try log.append([Commit(maker.commit(9, textLength: 150))])
    disk.crash()
    let again = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    #expect(again.recovery.damage == [])
    #expect(try again.allEvents().starts(with: events))
    again.checkInvariants()
    let more = maker.commit(1, origin: Origin(55))
    _ = try again.append([Commit(more)])
    try again.sync()
    #expect(try Log.open(in: "/log", id: testLog, fileSystem: disk).allEvents().suffix(1) == more)
    #expect(try Log.open(in: "/log", id: testLog, fileSystem: disk).verify() == [])
  }

  /// An import would gain nothing by zeros, and its log would be longer.
  @Test func nothingIsWrittenAheadOfCommitsOfManyEvents() throws {
    let disk = SimulatedFileSystem(seed: 1)
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    var maker = EventMaker(seed: 1)
    for _ in 0..<6 {
      _ = try log.append([Commit(maker.commit(200, textLength: 50))])
      try log.sync()
    }
    let bytes = try #require(disk.contents("/log/00000001.journal"))
    #expect(bytes.count > LogLimits.leastAhead && bytes.count == Int(log.journals[0].size))
  }
}
