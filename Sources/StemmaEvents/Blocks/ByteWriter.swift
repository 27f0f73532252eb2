/// Writes into memory that is large enough and that the caller keeps alive. An array checks its
/// capacity at each appended byte, which costs more than the digest of an event.
package struct ByteWriter {
  @usableFromInline let target: UnsafeMutableRawBufferPointer
  @usableFromInline var count = 0

  @inlinable
  package init(_ target: UnsafeMutableRawBufferPointer) { self.target = target }

  @inlinable package var written: UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: target[..<count])
  }

  @inlinable @inline(__always)
  func reserve(_ room: Int) {
    precondition(target.count - count >= room, "the memory is as large as what is written can be")
  }

  @inlinable
  package mutating func byte(_ byte: UInt8) {
    reserve(1)
    target[count] = byte
    count += 1
  }

  @inlinable
  package mutating func varint(_ number: UInt64) {
    reserve(number.varintCount)
    var rest = number
    while rest >= 0x80 {
      target[count] = UInt8(truncatingIfNeeded: rest) | 0x80
      count += 1
      rest >>= 7
    }
    target[count] = UInt8(truncatingIfNeeded: rest)
    count += 1
  }

  @inlinable
  package mutating func fixed(_ number: UInt64) {
    reserve(8)
    target.storeBytes(of: number.bigEndian, toByteOffset: count, as: UInt64.self)
    count += 8
  }

  package mutating func copy(_ bytes: UnsafeRawBufferPointer) {
    reserve(bytes.count)
    UnsafeMutableRawBufferPointer(rebasing: target[count..<count + bytes.count]).copyMemory(from: bytes)
    count += bytes.count
  }

  package mutating func counted(_ bytes: UnsafeRawBufferPointer) {
    varint(UInt64(bytes.count))
    copy(bytes)
  }

  package mutating func counted(_ bytes: [UInt8]) { bytes.withUnsafeBytes { counted($0) } }

  package mutating func counted(_ text: String) {
    var text = text
    text.withUTF8 { counted(UnsafeRawBufferPointer($0)) }
  }
}
