/// Files in the place of a log's that are none.
enum Noise {
  /// How much is read at the beginning of a file, and at its end: whoever opens the log waits for it.
  static let probe: UInt64 = 1 << 20

  /// Whether a file has nothing that a log writes at its beginning and its end: neither the beginning of a header nor the
  /// log's id in its place, nor the end of a segment, nor the head of a frame, nor a block that decodes. Frames and blocks follow
  /// each other from the header on, so that a file which has lost its beginning has some there, unless that is larger than
  /// `probe`. Such a file is not believed to be lost, but neither is it touched; and if it held events, the tables tell.
  static func fills(_ path: String, log: LogID, _ fileSystem: any FileSystem) throws(LogError) -> Bool {
    let source = try InspectedFile(path: path, fileSystem: fileSystem)
    if let other = try JournalHeader.whole(of: source.file), other.log != log { return true }
    let head = try source.bytes(at: 0, count: 24)
    var id: [UInt8] = []
    id.put(log.rawValue)
    if head.starts(with: FilePreamble.journal) || head.starts(with: FilePreamble.segment) { return false }
    if head.dropFirst(FilePreamble.size).elementsEqual(id) { return false }
    let magic = SegmentTrailer.magic
    if source.size >= UInt64(magic.count) {
      let end = try source.bytes(at: source.size - UInt64(magic.count), count: magic.count)
      if end == magic { return false }
    }
    let first = min(source.size, probe)
    let last = max(first, source.size - first)
    for range in [0..<first, last..<source.size] where try holdsEvents(source, range) { return false }
    return true
  }

  /// Whether a frame or a block begins in a part of a file.
  private static func holdsEvents(
    _ source: InspectedFile, _ range: Range<UInt64>
  ) throws(LogError) -> Bool {
    let frame = try source.first(JournalFrame.magic, in: range) { (place) throws(LogError) in
      let head = try source.bytes(at: place, count: JournalFrame.headerSize)
      do throws(Flaw) {
        let frame = try JournalFrame(decoding: head, at: 0, previous: nil, available: .max)
        return frame.events > 0 && frame.synced <= place
      } catch { return false }
    }
    if frame != nil { return true }
    return try BlockScan(source).next(
      from: range.lowerBound, before: source.size, beginningBefore: range.upperBound) != nil
  }
}
