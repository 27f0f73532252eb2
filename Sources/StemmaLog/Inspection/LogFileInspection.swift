import StemmaEvents

/// Which format a log file has, by its first bytes, or by its last ones, or by its name; a journal by a frame, and a
/// watermark by a slot, too.
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
    switch LogFileName(source.path.fileName) {
    case .segment: self = .segment
    case .journal: self = .journal
    case .watermark: self = .watermark
    case .cut, .partial, .aside, .other:
      // The last letter tells the formats apart, so at most two of the others may be wrong.
      let near = formats.first { format in
        format.1.last == start.last && zip(format.1, start).count(where: { $0 == $1 }) >= 6
      }
      if let near {
        self = near.0
      } else {
        guard try JournalInspection.hasFrame(source) else {
          guard try WatermarkInspection.secondSlot(source) != nil else { return nil }
          self = .watermark
          return
        }
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
  case .watermark: try WatermarkInspection.run(source, request, body)
  }
}
