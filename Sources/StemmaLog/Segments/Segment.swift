import Crypto
import StemmaEvents

/// An open segment. Reads the trailer at once and everything else on demand.
struct Segment: Sendable {
  let path: String
  let header: SegmentHeader
  let file: any File
  let fileSize: UInt64
  let trailer: SegmentTrailer

  /// Opens a file that the manifest lists. Throws `.corrupt` if it is missing, its trailer is
  /// invalid, or it is another file. `staysOpen`: false if descriptors could run out.
  init(
    _ entry: SegmentEntry, in directory: String, log: LogID, fileSystem: any FileSystem,
    staysOpen: Bool = true
  ) throws(LogError) {
    let path = LogFileName.segment(entry.number).path(in: directory)
    let file: any File
    do throws(LogError) {
      file =
        staysOpen ? try fileSystem.open(path, .read) : ReopenedFile(path: path, fileSystem: fileSystem)
      let size = try file.size()
      guard size == entry.size else {
        throw .corrupt(
          path: path, offset: min(size, entry.size), .cutShort(expected: entry.size, found: size))
      }
    } catch {
      throw error.isNotFound ? .corrupt(path: path, offset: 0, .missing) : error
    }
    // The header repeats the manifest, so only `verify` reads it.
    let header = SegmentHeader(log: log, number: entry.number, base: entry.base)
    try self.init(path: path, header: header, file: file)
    guard trailer.digest == entry.digest, entry.base.advanced(by: trailer.end) == entry.past else {
      throw .corrupt(path: path, offset: 0, .disagreement("it is not the file that the manifest lists"))
    }
  }

  /// A segment with a known trailer.
  init(path: String, header: SegmentHeader, file: any File, fileSize: UInt64, trailer: SegmentTrailer) {
    self.path = path
    self.header = header
    self.file = file
    self.fileSize = fileSize
    self.trailer = trailer
  }

  init(path: String, header: SegmentHeader, file: any File) throws(LogError) {
    let size = try file.size()
    let least = UInt64(SegmentHeader.size + SegmentTrailer.size)
    guard size >= least else {
      throw .corrupt(path: path, offset: size, .cutShort(expected: least, found: size))
    }
    let offset = size - UInt64(SegmentTrailer.size)
    let bytes = try file.read(at: offset, count: SegmentTrailer.size)
    trailer = try locating(path, offset) { () throws(Flaw) in
      let trailer = try SegmentTrailer(decoding: bytes)
      guard trailer.footerOffset <= offset,
        offset - trailer.footerOffset == UInt64(trailer.footerLength + trailer.filterLength)
      else { throw .disagreement("the footer is not where the trailer says") }
      return trailer
    }
    self.path = path
    self.header = header
    self.file = file
    fileSize = size
  }

  /// Traps if what was read cannot be in the file. For tests and the suites.
  func checkInvariants() {
    precondition(UInt64(SegmentHeader.size + SegmentTrailer.size) <= fileSize, "header and trailer were read")
    precondition(trailer.footerOffset < fileSize, "the footer is in the file")
  }

  /// The positions of its positions.
  var positions: Range<Position> { header.base..<header.base.advanced(by: trailer.end) }

  var filterOffset: UInt64 { trailer.footerOffset + UInt64(trailer.footerLength) }

  private func read(at offset: UInt64, count: Int, crc expected: UInt32) throws(LogError) -> [UInt8] {
    let bytes = try file.read(at: offset, count: count)
    try locating(path, offset) { () throws(Flaw) in
      guard bytes.count == count else { throw .cutShort(expected: UInt64(count), found: UInt64(bytes.count)) }
      let found = bytes.crc32c
      guard found == expected else { throw .checksum(expected: expected, found: found) }
    }
    return bytes
  }

  /// Reads the root of the footer: block entries, and places of pages. Throws `.corrupt`.
  func root(_ kept: KeptFooters? = nil) throws(LogError) -> FooterRoot {
    let bytes = try footerPart(
      at: trailer.footerOffset, count: trailer.rootLength, crc: trailer.footerCRC, kept)
    return try locating(path, trailer.footerOffset) { () throws(Flaw) in
      try bytes.read { (reader) throws(Flaw) in
        let data = UInt64(SegmentHeader.size)..<trailer.footerOffset
        let root = try FooterRoot(&reader, from: data.lowerBound)
        guard reader.isAtEnd, root.pagesSize == trailer.footerLength - trailer.rootLength else {
          throw .malformed("end of the footer")
        }
        try root.check(data, events: trailer.events)
        return root
      }
    }
  }

  /// The offset of a page of the footer.
  func offset(of page: FooterRoot.Page) -> UInt64 {
    trailer.footerOffset + UInt64(trailer.rootLength + page.offset)
  }

  /// Reads a page. Throws `.corrupt`.
  func partitions(
    of index: Int, _ root: FooterRoot, _ kept: KeptFooters? = nil
  ) throws(LogError) -> [PartitionRun] {
    let page = root.pages[index]
    let bytes = try footerPart(at: offset(of: page), count: page.size.stored, crc: page.crc, kept)
    return try locating(path, offset(of: page)) { () throws(Flaw) in try root.partitions(of: index, bytes) }
  }

  /// Reads the index with all partitions, or with the pages of those `named`. Throws `.corrupt`.
  func footer(
    of named: Set<Partition>? = nil, _ kept: KeptFooters? = nil
  ) throws(LogError) -> SegmentFooter {
    let root = try root(kept)
    var pages: [[PartitionRun]] = []
    for index in root.pages(of: named) { pages.append(try partitions(of: index, root, kept)) }
    return try locating(path, trailer.footerOffset) { () throws(Flaw) in try SegmentFooter(root, pages) }
  }

  private func footerPart(
    at offset: UInt64, count: Int, crc: UInt32, _ kept: KeptFooters?
  ) throws(LogError) -> [UInt8] {
    guard let kept else { return try read(at: offset, count: count, crc: crc) }
    return try kept.part(of: trailer.digest, at: offset) { () throws(LogError) in
      try read(at: offset, count: count, crc: crc)
    }
  }

  /// The wanted partitions, with the hashes that the index omits. Throws `.corrupt`.
  func hashedPartitions(_ isWanted: (Partition) -> Bool) throws(LogError) -> [PartitionRun] {
    let footer = try footer()
    return try footer.hashedPartitions(isWanted) { index throws(LogError) in
      let block = try block(footer.blocks[index])
      return try decoding(path, footer.blocks[index].offset) { () throws(EventsError) in
        try block.cursor(.relativePosition)
      }
    }
  }

  /// Reads the key filter. Throws `.corrupt`.
  func filter() throws(LogError) -> KeyFilter {
    let bytes = try read(at: filterOffset, count: trailer.filterLength, crc: trailer.filterCRC)
    return try locating(path, filterOffset) { () throws(Flaw) in try KeyFilter(decoding: bytes) }
  }

  /// The stored bytes of a block, checked.
  func bytes(of entry: BlockEntry) throws(LogError) -> [UInt8] {
    try read(at: entry.offset, count: entry.length, crc: entry.crc)
  }

  /// Reads a block. Throws `.corrupt`.
  func block(_ entry: BlockEntry) throws(LogError) -> BlockReader {
    try Self.block(entry, bytes: try bytes(of: entry), path: path)
  }

  /// Decodes the bytes of a block. Static, so that work in advance does not keep the file open.
  static func block(_ entry: BlockEntry, bytes: [UInt8], path: String) throws(LogError) -> BlockReader {
    try decoding(path, entry.offset) { () throws(EventsError) in
      let block = try BlockReader(bytes)
      guard block.count == entry.events else { throw .malformed("block", "\(block.count) events") }
      return block
    }
  }

  /// The events of a block, with authors and messages. Throws `.corrupt`.
  func contents(of entry: BlockEntry) throws(LogError) -> NumberedEvents {
    let block = try block(entry)
    let events = try decoding(path, entry.offset) { () throws(EventsError) in try block.events() }
    return NumberedEvents(events: events, messages: block.messages)
  }

  /// The blocks with partitions of a filter, and which of these partitions exist; nil: all.
  func selection(
    _ filter: PartitionFilter?, _ kept: KeptFooters? = nil
  ) throws(LogError) -> (blocks: [BlockEntry], partitions: Set<Partition>?) {
    guard let filter else { return (try root(kept).blocks, nil) }
    let footer = try footer(of: filter.named, kept)
    let (partitions, indices) = footer.selection(filter.callAsFunction)
    return (indices.map { footer.blocks[$0] }, partitions)
  }

  /// All events by position, or those of some partitions, with their notes. Memory: all of them.
  func contents(
    around omissions: Omissions? = nil, of named: Set<Partition>? = nil
  ) throws(LogError) -> NumberedEvents {
    var contents = NumberedEvents()
    for entry in try selection(named.map { PartitionFilter(named: $0) }).blocks {
      let read = try omissions.reading { () throws(LogError) in try self.contents(of: entry) }
      guard var read else { continue }
      if let named { read.events.removeAll { !named.contains($0.event.partition) } }
      contents.add(read)
    }
    contents.events.sort { $0.relativePosition < $1.relativePosition }
    return contents
  }

  /// The digest of the bytes in the file, to compare with the trailer's. Reads it all, in chunks.
  func digestOfBytes() throws(LogError) -> SegmentDigest {
    var hasher = SHA256()
    let end = fileSize - UInt64(SegmentTrailer.size) + UInt64(SegmentTrailer.digestOffset)
    var offset: UInt64 = 0
    while offset < end {
      let bytes = try file.read(at: offset, count: Int(min(end - offset, UInt64(LogLimits.scanChunk))))
      if bytes.isEmpty { throw .corrupt(path: path, offset: offset, .cutShort(expected: end, found: offset)) }
      hasher.update(bytes)
      offset += UInt64(bytes.count)
    }
    return SegmentDigest(bytes: Array(hasher.finalize()))
  }
}
