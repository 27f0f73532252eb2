/// Dates and times as in AWSDate, AWSTime and AWSDateTime: extended ISO 8601, in the proleptic
/// Gregorian calendar, years 0000 to 9999.
///
///     AWSDate      2024-02-29            an offset may follow
///     AWSTime      23:59  23:59:59  23:59:59.999999999   an offset may follow
///     AWSDateTime  date T time, then an offset, which must be there
///     offset       Z  +hh:mm  -hh:mm  +hh:mm:ss          up to 23:59:59
///
/// Outside of keys, these texts are stored as written. Foundation's formatters are not used: they
/// take a hundred times as long, and an import reads one or two dates a line.
package struct DateText: Equatable, Sendable {
  /// Days since 1970-01-01.
  var day: Int
  var secondOfDay: Int
  /// Up to nine digits after the point, without trailing zeros.
  var fraction: String
  /// Seconds east of UTC.
  var offset: Int

  /// Whether it is an AWSDate.
  static func isDate(_ text: String) -> Bool {
    var cursor = TextCursor(text)
    guard cursor.date() != nil else { return false }
    return cursor.isAtEnd || (cursor.offset() != nil && cursor.isAtEnd)
  }

  static func isTime(_ text: String) -> Bool { nanosecondsOfDay(time: text) != nil }

  /// An AWSTime as nanoseconds since the start of the day in UTC; its offset can make it negative
  /// or later than the day. Without an offset, it is in UTC. Nil for invalid text.
  package static func nanosecondsOfDay(time text: String) -> Int64? {
    var cursor = TextCursor(text)
    guard let time = cursor.time() else { return nil }
    var offset = 0
    if !cursor.isAtEnd {
      guard let found = cursor.offset(), cursor.isAtEnd else { return nil }
      offset = found
    }
    let digits = time.fraction + String(repeating: "0", count: 9 - time.fraction.utf8.count)
    return (Int64(digits) ?? 0) + Int64(time.second - offset) * 1_000_000_000
  }

  /// Reads an AWSDateTime. Nil for invalid text.
  package init?(dateTime text: String) {
    var cursor = TextCursor(text)
    guard let day = cursor.date(), cursor.take("T"), let time = cursor.time(),
      let offset = cursor.offset(), cursor.isAtEnd
    else { return nil }
    self.day = day
    secondOfDay = time.second
    fraction = time.fraction
    self.offset = offset
  }

  /// Converts a clock's reading.
  package init(millisecondsSince1970 milliseconds: Int64) {
    let (seconds, rest) = Self.divided(Int(milliseconds), by: 1000)
    (day, secondOfDay) = Self.divided(seconds, by: 86400)
    let digits = String(rest)
    var text = Substring(String(repeating: "0", count: 3 - digits.count) + digits)
    while text.last == "0" { text.removeLast() }
    fraction = String(text)
    offset = 0
  }

  /// The instant, without fractions of a millisecond.
  package var millisecondsSince1970: Int64 {
    let digits = Int64(fraction.prefix(3)) ?? 0
    let scale: Int64 = [1, 100, 10, 1][min(fraction.utf8.count, 3)]
    return (Int64(day) * 86400 + Int64(secondOfDay - offset)) * 1000 + digits * scale
  }

  /// The canonical text, in UTC: seconds always, a fraction only if it is not zero, then `Z`. Nil
  /// outside of the years 0000 to 9999.
  package var utcText: String? {
    let (carry, second) = Self.divided(secondOfDay - offset, by: 86400)
    let day = self.day + carry
    guard (Self.firstDay...Self.lastDay).contains(day) else { return nil }
    let (year, month, dayOfMonth) = Self.civil(day)
    var text = ""
    text.reserveCapacity(32)
    func append(_ number: Int, digits: Int) {
      let plain = String(number)
      for _ in plain.count..<max(digits, plain.count) { text.append("0") }
      text += plain
    }
    append(year, digits: 4)
    text.append("-")
    append(month, digits: 2)
    text.append("-")
    append(dayOfMonth, digits: 2)
    text.append("T")
    append(second / 3600, digits: 2)
    text.append(":")
    append(second / 60 % 60, digits: 2)
    text.append(":")
    append(second % 60, digits: 2)
    if !fraction.isEmpty {
      text.append(".")
      text += fraction
    }
    text.append("Z")
    return text
  }

  private static let firstDay = days(0, 1, 1)
  private static let lastDay = days(9999, 12, 31)

  private static func divided(_ number: Int, by divisor: Int) -> (quotient: Int, remainder: Int) {
    let (quotient, remainder) = number.quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }

  /// Days since 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date algorithms").
  static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let y = month <= 2 ? year - 1 : year
    let (era, yearOfEra) = divided(y, by: 400)
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  /// The inverse of `days`.
  static func civil(_ days: Int) -> (year: Int, month: Int, day: Int) {
    let (era, dayOfEra) = divided(days + 719_468, by: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    return (
      yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1
    )
  }
}

extension TextCursor {
  /// `YYYY-MM-DD`, as days since 1970-01-01.
  fileprivate mutating func date() -> Int? {
    guard let year = number(digits: 4, in: 0...9999), take("-"),
      let month = number(digits: 2, in: 1...12), take("-"),
      let day = number(digits: 2, in: 1...31)
    else { return nil }
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let length = month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    return day <= length ? DateText.days(year, month, day) : nil
  }

  /// `hh:mm`, `hh:mm:ss` or with up to nine digits of a fraction.
  fileprivate mutating func time() -> (second: Int, fraction: String)? {
    guard let hour = number(digits: 2, in: 0...23), take(":"),
      let minute = number(digits: 2, in: 0...59)
    else { return nil }
    guard take(":") else { return (hour * 3600 + minute * 60, "") }
    guard let second = number(digits: 2, in: 0...59) else { return nil }
    var fraction = ""
    if take(".") {
      while let byte = peek, byte.isDigit {
        fraction.unicodeScalars.append(Unicode.Scalar(byte))
        _ = take()
      }
      guard (1...9).contains(fraction.utf8.count) else { return nil }
      while fraction.utf8.last == UInt8(ascii: "0") { fraction.removeLast() }
    }
    return (hour * 3600 + minute * 60 + second, fraction)
  }

  /// `Z` or a signed offset, as seconds east of UTC.
  fileprivate mutating func offset() -> Int? {
    if take("Z") { return 0 }
    let sign: Int
    if take("+") { sign = 1 } else if take("-") { sign = -1 } else { return nil }
    guard let hour = number(digits: 2, in: 0...23), take(":"),
      let minute = number(digits: 2, in: 0...59)
    else { return nil }
    guard take(":") else { return sign * (hour * 3600 + minute * 60) }
    guard let second = number(digits: 2, in: 0...59) else { return nil }
    return sign * (hour * 3600 + minute * 60 + second)
  }
}
