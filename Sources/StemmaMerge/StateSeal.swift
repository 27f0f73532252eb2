import StemmaEvents

/// The checksum behind a state in the tables, which tells a row that was written from one in which a byte has changed:
/// new events build on what a row says, and must build on nothing that the log does not.
///
///     state     the bytes of `encoded`
///     checksum  4 bytes, big-endian: CRC32C over the encoded key; each value that the state leaves to its column and
///               that is not null, by field: 8 bytes field × 8 + tag (`ValueTag`), 8 bytes number (of a double its
///               bits, of a Boolean 0 or 1) or length of the text, then the text; the state
///
/// The values are covered as they are read, so what a column's affinity does to others plays no part.
package struct StateSeal {
  package static let size = 4

  private var crc: UInt32

  package init(_ key: UnsafeRawBufferPointer) { crc = CRC32C.of(key) }

  package init(_ key: Key) { self = key.bytes.withUnsafeBytes { StateSeal($0) } }

  /// Takes the next value that stands in its column.
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

  /// Takes the state, which comes last, and appends the checksum to it.
  mutating func close(_ bytes: inout [UInt8]) {
    bytes.append(contentsOf: repeatElement(0, count: Self.size))
    bytes.withUnsafeMutableBytes { close($0) }
  }

  /// Takes the state, which comes last, and writes the checksum to the last bytes, which stand behind it.
  package mutating func close(_ bytes: UnsafeMutableRawBufferPointer) {
    let end = bytes.count - Self.size
    take(UnsafeRawBufferPointer(rebasing: bytes[..<end]))
    bytes.storeBytes(of: crc.bigEndian, toByteOffset: end, as: UInt32.self)
  }

  private mutating func take(_ state: UnsafeRawBufferPointer) { crc = CRC32C.of(state, continuing: crc) }

  /// What stands in front of the checksum; all of what is too short to have one.
  package static func state(in bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(rebasing: bytes.dropLast(bytes.count < size ? 0 : size))
  }

  /// The checksum that stands behind a state; 0 if there is none.
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
  /// The canonical bytes, with the checksum behind them.
  package func sealed(_ rules: MergeRules, omitsShown: Bool, _ key: [UInt8]) -> [UInt8] {
    var seal = key.withUnsafeBytes { StateSeal($0) }
    var bytes = encoded(rules, omitsShown: omitsShown, &seal)
    seal.close(&bytes)
    return bytes
  }

  /// Reads what `sealed` gave for this key. Throws `malformedState` for anything else; `column` as in `init(decoding:)`.
  package init(
    sealed bytes: UnsafeRawBufferPointer, _ key: Key, _ rules: MergeRules, column: (Int) -> Value
  ) throws(MergeError) {
    var seal = StateSeal(key)
    let state = StateSeal.state(in: bytes)
    try self.init(decoding: state, rules) { field in
      let value = column(field)
      seal.add(field, value)
      return value
    }
    guard seal.holds(for: bytes) else { throw .malformedState(offset: state.count, .checksum) }
  }
}
