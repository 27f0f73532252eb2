import StemmaEvents
import Synchronization

// Where the blocks of a segment stand.
//
// The footer says how long each block is and what its checksum is. One that is whole behind those before it, as long as
// the footer says that they are, is at its place. Others are looked for in what is left between these: bytes may have
// been taken out before them, or put in, or they were written elsewhere. A block is where its checksum holds.
//
// One whose bytes stand at several such places is at the one that follows the block before it. Time: of the order of the
// file; of one that looks like blocks everywhere no more is read than `BlockPlaces.readings` says.

enum BlockPlaces {
  /// How many times the bytes of a file are read at most to look for blocks that begin there.
  static let readings: UInt64 = 8

  /// For each block where it stands, in `range`; nil: nowhere. The first should stand at `start`.
  static func find(
    _ blocks: [BlockEntry], from start: UInt64, in range: Range<UInt64>, of source: InspectedFile
  ) throws(LogError) -> [UInt64?] {
    var places = [UInt64?](repeating: nil, count: blocks.count)
    var free: [Range<UInt64>] = []
    var (offset, end) = (start, range.lowerBound)
    for (index, block) in blocks.enumerated() {
      if try isWhole(block, at: offset, before: range.upperBound, of: source) {
        places[index] = offset
        if end < offset { free.append(end..<offset) }
        end = offset + UInt64(block.length)
      }
      offset += UInt64(block.length)
    }
    if end < range.upperBound { free.append(end..<range.upperBound) }
    let missing = Dictionary(grouping: blocks.indices.filter { places[$0] == nil }) { blocks[$0].length }
    if missing.isEmpty { return places }
    var found: [Int: [UInt64]] = [:]
    var left = min(source.size, .max / readings) * readings
    for range in free { try search(range, blocks, missing, &left, of: source, &found) }
    for index in blocks.indices {
      guard let offsets = found[index] else { continue }
      let end = index > 0 ? places[index - 1].map { $0 + UInt64(blocks[index - 1].length) } : start
      places[index] = offsets.first { $0 == end } ?? offsets[0]
    }
    return places
  }

  private static func isWhole(
    _ block: BlockEntry, at offset: UInt64, before end: UInt64, of source: InspectedFile
  ) throws(LogError) -> Bool {
    guard block.length <= InspectionLimits.part, offset < end, UInt64(block.length) <= end - offset else {
      return false
    }
    let bytes = try source.bytes(at: offset, count: block.length)
    return bytes.count == block.length && bytes.crc32c == block.crc
  }

  /// Adds where in `range` those of `missing`, which are listed by their lengths, are whole.
  private static func search(
    _ range: Range<UInt64>, _ blocks: [BlockEntry], _ missing: [Int: [Int]], _ left: inout UInt64,
    of source: InspectedFile, _ found: inout [Int: [UInt64]]
  ) throws(LogError) {
    let scan = BlockScan(source)
    var offset = range.lowerBound
    while offset < range.upperBound {
      var index: Int?
      let place = try source.first(BlockReader.beginning, in: offset..<range.upperBound) {
        (place) throws(LogError) in
        guard let size = try scan.size(at: place, before: range.upperBound), let alike = missing[size],
          left > 0
        else { return false }
        left -= min(left, UInt64(size))
        let crc = try source.bytes(at: place, count: size).crc32c
        index = alike.first { blocks[$0].crc == crc }
        return index != nil
      }
      guard let place, let index else { return }
      found[index, default: []].append(place)
      offset = place + UInt64(blocks[index].length)
    }
  }
}

/// Where the blocks of a segment stand of which one does not stand at its place; found when first asked for.
final class FoundBlocks: Sendable {
  private let places = Mutex<[UInt64: UInt64]?>(nil)

  /// By where the footer says that they are. Throws `.damaged` if it cannot be read.
  func places(in segment: Segment) throws(LogError) -> [UInt64: UInt64] {
    if let known = places.withLock({ $0 }) { return known }
    let found = try segment.findBlocks()
    places.withLock { $0 = found }
    return found
  }

  /// Traps if two blocks were found at one place. For tests and the suites, on any thread.
  func checkInvariants() {
    let found = places.withLock { $0 ?? [:] }
    precondition(Set(found.values).count == found.count, "each block stands at a place of its own")
  }
}
