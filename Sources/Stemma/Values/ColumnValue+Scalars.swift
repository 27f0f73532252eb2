import StemmaEvents
import StemmaSchema

import struct Foundation.Data
import struct Foundation.Date
import struct Foundation.Decimal
import struct Foundation.Locale
import struct Foundation.URL
import struct Foundation.UUID

extension String: KeyValue {
  public static var columnType: ColumnType { .text }
  public var datum: Datum { Datum(.string(self)) }
  public init(datum: Datum) throws(StoreError) {
    switch datum.value {
    case .string(let text), .json(let text): self = text
    default: throw Self.misfit(datum)
    }
  }
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> String {
    guard let text = row.text(column) else { throw row.unreadable(column) }
    return text
  }
}

extension Int: KeyValue {
  public static var columnType: ColumnType { .integer }
  public var datum: Datum { Datum(.int(Int64(self))) }
  public init(datum: Datum) throws(StoreError) {
    guard case .int(let number) = datum.value, let number = Int(exactly: number) else {
      throw Self.misfit(datum)
    }
    self = number
  }
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Int {
    guard let number = row.integer(column), let number = Int(exactly: number) else {
      throw row.unreadable(column)
    }
    return number
  }
}

extension Int64: KeyValue {
  public static var columnType: ColumnType { .integer }
  public var datum: Datum { Datum(.int(self)) }
  public init(datum: Datum) throws(StoreError) {
    guard case .int(let number) = datum.value else { throw Self.misfit(datum) }
    self = number
  }
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Int64 {
    guard let number = row.integer(column) else { throw row.unreadable(column) }
    return number
  }
}

extension Double: KeyValue {
  public static var columnType: ColumnType { .real }
  public var datum: Datum { .real(self) }
  public init(datum: Datum) throws(StoreError) {
    switch datum.value {
    case .double(let number): self = number
    case .int(let number): self = Double(number)
    default: throw Self.misfit(datum)
    }
  }
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Double {
    guard let number = row.real(column) else { throw row.unreadable(column) }
    return number
  }
}

extension Bool: KeyValue {
  public static var columnType: ColumnType { .boolean }
  public var datum: Datum { Datum(.bool(self)) }
  public init(datum: Datum) throws(StoreError) {
    switch datum.value {
    case .bool(let flag): self = flag
    case .int(0): self = false
    case .int(1): self = true
    default: throw Self.misfit(datum)
    }
  }
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Bool {
    switch row.integer(column) {
    case 0: return false
    case 1: return true
    default: throw row.unreadable(column)
    }
  }
}

extension UUID: KeyValue {
  public static var columnType: ColumnType { .id }
  public var datum: Datum { Datum(.string(UUIDText.text(of: self))) }
  public init(datum: Datum) throws(StoreError) {
    guard case .string(var text) = datum.value, let uuid = text.withUTF8({ UUIDText.uuid(of: $0) }) else {
      throw Self.misfit(datum)
    }
    self = uuid
  }
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> UUID {
    guard let uuid = row.withText(column, { UUIDText.uuid(of: $0) }) ?? nil else {
      throw row.unreadable(column)
    }
    return uuid
  }
}

/// A point in time, with milliseconds.
extension Date: KeyValue {
  public static var columnType: ColumnType { .dateTime }
  public var datum: Datum {
    let milliseconds = (timeIntervalSince1970 * 1000).rounded()
    // Years that AWSDateTime cannot spell give text that the write refuses.
    let text = Int64(exactly: milliseconds).flatMap { DateText(millisecondsSince1970: $0).utcText }
    return .text(text ?? "\(self)")
  }
  public init(datum: Datum) throws(StoreError) {
    guard case .string(let text) = datum.value, let date = DateText(dateTime: text) else {
      throw Self.misfit(datum)
    }
    self.init(timeIntervalSince1970: Double(date.millisecondsSince1970) / 1000)
  }
}

/// Stored as Base64 text.
extension Data: ColumnValue {
  public static var columnType: ColumnType { .text }
  public var datum: Datum { .text(base64EncodedString()) }
  public init(datum: Datum) throws(StoreError) {
    guard case .string(let text) = datum.value, let data = Data(base64Encoded: text) else {
      throw Self.misfit(datum)
    }
    self = data
  }
}

/// Stored as text, so that no digit is lost; such a column sorts as text.
extension Decimal: ColumnValue {
  public static var columnType: ColumnType { .text }
  public var datum: Datum { .text(description) }
  public init(datum: Datum) throws(StoreError) {
    guard case .string(let text) = datum.value,
      let decimal = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
    else { throw Self.misfit(datum) }
    self = decimal
  }
}

extension URL: KeyValue {
  public static var columnType: ColumnType { .url }
  public var datum: Datum { .text(absoluteString) }
  public init(datum: Datum) throws(StoreError) {
    guard case .string(let text) = datum.value, let url = URL(string: text) else { throw Self.misfit(datum) }
    self = url
  }
}
