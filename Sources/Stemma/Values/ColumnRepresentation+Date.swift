import StemmaEvents

import struct Foundation.Date

extension Date {
  /// Whole seconds since 1970, an AWSTimestamp; fractions are cut off.
  public struct UnixTimeRepresentation: ColumnRepresentation, Hashable {
    /// The date as given; after a read, a whole second.
    public let represented: Date

    /// Keeps the exact date; a write cuts the fraction off.
    public init(representing date: Date) { represented = date }

    /// A column of whole seconds, an AWSTimestamp.
    public static var columnType: ColumnType { .timestamp }
    /// The seconds since 1970, rounded down. A write refuses a date beyond 64 bits of seconds.
    public var datum: Datum {
      let seconds = represented.timeIntervalSince1970.rounded(.down)
      // A date beyond 64 bits of seconds gives text, which the write refuses.
      return Int64(exactly: seconds).map { .integer($0) } ?? .text("\(seconds)")
    }
    /// - Throws: `unreadable` for anything but a whole number.
    public init(datum: Datum) throws(StoreError) {
      guard case .int(let seconds) = datum.value else { throw Self.misfit(datum) }
      represented = Date(timeIntervalSince1970: Double(seconds))
    }
  }

  /// The day in UTC, an AWSDate; the time of day is cut off.
  public struct DayRepresentation: ColumnRepresentation {
    /// The date as given; after a read, the day's first instant in UTC.
    public let represented: Date

    /// Keeps the exact date; a write cuts the time of day off.
    public init(representing date: Date) { represented = date }

    /// A column of days, an AWSDate.
    public static var columnType: ColumnType { .date }
    /// The day in UTC, as `2024-02-29`. A write refuses years before 0000 and after 9999.
    public var datum: Datum {
      guard case .string(let text) = represented.datum.value else { return .null }
      return .text(String(text.prefix { $0 != "T" }))
    }
    /// - Throws: `unreadable` for anything but a day. A day with an offset, valid as AWSDate,
    ///   throws, too.
    public init(datum: Datum) throws(StoreError) {
      guard case .string(let day) = datum.value else { throw Self.misfit(datum) }
      represented = try Date(datum: .text("\(day)T00:00:00Z"))
    }
  }
}

/// As a key part, an AWSTimestamp. Give it a whole second: the stored key has no fraction.
extension Date.UnixTimeRepresentation: KeyValue {}

/// As a key part, an AWSDate: `Date.DayRepresentation(representing: date)`.
extension Date.DayRepresentation: KeyValue {
  /// Whether both are one day in UTC.
  public static func == (a: Self, b: Self) -> Bool { a.datum == b.datum }
  /// By the day in UTC.
  public func hash(into hasher: inout Hasher) { hasher.combine(datum) }
}
