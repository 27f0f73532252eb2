/// Lowercase hexadecimal text and UUIDs, two digits in a byte. Arithmetic instead of tables: access
/// to a global table costs a check at each digit.
enum HexDigits {
  /// The digit of a number below 16.
  @inline(__always)
  static func lower(_ number: UInt8) -> UInt8 {
    number &+ (number < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") - 10)
  }

  /// The number of a digit; 16 or more if it is no lowercase digit.
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

  /// The lowercase digits of four bytes, eight at once, in memory order, the first one lowest.
  @inline(__always)
  private static func digits(_ packed: UInt32) -> UInt64 {
    var spread = UInt64(packed)
    spread = (spread | spread << 16) & 0x0000_FFFF_0000_FFFF
    spread = (spread | spread << 8) & 0x00FF_00FF_00FF_00FF
    let digits = spread >> 4 & 0x000F_000F_000F_000F | (spread & 0x000F_000F_000F_000F) << 8
    // 1 in each byte whose digit is a letter.
    let letters = (digits &+ 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101
    return digits &+ 0x3030_3030_3030_3030 &+ letters &* UInt64(UInt8(ascii: "a") - 10 - UInt8(ascii: "0"))
  }

  static func unpack(_ packed: UnsafeRawBufferPointer, to target: UnsafeMutableRawBufferPointer) {
    guard let start = target.baseAddress else { return }
    unpack(packed, to: start.assumingMemoryBound(to: UInt8.self))
  }

  /// Writes two lowercase digits for each byte.
  static func unpack(_ packed: UnsafeRawBufferPointer, to target: UnsafeMutablePointer<UInt8>) {
    var index = 0
    while index + 4 <= packed.count {
      let four = UInt32(littleEndian: packed.loadUnaligned(fromByteOffset: index, as: UInt32.self))
      UnsafeMutableRawPointer(target + 2 * index).storeBytes(of: digits(four).littleEndian, as: UInt64.self)
      index += 4
    }
    while index < packed.count {
      target[2 * index] = lower(packed[index] >> 4)
      target[2 * index + 1] = lower(packed[index] & 15)
      index += 1
    }
  }

  /// Writes the text, 36 bytes, of the UUID of 16 bytes that begins at `start`, in lower case.
  @inline(__always)
  static func unpack(
    uuid packed: UnsafeRawBufferPointer, at start: Int, to target: UnsafeMutablePointer<UInt8>
  ) {
    let hyphen = UInt8(ascii: "-")
    func four(_ index: Int) -> UInt64 {
      digits(UInt32(littleEndian: packed.loadUnaligned(fromByteOffset: start + 4 * index, as: UInt32.self)))
    }
    let text = UnsafeMutableRawPointer(target)
    func store(_ digits: UInt64, at place: Int) {
      text.storeBytes(
        of: UInt32(truncatingIfNeeded: digits).littleEndian, toByteOffset: place, as: UInt32.self)
    }
    text.storeBytes(of: four(0).littleEndian, as: UInt64.self)
    store(four(1), at: 9)
    store(four(1) >> 32, at: 14)
    store(four(2), at: 19)
    store(four(2) >> 32, at: 24)
    text.storeBytes(of: four(3).littleEndian, toByteOffset: 28, as: UInt64.self)
    (target[8], target[13], target[18], target[23]) = (hyphen, hyphen, hyphen, hyphen)
  }

  /// The places of the hyphens of a UUID.
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
  /// Appends sixteen lowercase digits.
  package mutating func append(hex number: UInt64) {
    Swift.withUnsafeBytes(of: number.bigEndian) { packed in
      append(count: 16) { HexDigits.unpack(packed, to: $0) }
    }
  }

  /// Appends eight lowercase digits.
  package mutating func append(hex number: UInt32) {
    Swift.withUnsafeBytes(of: number.bigEndian) { packed in
      append(count: 8) { HexDigits.unpack(packed, to: $0) }
    }
  }

  /// Appends a number as text.
  package mutating func append(decimal number: Int64) {
    if number < 0 { append(UInt8(ascii: "-")) }
    append(decimal: number.magnitude)
  }

  package mutating func append(decimal number: UInt64) {
    var (left, unit) = (number, 1 as UInt64)
    while left / unit >= 10 { unit *= 10 }
    while unit > 0 {
      append(UInt8(ascii: "0") + UInt8(left / unit))
      left %= unit
      unit /= 10
    }
  }

  /// Appends an even number of lowercase digits, two in a byte.
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

  /// Appends `count` bytes that `fill` writes in place, which is many times faster than one by one.
  private mutating func append(count added: Int, _ fill: (UnsafeMutableRawBufferPointer) -> Void) {
    let start = count
    append(contentsOf: repeatElement(0, count: added))
    withUnsafeMutableBytes { fill(UnsafeMutableRawBufferPointer(rebasing: $0[start...])) }
  }
}
