import StemmaEvents

/// Which format a log file has, by its first bytes, or by its last ones, or by its name; a journal by a frame, too.
package enum LogFileFormat: String, Sendable {
  case segment
  case journal
  case watermark

  /// nil: none of these. A few wrong bytes of the magic do not matter.
  package init?(of source: InspectedFile) throws(LogError) {
    let start = try source.bytes(at: 0, count: 8)
    let formats: [(Self, [UInt8])] = [
      (.segment, FilePreamble.segment), (.journal, FilePreamble.journal),
      (.watermark, FilePreamble.watermark),
    ]
    if let exact = formats.first(where: { $0.1 == start }) {
      self = exact.0
      return
    }
    if source.size >= UInt64(SegmentTrailer.size) {
      let end = try source.bytes(at: source.size - 8, count: 8)
      if end == SegmentTrailer.magic {
        self = .segment
        return
      }
    }
    switch LogFileName(String(source.path.split(separator: "/").last ?? "")) {
    case .segment: self = .segment
    case .journal: self = .journal
    case .watermark: self = .watermark
    case .partial, .aside, .other:
      // The last letter tells the formats apart, so at most two of the others may be wrong.
      let near = formats.first { format in
        format.1.last == start.last && zip(format.1, start).count(where: { $0 == $1 }) >= 6
      }
      if let near {
        self = near.0
      } else {
        guard try JournalInspection.hasFrame(source) else { return nil }
        self = .journal
      }
    }
  }
}

/// Takes a log file apart; `body` gets its parts in the order of the file. Damage is part of the result.
///
/// Reads every byte of it at least once (with `request.block`: what leads to that block). Memory: the footer
/// of a segment and one block. Throws `.newerFormat` and `.system`.
package func inspect(
  _ source: InspectedFile, as format: LogFileFormat, _ request: InspectionRequest = InspectionRequest(),
  _ body: @escaping (InspectedPart) -> Void
) throws(LogError) {
  switch format {
  case .segment: try SegmentInspection.run(source, request, body)
  case .journal: try JournalInspection.run(source, request, body)
  case .watermark: try inspectWatermark(source, request, body)
  }
}

private func inspectWatermark(
  _ source: InspectedFile, _ request: InspectionRequest, _ body: (InspectedPart) -> Void
) throws(LogError) {
  let size = Watermark.slotSize
  for slot in 0..<2 where request.wants(slot + 1) {
    let offset = UInt64(slot * size)
    let bytes = try source.bytes(at: offset, count: size)
    var part = InspectedPart(.slot, at: offset, UInt64(bytes.count), number: slot + 1)
    if !bytes.isEmpty, bytes.allSatisfy({ $0 == 0 }) {
      part.say("content", "zeros: never written")
      body(part)
      continue
    }
    var fields: [UInt8]? = bytes
    do throws(LogError) {
      if !bytes.isEmpty { try FilePreamble.check(bytes, FilePreamble.watermark, path: source.path) }
      guard bytes.count == size else {
        throw .damaged(
          path: source.path, offset: offset,
          .cutShort(expected: UInt64(size), found: UInt64(bytes.count)))
      }
      try locating(source.path, offset) { () throws(Flaw) in try Watermark.check(slot: bytes) }
    } catch {
      guard case .damaged(_, _, let flaw) = error else { throw error }
      let mended = WrongByte.mending(bytes, at: offset) { $0.starts(with: FilePreamble.watermark) }
      fields = nil
      if bytes.count < size {
        // What is there may be right; what is missing is not there.
        part.complain(
          .cutShort(expected: UInt64(size), found: UInt64(bytes.count)), at: offset + part.length)
      } else if let mended {
        fields = mended.content
        part.complain(flaw, byte: mended.byte)
      } else {
        part.complain(flaw, in: offset..<offset + part.length)
      }
    }
    // Without a checksum they say nothing.
    if let fields {
      do throws(Flaw) {
        let (watermark, log) = try Watermark.fields(slot: fields)
        part.say("log", log.description)
        part.say("turn", watermark.turn)
        part.say("journal", watermark.journal)
        part.say("durable", watermark.durable)
      } catch { part.complain(error) }
    }
    body(part)
  }
  if source.size > UInt64(2 * size), request.block == nil {
    var part = InspectedPart(.unknown, at: UInt64(2 * size), source.size - UInt64(2 * size))
    part.complain(.disagreement("these bytes stand behind the end of the watermark"))
    body(part)
  }
}
