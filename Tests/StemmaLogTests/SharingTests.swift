import Foundation
import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Two processes on one directory, each with its own `Log`, write in turn under the lock.
@Suite struct SharingTests {
  @Test(arguments: 1...20 as ClosedRange<UInt64>) func eachTakesInWhatTheOtherDid(seed: UInt64) throws {
    let disk = SimulatedFileSystem(seed: seed)
    var random = SplitMix64(seed: seed)
    var maker = EventMaker(seed: seed)
    let options = Log.Options(segmentSize: 2500, level: 1)
    var logs = [try Log.create(in: "/log", id: testLog, fileSystem: disk, options: options)]
    for mode in [Log.Mode.readWrite, .readOnly] {
      logs.append(
        try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: mode, segmentSize: 2500))
      )
    }
    var expected: [Event] = []
    for _ in 0..<40 {
      let log = logs[random.below(2)]
      let before = log.token
      let isNew = try log.refresh()
      #expect(try log.allEvents() == expected)
      #expect(isNew == (log.token != before))
      #expect(try log.matches(before) || log.journals.allSatisfy { $0.base > before.position })
      switch random.below(6) {
      case 0: try log.seal()
      case 1:
        let events = maker.commit(15, origin: Origin(9))
        _ = try log.adopt(AdoptedEvents(events))
        expected += events
      case 2:
        let partition = Partition("tenant=c")
        maker.partitions = ["a", "b"]
        try log.purge { $0 == partition }
        expected.removeAll { $0.partition == partition }
      default:
        let events = maker.commit(4)
        _ = try log.append([Commit(events)])
        try log.sync()
        expected += events
      }
      log.checkInvariants()
      _ = try logs[2].refresh()
      #expect(try logs[2].allEvents() == expected)
      #expect(logs[2].end == log.end)
    }
    #expect(logs.flatMap(\.recovery.cuts) == [])
  }

  @Test func whatADyingProcessLeftHalfWrittenIsCutByTheNextWriter() throws {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 3)
    let first = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    let second = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    let events = maker.commit(3)
    _ = try first.append([Commit(events)])
    try first.sync()
    let path = "/log/00000001.journal"
    disk.plant((disk.contents(path) ?? []) + [1, 2, 3], at: path)
    #expect(try second.refresh())
    #expect(second.recovery.cuts.map(\.bytes) == [3])
    #expect(try second.allEvents() == events)
  }

  @Test func aReadOnlyLogShowsNothingThatIsNotDurable() throws {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 4)
    let writer = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    let first = maker.commit(3)
    _ = try writer.append([Commit(first)])
    try writer.sync()
    _ = try writer.append([Commit(maker.commit(3))])
    let reader = try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: .readOnly))
    let before = disk.operations.count
    #expect(try reader.allEvents() == first)
    #expect(reader.end == Position(4) && reader.durableEnd == reader.end)
    #expect(writer.end == Position(7) && writer.durableEnd == reader.end)
    #expect(try !reader.refresh())
    try writer.sync()
    #expect(try reader.refresh())
    #expect(try reader.allEvents().count == 6)
    #expect(throws: LogError.readOnly(path: "/log")) { _ = try reader.append([Commit(first)]) }
    #expect(throws: LogError.readOnly(path: "/log")) { try reader.seal() }
    #expect(throws: LogError.readOnly(path: "/log")) { try reader.purge { _ in true } }
    let writes = disk.operations[before...].filter { $0.hasPrefix("pwrite") && !$0.hasSuffix("watermark") }
    #expect(writes == [])
  }

  /// A reader may see frames between a write and its failed sync. It must forget them when other
  /// frames replace them.
  @Test(arguments: 1...30 as ClosedRange<UInt64>)
  func aReaderForgetsWhatAFailedSyncHasDropped(seed: UInt64) throws {
    let disk = SimulatedFileSystem(seed: seed)
    var maker = EventMaker(seed: seed)
    var random = SplitMix64(seed: seed)
    let writer = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    var expected = maker.commit(3)
    _ = try writer.append([Commit(expected)])
    try writer.sync()
    let reader = try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: .readOnly))
    let dropped = (0..<1 + random.below(3)).map { _ in maker.commit(1 + random.below(5)) }
    _ = try writer.append(dropped.map { Commit($0) })
    _ = try reader.refresh()
    disk.inject([.init(operation: disk.operations.count + 1, errno: System.inputOutput)])
    #expect(throws: LogError.self) { try writer.sync() }
    writer.close()

    let next = try Log.open(in: "/log", id: testLog, fileSystem: disk)
    let kept = try next.allEvents()
    #expect(kept.starts(with: expected) && (expected + dropped.joined()).starts(with: kept))
    expected = kept
    for _ in 0..<3 {
      let events = maker.commit(1 + random.below(5), origin: Origin(55))
      _ = try next.append([Commit(events)])
      if random.below(2) == 0 { _ = try reader.refresh() }
      try next.sync()
      expected += events
      _ = try reader.refresh()
      #expect(try reader.allEvents() == expected)
      #expect(reader.end == next.end)
      #expect(try reader.files().map(\.rawBytes) == next.files().map(\.rawBytes))
    }
    #expect(reader.recovery.corruption == [])
    #expect(try reader.verify() == [])
    reader.checkInvariants()
  }

  @Test func aTokenTellsARestoredLogFromAGrownOne() throws {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 5)
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 1000))
    #expect(log.token == .start)
    var tokens = [log.token]
    for step in 0..<6 {
      _ = try log.append([Commit(maker.commit(2))])
      try log.sync()
      tokens.append(log.token)
      if step == 2 { try log.seal() }
      if step == 3 { _ = try log.adopt(AdoptedEvents(maker.commit(20, origin: Origin(3)))) }
      if step == 3 { tokens.append(log.token) }
    }
    let ends = [tokens[0], tokens[3], tokens[4], tokens[5], tokens[6], tokens[7]]
    for token in ends { #expect(try log.matches(token)) }
    let backup = disk.copy()
    _ = try log.append([Commit(maker.commit(2))])
    try log.sync()
    #expect(try log.matches(tokens[7]))
    let restored = try Log.open(in: "/log", id: testLog, fileSystem: backup)
    #expect(try !restored.matches(log.token))
    var other = EventMaker(seed: 999)
    _ = try restored.append([Commit(other.commit(2, origin: Origin(8)))])
    try restored.sync()
    #expect(restored.token.position == log.token.position)
    #expect(try !restored.matches(log.token))
    #expect(try restored.matches(tokens[7]))
    try log.purge { $0 == Partition("tenant=a") }
    #expect(try log.matches(tokens[3]))
  }

  @Test func onRealFilesALogIsReopenedSealedAndReadWithFewBytes() throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString).path
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
    defer { #expect(throws: Never.self) { try FileManager.default.removeItem(atPath: directory) } }
    let system = POSIXFileSystem()
    var maker = EventMaker(seed: 6)
    maker.partitions = (0..<40).map { "p\($0)" }
    let path = directory + "/log"
    let log = try Log.create(
      in: path, id: testLog, fileSystem: system, options: .init(segmentSize: 1_500_000))
    var expected: [Event] = []
    for _ in 0..<8 {
      let events = maker.commit(1000, textLength: 100)
      expected += events
      _ = try log.append([Commit(events)])
      try log.sync()
      if log.wantsSealing { try log.seal() }
    }
    log.close()
    let opened = try Log.open(in: path, id: testLog, fileSystem: system)
    #expect(try opened.allEvents() == expected)
    #expect(try opened.verify() == [])
    try opened.seal()
    opened.close()
    let fresh = try Log.open(in: path, id: testLog, fileSystem: system, options: .init(mode: .readOnly))
    #expect(fresh.bytesRead < 3000)
    let stored = try fresh.files().reduce(0) { $0 + $1.storedBytes }
    let before = fresh.bytesRead
    var reader = fresh.events(partitions: PartitionFilter(named: [Partition("tenant=p7")]))
    #expect(try reader.rest().map(\.event) == expected.filter { $0.partition == Partition("tenant=p7") })
    // One of 40 partitions, and the footer. Two partitions of 30 KiB share a block.
    #expect(fresh.bytesRead - before < stored / 12)
  }
}
