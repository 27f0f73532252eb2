import Crypto
import StemmaEvents

/// An open segment. Reads the trailer at once and everything else on demand, nothing that is not asked for.
///
/// Where bytes were taken out of its middle, or put in, what stands behind them does not stand where it was written. The
/// end of the file is found all the same, and a block is where its checksum holds (`BlockPlaces`). So the blocks are lost
/// in which bytes are missing or too many, and no others; and `digest` tells of bytes between two blocks.
struct Segment: Sendable {
  let path: String
  let header: SegmentHeader
  let file: any File
  let fileSize: UInt64
  let trailer: SegmentTrailer
  /// How far the footer stands behind its place, or before it.
  let shift: Int64
  private let found = FoundBlocks()

  /// Throws `.damaged` if the trailer is not whole, or the footer neither in its place nor before the end. `staysOpen`: false where so many are read at once that
  /// descriptors could run out.
  init(
    path: String, header: SegmentHeader, fileSystem: any FileSystem, staysOpen: Bool = true
  ) throws(LogError) {
    let file: any File =
      staysOpen ? try fileSystem.open(path, .read) : ReopenedFile(path: path, fileSystem: fileSystem)
    let size = try file.size()
    let least = UInt64(header.size + SegmentTrailer.size)
    guard size >= least else {
      throw .damaged(path: path, offset: size, .cutShort(expected: least, found: size))
    }
    let offset = size - UInt64(SegmentTrailer.size)
    let bytes = try file.read(at: offset, count: SegmentTrailer.size)
    let trailer = try locating(path, offset) { () throws(Flaw) in
      try SegmentTrailer(decoding: bytes, headerSize: header.size)
    }
    let place = Int64(clamping: trailer.footerOffset)
    let moved = Int64(clamping: offset) - Int64(trailer.footerLength + trailer.filterLength) - place
    var found = moved == 0 ? 0 : nil as Int64?
    let places = Int64(header.size)...Int64(clamping: offset)
    for shift in [moved, 0] where found == nil && places.contains(place + shift) {
      let bytes = try file.read(at: UInt64(place + shift), count: trailer.footerLength)
      if bytes.crc32c == trailer.footerCRC { found = shift }
    }
    guard let found else {
      throw .damaged(path: path, offset: min(offset, trailer.footerOffset), .malformed("footer"))
    }
    shift = found
    self.path = path
    self.header = header
    self.file = file
    self.trailer = trailer
    fileSize = size
  }

  /// Where what was written at `offset` stands if it was moved with the footer.
  private func moved(_ offset: UInt64) -> UInt64 { UInt64(max(0, Int64(clamping: offset) + shift)) }

  /// Where a block stands; nil: nowhere. Reads the whole file. Throws `.damaged` if the footer is.
  func place(of entry: BlockEntry) throws(LogError) -> UInt64? { try found.places(in: self)[entry.offset] }

  /// Where the blocks stand, by where the footer says that they do.
  func findBlocks() throws(LogError) -> [UInt64: UInt64] {
    let blocks = try footer().blocks
    let start = UInt64(header.size)
    let source = InspectedFile(path: path, file: file, size: fileSize)
    let places = try BlockPlaces.find(
      blocks, from: start, in: start..<max(start, moved(trailer.footerOffset)), of: source)
    var found: [UInt64: UInt64] = [:]
    for (entry, place) in zip(blocks, places) { found[entry.offset] = place }
    return found
  }

  /// Traps if what was found in the file cannot stand there. For tests and the suites.
  func checkInvariants() {
    precondition(UInt64(header.size + SegmentTrailer.size) <= fileSize, "header and trailer were read")
    found.checkInvariants()
  }

  /// Right before the trailer. The length may be more than the file has: then what is read there is not the filter.
  var filterOffset: UInt64 {
    fileSize - min(fileSize, UInt64(SegmentTrailer.size + trailer.filterLength))
  }

  private func read(at offset: UInt64, count: Int, crc expected: UInt32) throws(LogError) -> [UInt8] {
    let bytes = try file.read(at: offset, count: count)
    try locating(path, offset) { () throws(Flaw) in
      guard bytes.count == count else { throw .cutShort(expected: UInt64(count), found: UInt64(bytes.count)) }
      let found = bytes.crc32c
      guard found == expected else { throw .checksum(expected: expected, found: found) }
    }
    return bytes
  }

  /// Reads the index. Throws `.damaged`.
  func footer() throws(LogError) -> SegmentFooter { try footer(decoding: try footerBytes()) }

  /// The bytes of the index, checked.
  func footerBytes() throws(LogError) -> [UInt8] {
    try read(at: moved(trailer.footerOffset), count: trailer.footerLength, crc: trailer.footerCRC)
  }

  /// Takes what `footerBytes` gave apart. Throws `.damaged`.
  func footer(decoding bytes: [UInt8]) throws(LogError) -> SegmentFooter {
    try locating(path, moved(trailer.footerOffset)) { () throws(Flaw) in
      let footer = try SegmentFooter(decoding: bytes, data: UInt64(header.size)..<trailer.footerOffset)
      guard footer.blocks.reduce(0, { $0 + UInt64($1.events) }) == trailer.events else {
        throw .malformed("count of events")
      }
      return footer
    }
  }

  /// Reads the key filter. Throws `.damaged`.
  func filter() throws(LogError) -> KeyFilter {
    let bytes = try read(at: filterOffset, count: trailer.filterLength, crc: trailer.filterCRC)
    return try locating(path, filterOffset) { () throws(Flaw) in try KeyFilter(decoding: bytes) }
  }

  /// The stored bytes of a block, checked.
  func bytes(of entry: BlockEntry) throws(LogError) -> [UInt8] {
    if entry.isGap { throw .damaged(path: path, offset: entry.offset, .gap) }
    do throws(LogError) { return try read(at: entry.offset, count: entry.length, crc: entry.crc) } catch {
      guard error.damage != nil, let place = try place(of: entry) else { throw error }
      return try read(at: place, count: entry.length, crc: entry.crc)
    }
  }

  /// Reads a block. Throws `.damaged`.
  func block(_ entry: BlockEntry) throws(LogError) -> BlockReader {
    try Self.block(entry, bytes: try bytes(of: entry), path: path)
  }

  /// Takes a block apart whose bytes were read. Without the file: a thread that makes it ahead for a reader that has
  /// gone meanwhile must not keep that open.
  static func block(_ entry: BlockEntry, bytes: [UInt8], path: String) throws(LogError) -> BlockReader {
    try decoding(path, entry.offset) { () throws(EventsError) in
      let block = try BlockReader(bytes)
      guard block.count == entry.events else { throw .malformed("block", "\(block.count) events") }
      return block
    }
  }

  /// The events and notes of a block. Throws `.damaged`.
  func contents(of entry: BlockEntry) throws(LogError) -> NumberedEvents {
    let block = try block(entry)
    let events = try decoding(path, entry.offset) { () throws(EventsError) in try block.events() }
    return NumberedEvents(events: events, notes: block.notes)
  }

  /// All events in the order of their indices, but those of partitions that are not `isWanted`; with notes.
  /// Memory: all of them.
  func contents(
    around omissions: Omissions? = nil, _ isWanted: (Partition) -> Bool = { _ in true }
  ) throws(LogError) -> NumberedEvents {
    let footer = try footer()
    let (partitions, indices) = footer.selection(isWanted)
    var contents = NumberedEvents()
    for index in indices {
      let read = try omissions.reading { () throws(LogError) in try self.contents(of: footer.blocks[index]) }
      guard var read else { continue }
      read.events.removeAll { !partitions.contains($0.event.partition) }
      contents.add(read)
    }
    contents.events.sort { $0.arrival < $1.arrival }
    return contents
  }

  /// The digest of the bytes that are there, to be compared with the one that the trailer says. Reads the
  /// whole file, in pieces.
  func digestOfBytes() throws(LogError) -> SegmentDigest {
    var hasher = SHA256()
    let end = fileSize - UInt64(SegmentTrailer.size) + UInt64(SegmentTrailer.digestOffset)
    var offset: UInt64 = 0
    while offset < end {
      let bytes = try file.read(at: offset, count: Int(min(end - offset, UInt64(LogLimits.scanChunk))))
      if bytes.isEmpty { throw .damaged(path: path, offset: offset, .cutShort(expected: end, found: offset)) }
      hasher.update(bytes)
      offset += UInt64(bytes.count)
    }
    return SegmentDigest(bytes: Array(hasher.finalize()))
  }
}
