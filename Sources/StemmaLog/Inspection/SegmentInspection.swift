import Crypto
import StemmaEvents

/// A segment, part by part. Where the footer can be read it says where each block is, whatever else is
/// damaged or missing: it is found from the end of the file as well as from the beginning. Without it the
/// blocks are found one behind the other.
struct SegmentInspection {
  private let source: InspectedFile
  private let request: InspectionRequest
  private let body: (InspectedPart) -> Void
  /// Bytes of the header, as far as it tells.
  private var headerSize: UInt64 = 0
  private var place: UInt64 = 0

  static func run(
    _ source: InspectedFile, _ request: InspectionRequest, _ body: @escaping (InspectedPart) -> Void
  ) throws(LogError) {
    var inspection = SegmentInspection(source: source, request: request, body: body)
    try inspection.run()
  }

  /// The footer, if its checksum stands in a trailer and holds, whatever else is damaged.
  static func wholeFooter(of source: InspectedFile) throws(LogError) -> SegmentFooter? {
    var inspection = SegmentInspection(source: source, request: InspectionRequest()) { _ in }
    _ = try inspection.readHeader()
    guard let trailer = try inspection.findTrailer(), let found = try inspection.footerByTrailer(trailer),
      found.isCertain
    else { return nil }
    return found.footer
  }

  private init(source: InspectedFile, request: InspectionRequest, body: @escaping (InspectedPart) -> Void) {
    self.source = source
    self.request = request
    self.body = body
  }

  private mutating func run() throws(LogError) {
    let header = try readHeader()
    if request.block == nil { body(header) }
    let found = try findTrailer()
    let end = found?.offset ?? source.size
    guard let found, let index = try findFooter(found) else {
      return try reportWithoutFooter(found, before: end)
    }
    var tally = StreamTally()
    try reportBlocks(index, found.trailer, &tally)
    guard request.block == nil else { return }
    body(footerPart(index, found, tally))
    body(try filterPart(at: index.offset + UInt64(index.length), found))
    body(try completed(found))
    let behind = found.offset + UInt64(SegmentTrailer.size)
    if behind < source.size {
      var part = InspectedPart(.unknown, at: behind, source.size - behind)
      part.complain(.malformed("end of the file"))
      body(part)
    }
  }

  /// The blocks one behind the other, and what stands behind them: where a whole trailer says where the footer is,
  /// that it is damaged, else only what is known.
  private func reportWithoutFooter(_ found: FoundTrailer?, before end: UInt64) throws(LogError) {
    let footer = found.flatMap { claimedFooter($0) }
    let limit = footer?.lowerBound ?? end
    let (place, body) = (place, body)
    let rest = try BlockScan(source).report(min(headerSize, limit)..<limit, request) { part in
      var part = part
      part.place = place
      body(part)
    }
    guard request.block == nil else { return }
    if rest < limit {
      var part = InspectedPart(.unknown, at: rest, limit - rest)
      let reason =
        found == nil
        ? ", and the file has no end: it was cut"
        : footer == nil ? "; the trailer is damaged, so it cannot be told where the footer begins" : ""
      part.complain(.disagreement("these bytes are no whole block" + reason))
      body(part)
    }
    guard let found else { return }
    if let footer {
      var part = InspectedPart(.footer, at: footer.lowerBound, footer.upperBound - footer.lowerBound)
      let crc = try source.bytes(at: footer.lowerBound, count: found.trailer.footerLength).crc32c
      part.complain(
        crc == found.trailer.footerCRC
          ? .malformed("footer") : .checksum(expected: found.trailer.footerCRC, found: crc))
      body(part)
      body(try filterPart(at: footer.upperBound, found))
    }
    body(found.part)
  }

  /// Where the footer lies by a trailer that is whole.
  private func claimedFooter(_ found: FoundTrailer) -> Range<UInt64>? {
    let (footer, filter) = (UInt64(found.trailer.footerLength), UInt64(found.trailer.filterLength))
    guard found.part.flaws.isEmpty, footer + filter <= found.offset else { return nil }
    let start = found.offset - filter - footer
    return start..<start + footer
  }

  // MARK: Header

  private mutating func readHeader() throws(LogError) -> InspectedPart {
    var bytes = try source.bytes(at: 0, count: SegmentHeader.size(replaced: 0))
    var part = InspectedPart(.header, at: 0, UInt64(bytes.count))
    do throws(LogError) { try FilePreamble.check(bytes, FilePreamble.segment, path: source.path) } catch {
      guard case .damaged(_, _, let flaw) = error else { throw error }
      part.complain(flaw)
    }
    do throws(Flaw) {
      var reader = FieldReader(bytes, at: SegmentHeader.fixedSize - 4)
      let count = Int(try reader.uint32())
      guard count <= LogLimits.replaced else { throw .malformed("replaced files") }
      if count > 0 {
        do throws(LogError) {
          bytes = try source.bytes(at: 0, count: SegmentHeader.size(replaced: count))
        } catch { throw .malformed("replaced files") }
      }
      let header = try SegmentHeader(fields: bytes, replaced: count)
      guard bytes.count >= header.size else {
        throw .cutShort(expected: UInt64(header.size), found: UInt64(bytes.count))
      }
      part.length = UInt64(header.size)
      (headerSize, place) = (part.length, header.place)
      part.say("log", header.log.description)
      part.say("number", header.number)
      part.say("place", header.place)
      part.say("predecessor", header.predecessor == .none ? "none" : header.predecessor.description)
      if count > 0 { part.say("replaces", header.replaced.map { String($0.number) }.joined(separator: " ")) }
      if part.flaws.isEmpty { try header.check(bytes) }
    } catch  where part.flaws.isEmpty {
      part.complain(error)
    } catch {}
    return part
  }

  // MARK: Trailer

  private struct FoundTrailer {
    var offset: UInt64
    var trailer: SegmentTrailer
    var part: InspectedPart
  }

  /// The trailer at the end, or the last whole one before it.
  private func findTrailer() throws(LogError) -> FoundTrailer? {
    let size = UInt64(SegmentTrailer.size)
    guard source.size >= size else { return nil }
    if let found = try trailer(at: source.size - size) { return found }
    var last: FoundTrailer?
    _ = try source.first(SegmentTrailer.magic, in: 0..<source.size) { (magic) throws(LogError) in
      if magic + 8 >= size, let found = try trailer(at: magic + 8 - size), found.part.flaws.isEmpty {
        last = found
      }
      return false
    }
    return last
  }

  /// What stands where a trailer would; nil if neither its magic nor its checksum is there.
  private func trailer(at offset: UInt64) throws(LogError) -> FoundTrailer? {
    let bytes = try source.bytes(at: offset, count: SegmentTrailer.size)
    var part = InspectedPart(.trailer, at: offset, UInt64(bytes.count))
    let trailer: SegmentTrailer
    do throws(Flaw) { trailer = try SegmentTrailer(fields: bytes) } catch { return nil }
    do throws(Flaw) { try trailer.check(bytes) } catch {
      // The magic alone may be what is damaged.
      let crc = bytes.crc32c(0..<96)
      guard
        bytes.suffix(8).elementsEqual(SegmentTrailer.magic)
          || bytes[96..<100].elementsEqual(withUnsafeBytes(of: crc.bigEndian, Array.init))
      else { return nil }
      part.complain(error)
    }
    part.say("events", trailer.events)
    part.say("end", trailer.end)
    part.say("rawBytes", trailer.rawBytes)
    part.say("chain", trailer.chain.eightDigits)
    part.say("digest", trailer.digest.description)
    return FoundTrailer(offset: offset, trailer: trailer, part: part)
  }

  /// With the digest of the file compared.
  private func completed(_ found: FoundTrailer) throws(LogError) -> InspectedPart {
    var part = found.part
    guard request.isComplete else { return part }
    var hasher = SHA256()
    let end = found.offset + UInt64(SegmentTrailer.digestOffset)
    var offset: UInt64 = 0
    while offset < end {
      let bytes = try source.bytes(at: offset, count: Int(min(end - offset, UInt64(LogLimits.scanChunk))))
      if bytes.isEmpty { break }
      hasher.update(bytes)
      offset += UInt64(bytes.count)
    }
    if SegmentDigest(bytes: Array(hasher.finalize())) != found.trailer.digest {
      part.complain(.digest, at: found.offset + UInt64(SegmentTrailer.digestOffset))
    }
    return part
  }

  // MARK: Footer

  private struct FoundFooter {
    var offset: UInt64
    /// Where the first block begins; negative if the file has lost its beginning.
    var start: Int64
    var length: Int
    var footer: SegmentFooter
    /// Whether its checksum holds, as it stands in the trailer; if not, that is damaged.
    var isCertain: Bool
  }

  /// The footer by the trailer, or, if that is damaged, by the blocks.
  private func findFooter(_ found: FoundTrailer) throws(LogError) -> FoundFooter? {
    if let footer = try footerByTrailer(found) { return footer }
    return found.part.flaws.isEmpty ? nil : try footerBehindBlocks(found)
  }

  /// The footer where the trailer says, or right before what follows it. With a whole trailer its checksum must hold:
  /// it has the checksums of the blocks, and one wrong byte of it would call a whole block damaged. A damaged trailer
  /// need not have the footer's checksum any more: then it must say where the blocks begin.
  private func footerByTrailer(_ found: FoundTrailer) throws(LogError) -> FoundFooter? {
    let trailer = found.trailer
    guard trailer.footerLength <= LogLimits.footer, trailer.filterLength <= LogLimits.footer else {
      return nil
    }
    var offsets = [trailer.footerOffset]
    let behind = UInt64(trailer.footerLength) + UInt64(trailer.filterLength)
    if behind <= found.offset { offsets.insert(found.offset - behind, at: 0) }
    for offset in offsets {
      let bytes = try source.bytes(at: offset, count: trailer.footerLength)
      guard bytes.count == trailer.footerLength else { continue }
      let crc = bytes.crc32c
      do throws(Flaw) {
        let footer = try SegmentFooter(decoding: bytes, from: 0)
        let length = footer.blocks.last.map { $0.offset + UInt64($0.length) } ?? 0
        guard let start = Int64(exactly: offset), let stored = Int64(exactly: length) else { continue }
        let isWhole = crc == trailer.footerCRC
        guard isWhole || !found.part.flaws.isEmpty && start - stored == Int64(headerSize) else { continue }
        return FoundFooter(
          offset: offset, start: start - stored, length: trailer.footerLength, footer: footer,
          isCertain: isWhole)
      } catch { continue }
    }
    return nil
  }

  /// The footer where the blocks end, if it says of them that they end there: a damaged trailer need not tell.
  private func footerBehindBlocks(_ found: FoundTrailer) throws(LogError) -> FoundFooter? {
    guard headerSize > 0 else { return nil }
    let scan = BlockScan(source)
    var offset = headerSize
    while offset < found.offset, let size = try scan.size(at: offset, before: found.offset) {
      offset += UInt64(size)
    }
    guard offset < found.offset else { return nil }
    let count = Int(min(found.offset - offset, UInt64(2 * LogLimits.footer)))
    let bytes = try source.bytes(at: offset, count: count)
    var reader = FieldReader(bytes)
    do throws(Flaw) {
      let footer = try SegmentFooter(reading: &reader, from: 0)
      guard let last = footer.blocks.last, headerSize + last.offset + UInt64(last.length) == offset else {
        return nil
      }
      return FoundFooter(
        offset: offset, start: Int64(headerSize), length: bytes.count - reader.remaining, footer: footer,
        isCertain: false)
    } catch { return nil }
  }

  private func footerPart(
    _ index: FoundFooter, _ found: FoundTrailer, _ tally: StreamTally
  ) -> InspectedPart {
    // A damaged trailer may claim more than there is.
    let length = min(UInt64(index.length), source.size - min(index.offset, source.size))
    var part = InspectedPart(.footer, at: index.offset, length)
    let footer = index.footer
    part.say("blocks", UInt64(footer.blocks.count))
    part.say("partitions", UInt64(footer.partitions.count))
    part.say("streams", UInt64(footer.partitions.reduce(0) { $0 + $1.streams.count }))
    part.say("events", footer.blocks.reduce(0) { $0 + UInt64($1.events) })
    guard tally.isWhole else { return part }
    if let what = tally.disagreement(with: footer.partitions) { part.complain(.disagreement(what)) }
    if found.part.flaws.isEmpty, tally.rawBytes != found.trailer.rawBytes {
      part.complain(.disagreement("raw bytes in the trailer and in the blocks"))
    }
    return part
  }

  /// A damaged trailer does not tell how long it is: then it ends where the trailer begins.
  private func filterPart(at offset: UInt64, _ found: FoundTrailer) throws(LogError) -> InspectedPart {
    let trailer = found.trailer
    let isTold = found.part.flaws.isEmpty
    let rest = Int(clamping: found.offset - min(offset, found.offset))
    let length = isTold ? trailer.filterLength : min(rest, LogLimits.footer)
    let bytes = try source.bytes(at: offset, count: length)
    var part = InspectedPart(.filter, at: offset, UInt64(bytes.count))
    do throws(Flaw) {
      guard bytes.count == length else {
        throw .cutShort(expected: UInt64(length), found: UInt64(bytes.count))
      }
      guard !isTold || bytes.crc32c == trailer.filterCRC else {
        throw .checksum(expected: trailer.filterCRC, found: bytes.crc32c)
      }
      _ = try KeyFilter(decoding: bytes)
    } catch { part.complain(error) }
    part.say("hashes", UInt64(bytes.first ?? 0))
    return part
  }

  // MARK: Blocks

  private func reportBlocks(
    _ index: FoundFooter, _ trailer: SegmentTrailer, _ tally: inout StreamTally
  ) throws(LogError) {
    tally.isWhole = request.isComplete && request.block == nil
    for (place, entry) in index.footer.blocks.enumerated() where request.wants(place + 1) {
      let part = try blockPart(place + 1, entry, index.start + Int64(entry.offset))
      if tally.isWhole { tally.add(part) }
      body(part)
    }
  }

  private func blockPart(_ number: Int, _ entry: BlockEntry, _ start: Int64) throws(LogError) -> InspectedPart
  {
    let length = UInt64(entry.length)
    var part = InspectedPart(.block, at: UInt64(max(0, start)), length, number: number)
    part.place = place
    part.say("events", UInt64(entry.events))
    let bytes: [UInt8]
    if start < 0 {
      bytes = []
    } else {
      guard entry.length <= InspectionLimits.part else {
        part.offset = min(part.offset, source.size)
        part.length = min(length, source.size - part.offset)
        part.complain(.malformed("length of a block"))
        part.describe(entry)
        return part
      }
      bytes = try source.bytes(at: UInt64(start), count: entry.length)
    }
    guard bytes.count == entry.length else {
      part.offset = min(part.offset, source.size)
      part.length = UInt64(bytes.count)
      part.complain(.cutShort(expected: length, found: UInt64(bytes.count)))
      part.describe(entry)
      return part
    }
    let found = bytes.crc32c
    if found == entry.crc {
      part.decode(bytes)
      part.isChecked = true
      if let block = part.block, block.count != entry.events {
        part.complain(.disagreement("\(block.count) events, the footer says \(entry.events)"))
      }
    } else {
      part.complain(checksum: entry.crc, found: found, of: bytes, block: bytes.count, at: UInt64(start))
    }
    part.describe(entry)
    return part
  }
}

extension InspectedPart {
  /// What the footer says of a block, which is all there is of a damaged one.
  fileprivate mutating func describe(_ entry: BlockEntry) {
    say("partition", entry.firstKey.partition.description)
    say("model", entry.firstKey.model)
    say("firstKey", entry.firstKey.key.parts.map(\.text).joined(separator: " "))
    say("firstIndex", entry.firstArrival)
    say("lastIndex", entry.lastArrival)
  }
}
