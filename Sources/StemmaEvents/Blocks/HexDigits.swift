/// Lowercase hexadecimal text and UUIDs, packed two digits in a byte. Arithmetic instead of tables: a global
/// table costs a check at each digit.
enum HexDigits {
  /// The digit of a number below 16.
  static func lower(_ number: UInt8) -> UInt8 {
    number < 10 ? UInt8(ascii: "0") + number : UInt8(ascii: "a") - 10 + number
  }

  /// The number that a digit stands for; 16 or more for what is no lowercase digit.
  static func value(lower digit: UInt8) -> UInt8 {
    let number = digit &- UInt8(ascii: "0")
    if number < 10 { return number }
    let letter = digit &- UInt8(ascii: "a")
    return letter < 6 ? letter + 10 : 0xFF
  }

  static func value(upper digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
  }

  /// Where the hyphens of a UUID stand.
  static func isHyphen(_ index: Int) -> Bool { index == 8 || index == 13 || index == 18 || index == 23 }
}

extension UnsafeRawBufferPointer {
  var isLowercaseHex: Bool {
    for byte in self where HexDigits.value(lower: byte) > 15 { return false }
    return true
  }

  var isEvenLowercaseHex: Bool { count % 2 == 0 && isLowercaseHex }

  var isLowercaseUUID: Bool {
    guard count == 36 else { return false }
    for index in 0..<36 {
      let byte = self[index]
      if HexDigits.isHyphen(index) ? byte != UInt8(ascii: "-") : HexDigits.value(lower: byte) > 15 {
        return false
      }
    }
    return true
  }
}

extension [UInt8] {
  /// Appends the numbers of an even count of lowercase digits, two in a byte.
  mutating func appendPacked(hex digits: UnsafeRawBufferPointer) {
    append(count: digits.count / 2) { target in
      for index in 0..<target.count {
        let high = HexDigits.value(lower: digits[2 * index])
        target[index] = high << 4 | HexDigits.value(lower: digits[2 * index + 1])
      }
    }
  }

  /// Appends the 16 bytes of the text of a UUID in lower case.
  mutating func appendPacked(uuid text: UnsafeRawBufferPointer) {
    append(count: 16) { target in
      var place = 0
      for index in 0..<16 {
        if HexDigits.isHyphen(place) { place += 1 }
        let high = HexDigits.value(lower: text[place])
        target[index] = high << 4 | HexDigits.value(lower: text[place + 1])
        place += 2
      }
    }
  }

  /// Appends two lowercase digits for each byte.
  mutating func appendHex(_ packed: UnsafeRawBufferPointer) {
    append(count: packed.count * 2) { target in
      for index in 0..<packed.count {
        target[2 * index] = HexDigits.lower(packed[index] >> 4)
        target[2 * index + 1] = HexDigits.lower(packed[index] & 15)
      }
    }
  }

  /// Appends the text of a UUID of 16 bytes, in lower case.
  mutating func appendUUID(_ packed: UnsafeRawBufferPointer) {
    append(count: 36) { target in
      var place = 0
      for byte in packed {
        if HexDigits.isHyphen(place) {
          target[place] = UInt8(ascii: "-")
          place += 1
        }
        target[place] = HexDigits.lower(byte >> 4)
        target[place + 1] = HexDigits.lower(byte & 15)
        place += 2
      }
    }
  }

  /// Appends `count` bytes that `fill` writes in place: many times cheaper than one by one.
  private mutating func append(count added: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
    let start = count
    append(contentsOf: repeatElement(0, count: added))
    withUnsafeMutableBytes { fill(UnsafeMutableRawBufferPointer(rebasing: $0[start...])) }
  }
}
