/// Texts of a time that can be restored exactly from a number.
enum TimeText: UInt8, CaseIterable {
  /// `2025-11-08T00:00:00Z`, as seconds since 1970.
  case seconds = 4
  /// `2025-11-08T00:00:00.000Z`, as milliseconds since 1970.
  case milliseconds = 5
  /// `2025-11-08`, as days since 1970.
  case days = 6
  /// `2025-11-08T00:00:00+01:00`, as seconds since 1970, and the offset in minutes apart.
  case offset = 7

  var count: Int {
    switch self {
    case .seconds: 20
    case .milliseconds: 24
    case .days: 10
    case .offset: 25
    }
  }

  static let secondsOfDay: Int64 = 86_400
  /// The days from 0000-01-01 to 9999-12-31, the years that have four digits.
  static let fourDigitYears: ClosedRange<Int64> = -719_528...2_932_896

  struct Reading: Equatable {
    var number: Int64
    /// Minutes east of Greenwich; 0 except for `offset`.
    var minutes: Int64 = 0
  }

  /// nil unless `write` restores exactly this text.
  func read(_ text: UnsafeRawBufferPointer) -> Reading? {
    guard text.count == count, let day = Self.day(text) else { return nil }
    if self == .days { return Reading(number: day) }
    guard text[10] == UInt8(ascii: "T"), text[13] == UInt8(ascii: ":"), text[16] == UInt8(ascii: ":"),
      let hour = Self.digits(text, 11, 2), hour < 24, let minute = Self.digits(text, 14, 2), minute < 60,
      let second = Self.digits(text, 17, 2), second < 60
    else { return nil }
    let seconds = day * Self.secondsOfDay + hour * 3600 + minute * 60 + second
    switch self {
    case .days: return nil
    case .seconds: return text[19] == UInt8(ascii: "Z") ? Reading(number: seconds) : nil
    case .milliseconds:
      guard text[19] == UInt8(ascii: "."), text[23] == UInt8(ascii: "Z"),
        let thousandths = Self.digits(text, 20, 3)
      else { return nil }
      return Reading(number: seconds * 1000 + thousandths)
    case .offset:
      let sign = text[19]
      guard sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"), text[22] == UInt8(ascii: ":"),
        let hours = Self.digits(text, 20, 2), let minutes = Self.digits(text, 23, 2), minutes < 60
      else { return nil }
      let total = (hours * 60 + minutes) * (sign == UInt8(ascii: "-") ? -1 : 1)
      if total == 0 && sign == UInt8(ascii: "-") { return nil }
      return Reading(number: seconds - total * 60, minutes: total)
    }
  }

  /// Writes the text, `count` bytes. False, and nothing written, if the number has none.
  func write(_ reading: Reading, to target: UnsafeMutablePointer<UInt8>) -> Bool {
    if self == .days {
      guard Self.fourDigitYears.contains(reading.number) else { return false }
      Self.write(day: reading.number, to: target)
      return true
    }
    let unit: Int64 = self == .milliseconds ? 1000 : 1
    guard (-5999...5999).contains(reading.minutes) else { return false }
    let (local, overflow) = reading.number.addingReportingOverflow(reading.minutes * 60 * unit)
    let day = Self.floored(local, Self.secondsOfDay * unit)
    guard !overflow, Self.fourDigitYears.contains(day) else { return false }
    let rest = local - day * Self.secondsOfDay * unit
    let second = rest / unit
    Self.write(day: day, to: target)
    target[10] = UInt8(ascii: "T")
    Self.write(second / 3600, to: target + 11)
    target[13] = UInt8(ascii: ":")
    Self.write(second / 60 % 60, to: target + 14)
    target[16] = UInt8(ascii: ":")
    Self.write(second % 60, to: target + 17)
    switch self {
    case .milliseconds:
      target[19] = UInt8(ascii: ".")
      target[20] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 1000 / 100)
      Self.write(rest % 100, to: target + 21)
      target[23] = UInt8(ascii: "Z")
    case .offset:
      target[19] = reading.minutes < 0 ? UInt8(ascii: "-") : UInt8(ascii: "+")
      Self.write(abs(reading.minutes) / 60, to: target + 20)
      target[22] = UInt8(ascii: ":")
      Self.write(abs(reading.minutes) % 60, to: target + 23)
    default: target[19] = UInt8(ascii: "Z")
    }
    return true
  }

  private static func floored(_ number: Int64, _ divisor: Int64) -> Int64 {
    number >= 0 ? number / divisor : -((-(number + 1)) / divisor) - 1
  }

  private static func digits(_ text: UnsafeRawBufferPointer, _ start: Int, _ count: Int) -> Int64? {
    var number: Int64 = 0
    for index in start..<start + count {
      let digit = text[index] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      number = number * 10 + Int64(digit)
    }
    return number
  }

  /// Two digits of a number below 100.
  private static func write(_ number: Int64, to target: UnsafeMutablePointer<UInt8>) {
    let number = UInt8(truncatingIfNeeded: number)
    target[0] = UInt8(ascii: "0") + number / 10
    target[1] = UInt8(ascii: "0") + number % 10
  }

  /// Days since 1970 of the date at the front of the text; nil if there is none, or no such day.
  /// The arithmetic is Howard Hinnant's, "chrono-Compatible Low-Level Date Algorithms".
  private static func day(_ text: UnsafeRawBufferPointer) -> Int64? {
    guard text[4] == UInt8(ascii: "-"), text[7] == UInt8(ascii: "-"),
      let year = digits(text, 0, 4), let month = digits(text, 5, 2), let day = digits(text, 8, 2),
      (1...12).contains(month), day >= 1
    else { return nil }
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let longest: Int64 = month == 2 ? (isLeap ? 29 : 28) : [4, 6, 9, 11].contains(month) ? 30 : 31
    guard day <= longest else { return nil }
    let shifted = (month <= 2 ? year - 1 : year) + 400
    let era = shifted / 400
    let yearOfEra = shifted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    return (era - 1) * 146_097 + dayOfEra - 719_468
  }

  private static func write(day: Int64, to target: UnsafeMutablePointer<UInt8>) {
    let shifted = day + 719_468 + 146_097
    let era = shifted / 146_097
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let mark = (5 * dayOfYear + 2) / 153
    let month = mark < 10 ? mark + 3 : mark - 9
    let year = (era - 1) * 400 + yearOfEra + (month <= 2 ? 1 : 0)
    write(year / 100, to: target)
    write(year % 100, to: target + 2)
    target[4] = UInt8(ascii: "-")
    write(month, to: target + 5)
    target[7] = UInt8(ascii: "-")
    write(dayOfYear - (153 * mark + 2) / 5 + 1, to: target + 8)
  }
}
