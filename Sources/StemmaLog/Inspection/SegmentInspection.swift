import StemmaEvents

/// A segment, part by part.
///
/// With a valid trailer and root of the footer, reports each block that the root lists and verifies
/// its checksum. Otherwise reports the blocks that decode, without a checksum.
enum SegmentInspection {
  static func run(
    _ source: InspectedFile, _ request: InspectionRequest, _ body: (InspectedPart) -> Void
  ) throws(LogError) {
    let (headerPart, header) = try header(of: source)
    var trailerPart = InspectedPart(.trailer, at: source.size, 0)
    let segment = try segment(of: source, header, &trailerPart, request)
    let end = segment?.trailer.footerOffset ?? trailerPart.offset
    let base = header?.base
    var root: FooterRoot?
    var ends: [InspectedPart] = []
    if let segment {
      var part = InspectedPart(.footer, at: end, UInt64(segment.trailer.rootLength))
      root = try part.reading { () throws(LogError) in try segment.root() }
      if let root { part.describe(root) }
      ends = [part] + (try pages(of: segment, root))
      var filter = InspectedPart(.filter, at: segment.filterOffset, UInt64(segment.trailer.filterLength))
      _ = try filter.reading { () throws(LogError) in try segment.filter() }
      ends.append(filter)
    }
    body(headerPart)
    if let root {
      for (index, entry) in root.blocks.enumerated() where request.wants(index + 1) {
        var part = InspectedPart(.block, at: entry.offset, UInt64(entry.length), number: index + 1)
        part.base = base
        part.describe(entry)
        if entry.length <= InspectionLimits.part {
          part.decode(try source.bytes(at: entry.offset, count: entry.length), checksum: entry.crc)
          part.checkEvents(entry.events, "footer")
        } else {
          part.complain(.malformed("length of a block"))
        }
        body(part)
      }
    } else if headerPart.end < end {
      try BlockScan(source).report(headerPart.end..<end, base: base, body)
    }
    for part in ends + [trailerPart] { body(part) }
  }

  /// Without a root, the bytes of the pages are unknown.
  private static func pages(of segment: Segment, _ root: FooterRoot?) throws(LogError) -> [InspectedPart] {
    let start = segment.trailer.footerOffset + UInt64(segment.trailer.rootLength)
    guard let root else {
      return start < segment.filterOffset
        ? [InspectedPart(.unknown, at: start, segment.filterOffset - start)] : []
    }
    var parts: [InspectedPart] = []
    for (index, page) in root.pages.enumerated() {
      var part = InspectedPart(.page, at: segment.offset(of: page), UInt64(page.size.stored))
      let runs = try part.reading { () throws(LogError) in try segment.partitions(of: index, root) }
      if let runs { part.describe(runs) }
      parts.append(part)
    }
    return parts
  }

  private static func header(
    of source: InspectedFile
  ) throws(LogError) -> (part: InspectedPart, header: SegmentHeader?) {
    let bytes = try source.bytes(at: 0, count: SegmentHeader.size)
    var part = InspectedPart(.header, at: 0, UInt64(bytes.count))
    let header = try part.reading { () throws(LogError) in
      try FilePreamble.check(bytes, FilePreamble.segment, path: source.path)
      return try locating(source.path, 0) { () throws(Flaw) in
        let header = try SegmentHeader(fields: bytes)
        try header.check(bytes)
        return header
      }
    }
    if let header { part.describe(header) }
    return (part, header)
  }

  /// The segment, if its trailer is valid and states the right places.
  static func segment(
    of source: InspectedFile, _ header: SegmentHeader?, _ part: inout InspectedPart,
    _ request: InspectionRequest
  ) throws(LogError) -> Segment? {
    let size = UInt64(SegmentTrailer.size)
    let magic = SegmentTrailer.magic
    guard source.size >= UInt64(SegmentHeader.size) + size,
      try source.bytes(at: source.size - UInt64(magic.count), count: magic.count) == magic
    else {
      part.complain(.disagreement("the file was cut, or its end was overwritten"))
      return nil
    }
    (part.offset, part.length) = (source.size - size, size)
    // All headers have the same size, so blocks and footer can be found without one.
    let header = header ?? SegmentHeader(log: LogID(0), number: 1, base: .first)
    let segment = try part.reading { () throws(LogError) in
      try Segment(path: source.path, header: header, file: source.file)
    }
    guard let segment else { return nil }
    part.describe(segment.trailer)
    if request.isComplete, try segment.digestOfBytes() != segment.trailer.digest { part.complain(.digest) }
    return segment
  }
}

extension InspectedPart {
  fileprivate mutating func describe(_ header: SegmentHeader) {
    say("log", header.log.description)
    say("number", header.number)
    say("base", header.base)
  }

  /// The footer's facts about a block, which remain if the block is corrupt.
  fileprivate mutating func describe(_ entry: BlockEntry) {
    say("events", UInt64(entry.events))
    say("partition", entry.firstKey.partition.description)
    say("model", entry.firstKey.model)
    say("firstKey", entry.firstKey.key.parts.map(\.text).joined(separator: " "))
    say("firstIndex", entry.firstRelativePosition)
    say("lastIndex", entry.lastRelativePosition)
  }

  fileprivate mutating func describe(_ root: FooterRoot) {
    say("blocks", UInt64(root.blocks.count))
    say("pages", UInt64(root.pages.count))
    say("events", root.blocks.reduce(0) { $0 + UInt64($1.events) })
  }

  fileprivate mutating func describe(_ runs: [PartitionRun]) {
    say("partitions", UInt64(runs.count))
    say("streams", UInt64(runs.reduce(0) { $0 + $1.streams.count }))
    say("firstPartition", runs.first?.partition.description ?? "")
  }

  fileprivate mutating func describe(_ trailer: SegmentTrailer) {
    say("events", trailer.events)
    say("end", trailer.end)
    say("rawBytes", trailer.rawBytes)
    say("chain", trailer.chain.eightDigits)
    say("digest", trailer.digest.description)
  }
}
