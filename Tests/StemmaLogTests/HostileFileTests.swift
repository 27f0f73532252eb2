import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Hostile files with correct checksums and impossible contents. They are reported as corruption,
/// or as an error that names the file. They neither end the process nor exhaust its memory.
@Suite struct HostileFileTests {
  private let first = "/log/00000001.segment"

  /// A closed log of segments with these numbers of events of one partition, and an empty journal.
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

  /// The recorded flaw. Nil without an error, or with an error other than corruption.
  private func flaw(_ body: () throws -> Void) -> Flaw? {
    do {
      try body()
      return nil
    } catch LogError.corrupt(_, _, let flaw) { return flaw } catch let flaw as Flaw { return flaw } catch {
      Issue.record("an error of another kind: \(error)")
      return nil
    }
  }

  /// Changes the contents of a segment's footer and trailer, with correct checksums.
  private func forge(
    _ disk: SimulatedFileSystem, _ path: String, _ changeFooter: (inout SegmentFooter) -> Void = { _ in },
    trailer changeTrailer: (inout SegmentTrailer) -> Void = { _ in }
  ) throws {
    let bytes = try #require(disk.contents(path))
    let header = SegmentHeader.size
    let old = try SegmentTrailer(decoding: Array(bytes.suffix(SegmentTrailer.size)))
    let start = Int(old.footerOffset)
    let end = start + old.footerLength
    var footer = try SegmentFooter(
      decoding: Array(bytes[start..<end]), data: UInt64(header)..<old.footerOffset)
    changeFooter(&footer)
    let encoded = footer.encoded()
    let filter = Array(bytes[end..<end + old.filterLength])
    var trailer = SegmentTrailer(
      footerOffset: old.footerOffset, footer: encoded.bytes, rootSize: encoded.rootSize, filter: filter,
      events: old.events, end: old.end, rawBytes: old.rawBytes, chain: old.chain)
    // A new digest for each file, because it is the key of cached contents.
    trailer.digest = SegmentDigest(bytes: old.digest.bytes.map { ~$0 })
    changeTrailer(&trailer)
    try plant(Array(bytes[..<start]) + encoded.bytes + filter + trailer.encoded(), trailer, disk, path)
  }

  /// A segment and a manifest that lists it.
  private func plant(
    _ bytes: [UInt8], _ trailer: SegmentTrailer, _ disk: SimulatedFileSystem, _ path: String
  ) throws {
    disk.plant(bytes, at: path)
    let listed = try #require(disk.contents("/log/manifest"))
    var manifest = try Manifest(decoding: listed, path: "/log/manifest", log: testLog)
    let index = try #require(
      manifest.segments.firstIndex { path.hasSuffix(LogFileName.segment($0.number).text) })
    manifest.segments[index].size = UInt64(bytes.count)
    manifest.segments[index].digest = trailer.digest
    manifest.segments[index].past = manifest.segments[index].base.advanced(by: trailer.end)
    if index == manifest.segments.count - 1 {
      manifest.start.position = max(manifest.start.position, manifest.segments[index].past)
    }
    disk.plant(manifest.encoded(), at: "/log/manifest")
  }

  // MARK: Numbers of files

  private func plant(_ watermark: Watermark, _ disk: SimulatedFileSystem) {
    let never = [UInt8](repeating: 0, count: Watermark.slotSize)
    disk.plant(watermark.encoded(testLog) + never, at: "/log/watermark")
  }

  /// The number of recorded missing journals must be limited.
  @Test(arguments: [Log.Mode.readOnly, .readWrite])
  func aWatermarkThatNamesNoPossibleJournalIsCorrupt(mode: Log.Mode) throws {
    let disk = try sealedLog()
    for (field, watermark) in [
      ("journal", Watermark(turn: 2, journal: 1 << 40, durable: 64)),
      ("journal", Watermark(turn: 2, journal: .max, durable: 64)),
      ("turn", Watermark(turn: .max - 1, journal: 2, durable: 64)),
    ] {
      plant(watermark, disk)
      let log = try open(disk, mode)
      let corruption = Corruption(path: "/log/watermark", offset: 0, flaw: .malformed(field))
      #expect(log.recovery.watermarkCorruption == [corruption])
      #expect(try log.allEvents().count == 20)
    }
  }

  /// The log searches for each journal up to the one in the watermark.
  @Test func aWatermarkFarAboveTheLogIsCorrupt() throws {
    let disk = try sealedLog()
    plant(Watermark(turn: 2, journal: 2 + LogLimits.journals, durable: 64), disk)
    #expect(try open(disk).recovery.corruption.count == Int(LogLimits.journals))
    for journal in [3 + LogLimits.journals, LogLimits.fileNumber] {
      plant(Watermark(turn: 2, journal: journal, durable: 64), disk)
      let log = try open(disk)
      #expect(log.recovery.corruption == [])
      #expect(log.recovery.watermarkCorruption.map(\.flaw) == [.malformed("journal")])
    }
  }

  @Test func aHeaderHasANumberThatAFileCanHave() throws {
    let disk = SimulatedFileSystem()
    for number in [1, LogLimits.fileNumber - 1, LogLimits.fileNumber, LogLimits.fileNumber + 1, .max] {
      disk.plant(SegmentHeader(log: testLog, number: number, base: .first).encoded(), at: "/segment")
      let segment = try disk.open("/segment", .read)
      let found = flaw {
        _ = try SegmentHeader(of: segment, path: "/segment", log: testLog, number: number)
      }
      #expect(found == (number <= LogLimits.fileNumber ? nil : Flaw.malformed("number")))
    }
    for base in [0, 1, Limits.highestNumber, Limits.highestNumber + 1, .max] {
      let isPossible = base > 0 && base <= Limits.highestNumber
      disk.plant(SegmentHeader(log: testLog, number: 1, base: Position(base)).encoded(), at: "/segment")
      let segment = try disk.open("/segment", .read)
      let found = flaw { _ = try SegmentHeader(of: segment, path: "/segment", log: testLog, number: 1) }
      #expect(found == (isPossible ? nil : Flaw.malformed("base")))
      let start = LogToken(position: Position(base), chain: 0)
      let journal = JournalHeader(log: testLog, number: 1, start: start).encoded()
      let other = flaw { _ = try JournalHeader(decoding: journal, path: "/j", log: testLog, number: 1) }
      #expect(other == (isPossible ? nil : Flaw.malformed("base")))
    }
  }

  /// Numbers and positions that no writer lists, with a correct checksum.
  @Test func aManifestListsFilesInTheirOrder() throws {
    let disk = try sealedLog([20, 20])
    let manifest = try open(disk).manifest
    #expect(manifest.segments.count == 2)
    let changes: [(String, (inout Manifest) -> Void)] = [
      ("file number", { $0.segments[1].number = $0.segments[0].number }),
      ("file number", { $0.segments[1].number = $0.nextSegment }),
      ("file number", { $0.nextSegment = .max }), ("file number", { $0.firstJournal = 0 }),
      ("position", { $0.segments.swapAt(0, 1) }), ("position", { $0.segments[0].past = Position(0) }),
      ("position", { $0.segments[1].past = .end }),
      ("position", { $0.start.position = Position(1) }), ("turn", { $0.turn = .max }),
    ]
    for (field, change) in changes {
      var other = manifest
      change(&other)
      #expect(
        flaw { _ = try Manifest(decoding: other.encoded(), path: "m", log: testLog) } == .malformed(field))
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

  /// The footer is in its place, and the filter must not be read from before the beginning of the
  /// file.
  @Test func aKeyFilterMayClaimToBeLongerThanTheFile() throws {
    let disk = try sealedLog()
    try forge(disk, first, trailer: { $0.filterLength = LogLimits.footer })
    let log = try open(disk)
    #expect(flaw { _ = try log.allEvents() } == .disagreement("the footer is not where the trailer says"))
    #expect(try log.verify().map(\.path) == [first])
  }

  // MARK: Arrivals

  @Test func anArrivalHasANumberThatAWriterGives() throws {
    for last in [Limits.highestNumber + 1, .max - 1, .max] {
      let disk = try sealedLog()
      try forge(disk, first) { $0.blocks[0].lastRelativePosition = last }
      #expect(flaw { _ = try open(disk).allEvents() } == .malformed("block entry"))
      #expect(try open(disk).verify().map(\.path) == [first])
    }
    for last in [UInt64(LogLimits.positions), 1 << 40, Limits.highestNumber] {
      let disk = try sealedLog()
      try forge(disk, first) { $0.blocks[0].lastRelativePosition = last }
      #expect(
        throws: LogError.overLimit(
          subject: "positions of a segment", found: last + 1, limit: UInt64(LogLimits.positions))
      ) {
        var reader = try open(disk).events(to: .end)
        while try reader.next() != nil {}
      }
    }
  }

  /// A small file must not cause a huge table.
  @Test func theTableOfArrivalsIsNotLongerThanBlocksCanFillIt() throws {
    let disk = try sealedLog()
    let entry = try #require(try open(disk).manifest.segments.first)
    var block = try open(disk).segment(entry).footer().blocks[0]
    #expect(!PositionTable(LogLimits.positions, for: [block]).isDense)
    #expect(PositionTable(LogLimits.fewPositions, for: []).isDense)
    #expect(!PositionTable(LogLimits.fewPositions + 1, for: []).isDense)
    // The limit depends on the size of the blocks, not on the count in the footer.
    block.events = Limits.blockEvents
    block.length = 2 * LogLimits.fewPositions / (LogLimits.sparsePositions * LogLimits.eventsOfAByte)
    let most = block.length * LogLimits.sparsePositions * LogLimits.eventsOfAByte
    #expect(PositionTable(most, for: [block]).isDense)
    #expect(!PositionTable(most + 1, for: [block]).isDense)
    try forge(disk, first) { $0.blocks[0].lastRelativePosition = UInt64(LogLimits.positions - 1) }
    #expect(flaw { _ = try open(disk).allEvents() } == .disagreement("positions of a block"))
  }

  /// The result of a purge of nearly everything.
  @Test func fewEventsOfManyArrivalsAreReadInOrder() throws {
    var maker = EventMaker(seed: 4)
    let events = maker.commit(20)
    let distance = UInt64(LogLimits.fewPositions / 18)
    let numbered = events.enumerated().map {
      BlockEvent(relativePosition: UInt64($0.offset) * distance, event: $0.element)
    }
    let disk = try sealedLog()
    let file = try disk.open("/new", .create)
    let trailer = try SegmentWriter.write(
      NumberedEvents(events: numbered),
      header: SegmentHeader(log: testLog, number: 1, base: .first), end: 20 * distance,
      chain: nil, level: 6, to: file)
    try plant(try #require(disk.contents("/new")), trailer, disk, first)
    let log = try open(disk)
    for isReversed in [false, true] {
      var reader = isReversed ? log.eventsNewestFirst(to: .end) : log.events(to: .end)
      var found: [StoredEvent] = []
      while let event = try reader.next() { found.append(event) }
      reader.checkInvariants()
      if isReversed { found.reverse() }
      #expect(found.map(\.event) == events)
      #expect(found.map(\.position.rawValue) == numbered.map { $0.relativePosition + 1 })
    }
    #expect(try log.verify() == [])
  }

  // MARK: Lists and sums

  private var footer: SegmentFooter {
    let (a, b) = (Partition("t=a"), Partition("t=b"))
    func stream(_ origin: UInt64) -> StreamRun {
      StreamRun(origin: Origin(origin), from: SequenceNumber(1), to: SequenceNumber(5), hash: .zero)
    }
    func block(_ offset: UInt64, _ partition: Partition, _ model: String) -> BlockEntry {
      BlockEntry(
        offset: offset, length: 100, crc: 0, events: 10, firstRelativePosition: 0, lastRelativePosition: 19,
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
    let bytes = footer.encoded().bytes
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
      #expect(flaw { _ = try decode(forged.encoded().bytes) } == .malformed("order of streams"))
    }
  }

  @Test func sumsOfAFooterDoNotOverflow() throws {
    var forged = footer
    // The other streams have five events each.
    func decodeFirstStream(to last: UInt64) throws -> SegmentFooter {
      forged.partitions[0].streams[0].to = SequenceNumber(last)
      forged.partitions[0].events = last + 5
      return try decode(forged.encoded().bytes)
    }
    #expect(try decodeFirstStream(to: Limits.highestNumber - 15) == forged)
    for last in [Limits.highestNumber - 14, Limits.highestNumber - 5] {
      #expect(flaw { _ = try decodeFirstStream(to: last) } == .malformed("events of a partition"))
    }
    for last in [Limits.highestNumber - 4, Limits.highestNumber] {
      #expect(flaw { _ = try decodeFirstStream(to: last) } == .malformed("sequence"))
    }
  }

  // MARK: Pages

  /// Three blocks of partitions that share them, and one partition with two blocks.
  private var paged: SegmentFooter {
    var footer = SegmentFooter()
    for number in 0..<4 * LogLimits.pagedPartitions {
      let block = number / (LogLimits.pagedPartitions + 10)
      let run = StreamRun(origin: Origin(3), from: SequenceNumber(1), to: SequenceNumber(12), hash: .zero)
      footer.partitions.append(
        PartitionRun(
          partition: Partition("list=\(1000 + number)"), blocks: block..<block + 1, events: 12, streams: [run]
        ))
    }
    let last = footer.partitions.count - 1
    footer.partitions[last].blocks = 4..<6
    for block in 0..<6 {
      let partition = footer.partitions.first { $0.blocks.contains(block) }?.partition ?? Partition("")
      footer.blocks.append(
        BlockEntry(
          offset: 80 + 100 * UInt64(block), length: 100, crc: 0, events: 10, firstRelativePosition: 0,
          lastRelativePosition: 19,
          lowestTimestamp: Timestamp(rawValue: 1 << 60), highestTimestamp: Timestamp(rawValue: 1 << 60),
          firstKey: RecordKey(partition: partition, model: "Item", key: Key(.int(Int64(block))))))
    }
    return footer
  }

  @Test func aPartitionIsInThePageThatTheRootNames() throws {
    let encoded = paged.encoded()
    #expect(try SegmentFooter(decoding: encoded.bytes, data: 80..<680) == paged)
    let root = try encoded.bytes[..<encoded.rootSize].read { (reader) throws(Flaw) in
      try FooterRoot(&reader, from: 80)
    }
    #expect(root.blocks == paged.blocks && root.pages.map(\.blocks) == [0..<1, 1..<2, 2..<3, 3..<6])
    #expect(encoded.rootSize + root.pagesSize == encoded.bytes.count)
    #expect(encoded.bytes.count < 5 * paged.partitions.count)
    for run in paged.partitions {
      let pages = root.pages(of: [run.partition])
      let page = root.pages[pages[0]]
      let stored = encoded.bytes[
        encoded.rootSize + page.offset..<encoded.rootSize + page.offset + page.size.stored]
      #expect(pages.count == 1)
      #expect(try root.partitions(of: pages[0], Array(stored)).contains(run))
    }
    #expect(root.pages(of: [Partition("a")]).isEmpty && root.pages(of: nil) == [0, 1, 2, 3])
    #expect(root.pages(of: [Partition("z"), Partition("list=1000x")]) == [0, 3])
  }

  /// The root's checksums and sizes are correct, or only those of the pages.
  @Test func pagesThatContradictTheRootAreRefused() throws {
    let whole = paged.encoded()
    for place in whole.rootSize..<whole.bytes.count {
      var changed = whole.bytes
      changed[place] ^= 1
      let found = flaw { _ = try SegmentFooter(decoding: changed, data: 80..<680) }
      if case .checksum? = found { continue }
      Issue.record("byte \(place): \(String(describing: found))")
    }
    var forged = paged
    forged.blocks[1].firstKey.partition = Partition("list=1074")
    forged.partitions[0].partition = Partition("list=0")
    #expect(
      flaw { _ = try SegmentFooter(decoding: forged.encoded().bytes, data: 80..<680) }
        == .malformed("order of partitions"))
    forged = paged
    forged.partitions[74].blocks = 0..<1
    #expect(
      flaw { _ = try SegmentFooter(decoding: forged.encoded().bytes, data: 80..<680) }
        == .malformed("order of partitions"))
    forged = paged
    forged.partitions[0].blocks = 0..<6
    #expect(
      flaw { _ = try SegmentFooter(decoding: forged.encoded().bytes, data: 80..<680) }
        == .malformed("blocks of a partition"))
    // Wrong bytes with correct checksums never trap. Seed 5.
    var random = SplitMix64(seed: 5)
    for _ in 0..<2_000 {
      var mutated = whole.bytes
      for _ in 0...random.below(3) { mutated[random.below(whole.rootSize)] = UInt8(random.below(256)) }
      do { _ = try SegmentFooter(decoding: mutated, data: 80..<680) } catch {}
    }
  }

  /// The footers together claim more events than the stream has.
  @Test func aStreamThatTwoFilesClaimHasNoHash() throws {
    let disk = try sealedLog([70, 70])
    let partition = Partition("tenant=a")
    let heads = try open(disk).streams()
    let ends = [QualifiedEventID(partition: partition, id: EventID(Origin(7), SequenceNumber(1)))]
    #expect(try open(disk).streamHashes(ends, of: heads, around: nil).count == 1)
    // The first file's events are subtracted singly, because it contains the end, then all at once.
    for from in [SequenceNumber(1), SequenceNumber(2)] {
      let copy = disk.copy()
      try forge(copy, "/log/00000002.segment") { $0.partitions[0].streams[0].from = SequenceNumber(70) }
      try forge(copy, first) { $0.partitions[0].streams[0].from = from }
      #expect(try open(copy).streamHashes(ends, of: heads, around: nil).isEmpty)
    }
  }
}
