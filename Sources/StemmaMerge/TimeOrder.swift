import StemmaEvents

/// Orders values of `createdAt` and `updatedAt` by the points in time that they represent.
///
/// `2024-01-01T00:30:00+01:00` is earlier than `2024-01-01T00:00:00Z`, but not as text. Integers
/// are seconds since 1970 (AWSTimestamp). Equal times are ordered by their bytes, so every node
/// chooses the same one. A value that is not a time is never preferred to a time.
enum TimeOrder {
  static func earlier(_ a: Value, _ b: Value) -> Value {
    let (first, second) = (PointInTime(a), PointInTime(b))
    if (first == nil) != (second == nil) { return first == nil ? b : a }
    if let first, let second, first != second { return first < second ? a : b }
    return text(a).hasBytes(before: text(b)) ? a : b
  }

  static func later(_ a: Value, _ b: Value) -> Value {
    let (first, second) = (PointInTime(a), PointInTime(b))
    if (first == nil) != (second == nil) { return first == nil ? b : a }
    if let first, let second, first != second { return first < second ? b : a }
    return text(a).hasBytes(before: text(b)) ? b : a
  }

  /// A text that differs for different values and types.
  private static func text(_ value: Value) -> String {
    switch value {
    case .null: ""
    case .bool(let x): "b\(x)"
    case .int(let x): "i\(x)"
    case .double(let x): "d\(x)"
    case .string(let x): "s" + x
    case .json(let x): "j" + x
    }
  }

  /// A point in time: seconds since 1970 and the digits of the fraction.
  struct PointInTime: Comparable {
    let seconds: Int64
    /// Decimal digits without trailing zeros; byte order is the order of the fractions.
    let fraction: [UInt8]

    static func < (a: PointInTime, b: PointInTime) -> Bool {
      a.seconds != b.seconds ? a.seconds < b.seconds : a.fraction.lexicographicallyPrecedes(b.fraction)
    }

    init?(_ value: Value) {
      switch value {
      case .int(let seconds):
        self.seconds = seconds
        fraction = []
      case .string(let text):
        var reader = Digits(Array(text.utf8))
        guard let pointInTime = reader.pointInTime() else { return nil }
        (seconds, fraction) = pointInTime
      default: return nil
      }
    }
  }

  /// Reads `YYYY-MM-DD[Thh:mm[:ss][.f…]][Z|±hh:mm[:ss]]`; without an offset it is UTC.
  private struct Digits {
    let bytes: [UInt8]
    var index = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func pointInTime() -> (Int64, [UInt8])? {
      guard let year = number(4), take("-"), let month = number(2), take("-"), let day = number(2),
        (1...12).contains(month), (1...31).contains(day)
      else { return nil }
      var seconds = Self.days(year, month, day) * 86_400
      var fraction: [UInt8] = []
      if take("T") {
        guard let hour = number(2), take(":"), let minute = number(2) else { return nil }
        seconds += hour * 3600 + minute * 60
        if take(":") {
          guard let second = number(2) else { return nil }
          seconds += second
        }
        if take(".") {
          while index < bytes.count, Self.isDigit(bytes[index]) {
            fraction.append(bytes[index])
            index += 1
          }
          while fraction.last == UInt8(ascii: "0") { fraction.removeLast() }
        }
      }
      guard let offset = offset(), index == bytes.count else { return nil }
      return (seconds - offset, fraction)
    }

    private mutating func offset() -> Int64? {
      if index == bytes.count || take("Z") { return 0 }
      let isNegative = take("-")
      guard isNegative || take("+"), let hours = number(2), take(":"), let minutes = number(2) else {
        return nil
      }
      var offset = hours * 3600 + minutes * 60
      if take(":") {
        guard let seconds = number(2) else { return nil }
        offset += seconds
      }
      return isNegative ? -offset : offset
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
      guard index < bytes.count, bytes[index] == UInt8(ascii: character) else { return false }
      index += 1
      return true
    }

    private mutating func number(_ digits: Int) -> Int64? {
      guard bytes.count - index >= digits else { return nil }
      var number: Int64 = 0
      for byte in bytes[index..<index + digits] {
        guard Self.isDigit(byte) else { return nil }
        number = number * 10 + Int64(byte - UInt8(ascii: "0"))
      }
      index += digits
      return number
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
      (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    /// Days since 1970-01-01 in the proleptic Gregorian calendar; Howard Hinnant,
    /// "chrono-Compatible Low-Level Date Algorithms", days_from_civil.
    private static func days(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64 {
      let y = month <= 2 ? year - 1 : year
      let era = (y >= 0 ? y : y - 399) / 400
      let yearOfEra = y - era * 400
      let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
      let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
      return era * 146_097 + dayOfEra - 719_468
    }
  }
}
