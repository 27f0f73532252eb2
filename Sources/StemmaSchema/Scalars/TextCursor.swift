/// Reads the bytes of a text, for the scalars. Never allocates.
struct TextCursor {
  private var rest: Substring.UTF8View

  init(_ text: String) { rest = text[...].utf8 }

  var isAtEnd: Bool { rest.isEmpty }
  var peek: UInt8? { rest.first }

  mutating func take() -> UInt8? { rest.popFirst() }

  mutating func take(_ character: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: character) else { return false }
    rest.removeFirst()
    return true
  }

  /// Exactly `count` digits that make a number in `range`.
  mutating func number(digits count: Int, in range: ClosedRange<Int>) -> Int? {
    var value = 0
    for _ in 0..<count {
      guard let byte = rest.first, byte.isDigit else { return nil }
      value = value * 10 + Int(byte - UInt8(ascii: "0"))
      rest.removeFirst()
    }
    return range.contains(value) ? value : nil
  }
}

extension UInt8 {
  var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
  var isLetter: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self | 0x20) }
  var isHexDigit: Bool { isDigit || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(self | 0x20) }
}
