/// Tells files of a log whose headers cannot be read from what never was one.
enum Noise {
  /// Whether a file has nothing in it that a log writes: neither the beginning of a header nor the log's id in its place,
  /// nor the end of a segment, nor a frame, nor a block that decodes. So it holds no event, whatever it was.
  /// Reads all of it at worst.
  static func fills(_ path: String, log: LogID, _ fileSystem: any FileSystem) throws(LogError) -> Bool {
    let source = try InspectedFile(path: path, fileSystem: fileSystem)
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
    if try source.first(JournalFrame.magic, in: 0..<source.size) != nil { return false }
    return try BlockScan(source).next(from: 0, before: source.size) == nil
  }
}
