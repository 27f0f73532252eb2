import StemmaEvents

/// Writes the elements of a state's bytes.
struct StateBytes {
  private(set) var bytes: [UInt8] = []

  init(capacity: Int) { bytes.reserveCapacity(capacity) }

  mutating func append(_ byte: UInt8) { bytes.append(byte) }

  mutating func append(varint number: UInt64) {
    var rest = number
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func append(zigzag number: Int64) {
    append(varint: UInt64(bitPattern: number << 1 ^ number >> 63))
  }

  mutating func append(fixed number: UInt64) {
    withUnsafeBytes(of: number.bigEndian) { bytes.append(contentsOf: $0) }
  }

  mutating func append(text: String) {
    append(varint: UInt64(text.utf8.count))
    bytes.append(contentsOf: text.utf8)
  }
}

/// Reads them back; every length is checked before anything of that size is made.
struct StateReader {
  private let bytes: UnsafeRawBufferPointer
  private var index = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var isAtEnd: Bool { index == bytes.count }

  /// Traps if it has left what it reads.
  func checkInvariants() {
    precondition((0...bytes.count).contains(index), "a reader stands in what it reads")
  }

  func defect(_ defect: StateDefect) -> MergeError { .malformedState(offset: index, defect) }

  @inline(__always)
  mutating func byte() throws(MergeError) -> UInt8 {
    guard index < bytes.count else { throw defect(.cutShort) }
    index += 1
    return bytes[index - 1]
  }

  @inline(__always)
  private mutating func varint() throws(MergeError) -> UInt64 {
    var number: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      let byte = try byte()
      if shift == 63, byte > 1 { throw defect(.outOfRange) }
      number |= UInt64(byte & 0x7f) << shift
      if byte < 0x80 {
        // A longer form of a smaller number.
        if byte == 0, shift > 0 { throw defect(.notCanonical) }
        return number
      }
      shift += 7
    }
  }

  @inline(__always)
  mutating func number(limit: UInt64) throws(MergeError) -> UInt64 {
    let number = try varint()
    guard number <= limit else { throw defect(.outOfRange) }
    return number
  }

  mutating func zigzag() throws(MergeError) -> Int64 {
    let number = try varint()
    return Int64(bitPattern: number >> 1) ^ -Int64(bitPattern: number & 1)
  }

  @inline(__always)
  mutating func fixed() throws(MergeError) -> UInt64 {
    guard bytes.count - index >= 8 else { throw defect(.cutShort) }
    let number = UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
    index += 8
    return number
  }

  /// A count of elements that take at least `each` bytes.
  @inline(__always)
  mutating func count(each: Int) throws(MergeError) -> Int {
    let count = try varint()
    let rest = bytes.count - index
    // Without a division: `count` is no more than there are bytes.
    guard count <= UInt64(rest), Int(count) * each <= rest else { throw defect(.cutShort) }
    return Int(count)
  }

  mutating func text(limit: Int) throws(MergeError) -> String {
    let length = try number(limit: UInt64(limit))
    guard length <= UInt64(bytes.count - index) else { throw defect(.cutShort) }
    let slice = UnsafeRawBufferPointer(rebasing: bytes[index..<index + Int(length)])
    guard let text = String(validating: slice, as: UTF8.self) else { throw defect(.notUTF8) }
    index += Int(length)
    return text
  }
}
