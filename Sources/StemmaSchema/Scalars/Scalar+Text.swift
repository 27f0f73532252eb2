extension Scalar {
  /// The rule that a text breaks as a value of this scalar; nil if none. Scalars that are not text
  /// accept any, and so does AWSJSON, which the JSON reader checks.
  package func rule(brokenBy text: String) -> String? {
    switch self {
    case .id, .string, .int, .float, .boolean, .awsTimestamp, .awsJSON: nil
    case .awsDate:
      DateText.isDate(text) ? nil : "a date is written like 2024-02-29, with an offset behind it if need be"
    case .awsTime:
      DateText.isTime(text) ? nil : "a time is written like 23:59:59.999, with an offset behind it if need be"
    case .awsDateTime:
      DateText(dateTime: text) != nil ? nil : "a date and time is written like 2024-02-29T23:59:59Z"
    case .awsEmail: text.isEmail ? nil : "an email address is written like name@example.org"
    case .awsPhone:
      text.isPhone ? nil : "a phone number has 3 to 15 digits, + in front and spaces or hyphens between"
    case .awsURL: text.isURL ? nil : "a URL is written like https://example.org/path, in ASCII"
    case .awsIPAddress:
      text.isIPAddress ? nil : "an IP address is written like 192.0.2.1, 2001:db8::1 or 192.0.2.0/24"
    }
  }

  /// Whether values of this scalar are text in events and tables.
  package var isText: Bool {
    switch self {
    case .int, .float, .boolean, .awsTimestamp: false
    default: true
    }
  }
}

extension String {
  /// Thirty-six characters, hexadecimal digits in groups of 8, 4, 4, 4 and 12.
  package var isUUIDShaped: Bool {
    guard utf8.count == 36 else { return false }
    return utf8.withContiguousStorageIfAvailable(Self.isUUIDShaped)
      ?? Array(utf8).withUnsafeBufferPointer(
        Self.isUUIDShaped)
  }

  private static func isUUIDShaped(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    for index in bytes.indices {
      let isHyphen = index == 8 || index == 13 || index == 18 || index == 23
      guard isHyphen ? bytes[index] == UInt8(ascii: "-") : bytes[index].isHexDigit else { return false }
    }
    return true
  }

  /// `local@domain` of RFC 5321 without comments and quotes; both may have UTF-8 (RFC 6531).
  fileprivate var isEmail: Bool {
    let parts = utf8.split(separator: UInt8(ascii: "@"), omittingEmptySubsequences: false)
    guard parts.count == 2, utf8.count <= 254, (1...64).contains(parts[0].count) else { return false }
    let atoms = parts[0].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let specials = Array("!#$%&'*+-/=?^_`{|}~".utf8)
    guard
      atoms.allSatisfy({ atom in
        !atom.isEmpty
          && atom.allSatisfy { $0.isLetter || $0.isDigit || $0 >= 0x80 || specials.contains($0) }
      })
    else { return false }
    let labels = parts[1].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return labels.allSatisfy { label in
      (1...63).contains(label.count) && label.first != UInt8(ascii: "-") && label.last != UInt8(ascii: "-")
        && label.allSatisfy { $0.isLetter || $0.isDigit || $0 == UInt8(ascii: "-") || $0 >= 0x80 }
    }
  }

  fileprivate var isPhone: Bool {
    var digits = 0
    for (index, byte) in utf8.enumerated() {
      switch byte {
      case UInt8(ascii: "+"): if index > 0 { return false }
      case UInt8(ascii: " "), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "("), UInt8(ascii: ")"):
        if index == 0 && byte != UInt8(ascii: "(") { return false }
      default:
        guard byte.isDigit else { return false }
        digits += 1
      }
    }
    return (3...15).contains(digits) && utf8.last.map { $0.isDigit || $0 == UInt8(ascii: ")") } == true
  }

  /// A scheme, a colon and more text, in the characters that RFC 3986 allows.
  fileprivate var isURL: Bool {
    let bytes = Array(utf8)
    guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), colon > 0, bytes[0].isLetter else {
      return false
    }
    let schemeSigns = Array("+-.".utf8)
    guard bytes[..<colon].allSatisfy({ $0.isLetter || $0.isDigit || schemeSigns.contains($0) }) else {
      return false
    }
    let rest = bytes[(colon + 1)...]
    let signs = Array("-._~:/?#[]@!$&'()*+,;=".utf8)
    var index = rest.startIndex
    while index < rest.endIndex {
      if rest[index] == UInt8(ascii: "%") {
        guard rest.endIndex - index > 2, rest[index + 1].isHexDigit, rest[index + 2].isHexDigit else {
          return false
        }
      } else {
        let byte = rest[index]
        guard byte.isLetter || byte.isDigit || signs.contains(byte) else { return false }
      }
      index += 1
    }
    if rest.starts(with: "//".utf8) {
      let isFile = String(decoding: bytes[..<colon], as: UTF8.self).lowercased() == "file"
      let host = rest.dropFirst(2).prefix { !"/?#".utf8.contains($0) }
      return isFile || !host.isEmpty
    }
    return !rest.isEmpty
  }
}
