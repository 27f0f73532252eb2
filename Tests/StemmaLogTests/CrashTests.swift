import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Power fails, operations fail: what was acknowledged is there, and what is there was written.
@Suite struct CrashTests {
  /// A writer's run over a log: append, seal, adopt, purge, reopen. Records what was acknowledged.
  private struct Workload {
    var attempted: [Event] = []
    /// Events of `attempted` that a sync has confirmed.
    var acknowledged = 0
    /// Whether a purge of the second partition was begun.
    var mayBePurged = false
    static let purged = Partition("tenant=b")

    mutating func run(on disk: SimulatedFileSystem, seed: UInt64, steps: Int = 7) throws {
      var maker = EventMaker(seed: seed)
      let options = Log.Options(segmentSize: 3000, level: 1)
      let log = try Log.create(in: "/log", id: testLog, fileSystem: disk, options: options)
      for step in 0..<steps {
        switch step {
        case 2, 5: try log.seal()
        case 3:
          let events = maker.commit(20, origin: Origin(9))
          attempted += events
          _ = try log.adopt(AdoptedEvents(events))
          acknowledged = attempted.count
        case 6:
          mayBePurged = true
          try log.purge { $0 == Self.purged }
        default:
          let commits = [Commit(maker.commit(3), note: CommitNote(by: "x")), Commit(maker.commit(2))]
          attempted += commits.flatMap(\.events)
          _ = try log.append(commits)
          try log.sync()
          acknowledged = attempted.count
        }
        log.checkInvariants()
      }
    }

    /// The log is a prefix of what was attempted, and holds all that was acknowledged; commits are whole.
    func check(_ log: Log, _ comment: Comment) throws {
      var found = try log.allEvents()
      var expected = attempted
      var least = acknowledged
      if mayBePurged {
        least = attempted[..<acknowledged].count { $0.partition != Self.purged }
        expected.removeAll { $0.partition == Self.purged }
        found.removeAll { $0.partition == Self.purged }
      }
      #expect(found == Array(expected.prefix(found.count)), comment)
      #expect(found.count >= least, comment)
      if !mayBePurged, found.count < expected.count, let last = found.last {
        #expect(last.commit != expected[found.count].commit, comment)
      }
      #expect(try log.verify() == [], comment)
      log.checkInvariants()
    }
  }

  /// How many operations the workload takes when nothing fails.
  private func operations(seed: UInt64) throws -> Int {
    let disk = SimulatedFileSystem(seed: seed)
    var workload = Workload()
    try workload.run(on: disk, seed: seed)
    return disk.operations.count
  }

  private func reopen(_ disk: SimulatedFileSystem) throws -> Log? {
    do {
      return try Log.open(
        in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 3000, level: 1))
    } catch LogError.noLog { return nil }
  }

  @Test func acknowledgedEventsOutliveACrashAtEveryOperation() throws {
    for operation in 1...(try operations(seed: 1)) {
      for seed in 1...3 as ClosedRange<UInt64> {
        let disk = SimulatedFileSystem(seed: seed &+ UInt64(operation) &* 31)
        disk.inject([.init(operation: operation, errno: System.inputOutput, isLasting: true)])
        var workload = Workload()
        #expect(throws: LogError.self) { try workload.run(on: disk, seed: 1) }
        disk.crash()
        let comment: Comment = "crash at operation \(operation), seed \(seed)"
        guard let log = try reopen(disk) else {
          #expect(workload.acknowledged == 0, comment)
          continue
        }
        #expect(log.recovery.damage == [], comment)
        try workload.check(log, comment)
        // It can be written to, and read by others.
        var maker = EventMaker(seed: 555)
        _ = try log.append([Commit(maker.commit(1, origin: Origin(55)))])
        try log.sync()
        let count = try log.allEvents().count
        let reader = try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: .readOnly))
        #expect(try reader.allEvents().count == count, comment)
      }
    }
  }

  @Test func aSecondCrashDuringRecoveryChangesNothing() throws {
    let total = try operations(seed: 2)
    for operation in stride(from: 3, through: total, by: 3) {
      let disk = SimulatedFileSystem(seed: UInt64(operation))
      disk.inject([.init(operation: operation, errno: System.inputOutput, isLasting: true)])
      var workload = Workload()
      #expect(throws: LogError.self) { try workload.run(on: disk, seed: 2) }
      disk.crash()
      for second in 1... {
        let again = disk.copy(seed: UInt64(second))
        again.inject([.init(operation: second, errno: System.inputOutput, isLasting: true)])
        do {
          _ = try reopen(again)
          break
        } catch is LogError {}
        again.crash()
        let comment: Comment = "crash at operation \(operation), then at \(second) of recovery"
        guard let log = try reopen(again) else {
          #expect(workload.acknowledged == 0, comment)
          continue
        }
        #expect(log.recovery.damage == [], comment)
        try workload.check(log, comment)
      }
    }
  }

  @Test(arguments: [System.inputOutput, System.noSpace])
  func anyOperationMayFailOnce(errno: Int32) throws {
    for operation in 1...(try operations(seed: 3)) {
      let disk = SimulatedFileSystem(seed: UInt64(operation))
      disk.inject([.init(operation: operation, errno: errno)])
      var workload = Workload()
      var maker = EventMaker(seed: 77)
      do {
        try workload.run(on: disk, seed: 3)
        // Only what is lazy may fail unnoticed: the next sync writes the watermark again.
        #expect(disk.operations[operation - 1] == "pwrite /log/watermark")
      } catch is LogError {}
      let comment: Comment = "operation \(operation) failed"
      #expect(disk.openFiles == 0, comment)
      // Without a crash.
      if let log = try reopen(disk) {
        #expect(log.recovery.damage == [], comment)
        try workload.check(log, comment)
        var shown = try log.allEvents()
        if operation % 2 == 0 {
          let events = maker.commit(1, origin: Origin(55))
          _ = try log.append([Commit(events)])
          try log.sync()
          shown += events
        }
        disk.crash()
        // Recovery has made everything durable that it showed. Only a creation that failed may be undone.
        if let after = try reopen(disk) {
          #expect(after.recovery.damage == [], comment)
          #expect(try after.allEvents() == shown, comment)
        } else {
          #expect(workload.acknowledged == 0, comment)
        }
      } else {
        #expect(workload.acknowledged == 0, comment)
      }
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
  @Test func aFailedSyncIsFinalUntilTheLogIsOpenedAgain() throws {
    let disk = SimulatedFileSystem()
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    var maker = EventMaker(seed: 5)
    let first = maker.commit(3)
    _ = try log.append([Commit(first)])
    try log.sync()
    let second = maker.commit(3)
    _ = try log.append([Commit(second)])
    disk.inject([.init(operation: disk.operations.count + 1, errno: System.inputOutput)])
    #expect(
      throws: LogError.system(
        path: "/log/00000001.journal", operation: "fdatasync", errno: System.inputOutput)
    ) {
      try log.sync()
    }
    #expect(throws: LogError.poisoned(path: "/log")) { try log.sync() }
    #expect(throws: LogError.poisoned(path: "/log")) { _ = try log.append([Commit(maker.commit(1))]) }
    #expect(throws: LogError.poisoned(path: "/log")) { try log.seal() }
    // A reader sees nothing of what was not synced.
    let reader = try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: .readOnly))
    #expect(try reader.allEvents() == first)
    // Opening writes the tail again, so that a crash keeps it.
    #expect(try reopen(disk)?.allEvents() == first + second)
    disk.crash()
    #expect(try reopen(disk)?.allEvents() == first + second)
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
}
