import StemmaEvents

/// Numbers of other widths. One that is stored and does not fit is unreadable, never cut.
extension FixedWidthInteger where Self: ColumnValue {
  /// A column of whole numbers of 64 bits, whatever the width of the type.
  public static var columnType: ColumnType { .integer }
  /// - Precondition: the number fits 64 bits with a sign, as all but the highest of a `UInt` or `UInt64` do.
  public var datum: Datum { .integer(Int64(self)) }
  /// - Throws: `unreadable` for what is no whole number, or does not fit this type.
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
  /// A column of floating numbers of 64 bits.
  public static var columnType: ColumnType { .real }
  /// The same number with 64 bits. -0 is 0; NaN and infinities are refused when they are written.
  public var datum: Datum { .real(Double(self)) }
  /// The nearest one.
  public init(datum: Datum) throws(StoreError) { self = Float(try Double(datum: datum)) }
}
