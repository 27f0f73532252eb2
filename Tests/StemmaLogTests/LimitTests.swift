import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

@Suite struct LimitTests {
  private func overLimit(_ body: () throws -> Void) -> Bool {
    do {
      try body()
      return false
    } catch LogError.overLimit { return true } catch {
      Issue.record("an error of another kind: \(error)")
      return false
    }
  }

  @Test(arguments: [LogLimits.framePayload, LogLimits.segments, LogLimits.footer, LogLimits.block])
  func whatIsWrittenIsCheckedAtTheLimit(limit: Int) {
    #expect(!overLimit { try LogLimits.check("x", limit - 1, limit) })
    #expect(!overLimit { try LogLimits.check("x", limit, limit) })
    #expect(overLimit { try LogLimits.check("x", limit + 1, limit) })
  }

  /// A few streams in one append are compared directly; more are hashed.
  @Test(arguments: [15, 16, 17, 18, 40]) func aHoleIsFoundInEachOfFewAndManyStreams(count: Int) throws {
    for wrong in 0..<count {
      let disk = SimulatedFileSystem(seed: 1)
      let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
      var makers: [EventMaker] = []
      var first: [Commit] = []
      for number in 0..<count {
        var maker = EventMaker(seed: UInt64(number))
        maker.partitions = ["p\(number)"]
        first.append(Commit(maker.commit(1)))
        makers.append(maker)
      }
      try log.append(first)
      var second: [Commit] = []
      for number in 0..<count {
        if number == wrong { _ = makers[number].commit(1) }
        second.append(Commit(makers[number].commit(1)))
      }
      #expect(
        throws: LogError.gap(
          partition: Partition("tenant=p\(wrong)"), origin: Origin(7), expected: .init(2), found: .init(3))
      ) {
        try log.append(second)
      }
      // Within one append, too.
      #expect(throws: LogError.self) { try log.append(second + second) }
      #expect(log.end == Position(UInt64(count) + 1))
    }
  }

  /// With a wrong head of a stream, a writer would reuse sequence numbers, which cannot be
  /// repaired.
  @Test func anEventThatDoesNotFollowItsStreamIsRefused() throws {
    let disk = SimulatedFileSystem(seed: 1)
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    var maker = EventMaker(seed: 1)
    maker.partitions = ["a"]
    let (first, second, third) = (maker.commit(3), maker.commit(2), maker.commit(1))
    try log.append([Commit(first)])
    for wrong in [[Commit(first)], [Commit(third)], [Commit(second), Commit(second)]] {
      #expect {
        try log.append(wrong)
      } throws: { error in
        if case LogError.gap = error { true } else { false }
      }
      #expect(log.end == Position(4))
    }
    try log.append([Commit(second), Commit(third)])
    try log.sync()
    #expect(log.end == Position(7))
    log.checkInvariants()
  }

  /// The header of a frame that claims the given length.
  private func frame(_ length: Int) throws -> [UInt8] {
    var bytes: [UInt8] = []
    _ = try JournalFrame.encode(
      payload: [], events: 0, raw: 0, synced: 64, previous: 0, log: testLog, number: 1, offset: 64,
      into: &bytes)
    bytes.replaceSubrange(4..<8, with: withUnsafeBytes(of: UInt32(length).bigEndian, Array.init))
    return bytes
  }

  @Test func aFrameLengthIsCheckedBeforeItIsBelieved() throws {
    let limit = LogLimits.framePayload
    let plenty = UInt64.max
    for length in [limit - 1, limit] {
      #expect(
        try JournalFrame(decoding: try frame(length), at: 0, previous: 0, available: plenty).length == length)
    }
    #expect(throws: Flaw.malformed("frame length")) {
      try JournalFrame(decoding: try frame(limit + 1), at: 0, previous: 0, available: plenty)
    }
    #expect(throws: Flaw.cutShort(expected: 100, found: 99)) {
      try JournalFrame(decoding: try frame(100), at: 0, previous: 0, available: 99)
    }
  }

  @Test func fileNumbersEndAtEightDigits() throws {
    let disk = SimulatedFileSystem()
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    try log.makeJournal(number: LogLimits.fileNumber, after: log.token)
    #expect(overLimit { try log.makeJournal(number: LogLimits.fileNumber + 1, after: log.token) })
    #expect(try disk.list("/log").contains("99999999.journal"))
  }

  @Test func aManifestListsAsManyFilesAsTheLimitAllows() throws {
    var manifest = Manifest(log: testLog)
    manifest.segments = (1...UInt64(LogLimits.segments)).map {
      SegmentEntry(number: $0, size: 200, base: Position($0), past: Position($0 + 1), digest: .none)
    }
    manifest.nextSegment = UInt64(LogLimits.segments) + 1
    manifest.start = LogToken(position: Position(manifest.nextSegment), chain: 5)
    #expect(manifest.encoded().count <= Manifest.sizeLimit)
    #expect(try Manifest(decoding: manifest.encoded(), path: "m", log: testLog) == manifest)
    manifest.segments.append(
      SegmentEntry(
        number: manifest.nextSegment, size: 200, base: manifest.start.position,
        past: manifest.start.position, digest: .none))
    #expect(throws: LogError.corrupt(path: "m", offset: 16, .malformed("count of files"))) {
      _ = try Manifest(decoding: manifest.encoded(), path: "m", log: testLog)
    }
  }

  @Test(arguments: [100, 1_000_000]) func aHoleInAStreamIsNotAdopted(segmentSize: Int) throws {
    let disk = SimulatedFileSystem()
    let log = try Log.create(
      in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: segmentSize))
    var maker = EventMaker(seed: 1)
    maker.partitions = ["a"]
    var events = maker.commit(5)
    events.remove(at: 2)
    #expect(
      throws: LogError.gap(
        partition: Partition("tenant=a"), origin: Origin(7), expected: SequenceNumber(3),
        found: SequenceNumber(4))
    ) { _ = try log.adopt(AdoptedEvents(events)) }
    #expect(try log.allEvents() == [])
    _ = try log.append([Commit(maker.commit(1))])
    try log.sync()
  }

  @Test func thePlaceOfACutIsThePartitionsBorder() throws {
    // Small partitions share blocks. A partition of at least half a block has its own.
    let disk = SimulatedFileSystem()
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    var maker = EventMaker(seed: 2)
    var events: [Event] = []
    for (name, count) in [("a", 20), ("b", 400), ("c", 20), ("d", 20), ("e", 1500)] {
      maker.partitions = [name]
      events += maker.commit(count, textLength: 100)
    }
    _ = try log.append([Commit(events)])
    try log.seal()
    let file = try log.files()[0]
    let runs = try log.content(of: file).partitions
    let blocks = runs.map(\.blocks)
    #expect(blocks[0] == 0..<1)
    #expect(blocks[1].lowerBound == 1)
    #expect(blocks[2] == blocks[3] && blocks[2].lowerBound == blocks[1].upperBound)
    #expect(blocks[4].lowerBound == blocks[3].upperBound && blocks[4].count > 2)
    let segment = try log.segment(#require(log.manifest.segments.first))
    let footer = try segment.footer()
    for (index, entry) in footer.blocks.enumerated() {
      let block = try segment.block(entry)
      let raw = try block.events().reduce(0) { $0 + $1.event.rawSize }
      #expect(raw < LogLimits.blockTarget + 1000, "block \(index)")
    }
  }

  /// Stream hashes of small partitions must not dominate the log, and readers need only a part of
  /// the footer.
  @Test func theFooterOfManySmallPartitionsIsShortAndIsReadInPart() throws {
    let disk = SimulatedFileSystem()
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    var maker = EventMaker(seed: 12)
    maker.partitions = (0..<1000).map { "list-\($0)" }
    _ = try log.append([Commit(maker.commit(8000, textLength: 4))])
    try log.seal()
    let segment = try log.segment(#require(log.manifest.segments.first))
    #expect(segment.trailer.footerLength * 100 < 15 * Int(segment.fileSize))
    let root = try segment.root()
    #expect(root.pages.count > 2 && root.inner.isEmpty)
    #expect(try segment.footer().partitions.count > 990)
    let before = log.bytesRead
    let partition = Partition("tenant=list-500")
    let footer = try segment.footer(of: [partition])
    let run = try #require(footer.partitions.first { $0.partition == partition })
    let page = root.pages[root.pages(of: [partition])[0]]
    #expect(log.bytesRead - before == UInt64(segment.trailer.rootLength + page.size.stored))
    // The footer omits the hash here, so it is computed from the events.
    #expect(!run.streams[0].isHashed && run.streams[0].hash == .zero)
    let hashed = try segment.hashedPartitions { $0 == partition }
    #expect(hashed.map(\.partition) == [partition])
    #expect(try hashed[0].streams[0].hash == log.streams()[partition, run.streams[0].origin].hash)
    #expect(try log.verify() == [])
  }

  /// Reading by key merges all files. There may be more files than a process may open.
  @Test(arguments: [LogLimits.openSegments - 2, LogLimits.openSegments + 1])
  func manyFilesAreReadWithFewOfThemOpen(segments: Int) throws {
    let disk = SimulatedFileSystem()
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    var maker = EventMaker(seed: 8)
    for _ in 0..<segments {
      _ = try log.append([Commit(maker.commit(1))])
      try log.seal()
    }
    let before = disk.openFiles
    var reader = try log.eventsByKey()
    let first = try reader.next()
    #expect(first != nil)
    #expect(disk.openFiles - before == (segments > LogLimits.openSegments ? 0 : segments))
    #expect(try reader.rest().count == segments - 1)
    let merge = try log.recordFiles.open()
    #expect(try merge.nextRecord())
  }
}
