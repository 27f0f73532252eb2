import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Events that are read from a file at once and decoded on another thread, compared with the
/// reader's events.
@Suite struct SelectedEventsTests {
  private let disk = SimulatedFileSystem()

  /// A log of one segment and a journal.
  private func log(_ maker: inout EventMaker, _ commits: [Int], textLength: Int = 12) throws -> Log {
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    for (index, count) in commits.enumerated() {
      let message = index % 2 == 0 ? CommitMessage(author: "Ann \(index)") : CommitMessage()
      _ = try log.append([Commit(maker.commit(count, textLength: textLength), message: message)])
    }
    try log.sync()
    try log.seal()
    _ = try log.append([Commit(maker.commit(3))])
    try log.sync()
    return log
  }

  private func all(_ log: Log, _ partitions: Set<Partition>) throws -> [DigestedEvent] {
    var reader = log.events(to: log.manifest.start.position, partitions: PartitionFilter(named: partitions))
    var events: [DigestedEvent] = []
    while let event = try reader.next()?.event {
      events.append(DigestedEvent(event: event, message: reader.message, digest: event.digest.hash))
    }
    return events
  }

  @Test(arguments: [["a"], ["b", "c"], ["a", "b", "c"], ["d"], []])
  func theyAreThoseThatAReaderGives(names: [String]) throws {
    var maker = EventMaker(seed: 5)
    let log = try log(&maker, [40, 1, 7, 30])
    let partitions = Set(names.map { Partition("tenant=" + $0) })
    let selected = try #require(log.selectedEvents(ofFileAt: .first, in: partitions)?.take())
    let expected = try all(log, partitions)
    #expect(selected.map(\.event) == expected.map(\.event))
    #expect(selected.map(\.message) == expected.map(\.message))
    #expect(selected.map(\.digest) == expected.map(\.digest))
    #expect(selected.contains { $0.message != nil } == (names != ["d"] && !names.isEmpty))
  }

  /// Each event fills a block.
  @Test(arguments: [-1, 0, 1]) func manyBlocksAreLeftToTheReader(more: Int) throws {
    var maker = EventMaker(seed: 6)
    maker.partitions = ["a"]
    maker.keysPerPartition = 100
    let count = LogLimits.selectedBlocks + more
    let log = try log(&maker, [count], textLength: LogLimits.blockTarget)
    #expect((log.selectedEvents(ofFileAt: .first, in: [Partition("tenant=a")]) == nil) == (more > 0))
  }

  @Test func journalsAndPlacesWithoutAFileAreLeftToTheReader() throws {
    var maker = EventMaker(seed: 7)
    let log = try log(&maker, [10])
    let journal = log.manifest.start.position
    #expect(log.selectedEvents(ofFileAt: journal, in: [Partition("tenant=a")]) == nil)
    #expect(log.selectedEvents(ofFileAt: Position(2), in: [Partition("tenant=a")]) == nil)
  }

  /// For every wrong bit, the result is nil or equals the reader's.
  @Test func whatIsCorruptIsLeftToTheReader() throws {
    var maker = EventMaker(seed: 8)
    let log = try log(&maker, [30, 30])
    let partitions: Set = [Partition("tenant=a"), Partition("tenant=b")]
    let expected = try all(log, partitions)
    let path = LogFileName.segment(1).path(in: "/log")
    let bytes = try #require(disk.contents(path))
    var left = 0
    for index in stride(from: 0, to: bytes.count, by: 3) {
      var corrupt = bytes
      corrupt[index] ^= 1 << UInt8(index % 8)
      disk.plant(corrupt, at: path)
      let opened = Result {
        try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: .readOnly))
      }
      guard case .success(let log) = opened,
        let selected = log.selectedEvents(ofFileAt: .first, in: partitions)?.take()
      else {
        left += 1
        continue
      }
      #expect(selected.map(\.event) == expected.map(\.event), "byte \(index)")
      #expect(selected.map(\.digest) == expected.map(\.digest), "byte \(index)")
    }
    #expect(left > bytes.count / 6)
  }
}
