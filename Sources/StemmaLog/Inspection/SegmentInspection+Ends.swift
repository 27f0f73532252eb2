import Crypto
import StemmaEvents

// The end of a segment: footer, key filter, trailer.

extension SegmentInspection {
  // MARK: Trailer

  struct FoundTrailer {
    var offset: UInt64
    /// With one wrong byte put right if that is all that is wrong; else as it stands there.
    var trailer: SegmentTrailer
    /// Whether what it says was written.
    var isWhole: Bool
    var part: InspectedPart

    /// Whether as many bytes are before it as there were.
    var isInPlace: Bool {
      guard isWhole, trailer.footerOffset <= offset else { return false }
      return offset - trailer.footerOffset == UInt64(trailer.footerLength) + UInt64(trailer.filterLength)
    }
  }

  /// The trailer at the end; but if it is damaged, or as many bytes as it says are not before it, the first one of
  /// which that is not so; else the last one that is whole.
  func findTrailer() throws(LogError) -> FoundTrailer? {
    let size = UInt64(SegmentTrailer.size)
    guard source.size >= size else { return nil }
    let last = try trailer(at: source.size - size)
    if let last, last.isInPlace { return last }
    var other: FoundTrailer?
    _ = try source.first(SegmentTrailer.magic, in: 0..<source.size) { (magic) throws(LogError) in
      guard magic + 8 >= size, let found = try trailer(at: magic + 8 - size), found.part.flaws.isEmpty else {
        return false
      }
      other = found
      return found.isInPlace
    }
    if let other, other.isInPlace || last == nil { return other }
    if let last { return last }
    return try zeroedTrailer(at: source.size - size)
  }

  /// What stands where a trailer would; nil if neither its magic nor its checksum is there.
  private func trailer(at offset: UInt64) throws(LogError) -> FoundTrailer? {
    let bytes = try source.bytes(at: offset, count: SegmentTrailer.size)
    var part = InspectedPart(.trailer, at: offset, UInt64(bytes.count))
    var trailer: SegmentTrailer
    var isWhole = true
    do throws(Flaw) { trailer = try SegmentTrailer(fields: bytes) } catch { return nil }
    do throws(Flaw) { try trailer.check(bytes) } catch {
      guard let candidates = Self.wrongBytes(ofTrailer: bytes) else { return nil }
      let mended = WrongByte.mending(bytes, at: offset, candidates, read: SegmentTrailer.init(whole:))
      isWhole = mended != nil
      if let mended {
        trailer = mended.content
        part.complain(error, byte: mended.byte)
      } else {
        part.complain(error, in: offset..<offset + part.length)
      }
    }
    part.say("events", trailer.events)
    part.say("end", trailer.end)
    part.say("rawBytes", trailer.rawBytes)
    part.say("chain", trailer.chain.eightDigits)
    part.say("digest", trailer.digest.description)
    return FoundTrailer(offset: offset, trailer: trailer, isWhole: isWhole, part: part)
  }

  /// Which byte of a trailer may be the wrong one; nil: neither its checksum nor its magic is there, so it is none.
  private static func wrongBytes(ofTrailer bytes: [UInt8]) -> [(index: Int, mask: UInt8)]? {
    let (place, magic) = (SegmentTrailer.checksumOffset, SegmentTrailer.magic)
    if bytes.suffix(magic.count).elementsEqual(magic) {
      return WrongByte.candidates(in: bytes, checksumAt: place)
    }
    // The checksum does not cover the magic.
    var right = Array(bytes[..<place])
    right.put(bytes.crc32c(0..<place))
    guard bytes.starts(with: right) else { return nil }
    right += magic
    let wrong = bytes.indices.filter { bytes[$0] != right[$0] }
    return wrong.count == 1 ? [(wrong[0], bytes[wrong[0]] ^ right[wrong[0]])] : []
  }

  /// nil: not all is zeros there.
  private func zeroedTrailer(at offset: UInt64) throws(LogError) -> FoundTrailer? {
    let bytes = try source.bytes(at: offset, count: SegmentTrailer.size)
    guard bytes.allSatisfy({ $0 == 0 }) else { return nil }
    var part = InspectedPart(.trailer, at: offset, UInt64(bytes.count))
    part.complain(
      .disagreement("all is zeros where the trailer must be"), in: offset..<offset + part.length)
    do throws(Flaw) {
      let trailer = try SegmentTrailer(fields: bytes)
      return FoundTrailer(offset: offset, trailer: trailer, isWhole: false, part: part)
    } catch { return nil }
  }

  /// With the digest of the file compared.
  func completed(_ found: FoundTrailer) throws(LogError) -> InspectedPart {
    var part = found.part
    guard request.isComplete, found.isWhole else { return part }
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

  struct FoundFooter {
    var offset: UInt64
    /// Where the first block must stand; nil if nothing whole says so.
    var start: UInt64?
    var length: Int
    var footer: SegmentFooter
    /// Whether its checksum holds, as it stands in the trailer; if not, that is damaged.
    var isCertain: Bool
    /// What is wrong with it, and the one wrong byte, with which it was read as it was.
    var flaw: Flaw?
    var byte: WrongByte?
  }

  /// Where the footer lies by a trailer that is whole.
  func claimedFooter(_ found: FoundTrailer) -> Range<UInt64>? {
    let (footer, filter) = (UInt64(found.trailer.footerLength), UInt64(found.trailer.filterLength))
    guard found.isWhole, footer + filter <= found.offset else { return nil }
    let start = found.offset - filter - footer
    return start..<start + footer
  }

  /// The footer by the trailer, or, if that is damaged, by the blocks.
  func findFooter(_ found: FoundTrailer) throws(LogError) -> FoundFooter? {
    if let footer = try footerByTrailer(found) { return footer }
    return found.isWhole ? nil : try footerBehindBlocks(before: found.offset)
  }

  /// The footer where the trailer says, or right before what follows it. With a whole trailer its checksum must hold:
  /// it has the checksums of the blocks, and one wrong byte of it would call a whole block damaged. A damaged trailer
  /// need not have the footer's checksum any more: then it must say where the blocks begin.
  func footerByTrailer(_ found: FoundTrailer) throws(LogError) -> FoundFooter? {
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
      if crc == trailer.footerCRC || !found.isWhole {
        guard let footer = SegmentFooter(whole: bytes) else { continue }
        let stored = footer.storedBytes
        guard found.isWhole || crc == trailer.footerCRC || offset == headerEnd + stored else { continue }
        return FoundFooter(
          offset: offset, start: start(found, stored), length: bytes.count, footer: footer,
          isCertain: crc == trailer.footerCRC)
      }
      let candidates = WrongByte.candidates(in: bytes, expected: trailer.footerCRC, found: crc)
      guard let mended = WrongByte.mending(bytes, at: offset, candidates, read: SegmentFooter.init(whole:))
      else { continue }
      return FoundFooter(
        offset: offset, start: start(found, mended.content.storedBytes), length: bytes.count,
        footer: mended.content, isCertain: true,
        flaw: .checksum(expected: trailer.footerCRC, found: crc), byte: mended.byte)
    }
    return nil
  }

  /// Where the first of `stored` bytes of blocks must stand: by a whole trailer, or behind the header.
  private func start(_ found: FoundTrailer, _ stored: UInt64) -> UInt64? {
    guard found.isWhole else { return headerEnd > 0 ? headerEnd : nil }
    return found.trailer.footerOffset >= stored ? found.trailer.footerOffset - stored : nil
  }

  /// The footer where the blocks end, if it says of them that they end there: without a trailer, or with a damaged one,
  /// nothing else tells.
  func footerBehindBlocks(before end: UInt64) throws(LogError) -> FoundFooter? {
    guard headerEnd > 0 else { return nil }
    let scan = BlockScan(source)
    var offset = headerEnd
    while offset < end, let size = try scan.size(at: offset, before: end) {
      offset += UInt64(size)
    }
    guard offset < end else { return nil }
    let bytes = try source.bytes(at: offset, count: Int(min(end - offset, UInt64(2 * LogLimits.footer))))
    var reader = FieldReader(bytes)
    do throws(Flaw) {
      let footer = try SegmentFooter(reading: &reader, from: 0)
      guard !footer.blocks.isEmpty, headerEnd + footer.storedBytes == offset else { return nil }
      return FoundFooter(
        offset: offset, start: headerEnd, length: bytes.count - reader.remaining, footer: footer,
        isCertain: false)
    } catch { return nil }
  }

  func footerPart(_ index: FoundFooter, _ found: FoundTrailer?, _ tally: StreamTally) -> InspectedPart {
    // A damaged trailer may claim more than there is.
    let length = min(UInt64(index.length), source.size - min(index.offset, source.size))
    var part = InspectedPart(.footer, at: index.offset, length)
    let footer = index.footer
    part.say("blocks", UInt64(footer.blocks.count))
    part.say("partitions", UInt64(footer.partitions.count))
    part.say("streams", UInt64(footer.partitions.reduce(0) { $0 + $1.streams.count }))
    part.say("events", footer.blocks.reduce(0) { $0 + UInt64($1.events) })
    if !index.isCertain { part.say("checksum", Self.lostChecksum) }
    if let flaw = index.flaw { part.complain(flaw, byte: index.byte) }
    guard tally.isWhole else { return part }
    if let what = tally.disagreement(with: footer.partitions) { part.complain(.disagreement(what)) }
    if let found, found.isWhole, tally.rawBytes != found.trailer.rawBytes {
      part.complain(.disagreement("raw bytes in the trailer and in the blocks"))
    }
    return part
  }

  /// What is said of parts whose checksum stood in a trailer that is damaged.
  private static let lostChecksum = "none, it was in the trailer"

  // MARK: Key filter

  /// All between the footer and the trailer.
  func filterPart(at offset: UInt64, _ found: FoundTrailer) throws(LogError) -> InspectedPart {
    let trailer = found.trailer
    let end = max(offset, found.offset)
    var part = InspectedPart(.filter, at: offset, end - offset)
    let bytes = try source.bytes(at: offset, count: Int(min(part.length, UInt64(LogLimits.footer))))
    part.say("hashes", UInt64(bytes.first ?? 0))
    guard found.isWhole else {
      part.say("checksum", Self.lostChecksum)
      if KeyFilter(whole: bytes) == nil { part.complain(.malformed("key filter"), in: offset..<end) }
      return part
    }
    let crc = bytes.crc32c
    if let flaw = Flaw.count(of: part.length, UInt64(trailer.filterLength)) {
      part.complain(flaw, in: offset..<end)
    } else if crc != trailer.filterCRC {
      let flaw = Flaw.checksum(expected: trailer.filterCRC, found: crc)
      // Whatever the bits of a filter are, it can be read: only where no other byte fits, it is this one.
      let candidates = WrongByte.candidates(in: bytes, expected: trailer.filterCRC, found: crc)
      let mended = WrongByte.mending(bytes, at: offset, candidates, read: KeyFilter.init(whole:))
      if candidates.count == 1, let mended {
        part.complain(flaw, byte: mended.byte)
      } else {
        part.complain(flaw, in: offset..<end)
      }
    } else if KeyFilter(whole: bytes) == nil {
      part.complain(.malformed("key filter"), in: offset..<end)
    }
    return part
  }
}

extension SegmentTrailer {
  /// nil: checksum, magic or lengths are not as they must be.
  fileprivate init?(whole bytes: [UInt8]) {
    do throws(Flaw) {
      try self.init(fields: bytes)
      try check(bytes)
    } catch { return nil }
  }
}

extension SegmentFooter {
  /// Of blocks that begin at 0; nil: the bytes are no footer.
  fileprivate init?(whole bytes: [UInt8]) {
    do throws(Flaw) { try self.init(decoding: bytes, from: 0) } catch { return nil }
  }

  /// Bytes of all blocks.
  var storedBytes: UInt64 { blocks.reduce(0) { $0 + UInt64($1.length) } }
}

extension KeyFilter {
  /// nil: the bytes are no key filter.
  fileprivate init?(whole bytes: [UInt8]) {
    do throws(Flaw) { try self.init(decoding: bytes) } catch { return nil }
  }
}
