import Crypto
import StemmaEvents
import StemmaLog

/// A shipment, piece by piece and part by part, whatever its condition: see `InspectedPart`.
///
/// The blocks of a piece have lengths before them and no checksums of their own; the piece has one over all.
/// So a damaged block is one that does not decode, and the checksum in the trailer says whether that is all.
package struct ShipmentInspection {
  private let source: InspectedFile
  private let scan: BlockScan
  private let request: InspectionRequest
  private let body: (InspectedPart) -> Void
  /// Of the next block, over all pieces.
  private var number = 1
  /// Whether the checksum of the piece that is reported holds.
  private var isVouched = false
  /// Of the last piece that was reported.
  private var end: UInt64 = 0

  /// Whether the bytes begin as a shipment does.
  package static func recognizes(_ source: InspectedFile) throws(LogError) -> Bool {
    try source.bytes(at: 0, count: PieceLayout.magic.count) == PieceLayout.magic
  }

  /// Throws only what the operating system says.
  package static func run(
    _ source: InspectedFile, _ request: InspectionRequest, _ body: @escaping (InspectedPart) -> Void
  ) throws(LogError) {
    var inspection = Self(source, request, body)
    while inspection.end < source.size {
      inspection.end = try inspection.piece(from: inspection.end)
      assert(holds(inspection.checkInvariants))
    }
  }

  private init(
    _ source: InspectedFile, _ request: InspectionRequest, _ body: @escaping (InspectedPart) -> Void
  ) {
    self.source = source
    scan = BlockScan(source)
    self.request = request
    self.body = InspectedPart.checking(body)
  }

  /// Traps if a piece has no byte, or ends behind the file. In debug builds behind each piece.
  private func checkInvariants() {
    precondition(end > 0 && end <= source.size, "a piece is a part of its file")
    precondition(number > 0, "blocks are counted from one")
  }

  private func report(_ part: InspectedPart) {
    if request.block == nil { body(part) }
  }

  /// Reports a piece and returns where it ends: where the next one begins, or the file ends.
  private mutating func piece(from start: UInt64) throws(LogError) -> UInt64 {
    let next = try source.first(PieceLayout.magic, in: start + 1..<source.size)
    let end = next ?? source.size
    let trailerSize = UInt64(PieceLayout.trailerSize)
    let trailer =
      end - start > trailerSize ? try trailer(at: end - trailerSize, of: start) : nil
    isVouched = trailer?.flaws.isEmpty ?? false
    report(try header(at: start, before: end))
    var offset = min(end, start + UInt64(PieceLayout.headerSize))
    let form = try source.bytes(at: start + 9, count: 1).first
    offset =
      form == PieceLayout.Form.sealed.rawValue ? try sealedFile(offset..<end) : try blocks(offset..<end)
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
    let size = UInt64(PieceLayout.headerSize)
    let bytes = try source.bytes(at: start, count: PieceLayout.headerSize)
    var part = InspectedPart(.header, at: start, min(size, end - start))
    guard part.length == size else {
      part.complain(.cutShort(expected: size, found: part.length))
      return part
    }
    var reader = WireReader(bytes[8...], subject: "piece")
    do throws(ReplicationError) {
      let version = try reader.byte()
      let form = try reader.byte()
      _ = try reader.slice(2)
      let expected = try reader.fixed32()
      part.say("version", UInt64(version))
      part.say("form", UInt64(form))
      part.say("log", LogID(try reader.fixed()).description)
      let found = CRC32C.of(bytes[..<12])
      if expected != found { part.complain(.checksum(expected: expected, found: found)) }
    } catch { part.complain(.malformed("header")) }
    return part
  }

  // MARK: Blocks

  /// Reports the blocks and returns where the footer begins.
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
      let behind = range.upperBound - offset > UInt64(PieceLayout.trailerSize)
      let end = next ?? (behind ? range.upperBound - UInt64(PieceLayout.trailerSize) : range.upperBound)
      var part = InspectedPart(.block, at: offset, end - offset, number: number)
      part.complain(.malformed("length of a block"))
      if request.wants(number) { body(part) }
      number += 1
      guard let next, let size = try scan.size(at: next, before: range.upperBound) else { return end }
      try report(blockAt: next, UInt64(size))
      offset = next + UInt64(size)
    }
    return offset
  }

  /// Reports the blocks, the footer and the key filter of a sealed file and returns where the piece's footer begins.
  /// Where the lengths at the end cannot be read, all of it is unknown.
  private mutating func sealedFile(_ range: Range<UInt64>) throws(LogError) -> UInt64 {
    let end = range.upperBound - min(range.upperBound - range.lowerBound, UInt64(PieceLayout.trailerSize))
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
      let found = CRC32C.of(bytes)
      if found == entry.crc {
        part.decode(bytes)
        part.isChecked = true
      } else {
        part.complain(checksum: entry.crc, found: found, of: bytes, at: part.offset)
      }
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

  /// The sealed file in front of a piece's footer, and where it stands; nil if its lengths or its index cannot be
  /// read.
  private func sealedContents(
    _ range: Range<UInt64>
  ) throws(LogError) -> (range: Range<UInt64>, contents: SealedContents)? {
    let length = try source.bytes(at: range.upperBound, count: 4)
    let footerLength = length.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard length.count == 4, footerLength < range.upperBound - range.lowerBound,
      range.upperBound - range.lowerBound <= UInt64(InspectionLimits.part)
    else { return nil }
    let content = range.lowerBound..<range.upperBound - footerLength
    var reader = WireReader(
      try source.bytes(at: content.upperBound, count: Int(footerLength)), subject: "footer of a piece")
    let sizes: SealedContents.Sizes
    do throws(ReplicationError) {
      let limit = ReplicationLimits.pieceEvents
      let count = Int(try reader.number("events of a piece", limit: UInt64(limit)))
      _ = try Piece.streams(from: &reader, eventCount: count)
      sizes = try Piece.sizes(from: &reader)
    } catch { return nil }
    let bytes = try source.bytes(
      at: content.lowerBound, count: Int(content.upperBound - content.lowerBound))
    do throws(Flaw) { return (content, try SealedContents(bytes[...], sizes)) } catch { return nil }
  }

  /// The length that stands at `offset`, and where what it measures begins.
  private func length(at offset: UInt64) throws(LogError) -> (start: UInt64, length: UInt64) {
    let head = try source.bytes(at: offset, count: 10)
    var reader = WireReader(head, subject: "block")
    do throws(ReplicationError) {
      let length = try reader.number()
      return (offset + UInt64(head.count - reader.left), length)
    } catch { return (offset, .max) }
  }

  /// Whether a block, perhaps a damaged one, has this length: its own head says so, or something follows that
  /// could.
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
    var reader = WireReader(
      try source.bytes(at: range.lowerBound, count: Int(length)), subject: "footer of a piece")
    do throws(ReplicationError) {
      let count = Int(
        try reader.number("events of a piece", limit: UInt64(ReplicationLimits.pieceEvents)))
      part.say("events", UInt64(count))
      let streams = try Piece.streams(from: &reader, eventCount: count)
      part.say("streams", UInt64(streams.count))
      part.say("partitions", UInt64(Set(streams.map(\.range.partition)).count))
      if reader.left > 0 { _ = try Piece.sizes(from: &reader) }
      try reader.end()
    } catch { part.complain(.malformed("footer")) }
    return part
  }

  /// The trailer of the piece that begins at `start`.
  private func trailer(at offset: UInt64, of start: UInt64) throws(LogError) -> InspectedPart {
    var part = InspectedPart(.trailer, at: offset, UInt64(PieceLayout.trailerSize))
    var reader = WireReader(
      try source.bytes(at: offset + 4, count: PieceLayout.trailerSize - 4), subject: "piece")
    let (crc, sum) = try digests(of: start..<offset + 4)
    do throws(ReplicationError) {
      let expected = try reader.fixed32()
      let digest = Array(try reader.slice(32))
      part.say("digest", digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined())
      if crc != expected {
        part.complain(.checksum(expected: expected, found: crc), in: offset..<offset + part.length)
      } else if let sum, sum != digest {
        part.complain(.digest)
      }
    } catch { part.complain(.malformed("trailer")) }
    return part
  }

  /// With the length of the footer compared, that stands in it.
  private func checked(_ trailer: InspectedPart, footer: UInt64) throws(LogError) -> InspectedPart {
    var part = trailer
    let length = try source.bytes(at: part.offset, count: 4).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    if length != footer {
      part.complain(.disagreement("a footer of \(length) bytes, where \(footer) are"))
    }
    return part
  }

  /// CRC and, where everything is to be compared, SHA-256 of bytes of the file.
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
