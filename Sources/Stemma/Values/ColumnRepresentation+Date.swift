import StemmaEvents

import struct Foundation.Date

extension Date {
  /// Whole seconds since 1970, an AWSTimestamp; fractions are cut off.
  public struct UnixTimeRepresentation: ColumnRepresentation, Hashable {
    public let represented: Date

    public init(representing date: Date) { represented = date }

    public static var columnType: ColumnType { .timestamp }
    public var datum: Datum {
      let seconds = represented.timeIntervalSince1970.rounded(.down)
      // A date that no 64-bit number of seconds reaches gives text, which the write refuses.
      return Int64(exactly: seconds).map { .integer($0) } ?? .text("\(seconds)")
    }
    public init(datum: Datum) throws(StoreError) {
      guard case .int(let seconds) = datum.value else { throw Self.misfit(datum) }
      represented = Date(timeIntervalSince1970: Double(seconds))
    }
  }

  /// The day in UTC, an AWSDate; the time of day is cut off.
  public struct DayRepresentation: ColumnRepresentation, Hashable {
    public let represented: Date

    public init(representing date: Date) { represented = date }

    public static var columnType: ColumnType { .date }
    public var datum: Datum {
      guard case .string(let text) = represented.datum.value else { return .null }
      return .text(String(text.prefix { $0 != "T" }))
    }
    public init(datum: Datum) throws(StoreError) {
      guard case .string(let day) = datum.value else { throw Self.misfit(datum) }
      represented = try Date(datum: .text("\(day)T00:00:00Z"))
    }
  }
}
