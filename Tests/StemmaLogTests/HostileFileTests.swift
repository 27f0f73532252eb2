import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Files from somebody else, whose checksums hold and which say what no writer would: each ended the process, or took all of
/// its memory. They are damage, or an error that names the file.
@Suite struct HostileFileTests {
  private let first = "/log/00000001.segment"

  /// A log of sealed files with these numbers of events of one partition, and an empty journal; closed.
  private func sealedLog(_ counts: [Int] = [20]) throws -> SimulatedFileSystem {
    let disk = SimulatedFileSystem()
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk)
    var maker = EventMaker(seed: 3)
    maker.partitions = ["a"]
    for count in counts {
      _ = try log.append([Commit(maker.commit(count))])
      try log.seal()
    }
    log.close()
    return disk
  }

  private func open(_ disk: SimulatedFileSystem, _ mode: Log.Mode = .readOnly) throws -> Log {
    try Log.open(in: "/log", id: testLog, fileSystem: disk.copy(), options: .init(mode: mode))
  }

  /// What is said to be wrong; nil: nothing is, or something else than damage, which is recorded.
  private func flaw(_ body: () throws -> Void) -> Flaw? {
    do {
      try body()
      return nil
    } catch LogError.damaged(_, _, let flaw) { return flaw } catch let flaw as Flaw { return flaw } catch {
      Issue.record("an error of another kind: \(error)")
      return nil
    }
  }

  /// Changes what the footer and the trailer of a segment say; their checksums are right.
  private func forge(
    _ disk: SimulatedFileSystem, _ path: String, _ changeFooter: (inout SegmentFooter) -> Void = { _ in },
    trailer changeTrailer: (inout SegmentTrailer) -> Void = { _ in }
  ) throws {
    let bytes = try #require(disk.contents(path))
    let header = SegmentHeader.size(replaced: 0)
    let old = try SegmentTrailer(decoding: Array(bytes.suffix(SegmentTrailer.size)), headerSize: header)
    let start = Int(old.footerOffset)
    let end = start + old.footerLength
    var footer = try SegmentFooter(
      decoding: Array(bytes[start..<end]), data: UInt64(header)..<old.footerOffset)
    changeFooter(&footer)
    let encoded = footer.encoded()
    let filter = Array(bytes[end..<end + old.filterLength])
    var trailer = SegmentTrailer(
      footerOffset: old.footerOffset, footer: encoded, filter: filter, events: old.events, end: old.end,
      rawBytes: old.rawBytes, chain: old.chain)
    // Another one for each file, by which what was read of it is kept.
    trailer.digest = SegmentDigest(bytes: old.digest.bytes.map { ~$0 })
    changeTrailer(&trailer)
    disk.plant(Array(bytes[..<start]) + encoded + filter + trailer.encoded(), at: path)
  }

  // MARK: Numbers of files

  private func plant(_ watermark: Watermark, _ disk: SimulatedFileSystem) {
    let never = [UInt8](repeating: 0, count: Watermark.slotSize)
    disk.plant(watermark.encoded(testLog) + never, at: "/log/watermark")
  }

  /// Each number up to that of the journal was noted as missing.
  @Test(arguments: [Log.Mode.readOnly, .readWrite])
  func aWatermarkThatNamesNoPossibleJournalIsDamaged(mode: Log.Mode) throws {
    let disk = try sealedLog()
    for (field, watermark) in [
      ("journal", Watermark(turn: 2, journal: 1 << 40, durable: 64)),
      ("journal", Watermark(turn: 2, journal: .max, durable: 64)),
      ("turn", Watermark(turn: .max - 1, journal: 2, durable: 64)),
    ] {
      plant(watermark, disk)
      let log = try open(disk, mode)
      let damage = Damage(path: "/log/watermark", offset: 0, flaw: .malformed(field))
      #expect(log.recovery.watermarkDamage == [damage])
      #expect(try log.allEvents().count == 20)
    }
  }

  @Test func aWatermarkFarAboveTheLogIsRefused() throws {
    let disk = try sealedLog()
    plant(Watermark(turn: 2, journal: 2 + LogLimits.missing, durable: 64), disk)
    #expect(try open(disk).recovery.damage.count == Int(LogLimits.missing))
    for journal in [3 + LogLimits.missing, LogLimits.fileNumber] {
      plant(Watermark(turn: 2, journal: journal, durable: 64), disk)
      let path = LogFileName.journal(journal, in: "/log")
      #expect(
        throws: LogError.overLimit(
          subject: "files missing before \(path)", found: journal - 2, limit: LogLimits.missing)
      ) { _ = try open(disk) }
    }
  }

  /// The header of a segment of a number, with nothing in it.
  private func empty(_ number: UInt64) -> [UInt8] {
    let header = SegmentHeader(log: testLog, number: number, place: number, predecessor: .none)
    return header.encoded() + [UInt8](repeating: 0, count: 200)
  }

  /// Of each number below one that 280 bytes claim it was said that its file is missing.
  @Test func aFileFarAboveAllOthersIsRefused() throws {
    for number in [3 + LogLimits.missing, 4 + LogLimits.missing, LogLimits.fileNumber] {
      let disk = try sealedLog()
      let path = LogFileName.segment(number, in: "/log")
      disk.plant(empty(number), at: path)
      let missing = number - 3
      if missing == LogLimits.missing {
        #expect(try open(disk).recovery.damage.count == Int(missing))
        continue
      }
      #expect(
        throws: LogError.overLimit(
          subject: "files missing before \(path)", found: missing, limit: LogLimits.missing)
      ) { _ = try open(disk) }
    }
  }

  @Test func aFileThatClaimsAFarNumberUnderAnotherNameIsRefused() throws {
    let disk = try sealedLog()
    let path = LogFileName.segment(3, in: "/log")
    disk.plant(empty(LogLimits.fileNumber), at: path)
    #expect {
      _ = try open(disk)
    } throws: { error in
      if case LogError.overLimit(let subject, _, _) = error { subject.hasSuffix(path) } else { false }
    }
  }

  @Test func aHeaderHasANumberThatAFileCanHave() throws {
    let disk = SimulatedFileSystem()
    for number in [1, LogLimits.fileNumber - 1, LogLimits.fileNumber, LogLimits.fileNumber + 1, .max] {
      disk.plant(empty(number), at: "/segment")
      let segment = try disk.open("/segment", .read)
      let found = flaw { _ = try SegmentHeader(of: segment, path: "/segment", log: testLog) }
      let isPossible = number <= LogLimits.fileNumber
      #expect(found == (isPossible ? nil : Flaw.malformed("number")))
      disk.plant(
        JournalHeader(log: testLog, number: number, predecessor: .start).encoded(), at: "/journal")
      let journal = try disk.open("/journal", .read)
      #expect(try JournalHeader.number(of: journal, log: testLog) == (isPossible ? number : nil))
    }
  }

  // MARK: Offsets and lengths

  @Test func aTrailerMayNameAnyOffsetAndLength() throws {
    let offsets: [UInt64] = [
      81, 0x4000_0000_0000_0000, 0x4000_0000_0000_0001, 0x7fff_ffff_ffff_ffff, 0x8000_0000_0000_0005, .max,
    ]
    for offset in offsets {
      for length in [0, LogLimits.footer] {
        let disk = try sealedLog()
        try forge(
          disk, first,
          trailer: { trailer in
            trailer.footerOffset = offset
            trailer.footerLength = LogLimits.footer
            trailer.filterLength = length
          })
        let log = try open(disk)
        #expect(flaw { _ = try log.allEvents() } != nil, "footer at \(offset)")
        #expect(try log.verify().map(\.path) == [first], "footer at \(offset)")
      }
    }
  }

  /// The footer stands in its place; the filter was read before the beginning of the file.
  @Test func aKeyFilterMayClaimToBeLongerThanTheFile() throws {
    let disk = try sealedLog()
    try forge(disk, first, trailer: { $0.filterLength = LogLimits.footer })
    let log = try open(disk)
    #expect(try log.allEvents().count == 20)
    #expect(try log.verify().map(\.path) == [first])
  }

  // MARK: Arrivals

  @Test func anArrivalHasANumberThatAWriterGives() throws {
    for last in [Limits.highestNumber + 1, .max - 1, .max] {
      let disk = try sealedLog()
      try forge(disk, first) { $0.blocks[0].lastArrival = last }
      #expect(flaw { _ = try open(disk).allEvents() } == .malformed("block entry"))
      #expect(try open(disk).verify().map(\.path) == [first])
    }
    for last in [UInt64(LogLimits.arrivals), 1 << 40, Limits.highestNumber] {
      let disk = try sealedLog()
      try forge(disk, first) { $0.blocks[0].lastArrival = last }
      #expect(
        throws: LogError.overLimit(
          subject: "arrivals of a segment", found: last + 1, limit: UInt64(LogLimits.arrivals))
      ) { _ = try open(disk).allEvents() }
    }
  }

  /// A file of some hundred bytes made the table 2 GiB long.
  @Test func theTableOfArrivalsIsNotLongerThanBlocksCanFillIt() throws {
    let disk = try sealedLog()
    let header = try #require(try open(disk).listing.headers[1])
    var block = try open(disk).segment(header).footer().blocks[0]
    #expect(!ArrivalTable(LogLimits.arrivals, for: [block]).isDense)
    #expect(ArrivalTable(LogLimits.fewArrivals, for: []).isDense)
    #expect(!ArrivalTable(LogLimits.fewArrivals + 1, for: []).isDense)
    // Not by what the footer says that there are, but by what there may be.
    block.events = Limits.blockEvents
    block.length = 2 * LogLimits.fewArrivals / (LogLimits.sparseArrivals * LogLimits.eventsOfAByte)
    let most = block.length * LogLimits.sparseArrivals * LogLimits.eventsOfAByte
    #expect(ArrivalTable(most, for: [block]).isDense)
    #expect(!ArrivalTable(most + 1, for: [block]).isDense)
    block.length = 1
    #expect(block.isGap && !ArrivalTable(most, for: [block]).isDense)
    try forge(disk, first) { $0.blocks[0].lastArrival = UInt64(LogLimits.arrivals - 1) }
    #expect(flaw { _ = try open(disk).allEvents() } == .disagreement("arrivals of a block"))
  }

  /// What a purge of nearly everything leaves.
  @Test func fewEventsOfManyArrivalsAreReadInOrder() throws {
    var maker = EventMaker(seed: 4)
    let events = maker.commit(20)
    let distance = UInt64(LogLimits.fewArrivals / 18)
    let numbered = events.enumerated().map {
      BlockEvent(arrival: UInt64($0.offset) * distance, event: $0.element)
    }
    let disk = try sealedLog()
    let file = try disk.open("/new", .create)
    _ = try SegmentWriter.write(
      NumberedEvents(events: numbered),
      header: SegmentHeader(log: testLog, number: 1, place: 1, predecessor: .none), end: 20 * distance,
      chain: nil, level: 6, to: file)
    disk.plant(try #require(disk.contents("/new")), at: first)
    let log = try open(disk)
    for isReversed in [false, true] {
      var reader = isReversed ? log.eventsNewestFirst() : log.events()
      var found: [StoredEvent] = []
      while let event = try reader.next() { found.append(event) }
      reader.checkInvariants()
      if isReversed { found.reverse() }
      #expect(found.map(\.event) == events)
      #expect(found.map(\.position.index) == numbered.map(\.arrival))
    }
    #expect(try log.verify() == [])
  }

  // MARK: Lists and sums

  private var footer: SegmentFooter {
    let (a, b) = (Partition("t=a"), Partition("t=b"))
    func stream(_ origin: UInt64) -> StreamRun {
      StreamRun(origin: Origin(origin), from: Sequence(1), to: Sequence(5), hash: .zero)
    }
    func block(_ offset: UInt64, _ partition: Partition, _ model: String) -> BlockEntry {
      BlockEntry(
        offset: offset, length: 100, crc: 0, events: 10, firstArrival: 0, lastArrival: 19,
        lowestTimestamp: .zero, highestTimestamp: .zero,
        firstKey: RecordKey(partition: partition, model: model, key: Key(.int(5))))
    }
    var footer = SegmentFooter()
    footer.partitions = [
      PartitionRun(partition: a, blocks: 0..<1, events: 10, streams: [stream(1), stream(2)]),
      PartitionRun(partition: b, blocks: 1..<2, events: 10, streams: [stream(1), stream(2)]),
    ]
    footer.blocks = [block(80, a, "Book"), block(180, b, "Author")]
    return footer
  }

  private func decode(_ bytes: [UInt8]) throws -> SegmentFooter {
    try SegmentFooter(decoding: bytes, data: 80..<280)
  }

  @Test func aFooterWhoseListsAreOutOfOrderIsRefused() throws {
    let bytes = footer.encoded()
    #expect(try decode(bytes) == footer)
    // The number of origins, two of them; the number of models, two of them.
    let (origins, models) = (1..<17, 18..<30)
    let (one, two) = (Array(bytes[1..<9]), Array(bytes[9..<17]))
    let (author, book) = (Array(bytes[18..<25]), Array(bytes[25..<30]))
    #expect(author.dropFirst().elementsEqual("Author".utf8) && book.dropFirst().elementsEqual("Book".utf8))
    let lists: [(Range<Int>, [UInt8], String)] = [
      (origins, two + one, "origins"), (origins, one + one, "origins"),
      (models, book + author, "models"), (models, book + book, "models"),
    ]
    for (range, items, list) in lists {
      var forged = bytes
      forged.replaceSubrange(range, with: items)
      #expect(flaw { _ = try decode(forged) } == .malformed("order of \(list)"))
    }
    for order in [[1, 0], [0, 0]] {
      var forged = footer
      forged.partitions[1].streams = order.map { footer.partitions[1].streams[$0] }
      #expect(flaw { _ = try decode(forged.encoded()) } == .malformed("order of streams"))
    }
  }

  @Test func sumsOfAFooterDoNotOverflow() throws {
    var forged = footer
    forged.partitions[0].events = Limits.highestNumber - 10
    #expect(try decode(forged.encoded()) == forged)
    for events in [Limits.highestNumber - 9, .max - 9, .max] {
      forged.partitions[0].events = events
      #expect(flaw { _ = try decode(forged.encoded()) } == .malformed("events of a partition"))
    }
    forged = footer
    // The other streams have five each.
    forged.partitions[0].streams[0].to = Sequence(Limits.highestNumber - 15)
    #expect(try decode(forged.encoded()) == forged)
    forged.partitions[0].streams[0].to = Sequence(Limits.highestNumber - 14)
    #expect(flaw { _ = try decode(forged.encoded()) } == .malformed("sequence"))
  }

  /// More events were taken off a stream than it has.
  @Test func aStreamThatTwoFilesClaimHasNoHash() throws {
    let disk = try sealedLog([3, 3])
    let partition = Partition("tenant=a")
    let heads = try open(disk).streams()
    let ends = [EventName(partition: partition, dot: Dot(Origin(7), Sequence(1)))]
    #expect(try open(disk).streamHashes(ends, of: heads).count == 1)
    // The first file's events are taken off one by one, as it has the one at the end, too; then all at once.
    for from in [Sequence(1), Sequence(2)] {
      let copy = disk.copy()
      try forge(copy, "/log/00000002.segment") { $0.partitions[0].streams[0].from = Sequence(3) }
      try forge(copy, first) { $0.partitions[0].streams[0].from = from }
      #expect(try open(copy).streamHashes(ends, of: heads).isEmpty)
    }
  }
}
