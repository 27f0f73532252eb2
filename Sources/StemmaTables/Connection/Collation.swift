import GRDBSQLite
import StemmaSchema

/// Text orders in addition to SQLite's own, which compares bytes. Every connection registers them.
/// No table and no index names one, so any other program can read the file.
package enum Collation: String, Sendable {
  /// Decimal numbers: a sign, digits, a point, digits, an exponent. `1.5`, `01.50` and `15e-1` are
  /// equal. Any other text follows all numbers, in byte order.
  case decimal = "stemma_decimal"
  /// Base64 text, in the order of the decoded bytes.
  case base64 = "stemma_base64"
  /// AWSTime, by the time of day in UTC, which an offset can move to another day. No offset means
  /// UTC. Any other text follows all times, in byte order.
  case timeOfDay = "stemma_time_of_day"

  /// Registers all collations with a connection.
  static func install(on connection: Connection) throws(TablesError) {
    let decimal = sqlite3_create_collation_v2(
      connection.handle, Collation.decimal.rawValue, SQLITE_UTF8, nil,
      { _, aCount, a, bCount, b in
        Collation.compareDecimals(Collation.text(a, aCount), Collation.text(b, bCount))
      }, nil)
    guard decimal == SQLITE_OK else { throw connection.failure(decimal) }
    let base64 = sqlite3_create_collation_v2(
      connection.handle, Collation.base64.rawValue, SQLITE_UTF8, nil,
      { _, aCount, a, bCount, b in
        Collation.compareBase64(Collation.text(a, aCount), Collation.text(b, bCount))
      }, nil)
    guard base64 == SQLITE_OK else { throw connection.failure(base64) }
    let timeOfDay = sqlite3_create_collation_v2(
      connection.handle, Collation.timeOfDay.rawValue, SQLITE_UTF8, nil,
      { _, aCount, a, bCount, b in
        Collation.compareTimes(Collation.text(a, aCount), Collation.text(b, bCount))
      }, nil)
    guard timeOfDay == SQLITE_OK else { throw connection.failure(timeOfDay) }
  }

  private static func text(_ start: UnsafeRawPointer?, _ count: Int32) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: start, count: Int(count))
  }

  // MARK: Decimal numbers

  /// A number, 0.d₁d₂d₃… × 10^point, as the slices of its text that hold these digits, without
  /// leading and trailing zeros.
  private struct Number {
    var isNegative = false
    private var whole: Slice<UnsafeRawBufferPointer>
    private var fraction: Slice<UnsafeRawBufferPointer>
    private var point = 0

    private var count: Int { whole.count + fraction.count }
    var isZero: Bool { count == 0 }

    /// Nil for text that is not a number, and for exponents of nine or more digits.
    init?(_ text: UnsafeRawBufferPointer) {
      var rest = text[...]
      isNegative = Self.takeSign(&rest)
      let end = rest.firstIndex { $0 == 0x65 || $0 == 0x45 } ?? rest.endIndex
      guard let exponent = Self.exponent(rest[end...]) else { return nil }
      rest = rest[..<end]
      let separator = rest.firstIndex(of: 0x2E) ?? end
      whole = rest[..<separator]
      fraction = rest[separator...].dropFirst()
      guard count > 0, whole.allSatisfy(Self.isDigit), fraction.allSatisfy(Self.isDigit) else { return nil }
      whole = whole.drop { $0 == 0x30 }
      point = whole.count + exponent
      if whole.isEmpty {
        let significant = fraction.drop { $0 == 0x30 }
        point -= fraction.count - significant.count
        fraction = significant
      }
      while fraction.last == 0x30 { fraction = fraction.dropLast() }
      if fraction.isEmpty { while whole.last == 0x30 { whole = whole.dropLast() } }
    }

    private static func isDigit(_ letter: UInt8) -> Bool { (0x30...0x39).contains(letter) }

    private static func takeSign(_ text: inout Slice<UnsafeRawBufferPointer>) -> Bool {
      guard let sign = text.first, sign == 0x2D || sign == 0x2B else { return false }
      text = text.dropFirst()
      return sign == 0x2D
    }

    /// The exponent that follows the first letter; 0 for empty text.
    private static func exponent(_ text: Slice<UnsafeRawBufferPointer>) -> Int? {
      guard !text.isEmpty else { return 0 }
      var digits = text.dropFirst()
      let isNegative = takeSign(&digits)
      guard !digits.isEmpty, digits.allSatisfy(isDigit) else { return nil }
      digits = digits.drop { $0 == 0x30 }
      guard digits.count < 9 else { return nil }
      let magnitude = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
      return isNegative ? -magnitude : magnitude
    }

    private func digit(_ place: Int) -> UInt8 {
      place < whole.count
        ? whole[whole.startIndex + place] : fraction[fraction.startIndex + place - whole.count]
    }

    /// Ascending, whatever the signs.
    static func compareMagnitudes(_ a: Number, _ b: Number) -> Int32 {
      if a.isZero || b.isZero { return a.isZero == b.isZero ? 0 : a.isZero ? -1 : 1 }
      if a.point != b.point { return a.point < b.point ? -1 : 1 }
      for place in 0..<min(a.count, b.count) where a.digit(place) != b.digit(place) {
        return a.digit(place) < b.digit(place) ? -1 : 1
      }
      return a.count == b.count ? 0 : a.count < b.count ? -1 : 1
    }
  }

  static func compareDecimals(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int32 {
    switch (Number(a), Number(b)) {
    case (nil, nil): return compareBytes(a[...], b[...])
    case (nil, _): return 1
    case (_, nil): return -1
    case (let a?, let b?):
      let (aIsNegative, bIsNegative) = (a.isNegative && !a.isZero, b.isNegative && !b.isZero)
      if aIsNegative != bIsNegative { return aIsNegative ? -1 : 1 }
      return aIsNegative ? Number.compareMagnitudes(b, a) : Number.compareMagnitudes(a, b)
    }
  }

  // MARK: Times of day

  static func compareTimes(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int32 {
    switch (nanoseconds(a), nanoseconds(b)) {
    case (nil, nil): return compareBytes(a[...], b[...])
    case (nil, _): return 1
    case (_, nil): return -1
    case (let a?, let b?): return a == b ? 0 : a < b ? -1 : 1
    }
  }

  private static func nanoseconds(_ text: UnsafeRawBufferPointer) -> Int64? {
    DateText.nanosecondsOfDay(time: String(decoding: text, as: UTF8.self))
  }

  // MARK: Base64

  /// By the values of the letters, six bits each. Padding sorts first, other characters last.
  static func compareBase64(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int32 {
    for (a, b) in zip(a, b) where a != b {
      let (a, b) = (rank(a), rank(b))
      if a != b { return a < b ? -1 : 1 }
    }
    return a.count == b.count ? 0 : a.count < b.count ? -1 : 1
  }

  private static func rank(_ letter: UInt8) -> Int {
    switch letter {
    case 0x3D: -1
    case 0x41...0x5A: Int(letter) - 0x41
    case 0x61...0x7A: Int(letter) - 0x61 + 26
    case 0x30...0x39: Int(letter) - 0x30 + 52
    case 0x2B: 62
    case 0x2F: 63
    default: 64 + Int(letter)
    }
  }

  private static func compareBytes(
    _ a: Slice<UnsafeRawBufferPointer>, _ b: Slice<UnsafeRawBufferPointer>
  ) -> Int32 {
    for (a, b) in zip(a, b) where a != b { return a < b ? -1 : 1 }
    return a.count == b.count ? 0 : a.count < b.count ? -1 : 1
  }
}
