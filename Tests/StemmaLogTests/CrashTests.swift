import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Power failures and failed operations: acknowledged events remain, and no other events appear.
@Suite struct CrashTests {
  private func reopen(_ disk: SimulatedFileSystem) throws -> Log? {
    do {
      return try Log.open(
        in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 3000, level: 1))
    } catch LogError.noLog { return nil }
  }

  /// The suites of `simulate faults` on a small log, with every case or every `step`-th.
  private func expectNone(
    _ suite: FaultSuite, every step: Int = 1, _ location: SourceLocation = #_sourceLocation
  ) {
    let step = Trials.stride(step)
    if step > 1 { print("\(suite.name): each \(step)th of \(suite.cases) cases") }
    #expect(suite.cases > 0, sourceLocation: location)
    for index in stride(from: 0, to: suite.cases, by: step) {
      #expect(suite.violations(index) == [], "\(suite.name), case \(index)", sourceLocation: location)
    }
  }

  @Test func acknowledgedEventsOutliveACrashAtEveryOperation() throws {
    expectNone(try FaultSuite.crashes(.small, seed: 1))
  }

  @Test func aSecondCrashDuringRecoveryChangesNothing() throws {
    expectNone(try FaultSuite.secondCrashes(.small, seed: 2), every: 7)
    for suite in try FaultSuite.interruptedRecoveries(.small, seed: 2) { expectNone(suite) }
  }

  @Test func anyOperationMayFailOnceOrForEver() throws {
    expectNone(try FaultSuite.failures(.small, seed: 3), every: 3)
  }

  @Test func whatCannotBeReadIsNeverTakenForCorruptOrEmpty() throws {
    expectNone(try FaultSuite.failedReads(.small, seed: 9), every: 11)
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

  @Test func aCorruptFileIsFoundWhereTheWatermarkIsBadToo() throws {
    expectNone(try FaultSuite.flipsWithoutWatermark(.small, seed: 11))
  }

  @Test func mendingMayFailAtAnyOperation() throws {
    // Every 17th case still covers each way of failing.
    for suite in try FaultSuite.repairs(.small, seed: 6) { expectNone(suite, every: 17) }
  }

  /// Threads inflate blocks ahead of a reader. They must not keep the file open after the reader
  /// has stopped.
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

  /// Tests of the suites. Each suite with crashes must detect a disk that confirms syncs without
  /// performing them. The suite that continues after a failed sync must detect a disk that loses
  /// later writes.
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

  /// A sync fails once and would then succeed, although the disk never got the bytes.
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
      // A reader shows only synced events, and so does the log itself.
      let reader = try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: .readOnly))
      #expect(try reader.allEvents() == first)
      #expect(try log.allEvents() == first)
      #expect(log.end == reader.end)
      // Opening rewrites the rest of the tail, so that it survives a crash.
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
          // Zeros at the end have no meaning: they may be preallocated.
          let tail = longer[whole.count..<count]
          let kept = Array(tail[...(try #require(tail.lastIndex { $0 != 0 }))])
          #expect(
            log.recovery.cuts == [
              .init(
                path: path, offset: UInt64(whole.count), bytes: UInt64(kept.count),
                keptAt: "/log/00000001.cut0")
            ])
          #expect(log.recovery.cutCount == 1)
          #expect(other.contents("/log/00000001.cut0") == kept)
        }
      }
      let again = try #require(try reopen(other))
      #expect(again.recovery.cuts == [])
      #expect(again.recovery.cutCount == log.recovery.cutCount)
    }
  }

  /// Many small groups cause preallocation of zeros. A crash then loses nothing either.
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
    // The next group is torn at some byte and followed by zeros.
    _ = try log.append([Commit(maker.commit(9, textLength: 150))])
    disk.crash()
    let again = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    #expect(again.recovery.corruption == [])
    #expect(try again.allEvents().starts(with: events))
    again.checkInvariants()
    let more = maker.commit(1, origin: Origin(55))
    _ = try again.append([Commit(more)])
    try again.sync()
    #expect(try Log.open(in: "/log", id: testLog, fileSystem: disk).allEvents().suffix(1) == more)
    #expect(try Log.open(in: "/log", id: testLog, fileSystem: disk).verify() == [])
  }

  /// Preallocated zeros do not help an import and would lengthen its log.
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
