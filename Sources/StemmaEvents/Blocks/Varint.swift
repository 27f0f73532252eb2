/// The integers of all formats: unsigned LEB128 (seven bits a byte, the lowest first, the high bit
/// set on all but the last), always in the shortest form. Signed integers are folded by zigzag
/// first (0, -1, 1, -2 … → 0, 1, 2, 3 …). Fixed-width numbers are big-endian.
extension [UInt8] {
  @inlinable
  package mutating func appendVarint(_ number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    append(UInt8(truncatingIfNeeded: rest))
  }

  @inlinable
  package mutating func appendVarint(_ number: Int) { appendVarint(UInt64(number)) }

  @inlinable
  package mutating func appendZigzag(_ number: Int64) { appendVarint(number.zigzag) }

  @inlinable
  package mutating func appendFixed(_ number: UInt64) {
    var stored = number.bigEndian
    Swift.withUnsafeBytes(of: &stored) { append(contentsOf: $0) }
  }

  @inlinable
  package mutating func appendFixed(_ number: UInt32) {
    Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
  }

  /// The UTF-8 bytes of `text`, without their count.
  @inlinable
  package mutating func appendText(_ text: String) {
    let isDone: Void? = text.utf8.withContiguousStorageIfAvailable { append(contentsOf: $0) }
    if isDone == nil { append(contentsOf: text.utf8) }
  }

  /// The count of the bytes, then the bytes.
  @inlinable
  package mutating func appendCounted(_ bytes: [UInt8]) {
    appendVarint(bytes.count)
    append(contentsOf: bytes)
  }

  /// The count of the UTF-8 bytes, then the bytes.
  @inlinable
  package mutating func appendCounted(_ text: String) {
    appendVarint(text.utf8.count)
    appendText(text)
  }
}

extension Int64 {
  @inlinable package var zigzag: UInt64 { UInt64(bitPattern: (self << 1) ^ (self >> 63)) }

  @inlinable package init(zigzag: UInt64) {
    self = Int64(bitPattern: zigzag >> 1) ^ -Int64(bitPattern: zigzag & 1)
  }
}

extension UInt64 {
  /// How many bytes the number takes as a varint: 1 to 10.
  @inlinable package var varintCount: Int { Swift.max(1, (70 - leadingZeroBitCount) / 7) }
}
