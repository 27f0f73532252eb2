import StemmaEvents

/// Integers of other widths. A stored number that does not fit is unreadable, never cut.
extension FixedWidthInteger where Self: ColumnValue {
  /// A column of 64-bit integers, whatever the width of the type.
  public static var columnType: ColumnType { .integer }
  /// - Precondition: the number fits 64 bits with a sign; high `UInt` and `UInt64` numbers do not.
  public var datum: Datum { .integer(Int64(self)) }
  /// - Throws: `unreadable` for anything but an integer that fits this type.
  public init(datum: Datum) throws(StoreError) {
    guard case .int(let number) = datum.value, let number = Self(exactly: number) else {
      throw Self.misfit(datum)
    }
    self = number
  }
}

extension Int8: KeyValue {}
extension Int16: KeyValue {}
extension Int32: KeyValue {}
extension UInt8: KeyValue {}
extension UInt16: KeyValue {}
extension UInt32: KeyValue {}

extension Float: ColumnValue {
  /// A column of 64-bit floating-point numbers.
  public static var columnType: ColumnType { .real }
  /// The same number with 64 bits. -0 is 0; a write refuses NaN and infinities.
  public var datum: Datum { .real(Double(self)) }
  /// The nearest one.
  public init(datum: Datum) throws(StoreError) { self = Float(try Double(datum: datum)) }
}
