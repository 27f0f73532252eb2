import StemmaEvents

// The blocks of a segment where its footer can be read.
//
// The footer says how long each block is and what its checksum is. Where as many bytes stand before it as there
// were, that is where each one stands, damaged or not. Where bytes were taken out or put in, a block is where its
// checksum holds: the one that does not stand behind the block before it is searched for, or one of those behind it.
// What is left between blocks that were found is where the bytes are missing, or too many.

extension SegmentInspection {
  func reportBlocks(
    _ index: FoundFooter, _ header: InspectedPart, _ tally: inout StreamTally
  ) throws(LogError) {
    let blocks = index.footer.blocks
    let start = header.offset > 0 ? headerEnd : index.start ?? headerEnd
    var header = header
    guard start + index.footer.storedBytes != index.offset else {
      if !header.isRead { header.end(at: start) }
      report(header: header)
      return try reportBlocks(0..<blocks.count, of: blocks, at: start, &tally)
    }
    let stretches = try stretches(of: blocks, from: start, before: index.offset, header)
    if let first = stretches.first, !header.isRead, let flaw = Flaw.count(of: first.bytes.lowerBound, start) {
      header.end(at: first.bytes.lowerBound)
      header.flaws = []
      if header.length > 0 {
        header.complain(flaw, in: 0..<header.length)
      } else {
        header.complain(
          .disagreement(
            first.isFilled ? "no byte of it is left" : "what is left of it is among the bytes that follow"))
      }
    }
    report(header: header)
    for stretch in stretches {
      if stretch.isFilled {
        try reportBlocks(stretch.blocks, of: blocks, at: stretch.bytes.lowerBound, &tally)
      } else {
        tally.isWhole = false
        try report(stretch, of: blocks)
      }
    }
  }

  private func reportBlocks(
    _ numbers: Range<Int>, of blocks: [BlockEntry], at start: UInt64, _ tally: inout StreamTally
  ) throws(LogError) {
    var offset = start
    for number in numbers {
      if request.wants(number + 1) {
        let part = try blockPart(number + 1, blocks[number], offset)
        if tally.isWhole { tally.add(part) }
        report(part)
      }
      offset += UInt64(blocks[number].length)
    }
  }

  // MARK: Blocks that were moved

  /// Blocks, and the bytes between the block before them and the one behind them.
  private struct Stretch {
    var blocks: Range<Int>
    var bytes: Range<UInt64>
    /// Bytes that the blocks take.
    var expected: UInt64

    /// Whether each stands where it must, be it damaged.
    var isFilled: Bool { UInt64(bytes.count) == expected }
  }

  /// Finds the blocks between the header and the footer; the first should stand at `start`.
  private func stretches(
    of blocks: [BlockEntry], from start: UInt64, before end: UInt64, _ header: InspectedPart
  ) throws(LogError) -> [Stretch] {
    let byLength = Dictionary(grouping: blocks.indices, by: { blocks[$0].length })
    var stretches: [Stretch] = []
    var (number, offset) = (0, min(start, end))
    if let first = blocks.first, !header.isRead, try !isWhole(first, at: start) { offset = 0 }
    while number < blocks.count || offset < end {
      var (next, place) = (number, offset)
      if number < blocks.count, try isWhole(blocks[number], at: offset) {
        (next, place) = (number + 1, offset + UInt64(blocks[number].length))
      } else {
        (next, place) = try nextWhole(blocks, byLength, above: number, offset..<end) ?? (blocks.count, end)
      }
      let expected = blocks[number..<next].reduce(0) { $0 + UInt64($1.length) }
      if offset == 0 {
        // What stands before the first block is the header. Where there are no more bytes than those of the blocks
        // that are not whole, nothing of the header need be among them.
        if next == number { offset = place } else if place > expected { offset = min(start, place) }
      }
      stretches.append(Stretch(blocks: number..<next, bytes: offset..<place, expected: expected))
      (number, offset) = (next, place)
    }
    return stretches.filter { !$0.blocks.isEmpty || !$0.bytes.isEmpty }
  }

  private func isWhole(_ entry: BlockEntry, at offset: UInt64) throws(LogError) -> Bool {
    guard entry.length <= InspectionLimits.part else { return false }
    let bytes = try source.bytes(at: offset, count: entry.length)
    return bytes.count == entry.length && bytes.crc32c == entry.crc
  }

  /// The first block that is whole anywhere in `range` and comes not before `number`.
  private func nextWhole(
    _ blocks: [BlockEntry], _ byLength: [Int: [Int]], above number: Int, _ range: Range<UInt64>
  ) throws(LogError) -> (number: Int, offset: UInt64)? {
    guard number < blocks.count else { return nil }
    let scan = BlockScan(source)
    var found: Int?
    let offset = try source.first(BlockReader.beginning, in: range) { (place) throws(LogError) in
      guard let size = try scan.size(at: place, before: range.upperBound), let alike = byLength[size] else {
        return false
      }
      let crc = try source.bytes(at: place, count: size).crc32c
      found = alike.first { $0 >= number && blocks[$0].crc == crc }
      return found != nil
    }
    guard let offset, let found else { return nil }
    return (found, offset)
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
