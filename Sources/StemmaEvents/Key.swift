/// One typed part of a primary key.
package enum KeyPart: Sendable, Hashable {
  case string(String)
  case int(Int64)
  case double(Double)
  case bool(Bool)

  package static func == (a: KeyPart, b: KeyPart) -> Bool { a.value == b.value }
  package func hash(into hasher: inout Hasher) { hasher.combine(value) }

  package var value: Value {
    switch self {
    case .string(let x): .string(x)
    case .int(let x): .int(x)
    case .double(let x): .double(x)
    case .bool(let x): .bool(x)
    }
  }

  /// nil for null and JSON, which cannot be in keys.
  package init?(_ value: Value) {
    switch value {
    case .string(let x): self = .string(x)
    case .int(let x): self = .int(x)
    case .double(let x): self = .double(x)
    case .bool(let x): self = .bool(x)
    case .null, .json: return nil
    }
  }

  /// The text in partition names: the string itself, decimal digits, `true` or `false`.
  package var text: String {
    switch self {
    case .string(let x): x
    case .int(let x): String(x)
    case .double(let x): x.description
    case .bool(let x): x ? "true" : "false"
    }
  }
}

/// A record's primary key: an ordered tuple of typed values, held in its encoded form.
///
/// The encoding is injective. Its bytes have the order of the keys, part by part, as SQLite sorts a
/// composite primary key. It follows FoundationDB's tuple layer:
///
///     string   02, UTF-8 with each 00 as 00 FF, 00
///     integer  14 ± n, then n bytes big-endian; n the least that holds the magnitude,
///              negative ones as the complement of their magnitude
///     double   21, 8 bytes big-endian; all bits flipped if negative, else only the sign
///     false 26, true 27
package struct Key: Hashable, Comparable, Sendable {
  package let bytes: [UInt8]

  package init(_ parts: [KeyPart]) {
    var bytes: [UInt8] = []
    for part in parts { Self.encode(part, into: &bytes) }
    self.bytes = bytes
  }

  package init(_ parts: KeyPart...) { self.init(parts) }

  /// Accepts untrusted bytes. Throws unless they encode a non-empty key within `Limits.key`.
  package init(encoded bytes: [UInt8]) throws(EventsError) {
    guard bytes.count <= Limits.key else { throw .malformed("key", "\(bytes.count) bytes") }
    guard !bytes.isEmpty else { throw .malformed("key", "no part") }
    self.bytes = bytes
    var index = 0
    while index < bytes.count { _ = try Self.decodePart(bytes, &index) }
  }

  /// Accepts bytes that were verified when they were written or received.
  package init(trusted bytes: [UInt8]) { self.bytes = bytes }

  /// Hashes all bytes at once: one by one costs ten times as much.
  package func hash(into hasher: inout Hasher) { bytes.withUnsafeBytes { hasher.combine(bytes: $0) } }

  /// Compares all bytes at once.
  package static func == (a: Key, b: Key) -> Bool { a.bytes.isSame(as: b.bytes) }

  package static func < (a: Key, b: Key) -> Bool { a.bytes.lexicographicallyPrecedes(b.bytes) }

  /// The parts. Traps on a key from `init(trusted:)` with invalid bytes.
  package var parts: [KeyPart] {
    var parts: [KeyPart] = []
    var index = 0
    while index < bytes.count {
      do { parts.append(try Self.decodePart(bytes, &index)) } catch {
        preconditionFailure("a trusted key must have been checked before: \(error)")
      }
    }
    return parts
  }

  package static func encode(_ part: KeyPart, into bytes: inout [UInt8]) {
    switch part {
    case .string(let text):
      bytes.append(0x02)
      let start = bytes.count
      bytes.append(contentsOf: text.utf8)
      if bytes[start...].contains(0) {
        let escaped = bytes[start...].flatMap { (byte) -> [UInt8] in byte == 0 ? [0, 0xFF] : [byte] }
        bytes.replaceSubrange(start..., with: escaped)
      }
      bytes.append(0)
    case .int(let number):
      let magnitude = number.magnitude
      let count = (64 - magnitude.leadingZeroBitCount + 7) / 8
      bytes.append(UInt8(number < 0 ? 0x14 - count : 0x14 + count))
      let stored = number < 0 ? ~magnitude : magnitude
      for shift in stride(from: (count - 1) * 8, through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: stored >> UInt64(shift)))
      }
    case .double(let number):
      bytes.append(0x21)
      let bits = number.bitPattern
      let stored = bits >> 63 == 1 ? ~bits : bits | 1 << 63
      for shift in stride(from: 56, through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: stored >> UInt64(shift)))
      }
    case .bool(let flag):
      bytes.append(flag ? 0x27 : 0x26)
    }
  }

  /// The text of the string part at `index`, if it has no escape; the byte behind it ends the part.
  static func plainText(_ bytes: [UInt8], at index: Int) -> Range<Int>? {
    guard bytes[index] == 0x02, let end = bytes[(index + 1)...].firstIndex(of: 0),
      end + 1 == bytes.count || bytes[end + 1] != 0xFF
    else { return nil }
    return index + 1..<end
  }

  /// Reads the part at `index` and moves `index` behind it.
  package static func decodePart(_ bytes: [UInt8], _ index: inout Int) throws(EventsError) -> KeyPart {
    if let text = plainText(bytes, at: index) {
      guard let string = String(validating: bytes[text], as: UTF8.self) else {
        throw .malformed("key", "string that is not UTF-8")
      }
      index = text.upperBound + 1
      return .string(string)
    }
    let tag = bytes[index]
    index += 1
    switch tag {
    case 0x02:
      var text: [UInt8] = []
      while true {
        guard index < bytes.count else { throw .malformed("key", "string without end") }
        let byte = bytes[index]
        index += 1
        if byte == 0 {
          if index < bytes.count, bytes[index] == 0xFF { index += 1 } else { break }
        }
        text.append(byte)
      }
      guard let string = String(validating: text, as: UTF8.self) else {
        throw .malformed("key", "string that is not UTF-8")
      }
      return .string(string)
    case 0x0C...0x1C:
      let count = abs(Int(tag) - 0x14)
      guard bytes.count - index >= count else { throw .malformed("key", "integer cut short") }
      var stored: UInt64 = tag < 0x14 ? .max : 0
      for _ in 0..<count {
        stored = stored << 8 | UInt64(bytes[index])
        index += 1
      }
      let magnitude = tag < 0x14 ? ~stored : stored
      let isNegative = tag < 0x14
      guard (64 - magnitude.leadingZeroBitCount + 7) / 8 == count,
        magnitude <= (isNegative ? 1 << 63 : 1 << 63 - 1)
      else { throw .malformed("key", "integer out of range or not in its shortest form") }
      return .int(isNegative ? Int64(truncatingIfNeeded: 0 &- magnitude) : Int64(magnitude))
    case 0x21:
      guard bytes.count - index >= 8 else { throw .malformed("key", "double cut short") }
      var stored: UInt64 = 0
      for _ in 0..<8 {
        stored = stored << 8 | UInt64(bytes[index])
        index += 1
      }
      let number = Double(bitPattern: stored >> 63 == 1 ? stored & ~(1 << 63) : ~stored)
      guard !number.isNaN, number != 0 || number.sign == .plus else {
        throw .malformed("key", "double that is NaN or -0")
      }
      return .double(number)
    case 0x26: return .bool(false)
    case 0x27: return .bool(true)
    default: throw .malformed("key", "unknown type tag \(tag)")
    }
  }
}
