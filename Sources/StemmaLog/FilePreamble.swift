/// The first 16 bytes of every log file, the same in every version for ever, so that a newer file is told
/// from a damaged one:
///
///     0   8  magic: what kind of file this is
///     8   1  format version
///     9   3  zero
///     12  4  CRC32C of bytes 0 … 11
enum FilePreamble {
  static let size = 16

  static let journal: [UInt8] = Array("STEMMA-J".utf8)
  static let segment: [UInt8] = Array("STEMMA-S".utf8)
  static let watermark: [UInt8] = Array("STEMMA-W".utf8)

  /// The version that is written, and the highest that is read.
  static let version: UInt8 = 1

  static func encode(_ magic: [UInt8], into bytes: inout [UInt8]) {
    let start = bytes.count
    bytes += magic
    bytes += [version, 0, 0, 0]
    bytes.put(bytes.crc32c(start..<start + 12))
  }

  /// Throws `.damaged` at offset 0 of `path`, or `.newerFormat`.
  static func check(_ bytes: [UInt8], _ magic: [UInt8], path: String, at offset: UInt64 = 0) throws(LogError)
  {
    do throws(Flaw) {
      guard !bytes.isEmpty else { throw .empty }
      var reader = FieldReader(bytes)
      guard try reader.raw(8) == magic else { throw .notThisFormat }
      let version = try reader.uint8()
      try reader.zeros(3, "preamble")
      let expected = try reader.uint32()
      let found = bytes.crc32c(0..<12)
      guard expected == found else { throw .checksum(expected: expected, found: found) }
      guard version > 0 else { throw .malformed("version") }
    } catch {
      throw .damaged(path: path, offset: offset, error)
    }
    if bytes[8] > Self.version {
      throw .newerFormat(path: path, found: bytes[8], supported: Self.version)
    }
  }
}
