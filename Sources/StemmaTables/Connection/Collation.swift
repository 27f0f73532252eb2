import GRDBSQLite

/// Orders of text beside SQLite's own, which compares bytes. Every connection knows them; no table and no index names
/// one, so any other program reads the file.
package enum Collation: String, Sendable {
  /// Decimal numbers: a sign, digits, a point, digits. `1.5` and `01.50` are equal, -0 is 0. What is no such number comes
  /// behind them all, by its bytes.
  case decimal = "stemma_decimal"
  /// Base64 by the bytes that it stands for.
  case base64 = "stemma_base64"

  /// Makes both known to a connection.
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
  }

  private static func text(_ start: UnsafeRawPointer?, _ count: Int32) -> UnsafeRawBufferPointer {
    UnsafeRawBufferPointer(start: start, count: Int(count))
  }

  // MARK: Decimal numbers

  /// A number as slices of its text: no zeros in front of the whole part, none behind the fraction.
  private struct Number {
    var isNegative = false
    var whole: Slice<UnsafeRawBufferPointer>
    var fraction: Slice<UnsafeRawBufferPointer>

    var isZero: Bool { whole.isEmpty && fraction.isEmpty }

    /// Nil for text that is no number.
    init?(_ text: UnsafeRawBufferPointer) {
      var rest = text[...]
      if let sign = rest.first, sign == 0x2D || sign == 0x2B {
        isNegative = sign == 0x2D
        rest = rest.dropFirst()
      }
      let point = rest.firstIndex(of: 0x2E) ?? rest.endIndex
      whole = rest[..<point]
      fraction = rest[point...].dropFirst()
      guard whole.count + fraction.count > 0, whole.allSatisfy({ (0x30...0x39).contains($0) }),
        fraction.allSatisfy({ (0x30...0x39).contains($0) })
      else { return nil }
      whole = whole.drop { $0 == 0x30 }
      while fraction.last == 0x30 { fraction = fraction.dropLast() }
    }

    /// Ascending, whatever the signs.
    static func compareMagnitudes(_ a: Number, _ b: Number) -> Int32 {
      if a.whole.count != b.whole.count { return a.whole.count < b.whole.count ? -1 : 1 }
      let whole = Collation.compareBytes(a.whole, b.whole)
      return whole != 0 ? whole : Collation.compareBytes(a.fraction, b.fraction)
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

  // MARK: Base64

  /// By the values of the letters, six bits each; padding has none and is left out. Other letters come behind.
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

  fileprivate static func compareBytes(
    _ a: Slice<UnsafeRawBufferPointer>, _ b: Slice<UnsafeRawBufferPointer>
  ) -> Int32 {
    for (a, b) in zip(a, b) where a != b { return a < b ? -1 : 1 }
    return a.count == b.count ? 0 : a.count < b.count ? -1 : 1
  }
}
