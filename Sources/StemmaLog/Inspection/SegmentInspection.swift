import StemmaEvents

/// A segment, part by part. Where the footer can be read it says where each block is, whatever else is
/// damaged or missing: it is found from the end of the file as well as from the beginning. Without it the
/// blocks are found one behind the other.
struct SegmentInspection {
  let source: InspectedFile
  let request: InspectionRequest
  private let body: (InspectedPart) -> Void
  /// Where the header ends, as far as it tells.
  private(set) var headerEnd: UInt64 = 0
  private(set) var place: UInt64 = 0

  static func run(
    _ source: InspectedFile, _ request: InspectionRequest, _ body: @escaping (InspectedPart) -> Void
  ) throws(LogError) {
    var inspection = SegmentInspection(source: source, request: request, body: body)
    try inspection.run()
  }

  /// The footer, if its checksum stands in a trailer and holds, whatever else is damaged; and that trailer, if it is whole.
  static func wholeEnd(
    of source: InspectedFile
  ) throws(LogError) -> (footer: SegmentFooter, trailer: SegmentTrailer?)? {
    var inspection = SegmentInspection(source: source, request: InspectionRequest()) { _ in }
    _ = try inspection.readHeader()
    assert(holds(inspection.checkInvariants))
    guard let trailer = try inspection.findTrailer(), let found = try inspection.footerByTrailer(trailer),
      found.isCertain, found.byte == nil
    else { return nil }
    return (found.footer, trailer.isWhole ? trailer.trailer : nil)
  }

  private init(source: InspectedFile, request: InspectionRequest, body: @escaping (InspectedPart) -> Void) {
    self.source = source
    self.request = request
    self.body = InspectedPart.checking(body)
  }

  /// Traps if the header ends behind the file. In debug builds when the header was read, and when all was inspected.
  func checkInvariants() {
    precondition(headerEnd <= source.size, "the header is a part of its file")
  }

  func report(_ part: InspectedPart) { body(part) }

  /// The header, and before it what stands before it.
  func report(header: InspectedPart) {
    guard request.block == nil else { return }
    if let flaw = Flaw.count(of: header.offset, 0) {
      var part = InspectedPart(.unknown, at: 0, header.offset)
      part.complain(flaw, in: 0..<header.offset)
      body(part)
    }
    body(header)
  }

  private mutating func run() throws(LogError) {
    defer { assert(holds(checkInvariants)) }
    var header = try readHeader()
    if let found = try findTrailer() {
      if found.offset < header.offset + header.length {
        header.end(at: found.offset)
        headerEnd = min(headerEnd, found.offset)
      }
      guard let index = try findFooter(found) else { return try reportWithoutFooter(header, found) }
      try report(header, blocksOf: index, found)
      try reportEnd(found)
    } else if let index = try footerBehindBlocks(before: source.size) {
      try report(header, blocksOf: index, nil)
      reportWithoutTrailer(behind: index)
    } else {
      try reportWithoutFooter(header, nil)
    }
  }

  /// The header, the blocks, the footer.
  private func report(
    _ header: InspectedPart, blocksOf index: FoundFooter, _ found: FoundTrailer?
  ) throws(LogError) {
    var tally = StreamTally()
    tally.isWhole = request.isComplete && request.block == nil
    try reportBlocks(index, header, &tally)
    guard request.block == nil else { return }
    body(footerPart(index, found, tally))
    if let found { body(try filterPart(at: index.offset + UInt64(index.length), found)) }
  }

  /// The trailer, and what is behind it.
  private func reportEnd(_ found: FoundTrailer) throws(LogError) {
    guard request.block == nil else { return }
    body(try completed(found))
    let end = found.offset + UInt64(SegmentTrailer.size)
    guard end < source.size else { return }
    let beginsAnew =
      try source.bytes(at: end, count: FilePreamble.segment.count) == FilePreamble.segment
    var part = InspectedPart(.unknown, at: end, source.size - end)
    part.complain(
      .disagreement(
        "these bytes stand behind the end of the segment" + (beginsAnew ? ", and begin like another one" : "")
      ))
    body(part)
  }

  /// What is left behind a footer where no trailer is.
  private func reportWithoutTrailer(behind index: FoundFooter) {
    guard request.block == nil else { return }
    let offset = index.offset + UInt64(index.length)
    let isCut = offset == source.size
    var part = InspectedPart(isCut ? .trailer : .unknown, at: offset, source.size - offset)
    part.complain(
      .disagreement(
        isCut
          ? "the file has no end: it was cut"
          : "this is no key filter with a trailer behind it: the file was cut, or its end was written over"))
    body(part)
  }

  // MARK: Without a footer

  /// The blocks one behind the other, and what stands behind them: where a whole trailer says where the footer is,
  /// that it is damaged, else only what is known.
  private func reportWithoutFooter(_ header: InspectedPart, _ found: FoundTrailer?) throws(LogError) {
    report(header: header)
    let end = found?.offset ?? source.size
    let footer = found.flatMap { claimedFooter($0) }
    // Where bytes were taken out or put in, blocks may reach further than they should.
    let isMoved = footer.map { $0.lowerBound != found?.trailer.footerOffset } ?? false
    let limit = footer.map { isMoved ? $0.upperBound : $0.lowerBound } ?? end
    let (place, body) = (place, body)
    let rest = try BlockScan(source).report(min(headerEnd, limit)..<limit, request) { part in
      var part = part
      part.place = place
      body(part)
    }
    guard request.block == nil else { return }
    guard let footer, let found else {
      reportRest(rest..<end, found)
      if let found { try reportEnd(found) }
      return
    }
    var start = footer.lowerBound
    if isMoved, rest == found.trailer.footerOffset || rest == start {
      start = rest
    } else if rest < start {
      reportRest(rest..<start, found)
    }
    body(try damagedFooter(start..<footer.upperBound, found.trailer))
    body(try filterPart(at: footer.upperBound, found))
    try reportEnd(found)
  }

  private func damagedFooter(
    _ range: Range<UInt64>, _ trailer: SegmentTrailer
  ) throws(LogError) -> InspectedPart {
    let length = range.upperBound - range.lowerBound
    var part = InspectedPart(.footer, at: range.lowerBound, length)
    if let flaw = Flaw.count(of: length, UInt64(trailer.footerLength)) {
      part.complain(flaw, in: range)
      return part
    }
    let crc = try source.bytes(at: range.lowerBound, count: trailer.footerLength).crc32c
    part.complain(
      crc == trailer.footerCRC ? .malformed("footer") : .checksum(expected: trailer.footerCRC, found: crc),
      in: range)
    return part
  }

  /// Bytes behind the last block that is found, where no footer is known; without a trailer, that the file has no
  /// end.
  private func reportRest(_ range: Range<UInt64>, _ found: FoundTrailer?) {
    if range.isEmpty, found != nil { return }
    var part = InspectedPart(
      range.isEmpty ? .trailer : .unknown, at: range.lowerBound, range.upperBound - range.lowerBound)
    let what =
      switch found {
      case nil:
        (range.isEmpty ? "" : "these bytes are no whole block, and ") + "the file has no end: it was cut"
      case let found? where found.isWhole: "these bytes are no whole block"
      default:
        "these bytes are no whole block; the trailer is damaged, so it cannot be told where the footer begins"
      }
    part.complain(.disagreement(what))
    body(part)
  }

  // MARK: Header

  private mutating func readHeader() throws(LogError) -> InspectedPart {
    var bytes = try headerBytes(at: 0)
    var part = InspectedPart(.header, at: 0, UInt64(bytes.count))
    do throws(LogError) {
      try FilePreamble.check(bytes, FilePreamble.segment, path: source.path)
      try locating(source.path, 0) { () throws(Flaw) in _ = try SegmentHeader(whole: bytes) }
    } catch {
      guard case .damaged(_, _, let flaw) = error else { throw error }
      var mended = WrongByte.mending(bytes, at: 0, isWhole: SegmentHeader.isWhole)
      if mended == nil { mended = try mendedCount() }
      if let mended {
        bytes = mended.content
        part.complain(flaw, byte: mended.byte)
      } else if let offset = try movedHeader() {
        bytes = try headerBytes(at: offset)
        part.offset = offset
      } else {
        part.complain(flaw, in: 0..<max(1, part.length))
        try endUnreadHeader(&part)
        return part
      }
    }
    do throws(Flaw) {
      let header = try SegmentHeader(whole: bytes)
      part.length = UInt64(header.size)
      (headerEnd, place) = (part.offset + part.length, header.place)
      part.say("log", header.log.description)
      part.say("number", header.number)
      part.say("place", header.place)
      part.say("predecessor", header.predecessor == .none ? "none" : header.predecessor.description)
      if !header.replaced.isEmpty {
        part.say("replaces", header.replaced.map { String($0.number) }.joined(separator: " "))
      }
    } catch {
      part.complain(error)
    }
    return part
  }

  /// What stands where a header would, of the length that it says.
  private func headerBytes(at offset: UInt64) throws(LogError) -> [UInt8] {
    let bytes = try source.bytes(at: offset, count: SegmentHeader.size(replaced: 0))
    guard let count = SegmentHeader.replacedFiles(in: bytes), count > 0 else { return bytes }
    return try source.bytes(at: offset, count: SegmentHeader.size(replaced: count))
  }

  /// Where a whole header stands behind bytes that are none of the segment.
  private func movedHeader() throws(LogError) -> UInt64? {
    try source.first(FilePreamble.segment, in: 0..<min(source.size, UInt64(LogLimits.scanChunk))) {
      (place) throws(LogError) in SegmentHeader.isWhole(try headerBytes(at: place))
    }
  }

  /// The length that a header says that cannot be believed reaches no further than to the first block.
  private mutating func endUnreadHeader(_ part: inout InspectedPart) throws(LogError) {
    if let block = try BlockScan(source).next(from: 0, before: source.size), block < part.length {
      part.end(at: block)
    }
    headerEnd = part.length
  }

  /// The header, if the wrong byte is one of those that say how many files it replaces, and so how long it is.
  private func mendedCount() throws(LogError) -> (content: [UInt8], byte: WrongByte)? {
    let bytes = try source.bytes(at: 0, count: SegmentHeader.size(replaced: LogLimits.replaced))
    guard bytes.count >= SegmentHeader.fixedSize else { return nil }
    for index in SegmentHeader.fixedSize - 4..<SegmentHeader.fixedSize {
      for value in 0...UInt8.max {
        var header = Array(bytes[..<SegmentHeader.fixedSize])
        header[index] = value
        guard let count = SegmentHeader.replacedFiles(in: header),
          SegmentHeader.size(replaced: count) <= bytes.count
        else { continue }
        header += bytes[header.count..<SegmentHeader.size(replaced: count)]
        guard SegmentHeader.isWhole(header) else { continue }
        return (header, WrongByte(offset: UInt64(index), found: bytes[index], expected: value))
      }
    }
    return nil
  }
}

extension InspectedPart {
  /// Of a header that cannot be read: lets it end where something else begins.
  mutating func end(at end: UInt64) {
    length = end - min(offset, end)
    if length == 0 {
      flaws = []
      complain(.disagreement("no byte of it is left"))
    }
    for index in flaws.indices {
      if let range = flaws[index].range { flaws[index].range = range.clamped(to: offset..<end) }
    }
  }
}

extension SegmentHeader {
  /// How many files one that begins with these bytes replaces; nil: a number that it cannot have.
  fileprivate static func replacedFiles(in bytes: [UInt8]) -> Int? {
    var reader = FieldReader(bytes, at: min(bytes.count, fixedSize - 4))
    do throws(Flaw) {
      let count = Int(try reader.uint32())
      return count <= LogLimits.replaced ? count : nil
    } catch { return nil }
  }

  /// Whether the bytes are a header, all of it and no more.
  fileprivate static func isWhole(_ bytes: [UInt8]) -> Bool {
    do throws(Flaw) { _ = try Self(whole: bytes) } catch { return false }
    return bytes.starts(with: FilePreamble.segment)
  }

  /// Of all the bytes of a header, and no more. The magic is not looked at.
  fileprivate init(whole bytes: [UInt8]) throws(Flaw) {
    guard bytes.count >= Self.size(replaced: 0) else {
      throw .cutShort(expected: UInt64(Self.size(replaced: 0)), found: UInt64(bytes.count))
    }
    guard let count = Self.replacedFiles(in: bytes) else { throw .malformed("replaced files") }
    guard bytes.count == Self.size(replaced: count) else {
      throw .cutShort(expected: UInt64(Self.size(replaced: count)), found: UInt64(bytes.count))
    }
    try self.init(fields: bytes, replaced: count)
    try check(bytes)
  }
}

extension Flaw {
  /// That there are more or fewer bytes than there must be; nil if there are just as many.
  static func count(of found: UInt64, _ expected: UInt64) -> Flaw? {
    if found == expected { return nil }
    return found < expected ? .lacking(expected - found) : .surplus(found - expected)
  }
}
