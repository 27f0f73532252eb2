import StemmaEvents

// The blocks of a segment where its footer can be read.
//
// It tells where each one stands (`BlockPlaces`). Those that are not whole anywhere stood between those that are: if as
// many bytes are left there as they took, each stands where it must, damaged; else that is where bytes are missing, or
// too many.

extension SegmentInspection {
  func reportBlocks(
    _ index: FoundFooter, _ header: InspectedPart, _ tally: inout StreamTally
  ) throws(LogError) {
    let blocks = index.footer.blocks
    let start = min(header.offset > 0 ? headerEnd : index.start ?? headerEnd, index.offset)
    // Where the header cannot be read, blocks may stand before its end.
    let first = header.isRead ? start : 0
    let places = try BlockPlaces.find(blocks, from: start, in: first..<index.offset, of: source)
    let stretches = stretches(
      of: blocks, places, from: start, before: index.offset, isHeaderRead: header.isRead)
    var header = header
    if !header.isRead {
      let end = stretches.first?.bytes.lowerBound ?? start
      header.end(at: end)
      if let flaw = Flaw.count(of: end, start) {
        header.flaws = []
        if header.length > 0 {
          header.complain(flaw, in: 0..<header.length)
        } else {
          header.complain(
            .disagreement(
              stretches.first?.isFilled != false
                ? "no byte of it is left" : "what is left of it is among the bytes that follow"))
        }
      }
    }
    report(header: header)
    var last = -1
    for stretch in stretches {
      guard stretch.isFilled else {
        tally.isWhole = false
        try report(stretch, of: blocks)
        continue
      }
      var offset = stretch.bytes.lowerBound
      for number in stretch.blocks {
        if number < last { tally.isWhole = false }
        if request.wants(number + 1) {
          var part = try blockPart(number + 1, blocks[number], offset)
          if tally.isWhole { tally.add(part) }
          if number < last { part.complain(.disagreement("it stands behind block \(last + 1)")) }
          report(part)
        }
        offset += UInt64(blocks[number].length)
      }
      last = max(last, (stretch.blocks.last ?? last))
    }
  }

  // MARK: Blocks that were moved

  /// A block that is whole; or those that are not, and the bytes between the block before them and the next one in the file.
  private struct Stretch {
    var blocks: Range<Int>
    var bytes: Range<UInt64>
    /// Bytes that the blocks take.
    var expected: UInt64

    /// Whether each stands where it must, be it damaged.
    var isFilled: Bool { bytes.upperBound - bytes.lowerBound == expected }
  }

  /// All between the header and the footer, in the order of the file; the first block should stand at `start`.
  private func stretches(
    of blocks: [BlockEntry], _ places: [UInt64?], from start: UInt64, before end: UInt64,
    isHeaderRead: Bool
  ) -> [Stretch] {
    func size(_ numbers: Range<Int>) -> UInt64 { numbers.reduce(0) { $0 + UInt64(blocks[$1].length) } }
    /// Those that are not whole, from a number on.
    func missing(from first: Int) -> Range<Int> {
      first..<(places[first...].firstIndex { $0 != nil } ?? blocks.count)
    }
    var stretches: [Stretch] = []
    var offset = start
    func addGap(_ numbers: Range<Int>, before end: UInt64) {
      let expected = size(numbers)
      if stretches.isEmpty, !isHeaderRead, !blocks.isEmpty {
        // What stands before the first block is the header. Where there are no more bytes than those of the blocks
        // that are not whole, nothing of the header need be among them.
        offset = numbers.isEmpty ? end : end > expected ? min(start, end) : 0
      }
      if numbers.isEmpty, offset >= end { return }
      stretches.append(Stretch(blocks: numbers, bytes: min(offset, end)..<end, expected: expected))
    }
    var numbers = missing(from: 0)
    for (number, place) in places.enumerated().compactMap({ pair in pair.element.map { (pair.offset, $0) } })
      .sorted(by: { $0.1 < $1.1 })
    {
      addGap(numbers, before: place)
      offset = place + UInt64(blocks[number].length)
      stretches.append(
        Stretch(blocks: number..<number + 1, bytes: place..<offset, expected: offset - place))
      numbers = missing(from: number + 1)
    }
    addGap(numbers, before: end)
    return stretches
  }

  /// Blocks of which bytes are missing or too many: if it is one, how many; of more than one it cannot be told to
  /// which of them the bytes belong that are left.
  private func report(_ stretch: Stretch, of blocks: [BlockEntry]) throws(LogError) {
    let length = stretch.bytes.upperBound - stretch.bytes.lowerBound
    let flaw = Flaw.count(of: length, stretch.expected) ?? .notThisFormat
    if stretch.blocks.count == 1, length > 0 {
      guard request.wants(stretch.blocks.lowerBound + 1) else { return }
      return report(
        try part(
          of: blocks[stretch.blocks.lowerBound], stretch.blocks.lowerBound + 1, in: stretch.bytes, flaw))
    }
    let what = length == 0 ? "no byte of it is left" : "what is left of it is among the bytes that follow"
    for number in stretch.blocks where request.wants(number + 1) {
      var part = InspectedPart(.block, at: stretch.bytes.lowerBound, 0, number: number + 1)
      part.complain(.disagreement(what))
      part.describe(blocks[number])
      report(part)
    }
    guard request.block == nil, length > 0 else { return }
    var part = InspectedPart(.unknown, at: stretch.bytes.lowerBound, length)
    part.complain(flaw, in: stretch.bytes)
    report(part)
  }

  /// A block of which bytes are missing or too many. Those that are too many are found if they stand together: without
  /// them the checksum holds; so is the place of one that is missing, and what it was.
  private func part(
    of entry: BlockEntry, _ number: Int, in range: Range<UInt64>, _ flaw: Flaw
  ) throws(LogError) -> InspectedPart {
    let length = range.upperBound - range.lowerBound
    var part = InspectedPart(.block, at: range.lowerBound, length, number: number)
    part.place = place
    part.say("events", UInt64(entry.events))
    part.describe(entry)
    let surplus = Int(clamping: length) - entry.length
    if surplus > 0, length <= UInt64(InspectionLimits.part) {
      let bytes = try source.bytes(at: range.lowerBound, count: Int(length))
      for index in WrongByte.surplus(of: surplus, in: bytes, expected: entry.crc) {
        guard let block = BlockReader(inspecting: Array(bytes[..<index] + bytes[(index + surplus)...])) else {
          continue
        }
        part.block = block
        part.isChecked = true
        let start = range.lowerBound + UInt64(index)
        part.complain(flaw, in: start..<start + UInt64(surplus))
        return part
      }
    }
    if surplus == -1, entry.length <= InspectionLimits.part {
      let bytes = try source.bytes(at: range.lowerBound, count: Int(length))
      if let (index, byte) = WrongByte.lacking(in: bytes, expected: entry.crc),
        let block = BlockReader(inspecting: Array(bytes[..<index] + [byte] + bytes[index...]))
      {
        part.block = block
        part.isChecked = true
        part.complain(flaw, at: range.lowerBound + UInt64(index))
        return part
      }
    }
    part.complain(flaw, in: range)
    return part
  }

  // MARK: One block

  private func blockPart(
    _ number: Int, _ entry: BlockEntry, _ start: UInt64
  ) throws(LogError) -> InspectedPart {
    let length = UInt64(entry.length)
    var part = InspectedPart(.block, at: start, length, number: number)
    part.place = place
    part.say("events", UInt64(entry.events))
    part.describe(entry)
    guard entry.length <= InspectionLimits.part else {
      part.offset = min(part.offset, source.size)
      part.length = min(length, source.size - part.offset)
      part.complain(.malformed("length of a block"))
      return part
    }
    let bytes = try source.bytes(at: start, count: entry.length)
    guard bytes.count == entry.length else {
      part.offset = min(part.offset, source.size)
      part.length = UInt64(bytes.count)
      part.complain(.cutShort(expected: length, found: UInt64(bytes.count)))
      return part
    }
    let found = bytes.crc32c
    if entry.isGap {
      part.complain(.gap)
    } else if found == entry.crc {
      part.decode(bytes)
      part.isChecked = true
      if let block = part.block, block.count != entry.events {
        part.complain(.disagreement("\(block.count) events, the footer says \(entry.events)"))
      }
    } else {
      part.complain(checksum: entry.crc, found: found, of: bytes, at: start)
    }
    return part
  }
}

extension InspectedPart {
  /// Whether it can be read as it was.
  fileprivate var isRead: Bool { flaws.allSatisfy { $0.byte != nil } }

  /// What the footer says of a block, which is all there is of a damaged one.
  fileprivate mutating func describe(_ entry: BlockEntry) {
    say("partition", entry.firstKey.partition.description)
    say("model", entry.firstKey.model)
    say("firstKey", entry.firstKey.key.parts.map(\.text).joined(separator: " "))
    say("firstIndex", entry.firstArrival)
    say("lastIndex", entry.lastArrival)
  }
}
