import CStemma
import Crypto

// Numbers in log files are big-endian, or LEB128 varints in their shortest form.

extension [UInt8] {
  mutating func put(_ number: UInt32) {
    Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
  }
  mutating func put(_ number: UInt64) {
    Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
  }

  package func crc32c(_ range: Range<Int>, from crc: UInt32 = 0) -> UInt32 {
    withUnsafeBytes { stemma_crc32c(crc, $0.baseAddress.map { $0 + range.lowerBound }, range.count) }
  }

  var crc32c: UInt32 { crc32c(0..<count) }
}

extension SHA256 {
  mutating func update(_ bytes: [UInt8]) { bytes.withUnsafeBytes { update(bufferPointer: $0) } }
}

/// Takes numbers off bytes from outside, with every length checked.
struct FieldReader {
  private let bytes: [UInt8]
  private(set) var index: Int

  init(_ bytes: [UInt8], at index: Int = 0) {
    self.bytes = bytes
    self.index = index
  }

  var remaining: Int { bytes.count - index }

  private mutating func take(_ count: Int) throws(Flaw) -> Range<Int> {
    guard count <= remaining else {
      throw .cutShort(expected: UInt64(index) + UInt64(count), found: UInt64(bytes.count))
    }
    defer { index += count }
    return index..<index + count
  }

  mutating func uint8() throws(Flaw) -> UInt8 { bytes[try take(1).lowerBound] }

  mutating func uint32() throws(Flaw) -> UInt32 {
    UInt32(truncatingIfNeeded: Self.number(bytes, try take(4)))
  }

  mutating func uint64() throws(Flaw) -> UInt64 { Self.number(bytes, try take(8)) }

  private static func number(_ bytes: [UInt8], _ range: Range<Int>) -> UInt64 {
    var number: UInt64 = 0
    for index in range { number = number << 8 | UInt64(bytes[index]) }
    return number
  }

  mutating func raw(_ count: Int) throws(Flaw) -> [UInt8] { Array(bytes[try take(count)]) }

  mutating func varint() throws(Flaw) -> UInt64 {
    var number: UInt64 = 0
    for shift in stride(from: 0, to: 64, by: 7) {
      let byte = try uint8()
      if shift == 63 && byte > 1 { break }
      number |= UInt64(byte & 0x7F) << UInt64(shift)
      if byte < 0x80 {
        if byte == 0 && shift > 0 { break }
        return number
      }
    }
    throw .malformed("varint")
  }

  /// A number of things of which each takes at least `size` bytes that are still to come.
  mutating func count(_ subject: String, each size: Int = 1) throws(Flaw) -> Int {
    let number = try varint()
    guard number <= UInt64(remaining / size) else { throw .malformed(subject) }
    return Int(number)
  }

  mutating func length(_ subject: String, limit: Int) throws(Flaw) -> Int {
    let number = try varint()
    guard number <= UInt64(limit) else { throw .malformed(subject) }
    return Int(number)
  }

  mutating func zeros(_ count: Int, _ subject: String) throws(Flaw) {
    guard try raw(count).allSatisfy({ $0 == 0 }) else { throw .malformed(subject) }
  }

  /// A length of at most `limit`, and that many bytes of UTF-8.
  mutating func text(_ subject: String, limit: Int) throws(Flaw) -> String {
    let bytes = try raw(try length(subject, limit: limit))
    guard let text = String(validating: bytes, as: UTF8.self) else { throw .malformed(subject) }
    return text
  }
}
