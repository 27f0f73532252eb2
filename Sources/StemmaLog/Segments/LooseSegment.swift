import Crypto
import StemmaEvents

/// The facts of a segment outside of a log, such as an object of a hub: its size and its trailer.
///
/// A reader that has them reads the parts of the index that it needs, and then only its blocks.
package struct LooseSegment: Hashable, Sendable {
  /// Bytes of an encoded trailer.
  package static let trailerSize = SegmentTrailer.size
  /// A footer up to this size is read whole: a second request costs more than its bytes.
  private static let smallFooter = 64 << 10
  /// Unwanted bytes between two wanted blocks that are read with them.
  private static let readOver: UInt64 = 16 << 10

  /// Bytes of the segment.
  package let size: UInt64
  private let trailer: SegmentTrailer

  /// - Parameter trailer: as from `encodedTrailer`.
  package init(size: UInt64, trailer bytes: [UInt8]) throws(Flaw) {
    guard bytes.count == SegmentTrailer.size, size <= UInt64(LogLimits.looseSegment) else {
      throw .malformed("trailer")
    }
    trailer = try SegmentTrailer(decoding: bytes)
    self.size = size
    let end = trailer.footerOffset + UInt64(trailer.footerLength + trailer.filterLength + SegmentTrailer.size)
    guard end == size, trailer.events > 0 else { throw .malformed("trailer") }
  }

  /// Lays out a whole segment.
  package static func encoded(
    _ contents: SealedContents, of log: LogID
  ) throws(Flaw) -> (bytes: [UInt8], segment: LooseSegment) {
    let header = SegmentHeader(log: log, number: 1, base: .first)
    var bytes = header.encoded()
    bytes.reserveCapacity(bytes.count + contents.bytes.count + SegmentTrailer.size)
    bytes += contents.bytes
    var trailer = contents.trailer(behind: SegmentHeader.size)
    var hasher = SHA256()
    hasher.update(bytes)
    trailer.complete(header, chain: nil, &hasher)
    let end = trailer.encoded()
    bytes += end
    return (bytes, try LooseSegment(size: UInt64(bytes.count), trailer: end))
  }

  package var encodedTrailer: [UInt8] { trailer.encoded() }
  package var digest: SegmentDigest { trailer.digest }
  package var events: UInt64 { trailer.events }
  /// `Event.rawSize` of all events.
  package var rawBytes: UInt64 { trailer.rawBytes }

  /// The segment of these bytes, all of which `contents` verifies.
  package func sealedFile(_ bytes: [UInt8], name: String) throws(LogError) -> SealedFile {
    guard UInt64(bytes.count) == size, Array(bytes.suffix(SegmentTrailer.size)) == trailer.encoded() else {
      throw .corrupt(path: name, offset: 0, .disagreement("it is not the segment that was announced"))
    }
    return SealedFile(Array(bytes.dropLast(SegmentTrailer.size)), trailer, name)
  }

  /// The events of some partitions, in position order. Reads their parts of the index and their
  /// blocks, adjacent ones at once.
  ///
  /// - Parameters:
  ///   - name: in errors.
  ///   - read: returns the bytes of a range, or fewer if the segment is cut short.
  package func events(
    in partitions: Set<Partition>, name: String,
    _ read: @escaping @Sendable (Range<UInt64>) throws(LogError) -> [UInt8]
  ) throws(LogError) -> [DigestedEvent] {
    let file = RangeFile(size: size, read: read)
    let footer = trailer.footerOffset..<trailer.footerOffset + UInt64(trailer.footerLength)
    if trailer.footerLength <= Self.smallFooter { try file.keep(footer) }
    let segment = Segment(
      path: name, header: SegmentHeader(log: LogID(0), number: 1, base: .first), file: file, fileSize: size,
      trailer: trailer)
    let entries = try segment.selection(PartitionFilter(named: partitions)).blocks
    var wanted: [Range<UInt64>] = []
    for entry in entries {
      let range = entry.offset..<entry.offset + UInt64(entry.length)
      if let last = wanted.last, range.lowerBound - last.upperBound <= Self.readOver {
        wanted[wanted.count - 1] = last.lowerBound..<range.upperBound
      } else {
        wanted.append(range)
      }
    }
    for range in wanted { try file.keep(range) }
    var blocks: [ReadBlock] = []
    for entry in entries { blocks.append(ReadBlock(entry: entry, bytes: try segment.bytes(of: entry))) }
    return try ReadBlock.events(of: blocks, name, in: partitions)
  }
}

/// A file for reading whose bytes come from elsewhere, range by range.
private final class RangeFile: File {
  private let wholeSize: UInt64
  private let fetch: @Sendable (Range<UInt64>) throws(LogError) -> [UInt8]
  private let kept = Mutex<[(start: UInt64, bytes: [UInt8])]>([])

  init(size: UInt64, read: @escaping @Sendable (Range<UInt64>) throws(LogError) -> [UInt8]) {
    wholeSize = size
    fetch = read
  }

  /// Fetches a range for later reads.
  func keep(_ range: Range<UInt64>) throws(LogError) {
    let bytes = try fetch(range)
    kept.withLock { $0.append((range.lowerBound, bytes)) }
  }

  func read(at offset: UInt64, count: Int) throws(LogError) -> [UInt8] {
    let known = kept.withLock { kept -> [UInt8]? in
      for (start, bytes) in kept
      where start <= offset && offset + UInt64(count) <= start + UInt64(bytes.count) {
        let first = Int(offset - start)
        return Array(bytes[first..<first + count])
      }
      return nil
    }
    return if let known { known } else { try fetch(offset..<offset + UInt64(count)) }
  }

  func size() throws(LogError) -> UInt64 { wholeSize }
  func close() {}
  func write(_ bytes: [UInt8], at offset: UInt64) throws(LogError) { preconditionFailure("it is read") }
  func sync() throws(LogError) { preconditionFailure("it is read") }
  func truncate(to size: UInt64) throws(LogError) { preconditionFailure("it is read") }
  func identity() throws(LogError) -> FileIdentity { .none }
  func tryLock() throws(LogError) -> Bool { preconditionFailure("it is read") }
  func enqueue() throws(LogError) { preconditionFailure("it is read") }
  func isBehindOthers() throws(LogError) -> Bool { false }
}
