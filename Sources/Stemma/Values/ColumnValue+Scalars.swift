import StemmaEvents
import StemmaSchema

import struct Foundation.Data
import struct Foundation.Date
import struct Foundation.Decimal
import struct Foundation.Locale
import struct Foundation.URL
import struct Foundation.UUID

extension String: KeyValue {
  /// Text; in the schema, `String`.
  public static var columnType: ColumnType { .text }
  /// The exact bytes of the text: Unicode is not normalized.
  public var datum: Datum { Datum(.string(self)) }
  /// - Throws: `unreadable` for null and for anything but text.
  public init(datum: Datum) throws(StoreError) {
    switch datum.value {
    case .string(let text), .json(let text): self = text
    default: throw Self.misfit(datum)
    }
  }
  /// A number in SQLite is read as its digits.
  ///
  /// - Throws: `unreadable` for null.
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> String {
    guard let text = row.text(column) else { throw row.unreadable(column) }
    return text
  }
}

extension Int: KeyValue {
  /// 64-bit integers.
  public static var columnType: ColumnType { .integer }
  /// The number, exactly.
  public var datum: Datum { Datum(.int(Int64(self))) }
  /// - Throws: `unreadable` for anything but an integer that fits this machine's `Int`.
  public init(datum: Datum) throws(StoreError) {
    guard case .int(let number) = datum.value, let number = Int(exactly: number) else {
      throw Self.misfit(datum)
    }
    self = number
  }
  /// - Throws: `unreadable` for anything but an integer that fits this machine's `Int`.
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Int {
    guard let number = row.integer(column), let number = Int(exactly: number) else {
      throw row.unreadable(column)
    }
    return number
  }
}

extension Int64: KeyValue {
  /// 64-bit integers.
  public static var columnType: ColumnType { .integer }
  /// The number, exactly.
  public var datum: Datum { Datum(.int(self)) }
  /// - Throws: `unreadable` for anything but an integer.
  public init(datum: Datum) throws(StoreError) {
    guard case .int(let number) = datum.value else { throw Self.misfit(datum) }
    self = number
  }
  /// - Throws: `unreadable` for null and for a floating number.
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Int64 {
    guard let number = row.integer(column) else { throw row.unreadable(column) }
    return number
  }
}

extension Double: KeyValue {
  /// 64-bit floating-point numbers.
  public static var columnType: ColumnType { .real }
  /// -0 is 0; a write refuses NaN and infinities.
  public var datum: Datum { .real(self) }
  /// Accepts integers, too, as the nearest floating-point number.
  ///
  /// - Throws: `unreadable` for anything but a number.
  public init(datum: Datum) throws(StoreError) {
    switch datum.value {
    case .double(let number): self = number
    case .int(let number): self = Double(number)
    default: throw Self.misfit(datum)
    }
  }
  /// - Throws: `unreadable` for null and for anything but a number.
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Double {
    guard let number = row.real(column) else { throw row.unreadable(column) }
    return number
  }
}

extension Bool: KeyValue {
  /// Booleans, which SQLite stores as 0 and 1.
  public static var columnType: ColumnType { .boolean }
  /// A Boolean; 0 or 1 in the table, `false` or `true` in JSON.
  public var datum: Datum { Datum(.bool(self)) }
  /// Takes 0 and 1 too.
  ///
  /// - Throws: `unreadable` for anything else.
  public init(datum: Datum) throws(StoreError) {
    switch datum.value {
    case .bool(let flag): self = flag
    case .int(0): self = false
    case .int(1): self = true
    default: throw Self.misfit(datum)
    }
  }
  /// - Throws: `unreadable` for anything but 0 and 1, also for null.
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Bool {
    switch row.integer(column) {
    case 0: return false
    case 1: return true
    default: throw row.unreadable(column)
    }
  }
}

extension UUID: KeyValue {
  /// An `ID` of the schema.
  public static var columnType: ColumnType { .id }
  /// 36 characters in lower case.
  public var datum: Datum { Datum(.string(UUIDText.text(of: self))) }
  /// Takes digits in upper and lower case.
  ///
  /// - Throws: `unreadable` for text of another form.
  public init(datum: Datum) throws(StoreError) {
    guard case .string(var text) = datum.value, let uuid = text.withUTF8({ UUIDText.uuid(of: $0) }) else {
      throw Self.misfit(datum)
    }
    self = uuid
  }
  /// - Throws: `unreadable` for null and for text of another form.
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> UUID {
    guard let uuid = row.withText(column, { UUIDText.uuid(of: $0) }) ?? nil else {
      throw row.unreadable(column)
    }
    return uuid
  }
}

/// A point in time, with milliseconds.
extension Date: KeyValue {
  /// An AWSDateTime.
  public static var columnType: ColumnType { .dateTime }
  /// Text in UTC, rounded to milliseconds, `2024-02-29T23:59:59.5Z`; a zero fraction is left out.
  /// A write refuses years before 0000 and after 9999.
  public var datum: Datum {
    let milliseconds = (timeIntervalSince1970 * 1000).rounded()
    // Years without a spelling in AWSDateTime give text that the write refuses.
    let text = Int64(exactly: milliseconds).flatMap { DateText(millisecondsSince1970: $0).utcText }
    // A year before 0 has no description on every system.
    return .text(text ?? "\(timeIntervalSince1970) seconds since 1970")
  }
  /// Accepts any AWSDateTime, without its zone; fractions of a millisecond are cut off.
  ///
  /// - Throws: `unreadable` for other text.
  public init(datum: Datum) throws(StoreError) {
    guard case .string(let text) = datum.value, let date = DateText(dateTime: text) else {
      throw Self.misfit(datum)
    }
    self.init(timeIntervalSince1970: Double(date.millisecondsSince1970) / 1000)
  }
}

/// Stored as Base64 text; statements compare the bytes.
extension Data: ColumnValue {
  /// Text, because the schema has no type for bytes.
  public static var columnType: ColumnType { .text.compared(as: .base64) }
  /// Base64 in one line, a third longer than the bytes.
  public var datum: Datum { .text(base64EncodedString()) }
  /// - Throws: `unreadable` for text that is not Base64; white space in it is none.
  public init(datum: Datum) throws(StoreError) {
    guard case .string(let text) = datum.value, let data = Data(base64Encoded: text) else {
      throw Self.misfit(datum)
    }
    self = data
  }
}

/// Stored as text, so that no digit is lost; statements compare the numbers.
extension Decimal: ColumnValue {
  /// Text.
  public static var columnType: ColumnType { .text.compared(as: .decimal) }
  /// The digits, with a point in every locale. A write refuses NaN.
  public var datum: Datum { isNaN ? .real(.nan) : .text(description) }
  /// Takes digits with a sign, a point and an exponent, as Swift spells numbers.
  ///
  /// - Throws: `unreadable` for other text.
  public init(datum: Datum) throws(StoreError) {
    // `Decimal` itself accepts a number with other text after it.
    guard case .string(let text) = datum.value,
      text.wholeMatch(of: /[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?/) != nil,
      let decimal = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
    else { throw Self.misfit(datum) }
    self = decimal
  }
}

extension URL: KeyValue {
  /// An AWSURL.
  public static var columnType: ColumnType { .url }
  /// The absolute string: a relative URL together with its base.
  public var datum: Datum { .text(absoluteString) }
  /// - Throws: `unreadable` for text that is no URL for Foundation.
  public init(datum: Datum) throws(StoreError) {
    guard case .string(let text) = datum.value, let url = URL(string: text) else { throw Self.misfit(datum) }
    self = url
  }
}
