extension JSON {
  /// Appends the value without white space, in its order. Escapes only `"`, `\` and C0 controls.
  package func append(to bytes: inout [UInt8]) {
    switch self {
    case .null: bytes.append(contentsOf: "null".utf8)
    case .bool(let flag): bytes.append(contentsOf: (flag ? "true" : "false").utf8)
    case .int(let number): Self.append(number, to: &bytes)
    case .number(let text): bytes.append(contentsOf: text.utf8)
    case .string(let text): Self.append(text, to: &bytes)
    case .array(let elements):
      bytes.append(UInt8(ascii: "["))
      for (position, element) in elements.enumerated() {
        if position > 0 { bytes.append(UInt8(ascii: ",")) }
        element.append(to: &bytes)
      }
      bytes.append(UInt8(ascii: "]"))
    case .object(let members):
      bytes.append(UInt8(ascii: "{"))
      for (position, member) in members.enumerated() {
        if position > 0 { bytes.append(UInt8(ascii: ",")) }
        Self.append(member.name, to: &bytes)
        bytes.append(UInt8(ascii: ":"))
        member.value.append(to: &bytes)
      }
      bytes.append(UInt8(ascii: "}"))
    }
  }

  /// The text with the members of all objects sorted by the bytes of their names: one text for one
  /// value. Numbers keep their spelling, because `1.0` and `1` can differ for their writer.
  package var canonicalText: String { canonical.text }

  /// A key as a person types it.
  package var keyWords: String {
    guard case .object(let members) = self else { return plainText }
    if members.count == 1 { return members[0].value.plainText }
    return members.map { "\($0.name)=\($0.value.plainText)" }.joined(separator: " ")
  }

  /// A string without quotes; other values as JSON.
  package var plainText: String { if case .string(let text) = self { text } else { canonicalText } }

  package var text: String {
    var bytes: [UInt8] = []
    append(to: &bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  private var canonical: JSON {
    switch self {
    case .array(let elements): .array(elements.map(\.canonical))
    case .object(let members):
      .object(
        members.map { ($0.name, $0.value.canonical) }.sorted { $0.name.hasBytes(before: $1.name) })
    default: self
    }
  }

  /// Appends a JSON string.
  package static func append(_ text: String, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\""))
    var text = text
    text.withUTF8 { utf8 in
      var start = 0
      for index in utf8.indices {
        let byte = utf8[index]
        guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
        bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[start..<index]))
        start = index + 1
        appendEscape(byte, to: &bytes)
      }
      bytes.append(contentsOf: UnsafeBufferPointer(rebasing: utf8[start...]))
    }
    bytes.append(UInt8(ascii: "\""))
  }

  private static func appendEscape(_ byte: UInt8, to bytes: inout [UInt8]) {
    bytes.append(UInt8(ascii: "\\"))
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"): bytes.append(byte)
    case 0x08: bytes.append(UInt8(ascii: "b"))
    case 0x09: bytes.append(UInt8(ascii: "t"))
    case 0x0A: bytes.append(UInt8(ascii: "n"))
    case 0x0C: bytes.append(UInt8(ascii: "f"))
    case 0x0D: bytes.append(UInt8(ascii: "r"))
    default:
      let digits = Array("0123456789abcdef".utf8)
      bytes += [UInt8(ascii: "u"), UInt8(ascii: "0"), UInt8(ascii: "0")]
      bytes += [digits[Int(byte >> 4)], digits[Int(byte & 15)]]
    }
  }

  static func append(_ number: Int64, to bytes: inout [UInt8]) {
    bytes.append(contentsOf: String(number).utf8)
  }
}
