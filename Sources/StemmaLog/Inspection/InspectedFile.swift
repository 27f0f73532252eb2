package struct InspectedFile: Sendable {
  package let path: String
  package let size: UInt64
  let file: any File

  package init(path: String, fileSystem: any FileSystem) throws(LogError) {
    let file = try fileSystem.open(path, .read)
    self.init(path: path, file: file, size: try file.size())
  }

  init(path: String, file: any File, size: UInt64) {
    self.path = path
    self.file = file
    self.size = size
  }

  /// Bytes that a search may read to try candidates, because their lengths come from the file.
  var allowance: UInt64 { size.multipliedReportingOverflow(by: InspectionLimits.readings).partialValue }

  /// At most `count` bytes; fewer where the file ends.
  package func bytes(at offset: UInt64, count: Int) throws(LogError) -> [UInt8] {
    guard offset < size, count > 0 else { return [] }
    return try file.read(at: offset, count: Int(min(UInt64(count), size - offset)))
  }

  /// The first place of `pattern` in `range` that `isWanted` accepts; nil if there is none. Reads
  /// each chunk once. The first chunk is small, because the place is often near.
  package func first(
    _ pattern: [UInt8], in range: Range<UInt64>,
    where isWanted: (UInt64) throws(LogError) -> Bool = { (_) throws(LogError) in true }
  ) throws(LogError) -> UInt64? {
    var offset = range.lowerBound
    let overlap = pattern.count - 1
    var chunk: UInt64 = 4 << 10
    while offset + UInt64(overlap) < range.upperBound {
      let bytes = try bytes(at: offset, count: Int(min(chunk, range.upperBound - offset)))
      chunk = min(2 * chunk, UInt64(LogLimits.scanChunk))
      for index in bytes.indices.dropLast(overlap) where bytes[index] == pattern[0] {
        guard bytes[index..<index + pattern.count].elementsEqual(pattern) else { continue }
        if try isWanted(offset + UInt64(index)) { return offset + UInt64(index) }
      }
      if bytes.count <= overlap { return nil }
      offset += UInt64(bytes.count - overlap)
    }
    return nil
  }

  /// The first byte at or behind `start` that is not zero; nil if there is none.
  func firstNonZero(from start: UInt64) throws(LogError) -> UInt64? {
    var offset = start
    while offset < size {
      let bytes = try bytes(at: offset, count: LogLimits.scanChunk)
      if let index = bytes.firstIndex(where: { $0 != 0 }) { return offset + UInt64(index) }
      if bytes.isEmpty { return nil }
      offset += UInt64(bytes.count)
    }
    return nil
  }
}
