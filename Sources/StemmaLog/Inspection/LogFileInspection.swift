import StemmaEvents

// Inspection shows a file part by part, whole or corrupt. The structure of the file gives the place
// of a part, and a checksum confirms it. The only search is forward, for the next block that
// decodes or the next valid frame. Memory: one part, and the footer of a segment. Inspection writes
// nothing.

/// The kinds of files of a log.
package enum LogFileFormat: String, CaseIterable, Sendable {
  case segment
  case journal
  case watermark
  case manifest

  private var magic: [UInt8] {
    switch self {
    case .segment: FilePreamble.segment
    case .journal: FilePreamble.journal
    case .watermark: FilePreamble.watermark
    case .manifest: FilePreamble.manifest
    }
  }

  /// The format by the first bytes of a file, else by its name; nil if neither identifies it.
  package init?(of source: InspectedFile) throws(LogError) {
    let start = try source.bytes(at: 0, count: FilePreamble.segment.count)
    if let format = Self.allCases.first(where: { $0.magic == start }) {
      self = format
      return
    }
    switch LogFileName(source.path.fileName) {
    case .segment: self = .segment
    case .journal: self = .journal
    case .watermark: self = .watermark
    case .manifest: self = .manifest
    default: return nil
    }
  }
}

/// Passes the parts of a log file to `body` in file order, corruption included. Without a format,
/// these are the blocks that decode and the bytes between them.
///
/// Throws `.newerFormat` and `.system`. Time: linear in the size of the file.
package func inspect(
  _ source: InspectedFile, as format: LogFileFormat?, _ request: InspectionRequest = InspectionRequest(),
  _ body: @escaping (InspectedPart) -> Void
) throws(LogError) {
  let report = { (part: InspectedPart) in
    assert(holds(part.checkInvariants))
    if request.wants(part.number) { body(part) }
  }
  switch format {
  case .segment: try SegmentInspection.run(source, request, report)
  case .journal:
    var journal = JournalInspection(source, request, report)
    try journal.run()
  case .watermark: try WatermarkInspection.run(source, report)
  case .manifest: try ManifestInspection.run(source, report)
  case nil: try BlockScan(source).report(0..<source.size, report)
  }
}
