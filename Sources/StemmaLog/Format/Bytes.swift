import CStemma
import Crypto
import StemmaEvents

extension [UInt8] {
  package func crc32c(_ range: Range<Int>, from crc: UInt32 = 0) -> UInt32 {
    withUnsafeBytes { stemma_crc32c(crc, $0.baseAddress.map { $0 + range.lowerBound }, range.count) }
  }

  var crc32c: UInt32 { crc32c(0..<count) }

  /// Throws unless the four bytes at `place` are the CRC32C of all bytes before them.
  func checkCRC(at place: Int) throws(Flaw) {
    let expected = try read(from: place) { (reader) throws(Flaw) in try reader.fixed32("checksum") }
    let found = crc32c(0..<place)
    guard expected == found else { throw .checksum(expected: expected, found: found) }
  }
}

extension SHA256 {
  mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update(bufferPointer: $0) } }
}
