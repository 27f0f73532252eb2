extension String {
  /// An IPv4 or IPv6 address, with a prefix length after `/` for a network.
  var isIPAddress: Bool {
    let parts = split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = parts.first else { return false }
    let isV4 = Self.isIPv4(address)
    guard isV4 || Self.isIPv6(address) else { return false }
    guard parts.count == 2 else { return true }
    return Self.decimal(parts[1], atMost: isV4 ? 32 : 128)
  }

  /// A decimal number without leading zeros.
  private static func decimal(_ text: Substring, atMost limit: Int) -> Bool {
    guard (1...3).contains(text.utf8.count), text.utf8.allSatisfy(\.isDigit),
      text == "0" || text.utf8.first != UInt8(ascii: "0"), let number = Int(text)
    else { return false }
    return number <= limit
  }

  private static func isIPv4(_ text: Substring) -> Bool {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts.allSatisfy { decimal($0, atMost: 255) }
  }

  /// Eight groups of up to four hexadecimal digits. A single `::` means one or more groups of
  /// zeros. The last two groups can be an IPv4 address (RFC 4291, section 2.2).
  private static func isIPv6(_ text: Substring) -> Bool {
    guard text.utf8.count <= 45 else { return false }
    let halves = text.split(separator: "::", omittingEmptySubsequences: false)
    guard halves.count <= 2 else { return false }
    var groups = 0
    for (index, half) in halves.enumerated() {
      if half.isEmpty {
        if halves.count == 1 { return false }
        continue
      }
      let words = half.split(separator: ":", omittingEmptySubsequences: false)
      for (position, word) in words.enumerated() {
        let isLast = index == halves.count - 1 && position == words.count - 1
        if isLast && word.utf8.contains(UInt8(ascii: ".")) {
          guard isIPv4(word) else { return false }
          groups += 2
        } else {
          guard (1...4).contains(word.utf8.count), word.utf8.allSatisfy(\.isHexDigit) else { return false }
          groups += 1
        }
      }
    }
    return halves.count == 2 ? groups <= 7 : groups == 8
  }
}
