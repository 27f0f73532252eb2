import struct Foundation.UUID

/// UUIDs as lower-case text of 36 bytes. Foundation's conversions cost ten times as much, and every
/// row has a UUID.
///
/// Both directions convert eight hexadecimal digits at a time, one in each byte of a word. A letter
/// has bit 6 set, and its low four bits are nine less than its value.
enum UUIDText {
  /// Nil for anything but 32 digits, of either case, in groups of 8, 4, 4, 4 and 12.
  static func uuid(of text: UnsafeBufferPointer<UInt8>) -> UUID? {
    guard text.count == 36, let start = text.baseAddress, start[8] == 45, start[13] == 45, start[18] == 45,
      start[23] == 45
    else { return nil }
    let bytes = UnsafeRawPointer(start)
    func four(_ place: Int) -> UInt64 {
      UInt64(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self)))
    }
    var isValid = true
    let first = packed(four(0) | four(4) << 32, &isValid) | packed(four(9) | four(14) << 32, &isValid) << 32
    let last = packed(four(19) | four(24) << 32, &isValid) | packed(four(28) | four(32) << 32, &isValid) << 32
    guard isValid else { return nil }
    // A UUID is 16 bytes in the order of its text. Loading them at once saves a call of
    // Foundation's initializer for each row, which is not inlined.
    return withUnsafeBytes(of: (first.littleEndian, last.littleEndian)) { $0.load(as: UUID.self) }
  }

  /// The four bytes of eight digits.
  @inline(__always)
  private static func packed(_ text: UInt64, _ isValid: inout Bool) -> UInt64 {
    let letters = text >> 6 & ones
    let digits = (text & lowDigits) &+ letters &* 9
    // Spelling the result again shows whether the text was valid.
    let isTen = (digits &+ 6 &* ones) >> 4 & ones
    let again = digits &+ 0x30 &* ones &+ isTen &* 39
    if digits & ~lowDigits != 0 || again != text | letters << 5 { isValid = false }
    var packed = (digits << 4 | digits >> 8) & 0x00ff_00ff_00ff_00ff
    packed = (packed | packed >> 8) & 0x0000_ffff_0000_ffff
    return (packed | packed >> 16) & 0xffff_ffff
  }

  static func text(of uuid: UUID) -> String {
    String(unsafeUninitializedCapacity: 36) { text in
      guard let start = text.baseAddress else { return 0 }
      withUnsafeBytes(of: uuid.uuid) { bytes in
        func digits(_ place: Int) -> UInt64 {
          spelled(UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self)))
        }
        let target = UnsafeMutableRawPointer(start)
        func put(_ digits: UInt64, _ place: Int) {
          let four = UInt32(truncatingIfNeeded: digits)
          target.storeBytes(of: four.littleEndian, toByteOffset: place, as: UInt32.self)
        }
        let (first, second, third, fourth) = (digits(0), digits(4), digits(8), digits(12))
        put(first, 0)
        put(first >> 32, 4)
        put(second, 9)
        put(second >> 32, 14)
        put(third, 19)
        put(third >> 32, 24)
        put(fourth, 28)
        put(fourth >> 32, 32)
      }
      for place in [8, 13, 18, 23] { text[place] = 45 }
      return 36
    }
  }

  /// The eight digits of four bytes.
  @inline(__always)
  private static func spelled(_ bytes: UInt32) -> UInt64 {
    var digits = UInt64(bytes)
    digits = (digits | digits << 16) & 0x0000_ffff_0000_ffff
    digits = (digits | digits << 8) & 0x00ff_00ff_00ff_00ff
    digits = (digits >> 4 | digits << 8) & lowDigits
    let isTen = (digits &+ 6 &* ones) >> 4 & ones
    return digits &+ 0x30 &* ones &+ isTen &* 39
  }

  private static var ones: UInt64 { 0x0101_0101_0101_0101 }
  private static var lowDigits: UInt64 { 0x0f0f_0f0f_0f0f_0f0f }
}
