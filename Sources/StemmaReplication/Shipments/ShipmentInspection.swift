import Crypto
import StemmaEvents
import StemmaLog

/// Inspects a shipment by batches and parts, even if it is corrupt: see `InspectedPart`.
///
/// The blocks of a batch have lengths, but no checksums; the batch has one over all. A corrupt
/// block is thus one that does not decode. The trailer's checksum shows whether more is corrupt.
package struct ShipmentInspection {
  private let source: InspectedFile
  private let scan: BlockScan
  private let request: InspectionRequest
  private let body: (InspectedPart) -> Void
  /// The number of the next block, counted over all batches.
  private var number = 1
  /// Whether the checksum of the current batch matches.
  private var isVouched = false
  /// The end of the last reported batch.
  private var end: UInt64 = 0

  /// Whether the bytes begin with the magic of a shipment.
  package static func recognizes(_ source: InspectedFile) throws(LogError) -> Bool {
    try source.bytes(at: 0, count: BatchLayout.magic.count) == BatchLayout.magic
  }

  /// Throws only errors of the operating system.
  package static func run(
    _ source: InspectedFile, _ request: InspectionRequest, _ body: @escaping (InspectedPart) -> Void
  ) throws(LogError) {
    var inspection = Self(source, request, body)
    while inspection.end < source.size {
      inspection.end = try inspection.batch(from: inspection.end)
      assert(holds(inspection.checkInvariants))
    }
  }

  private init(
    _ source: InspectedFile, _ request: InspectionRequest, _ body: @escaping (InspectedPart) -> Void
  ) {
    self.source = source
    scan = BlockScan(source)
    self.request = request
    self.body = { part in
      assert(holds(part.checkInvariants))
      body(part)
    }
  }

  /// Traps if a batch is empty or ends after the file. Debug builds call it after each batch.
  private func checkInvariants() {
    precondition(end > 0 && end <= source.size, "a batch is a part of its file")
    precondition(number > 0, "blocks are counted from one")
  }

  private func report(_ part: InspectedPart) {
    if request.block == nil { body(part) }
  }

  /// Reports a batch and returns its end: the start of the next one, or the end of the file.
  private mutating func batch(from start: UInt64) throws(LogError) -> UInt64 {
    let next = try source.first(BatchLayout.magic, in: start + 1..<source.size)
    let end = next ?? source.size
    let trailerSize = UInt64(BatchLayout.trailerSize)
    let trailer =
      end - start > trailerSize ? try trailer(at: end - trailerSize, of: start) : nil
    isVouched = trailer?.flaws.isEmpty ?? false
    report(try header(at: start, before: end))
    var offset = min(end, start + UInt64(BatchLayout.headerSize))
    let form = try source.bytes(at: start + 9, count: 1).first
    offset =
      form == BatchLayout.Form.sealed.rawValue ? try sealedFile(offset..<end) : try blocks(offset..<end)
    guard let trailer, end - offset >= trailerSize else {
      var part = InspectedPart(.trailer, at: offset, end - offset)
      part.complain(.cutShort(expected: trailerSize, found: end - offset))
      report(part)
      return end
    }
    report(try footer(offset..<end - trailerSize))
    report(try checked(trailer, footer: end - trailerSize - offset))
    return end
  }

  private func header(at start: UInt64, before end: UInt64) throws(LogError) -> InspectedPart {
    let size = UInt64(BatchLayout.headerSize)
    let bytes = try source.bytes(at: start, count: BatchLayout.headerSize)
    var part = InspectedPart(.header, at: start, min(size, end - start))
    guard part.length == size else {
      part.complain(.cutShort(expected: size, found: part.length))
      return part
    }
    do throws(ReplicationError) {
      let expected = try bytes.read(from: 8) { (reader) throws(ReplicationError) in
        part.say("version", UInt64(try reader.byte("batch")))
        part.say("form", UInt64(try reader.byte("batch")))
        _ = try reader.bytes(2, "batch")
        let expected = try reader.fixed32("batch")
        part.say("log", LogID(try reader.fixed("batch")).description)
        return expected
      }
      let found = CRC32C.of(bytes[..<12])
      if expected != found { part.complain(.checksum(expected: expected, found: found)) }
    } catch { part.complain(.malformed("header")) }
    return part
  }

  // MARK: Blocks

  /// Reports the blocks and returns the start of the footer.
  private mutating func blocks(_ range: Range<UInt64>) throws(LogError) -> UInt64 {
    var offset = range.lowerBound
    while offset < range.upperBound {
      let (start, length) = try length(at: offset)
      if length == 0 { return start }
      if try isBlock(at: start, length, before: range.upperBound) {
        try report(blockAt: start, length)
        offset = start + length
        continue
      }
      let next = try scan.next(from: offset + 1, before: range.upperBound)
      let behind = range.upperBound - offset > UInt64(BatchLayout.trailerSize)
      let end =
        next?.offset ?? (behind ? range.upperBound - UInt64(BatchLayout.trailerSize) : range.upperBound)
      var part = InspectedPart(.block, at: offset, end - offset, number: number)
      part.complain(.malformed("length of a block"))
      if request.wants(number) { body(part) }
      number += 1
      guard let next else { return end }
      try report(blockAt: next.offset, next.length)
      offset = next.end
    }
    return offset
  }

  /// Reports the blocks, the footer and the key filter of a segment. Returns the start of the
  /// batch's footer. If the lengths at the end are unreadable, the whole range is unknown.
  private mutating func sealedFile(_ range: Range<UInt64>) throws(LogError) -> UInt64 {
    let end = range.upperBound - min(range.upperBound - range.lowerBound, UInt64(BatchLayout.trailerSize))
    guard let (content, sealed) = try sealedContents(range.lowerBound..<end) else {
      var part = InspectedPart(.unknown, at: range.lowerBound, end - range.lowerBound)
      part.complain(.malformed("sealed file"))
      report(part)
      return end
    }
    for entry in sealed.footer.blocks {
      defer { number += 1 }
      guard request.wants(number) else { continue }
      var part = InspectedPart(
        .block, at: content.lowerBound + entry.offset, UInt64(entry.length), number: number)
      let bytes = try source.bytes(at: part.offset, count: entry.length)
      part.decode(bytes, checksum: entry.crc)
      body(part)
    }
    let filter = content.upperBound - UInt64(sealed.sizes.filter)
    let footer = filter - UInt64(sealed.sizes.footer)
    var part = InspectedPart(.footer, at: footer, filter - footer)
    part.say("events", sealed.events)
    part.say("partitions", UInt64(sealed.footer.partitions.count))
    report(part)
    report(InspectedPart(.filter, at: filter, content.upperBound - filter))
    return content.upperBound
  }

  /// The segment before a batch's footer, and its range; nil if its lengths or its index are
  /// unreadable.
  private func sealedContents(
    _ range: Range<UInt64>
  ) throws(LogError) -> (range: Range<UInt64>, contents: SealedContents)? {
    let length = try source.bytes(at: range.upperBound, count: 4)
    let footerLength = length.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard length.count == 4, footerLength < range.upperBound - range.lowerBound,
      range.upperBound - range.lowerBound <= UInt64(InspectionLimits.part)
    else { return nil }
    let content = range.lowerBound..<range.upperBound - footerLength
    let footer = try source.bytes(at: content.upperBound, count: Int(footerLength))
    let sizes: SealedContents.Sizes
    do throws(ReplicationError) {
      sizes = try footer.read { (reader) throws(ReplicationError) in
        let count = try reader.count("events of a batch", limit: ReplicationLimits.batchEvents)
        _ = try Batch.streams(from: &reader, eventCount: count)
        return try Batch.sizes(from: &reader)
      }
    } catch { return nil }
    let bytes = try source.bytes(
      at: content.lowerBound, count: Int(content.upperBound - content.lowerBound))
    do throws(Flaw) { return (content, try SealedContents(bytes[...], sizes)) } catch { return nil }
  }

  /// The length at `offset`, and the start of the measured bytes.
  private func length(at offset: UInt64) throws(LogError) -> (start: UInt64, length: UInt64) {
    let head = try source.bytes(at: offset, count: 10)
    do throws(ReplicationError) {
      return try head.read { (reader) throws(ReplicationError) in
        let length = try reader.varint("block")
        return (offset + UInt64(reader.offset), length)
      }
    } catch { return (offset, .max) }
  }

  /// Whether a block, even a corrupt one, has this length: its own head confirms it, or a plausible
  /// block or the end of the blocks follows.
  private func isBlock(at start: UInt64, _ length: UInt64, before end: UInt64) throws(LogError) -> Bool {
    guard start < end, length < end - start, length <= UInt64(InspectionLimits.part) else { return false }
    if try scan.size(at: start, before: end) == Int(length) { return true }
    let following = try self.length(at: start + length)
    guard following.length > 0, following.start < end else { return following.length == 0 }
    return try scan.size(at: following.start, before: end).map { UInt64($0) == following.length } ?? false
  }

  private mutating func report(blockAt start: UInt64, _ length: UInt64) throws(LogError) {
    defer { number += 1 }
    guard request.wants(number) else { return }
    var part = InspectedPart(.block, at: start, length, number: number)
    part.decode(try source.bytes(at: start, count: Int(length)))
    part.isChecked = isVouched
    body(part)
  }

  // MARK: End

  private func footer(_ range: Range<UInt64>) throws(LogError) -> InspectedPart {
    let length = range.upperBound - range.lowerBound
    var part = InspectedPart(.footer, at: range.lowerBound, length)
    guard length <= UInt64(InspectionLimits.part) else {
      part.complain(.malformed("footer"))
      return part
    }
    let bytes = try source.bytes(at: range.lowerBound, count: Int(length))
    do throws(ReplicationError) {
      try bytes.read { (reader) throws(ReplicationError) in
        let count = try reader.count("events of a batch", limit: ReplicationLimits.batchEvents)
        part.say("events", UInt64(count))
        let streams = try Batch.streams(from: &reader, eventCount: count)
        part.say("streams", UInt64(streams.count))
        part.say("partitions", UInt64(Set(streams.map(\.range.partition)).count))
        if !reader.isAtEnd { _ = try Batch.sizes(from: &reader) }
        try reader.finish("footer of a batch")
      }
    } catch { part.complain(.malformed("footer")) }
    return part
  }

  /// The trailer of the batch that begins at `start`.
  private func trailer(at offset: UInt64, of start: UInt64) throws(LogError) -> InspectedPart {
    var part = InspectedPart(.trailer, at: offset, UInt64(BatchLayout.trailerSize))
    let bytes = try source.bytes(at: offset + 4, count: BatchLayout.trailerSize - 4)
    let (crc, sum) = try digests(of: start..<offset + 4)
    do throws(ReplicationError) {
      let (expected, digest) = try bytes.read { (reader) throws(ReplicationError) in
        (try reader.fixed32("batch"), Array(try reader.bytes(32, "batch")))
      }
      part.say("digest", digest.hexadecimal)
      if crc != expected {
        part.complain(.checksum(expected: expected, found: crc))
      } else if let sum, sum != digest {
        part.complain(.digest)
      }
    } catch { part.complain(.malformed("trailer")) }
    return part
  }

  /// Compares the footer's length in the trailer.
  private func checked(_ trailer: InspectedPart, footer: UInt64) throws(LogError) -> InspectedPart {
    var part = trailer
    let length = try source.bytes(at: part.offset, count: 4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    if length != footer {
      part.complain(.disagreement("a footer of \(length) bytes, where \(footer) are"))
    }
    return part
  }

  /// The CRC of bytes of the file, and their SHA-256 for a complete inspection.
  private func digests(of range: Range<UInt64>) throws(LogError) -> (crc: UInt32, sha: [UInt8]?) {
    var crc: UInt32 = 0
    var hasher = SHA256()
    var offset = range.lowerBound
    while offset < range.upperBound {
      let bytes = try source.bytes(at: offset, count: Int(min(range.upperBound - offset, 1 << 20)))
      if bytes.isEmpty { break }
      crc = CRC32C.of(bytes, continuing: crc)
      if request.isComplete { bytes.withUnsafeBytes { hasher.update(bufferPointer: $0) } }
      offset += UInt64(bytes.count)
    }
    return (crc, request.isComplete ? Array(hasher.finalize()) : nil)
  }
}
