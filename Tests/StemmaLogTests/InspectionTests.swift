import StemmaEvents
import StemmaSimulation
import Testing

@testable import StemmaLog

/// Inspection of intact, corrupt and cut files.
@Suite struct InspectionTests {
  /// A log of two segments and a journal of five frames.
  private func disk() throws -> SimulatedFileSystem {
    let disk = SimulatedFileSystem()
    var maker = EventMaker(seed: 21)
    maker.keysPerPartition = 60
    let log = try Log.create(in: "/log", id: testLog, fileSystem: disk, options: .init(segmentSize: 1 << 20))
    _ = try log.append([Commit(maker.commit(400, textLength: 300), message: CommitMessage(author: "tim"))])
    try log.seal()
    _ = try log.append([Commit(maker.commit(300, textLength: 200))])
    try log.seal()
    for _ in 0..<5 {
      _ = try log.append([Commit(maker.commit(30))])
      try log.sync()
    }
    log.close()
    return disk
  }

  private func paths(_ disk: SimulatedFileSystem) throws -> [String] {
    try disk.list("/log").map { "/log/" + $0 }
  }

  private func parts(
    _ path: String, _ disk: SimulatedFileSystem, _ request: InspectionRequest = .init(isComplete: true)
  ) throws -> [InspectedPart] {
    let source = try InspectedFile(path: path, fileSystem: disk)
    var parts: [InspectedPart] = []
    try inspect(source, as: try LogFileFormat(of: source), request) { parts.append($0) }
    return parts
  }

  /// The parts of a file with these bytes. They cover it exactly once.
  private func parts(
    _ bytes: [UInt8], at path: String, _ request: InspectionRequest = .init(),
    _ comment: @autoclosure () -> Comment = ""
  ) throws -> [InspectedPart] {
    let disk = SimulatedFileSystem()
    disk.plant(bytes, at: path)
    let parts = try parts(path, disk, request)
    var end: UInt64 = 0
    for part in parts where part.kind != .slot || part.length > 0 {
      #expect(part.offset == end, "\(path): \(part.kind) \(comment())")
      end = part.end
    }
    #expect(end == UInt64(bytes.count), "\(path) \(comment())")
    return parts
  }

  private func events(_ parts: [InspectedPart]) throws -> [[BlockEvent]] {
    try parts.compactMap(\.block).map { try $0.events() }
  }

  /// A segment of several blocks, its bytes and its parts.
  private func segment() throws -> (path: String, bytes: [UInt8], parts: [InspectedPart]) {
    let disk = try disk()
    let path = "/log/00000001.segment"
    let parts = try parts(path, disk)
    try #require(parts.count { $0.kind == .block } > 1)
    return (path, try #require(disk.contents(path)), parts)
  }

  private func journal() throws -> (path: String, bytes: [UInt8], frames: [InspectedPart]) {
    let disk = try disk()
    let path = "/log/00000003.journal"
    let frames = try parts(path, disk).filter { $0.kind == .frame }
    try #require(frames.count == 5)
    return (path, try #require(disk.contents(path)), frames)
  }

  @Test func partsOfWholeFilesCoverEveryByteOnceAndHaveNoFlaw() throws {
    let disk = try disk()
    var count = 0
    for path in try paths(disk) {
      let found = try parts(try #require(disk.contents(path)), at: path, .init(isComplete: true))
      for part in found { #expect(part.flaws.isEmpty, "\(path): \(part.kind) \(part.flaws)") }
      #expect(found.allSatisfy { $0.block == nil || $0.isChecked })
      count += found.reduce(0) { $0 + ($1.block?.count ?? 0) }
    }
    let log = try Log.open(in: "/log", id: testLog, fileSystem: disk, options: .init(mode: .readOnly))
    #expect(try count == log.allEvents().count)
  }

  @Test func aBlockIsShownAloneAndABlockThatIsNotThereIsNot() throws {
    let disk = try disk()
    for path in try paths(disk) {
      let blocks = try parts(path, disk).filter { $0.number != nil }
      for block in blocks {
        #expect(try parts(path, disk, .init(block: block.number)).map(\.offset) == [block.offset])
      }
      #expect(try parts(path, disk, .init(block: blocks.count + 1)).isEmpty)
    }
  }

  // MARK: Segments

  @Test func aWrongByteOfASegmentIsCorruptionOfItsPartAndEveryOtherBlockIsShown() throws {
    let (path, bytes, whole) = try segment()
    for part in whole {
      for place in stride(from: Int(part.offset), to: Int(part.end), by: part.kind == .block ? 997 : 7) {
        var spoilt = bytes
        spoilt[place] ^= 0x41
        let found = try parts(spoilt, at: path, .init(), "byte \(place)")
        let flawed = found.filter { !$0.flaws.isEmpty }
        let left = try events(whole.filter { $0.number == nil || $0.number != part.number })
        #expect(try events(found) == left, "byte \(place)")
        guard part.kind != .trailer else {
          // The footer is found by the trailer.
          #expect(flawed.map(\.kind) == [.unknown, .trailer], "byte \(place)")
          #expect(flawed.last?.end == UInt64(bytes.count), "byte \(place)")
          continue
        }
        #expect(found.map(\.offset) == whole.map(\.offset), "byte \(place)")
        #expect(flawed.map(\.offset) == [part.offset], "byte \(place)")
        #expect(flawed.first?.flaws.map(\.offset) == [part.offset])
        #expect(found.allSatisfy { $0.block == nil || $0.isChecked == (part.kind != .footer) })
        if part.kind == .block { #expect(flawed.first?.facts.map(\.value) == part.facts.map(\.value)) }
      }
    }
  }

  @Test func aSegmentThatIsCutShowsTheBlocksThatAreLeft() throws {
    let (path, bytes, whole) = try segment()
    let blocks = whole.filter { $0.kind == .block }
    let header = whole[0].end
    for count in stride(from: 1, to: bytes.count, by: 397) {
      let ahead = try parts(Array(bytes[..<count]), at: path, .init(), "cut to \(count)")
      #expect(try events(ahead) == events(blocks.filter { $0.end <= UInt64(count) }), "cut to \(count)")
      #expect(ahead.contains { !$0.flaws.isEmpty }, "cut to \(count)")
      #expect(ahead.allSatisfy { !$0.isChecked })
      let behind = try parts(Array(bytes[count...]), at: path, .init(), "first \(count) bytes gone")
      // The first bytes are read as the header, whatever they are.
      let left = blocks.filter { $0.offset >= UInt64(count) + header }
      #expect(try events(behind) == events(left), "first \(count) bytes gone")
      #expect(behind.contains { !$0.flaws.isEmpty }, "first \(count) bytes gone")
    }
  }

  @Test func aSegmentThatEndsWithABlockHasLostItsTrailer() throws {
    let (path, bytes, whole) = try segment()
    for block in whole where block.kind == .block {
      let found = try parts(Array(bytes[..<Int(block.end)]), at: path)
      #expect(found.filter { !$0.flaws.isEmpty }.map(\.kind) == [.trailer])
      #expect(found.last?.offset == block.end && found.last?.length == 0)
      #expect(found.compactMap(\.number).last == block.number)
    }
  }

  @Test func bytesThatAreMissingOrTooManyAreCorruptionAndTheOtherBlocksAreShown() throws {
    let (path, bytes, whole) = try segment()
    let hit = try #require(whole.first { $0.kind == .block })
    let place = Int(hit.offset) + 40
    let others = try events(whole.filter { $0.offset > hit.offset })
    for change in [-9, -1, 1, 9] {
      var changed = bytes
      if change < 0 {
        changed.removeSubrange(place..<place - change)
      } else {
        changed.insert(contentsOf: [UInt8](repeating: 7, count: change), at: place)
      }
      let found = try parts(changed, at: path, .init(), "\(change)")
      #expect(try events(found) == others, "\(change)")
      #expect(found.filter { !$0.flaws.isEmpty }.map(\.kind).contains(.trailer), "\(change)")
      #expect(found.allSatisfy { !$0.isChecked }, "\(change)")
    }
    for more in [bytes, [1], Array(bytes.suffix(100))] {
      let found = try parts(bytes + more, at: path)
      #expect(try events(found).starts(with: events(whole)))
      #expect(found.contains { !$0.flaws.isEmpty })
    }
  }

  /// Correct checksums do not imply correct lengths and offsets.
  @Test func aTrailerOrAFooterWithImpossibleNumbersIsCorruption() throws {
    let (path, bytes, whole) = try segment()
    let start = Int(try #require(whole.last).offset)
    let trailer = try SegmentTrailer(fields: Array(bytes[start...]))
    let blocks = try events(whole)
    func expectCorruption(_ kinds: Set<InspectedPart.Kind>, _ trailer: SegmentTrailer, _ content: [UInt8])
      throws
    {
      let found = try parts(content + trailer.encoded(), at: path)
      #expect(found.contains { !$0.flaws.isEmpty && kinds.contains($0.kind) })
      #expect(try events(found) == blocks)
    }
    for offset in [0, 1, UInt64(start), UInt64(bytes.count), .max] {
      for (footer, filter) in [
        (trailer.footerLength, trailer.filterLength), (0, 0), (LogLimits.footer, 1), (.max, .max),
      ] {
        var forged = trailer
        (forged.footerOffset, forged.footerLength, forged.filterLength) = (offset, footer, filter)
        try expectCorruption([.trailer, .footer], forged, Array(bytes[..<start]))
      }
    }
    var footer = try SegmentFooter(
      decoding: Array(bytes[Int(trailer.footerOffset)..<Int(trailer.footerOffset) + trailer.footerLength]),
      data: UInt64(SegmentHeader.size)..<trailer.footerOffset)
    for length in [0, 1, LogLimits.block] {
      footer.blocks[0].length = length
      let encoded = footer.encoded()
      let forged = SegmentTrailer(
        footerOffset: trailer.footerOffset, footer: encoded.bytes, rootSize: encoded.rootSize, filter: [],
        events: trailer.events, end: trailer.end, rawBytes: trailer.rawBytes, chain: trailer.chain)
      try expectCorruption([.footer], forged, bytes[..<Int(trailer.footerOffset)] + encoded.bytes)
    }
  }

  // MARK: Journals

  @Test func aWrongByteOfAFrameCorruptionsThisFrameAlone() throws {
    let (path, bytes, frames) = try journal()
    for frame in frames {
      for place in stride(from: Int(frame.offset), to: Int(frame.end), by: 7) {
        for rest in [0, 500] {
          var spoilt = bytes + [UInt8](repeating: 0, count: rest)
          spoilt[place] ^= 0x10
          let found = try parts(spoilt, at: path, .init(), "byte \(place)")
          let flawed = found.filter { !$0.flaws.isEmpty }
          #expect(flawed.first?.offset == frame.offset, "byte \(place)")
          #expect(try events(found) == events(frames.filter { $0.number != frame.number }), "byte \(place)")
          // The end of a corrupt last frame is unknown.
          guard frame.number != frames.count else { continue }
          #expect(flawed.map(\.number) == [frame.number], "byte \(place)")
          #expect(found.filter { $0.kind == .frame }.map(\.number) == frames.map(\.number))
        }
      }
    }
  }

  /// The checksums cover the log, the number of the journal and the offset.
  @Test func aFrameIsValidAtItsPlaceInItsJournalOnly() throws {
    let (path, bytes, frames) = try journal()
    func content(_ index: Int) -> ArraySlice<UInt8> {
      bytes[Int(frames[index].offset)..<Int(frames[index].end)]
    }
    let middle = Int(frames[1].offset)..<Int(frames[3].offset)
    for replacement in [content(2) + content(1), content(2), content(1) + [0] + content(2)] {
      var changed = bytes
      changed.replaceSubrange(middle, with: replacement)
      let found = try parts(changed, at: path)
      #expect(found.contains { !$0.flaws.isEmpty })
      let read = try events(found)
      #expect(try read.allSatisfy(events(frames).contains))
      #expect(try read.first == frames[0].block?.events())
      if changed.count == bytes.count { #expect(try read.suffix(2) == events(Array(frames.suffix(2)))[...]) }
    }
    // A journal of another number, after the header of this one.
    var other = try JournalHeader(fields: bytes)
    other.number += 1
    let found = try parts(other.encoded() + bytes[JournalHeader.size...], at: path)
    #expect(found.allSatisfy { $0.block == nil })
  }

  @Test func aJournalThatIsCutShowsTheFramesThatAreLeft() throws {
    let (path, bytes, frames) = try journal()
    for count in stride(from: 1, to: bytes.count, by: 37) {
      let found = try parts(Array(bytes[..<count]), at: path)
      #expect(try events(found) == events(frames.filter { $0.end <= UInt64(count) }), "cut to \(count)")
      let isWhole = count == JournalHeader.size || frames.contains { $0.end == UInt64(count) }
      #expect(found.contains { !$0.flaws.isEmpty } == !isWhole, "cut to \(count)")
    }
    let last = frames[4]
    for left in [1, 4, 31, 32, 40, Int(last.length) - 1] {
      let part = try #require(try parts(Array(bytes[..<(Int(last.offset) + left)]), at: path).last)
      #expect(part.kind == .frame && part.offset == last.offset && part.length == UInt64(left))
      guard case .cutShort = try #require(part.flaws.first).flaw else {
        Issue.record("\(part.flaws)")
        continue
      }
    }
  }

  @Test func theTailOfAJournalIsUnwrittenSpaceOrCorruption() throws {
    let (path, bytes, frames) = try journal()
    for place in [nil, 0, 1, 40_000, 49_999] {
      var tail = [UInt8](repeating: 0, count: 50_000)
      if let place { tail[place] = 7 }
      let found = try parts(bytes + tail, at: path)
      #expect(found.count == frames.count + 2 && found.last?.kind == .unknown)
      #expect(found.dropLast().allSatisfy { $0.flaws.isEmpty })
      #expect(found.last?.flaws.map(\.offset) == place.map { [UInt64(bytes.count + $0)] } ?? [])
    }
  }

  @Test func theFramesOfAJournalWithACorruptHeaderAreRead() throws {
    let (path, bytes, frames) = try journal()
    /// The bytes at `places` are wrong. Log and number then come from the header, the request or
    /// the name.
    for (places, path, log, isChecked) in [
      ([40, 41], "/log/other", nil, true), ([1], path, nil, true), ([17], path, testLog, true),
      ([17, 25], path, testLog, true), ([25], path, nil, true), ([17], path, nil, false),
      ([25], "/log/00000003.journal", LogID(99), false),
    ] as [([Int], String, LogID?, Bool)] {
      var spoilt = bytes
      for place in places { spoilt[place] ^= 0x55 }
      let found = try parts(spoilt, at: path, .init(log: log))
      #expect(found[0].kind == .header && !found[0].flaws.isEmpty && found[0].facts.isEmpty, "\(places)")
      #expect(try events(found) == events(frames), "\(places)")
      #expect(found.allSatisfy { $0.block == nil || $0.isChecked == isChecked }, "\(places)")
      #expect(found.dropFirst().allSatisfy { $0.flaws.isEmpty } == isChecked, "\(places)")
    }
  }

  // MARK: Other files

  @Test func aSlotOfAWatermarkWithoutItsChecksumHasNoFacts() throws {
    let bytes = try #require(try disk().contents("/log/watermark"))
    let size = Watermark.slotSize
    let whole = try parts(bytes, at: "/log/watermark")
    for place in [3, 20, 300, 510] {
      var spoilt = bytes
      spoilt[size + place] ^= 0x55
      let slots = try parts(spoilt, at: "/log/watermark")
      #expect(slots[0].facts.map(\.value) == whole[0].facts.map(\.value) && slots[0].flaws.isEmpty)
      #expect(slots[1].facts.isEmpty && slots[1].flaws.map(\.offset) == [UInt64(size)])
    }
    for count in [0, 3, 186, size, size + 188] {
      let slots = try parts(Array(bytes[..<count]), at: "/log/watermark")
      #expect(slots.map(\.offset) == [0, UInt64(size)])
      #expect(slots[1].flaws.map(\.flaw).contains { if case .cutShort = $0 { true } else { false } })
    }
    let longer = try parts(bytes + [0], at: "/log/watermark")
    #expect(longer.last?.kind == .unknown && longer.filter { !$0.flaws.isEmpty }.count == 1)
  }

  @Test func ofAFileWithoutAFormatTheBlocksAreShown() throws {
    let (_, bytes, whole) = try segment()
    let block = try #require(whole.first { $0.kind == .block })
    let noise = [UInt8](repeating: 1, count: 300)
    let content = noise + bytes[Int(block.offset)..<Int(block.end)] + noise
    let found = try parts(content, at: "/fragment")
    #expect(
      found.map(\.kind) == [.unknown, .block, .unknown] && found.map(\.flaws.isEmpty) == [false, true, false])
    #expect(try events(found) == events([block]))
  }

  // MARK: Any bytes

  /// Bytes that look like long frames or blocks everywhere must not be read repeatedly at these
  /// lengths.
  @Test func theBytesThatAreReadGrowWithTheFileAlone() throws {
    let (path, bytes, frames) = try journal()
    let start = Int(frames[1].offset)
    var head = Array(bytes[start..<start + JournalFrame.headerSize])
    head.replaceSubrange(4..<8, with: [0, 0, 0x1F, 0])
    let block = start + JournalFrame.headerSize
    let blockHead = bytes[block..<block + BlockReader.headSize]
    for (pattern, name) in [
      (head[...], path), (bytes[start..<block + BlockReader.headSize], path), (blockHead, "/fragment"),
    ] {
      let hostile = Array(repeating: pattern, count: 700).joined()
      let spoilt = Array(bytes[..<start] + hostile) + [UInt8](repeating: 0, count: 8_000) + bytes[start...]
      let disk = SimulatedFileSystem()
      disk.plant(spoilt, at: name)
      let found = try parts(name, disk)
      #expect(disk.bytesRead < 32 * spoilt.count, "\(disk.bytesRead) of \(spoilt.count)")
      #expect(found.contains { !$0.flaws.isEmpty })
      #expect(try found.first { $0.block != nil }?.block?.events() == frames[0].block?.events())
    }
  }

  @Test(arguments: [UInt64(77), 78]) func anyMutationIsSurvivedAndOneOfASegmentIsSeen(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let disk = try disk()
    for path in try paths(disk) {
      let bytes = try #require(disk.contents(path))
      for round in 0..<120 {
        let spoilt = FileMutation.apply(to: bytes, &random)
        let found = try parts(spoilt, at: path, .init(isComplete: true), "seed \(seed), round \(round)")
        if path.hasSuffix(".segment"), spoilt != bytes {
          #expect(found.contains { !$0.flaws.isEmpty }, "seed \(seed), round \(round), \(path)")
        }
      }
    }
  }
}
