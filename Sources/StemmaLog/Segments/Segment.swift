import Crypto
import StemmaEvents

/// An open segment. Reads the trailer at once and everything else on demand, nothing that is not asked for.
struct Segment: Sendable {
  let path: String
  let header: SegmentHeader
  let file: any File
  let fileSize: UInt64
  let trailer: SegmentTrailer

  /// Throws `.damaged` if the trailer is not whole. `staysOpen`: false where so many are read at once that
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
    trailer = try locating(path, offset) { () throws(Flaw) in
      try SegmentTrailer(decoding: bytes, fileSize: size, headerSize: header.size)
    }
    self.path = path
    self.header = header
    self.file = file
    fileSize = size
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
  func footer() throws(LogError) -> SegmentFooter {
    let bytes = try read(at: trailer.footerOffset, count: trailer.footerLength, crc: trailer.footerCRC)
    return try locating(path, trailer.footerOffset) { () throws(Flaw) in
      let footer = try SegmentFooter(decoding: bytes, data: UInt64(header.size)..<trailer.footerOffset)
      guard footer.blocks.reduce(0, { $0 + UInt64($1.events) }) == trailer.events else {
        throw .malformed("count of events")
      }
      return footer
    }
  }

  /// Reads the key filter. Throws `.damaged`.
  func filter() throws(LogError) -> KeyFilter {
    let offset = trailer.footerOffset + UInt64(trailer.footerLength)
    let bytes = try read(at: offset, count: trailer.filterLength, crc: trailer.filterCRC)
    return try locating(path, offset) { () throws(Flaw) in try KeyFilter(decoding: bytes) }
  }

  /// The stored bytes of a block, checked.
  func bytes(of entry: BlockEntry) throws(LogError) -> [UInt8] {
    if entry.isGap { throw .damaged(path: path, offset: entry.offset, .gap) }
    return try read(at: entry.offset, count: entry.length, crc: entry.crc)
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
