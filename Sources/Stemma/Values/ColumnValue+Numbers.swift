import StemmaEvents

/// Numbers of other widths. One that is stored and does not fit is unreadable, never cut.
extension FixedWidthInteger where Self: ColumnValue {
  public static var columnType: ColumnType { .integer }
  public var datum: Datum { .integer(Int64(self)) }
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
  public static var columnType: ColumnType { .real }
  public var datum: Datum { .real(Double(self)) }
  /// The nearest one.
  public init(datum: Datum) throws(StoreError) { self = Float(try Double(datum: datum)) }
}
