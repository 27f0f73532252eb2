/// The first 16 bytes of every log file. All format versions share this layout, so a reader can
/// distinguish a newer file from a corrupt one:
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
  static let manifest: [UInt8] = Array("STEMMA-M".utf8)

  /// The version that is written, and the highest that is read.
  static let version: UInt8 = 2

  static func encode(_ magic: [UInt8], into bytes: inout [UInt8]) {
    let start = bytes.count
    bytes += magic
    bytes += [version, 0, 0, 0]
    bytes.appendFixed(bytes.crc32c(start..<start + 12))
  }

  /// Throws `.corrupt` at offset 0 of `path`, or `.newerFormat`.
  static func check(_ bytes: [UInt8], _ magic: [UInt8], path: String, at offset: UInt64 = 0) throws(LogError)
  {
    do throws(Flaw) {
      guard !bytes.isEmpty else { throw .empty }
      guard bytes.count >= size else { throw .cutShort(expected: UInt64(size), found: UInt64(bytes.count)) }
      guard bytes.starts(with: magic) else { throw .notThisFormat }
      guard bytes[9..<12].allSatisfy({ $0 == 0 }) else { throw .malformed("preamble") }
      try bytes.checkCRC(at: 12)
      guard bytes[8] >= version else { throw .malformed("version") }
    } catch {
      throw .corrupt(path: path, offset: offset, error)
    }
    if bytes[8] > Self.version {
      throw .newerFormat(path: path, found: bytes[8], supported: Self.version)
    }
  }
}
