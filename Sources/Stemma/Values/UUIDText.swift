import struct Foundation.UUID

/// UUIDs as lower-case text of 36 bytes. Foundation's own reading and writing cost ten times as much, and every
/// row has one.
enum UUIDText {
  /// Where each of the 16 bytes' first digit stands.
  private static let places: [Int] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]

  static func uuid(of text: UnsafeBufferPointer<UInt8>) -> UUID? {
    guard text.count == 36, text[8] == 45, text[13] == 45, text[18] == 45, text[23] == 45 else { return nil }
    var isValid = true
    func byte(_ place: Int) -> UInt8 {
      guard let high = digit(text[place]), let low = digit(text[place + 1]) else {
        isValid = false
        return 0
      }
      return high << 4 | low
    }
    let uuid = UUID(
      uuid: (
        byte(0), byte(2), byte(4), byte(6), byte(9), byte(11), byte(14), byte(16), byte(19), byte(21),
        byte(24),
        byte(26), byte(28), byte(30), byte(32), byte(34)
      ))
    return isValid ? uuid : nil
  }

  @inline(__always)
  private static func digit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case 48...57: byte - 48
    case 97...102: byte - 87
    case 65...70: byte - 55
    default: nil
    }
  }

  static func text(of uuid: UUID) -> String {
    String(unsafeUninitializedCapacity: 36) { text in
      withUnsafeBytes(of: uuid.uuid) { bytes in
        for (index, place) in places.enumerated() {
          text[place] = letter(bytes[index] >> 4)
          text[place + 1] = letter(bytes[index] & 15)
        }
      }
      for place in [8, 13, 18, 23] { text[place] = 45 }
      return 36
    }
  }

  @inline(__always)
  private static func letter(_ digit: UInt8) -> UInt8 { digit < 10 ? 48 + digit : 87 + digit }
}
