import Crypto
import StemmaEvents

/// The contents of a segment without its ties to a log: blocks, footer and key filter, byte for
/// byte as in the file. Another log can adopt them (`Log.adopt`), with its own header and trailer.
///
/// Offsets of blocks are counted from the first one. Memory: the bytes, and the index.
package struct SealedContents: Sendable {
  /// The facts about the contents in a segment's trailer.
  package struct Sizes: Hashable, Sendable {
    /// Bytes of the footer, and of the key filter behind it.
    package var footer: Int
    package var filter: Int
    /// One more than the highest position that was ever in the file.
    package var end: UInt64
    /// `Event.rawSize` of all events.
    package var rawBytes: UInt64

    package init(footer: Int, filter: Int, end: UInt64, rawBytes: UInt64) {
      self.footer = footer
      self.filter = filter
      self.end = end
      self.rawBytes = rawBytes
    }
  }

  package let bytes: ArraySlice<UInt8>
  package let sizes: Sizes
  package let footer: SegmentFooter
  /// Bytes of the root of the footer.
  private let rootSize: Int
  /// The number of events, by the footer.
  package let events: UInt64
  private let filter: KeyFilter

  /// Accepts untrusted bytes. Does not verify blocks, nor the index against them.
  package init(_ bytes: ArraySlice<UInt8>, _ sizes: Sizes) throws(Flaw) {
    guard sizes.footer <= LogLimits.footer, sizes.filter <= LogLimits.footer,
      sizes.footer + sizes.filter < bytes.count
    else { throw .malformed("trailer") }
    let filterStart = bytes.endIndex - sizes.filter
    let footerStart = filterStart - sizes.footer
    var rootSize = 0
    footer = try SegmentFooter(
      decoding: Array(bytes[footerStart..<filterStart]), data: 0..<UInt64(footerStart - bytes.startIndex),
      rootSize: &rootSize)
    self.rootSize = rootSize
    filter = try KeyFilter(decoding: Array(bytes[filterStart...]))
    events = footer.blocks.reduce(0) { $0 + UInt64($1.events) }
    guard events > 0, events <= sizes.end else { throw .malformed("count of events") }
    self.bytes = bytes
    self.sizes = sizes
  }

  /// Decodes a block. Throws if its checksum, its layout or its number of events does not fit.
  package func block(_ index: Int) throws(Flaw) -> BlockReader {
    let entry = footer.blocks[index]
    let start = bytes.startIndex + Int(entry.offset)
    let stored = bytes[start..<start + entry.length]
    let found = CRC32C.of(stored)
    guard found == entry.crc else { throw .checksum(expected: entry.crc, found: found) }
    do throws(EventsError) {
      let block = try BlockReader(stored, strictly: true)
      guard block.count == entry.events else { throw .malformed("block", "\(block.count) events") }
      return block
    } catch { throw .block(error) }
  }

  /// The partitions of the index. Computes the hashes that the index omits from the events.
  fileprivate func hashedPartitions() throws(Flaw) -> [PartitionRun] {
    try footer.hashedPartitions { index throws(Flaw) in
      let block = try block(index)
      do throws(EventsError) { return try block.cursor(.relativePosition) } catch { throw .block(error) }
    }
  }

  /// All events, with authors and messages, in position order. Memory: all of them.
  package func unpacked() throws(Flaw) -> AdoptedEvents {
    var contents = NumberedEvents()
    for index in footer.blocks.indices {
      let block = try block(index)
      do throws(EventsError) {
        contents.add(NumberedEvents(events: try block.events(), messages: block.messages))
      } catch { throw .block(error) }
    }
    contents.events.sort { $0.relativePosition < $1.relativePosition }
    return AdoptedEvents(contents.events.map(\.event), messages: contents.messages)
  }

  /// The partition of each run of keys in a block, as a place in the footer. Throws unless the
  /// footer lists the partition for this block, and the key filter has every record.
  package func partitions(of block: BlockReader, _ index: Int) throws(Flaw) -> [Int] {
    try footer.partitions(of: block, index, filter)
  }
}

extension SealedContents {
  /// The bytes of a segment of these events, which a receiver can adopt unchanged. `events` have
  /// the positions from 0 on; `digests` have the same indices. Throws `.gap` or `.overLimit`.
  package static func encoded(
    _ events: [BlockEvent], messages: [CommitID: CommitMessage], digests: [StreamHash]
  ) throws(LogError) -> (bytes: [UInt8], sizes: Sizes) {
    var input = NumberedEvents(events: events, messages: messages)
    input.digests = digests
    return try SegmentWriter.contents(of: input, end: UInt64(events.count), level: LogLimits.usualLevel)
  }
}

/// The bytes of a sealed file as read. Another thread can decode them.
package struct SealedFile: Sendable {
  private let bytes: [UInt8]
  private let trailer: SegmentTrailer
  private let path: String

  init(_ bytes: [UInt8], _ trailer: SegmentTrailer, _ path: String) {
    self.bytes = bytes
    self.trailer = trailer
    self.path = path
  }

  /// By the trailer: one more than the highest position ever in the file, and the event count.
  package var end: UInt64 { trailer.end }
  package var events: UInt64 { trailer.events }

  /// The contents, and their partitions with all hashes. Verifies the digest. Throws `.corrupt`.
  package func contents() throws(LogError) -> (SealedContents, [PartitionRun]) {
    var hasher = SHA256()
    hasher.update(bytes)
    hasher.update(trailer.fieldsBeforeDigest())
    guard SegmentDigest(bytes: Array(hasher.finalize())) == trailer.digest else {
      throw .corrupt(path: path, offset: 0, .digest)
    }
    return try locating(path, trailer.footerOffset) { () throws(Flaw) in
      let contents = try SealedContents(
        bytes[SegmentHeader.size...],
        SealedContents.Sizes(
          footer: trailer.footerLength, filter: trailer.filterLength, end: trailer.end,
          rawBytes: trailer.rawBytes))
      return (contents, try contents.hashedPartitions())
    }
  }
}

extension Segment {
  /// Reads the whole file.
  func sealedFile() throws(LogError) -> SealedFile {
    let end = Int(fileSize) - SegmentTrailer.size
    let bytes = try file.read(at: 0, count: end)
    guard bytes.count == end else {
      throw .corrupt(
        path: path, offset: UInt64(bytes.count), .cutShort(expected: fileSize, found: UInt64(bytes.count)))
    }
    return SealedFile(bytes, trailer, path)
  }
}

extension SealedContents {
  /// The trailer of a segment of these contents, without chain value and digest.
  ///
  /// - Parameter head: bytes of the header.
  func trailer(behind head: Int) -> SegmentTrailer {
    let footerStart = bytes.endIndex - sizes.filter - sizes.footer
    return SegmentTrailer(
      footerOffset: UInt64(head + footerStart - bytes.startIndex),
      footer: Array(bytes[footerStart..<footerStart + sizes.footer]), rootSize: rootSize,
      filter: Array(bytes[(bytes.endIndex - sizes.filter)...]), events: events, end: sizes.end,
      rawBytes: sizes.rawBytes, chain: 0)
  }

  /// Writes a segment of these contents, and syncs it.
  func write(_ header: SegmentHeader, to file: any File) throws(LogError) -> SegmentTrailer {
    let head = header.encoded()
    var trailer = trailer(behind: head.count)
    var hasher = SHA256()
    hasher.update(head)
    try file.write(head, at: 0)
    // In chunks: a copy of all bytes would be as long as the file.
    for start in stride(from: bytes.startIndex, to: bytes.endIndex, by: LogLimits.scanChunk) {
      let part = Array(bytes[start..<min(start + LogLimits.scanChunk, bytes.endIndex)])
      hasher.update(part)
      try file.write(part, at: UInt64(head.count + start - bytes.startIndex))
    }
    trailer.complete(header, chain: nil, &hasher)
    try file.write(trailer.encoded(), at: UInt64(head.count + bytes.count))
    try file.sync()
    return trailer
  }
}

extension SegmentTrailer {
  /// Adds the chain value and the digest. `chain`: of the sealed journal, nil for other contents.
  /// `hasher` has hashed the file up to here.
  mutating func complete(_ header: SegmentHeader, chain: UInt32?, _ hasher: inout SHA256) {
    self.chain = chain ?? header.encoded().crc32c(0..<SegmentHeader.size, from: footerCRC)
    hasher.update(fieldsBeforeDigest())
    digest = SegmentDigest(bytes: Array(hasher.finalize()))
  }
}
