import StemmaEvents

/// The checksum that follows a state in the tables. It detects a row with a changed byte, because
/// new events must build only on what the log contains.
///
///     state     the bytes of `encoded`
///     checksum  4 bytes, big-endian: CRC32C over the encoded key; each value that the state omits
///               and that is not null, by field: 8 bytes field × 8 + tag (`ValueTag`), 8 bytes
///               number (bits of a double, 0 or 1 for a Boolean) or length and text; the state
///
/// The checksum covers the values as read, so a column's affinity does not affect it.
package struct StateChecksum {
  package static let size = 4

  private var crc: UInt32

  package init(_ key: UnsafeRawBufferPointer) { crc = CRC32C.of(key) }

  package init(_ key: Key) { self = key.bytes.withUnsafeBytes { StateChecksum($0) } }

  /// Adds the next value that is stored in its column.
  package mutating func add(_ field: Int, _ tag: ValueTag, bits: UInt64) {
    let words = ((UInt64(field) << 3 | UInt64(tag.rawValue)).bigEndian, bits.bigEndian)
    crc = withUnsafeBytes(of: words) { CRC32C.of($0, continuing: crc) }
  }

  package mutating func add(_ field: Int, _ tag: ValueTag, text: UnsafeRawBufferPointer) {
    add(field, tag, bits: UInt64(text.count))
    crc = CRC32C.of(text, continuing: crc)
  }

  mutating func add(_ field: Int, _ value: Value) {
    switch value {
    case .null: return
    case .bool(let flag): add(field, .bool, bits: flag ? 1 : 0)
    case .int(let number): add(field, .int, bits: UInt64(bitPattern: number))
    case .double(let number): add(field, .double, bits: number.bitPattern)
    case .string(var text), .json(var text):
      text.withUTF8 { add(field, value.tag, text: UnsafeRawBufferPointer($0)) }
    }
  }

  /// Adds the state, which comes last, and appends the checksum to it.
  mutating func close(_ bytes: inout [UInt8]) {
    bytes.append(contentsOf: repeatElement(0, count: Self.size))
    bytes.withUnsafeMutableBytes { close($0) }
  }

  /// Adds the state, which comes last, and writes the checksum to the last bytes.
  package mutating func close(_ bytes: UnsafeMutableRawBufferPointer) {
    let end = bytes.count - Self.size
    take(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
    bytes.storeBytes(of: crc.bigEndian, toByteOffset: end, as: UInt32.self)
  }

  private mutating func take(_ state: UnsafeRawBufferPointer) { crc = CRC32C.of(state, continuing: crc) }

  /// The bytes before the checksum; all bytes if there are too few for one.
  package static func state(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: bytes.dropLast(bytes.count < size ? 0 : size))
  }

  /// The checksum that follows a state; 0 if there is none.
  package static func checksum(in bytes: UnsafeRawBufferPointer) -> UInt32 {
    guard bytes.count >= size else { return 0 }
    return UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: bytes.count - size, as: UInt32.self))
  }

  fileprivate mutating func holds(for bytes: UnsafeRawBufferPointer) -> Bool {
    take(Self.state(in: bytes))
    return crc == Self.checksum(in: bytes)
  }
}

extension RecordState {
  /// The canonical bytes, followed by the checksum.
  package func sealed(_ rules: MergeRules, omitsShown: Bool, _ key: [UInt8]) -> [UInt8] {
    var seal = key.withUnsafeBytes { StateChecksum($0) }
    var bytes = encoded(rules, omitsShown: omitsShown, &seal)
    seal.close(&bytes)
    return bytes
  }

  /// Decodes `sealed` bytes for this key. Throws `malformed` otherwise; `column`: see
  /// `init(decoding:)`.
  package init(
    sealed bytes: UnsafeRawBufferPointer, _ key: Key, _ rules: MergeRules, column: (Int) -> Value
  ) throws(MergeError) {
    var seal = StateChecksum(key)
    let state = StateChecksum.state(in: bytes)
    try self.init(decoding: state, rules) { field in
      let value = column(field)
      seal.add(field, value)
      return value
    }
    guard seal.holds(for: bytes) else { throw .malformed("state", "its checksum does not hold") }
  }
}
