import StemmaEvents

extension Optional: ColumnValue where Wrapped: ColumnValue {
  /// The wrapped type, or null.
  public static var columnType: ColumnType {
    var type = Wrapped.columnType
    type.isOptional = true
    return type
  }
  /// Null for nil.
  public var datum: Datum { self?.datum ?? .null }
  /// Nil for null.
  ///
  /// - Throws: `unreadable` for any other value that is not of the wrapped type.
  public init(datum: Datum) throws(StoreError) {
    self = datum.isNull ? nil : try Wrapped(datum: datum)
  }
  /// Nil for null; other values as the wrapped type reads them.
  @inlinable
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Wrapped? {
    row.isNull(column) ? nil : try Wrapped.read(row, column)
  }
}

/// A list, stored as JSON text.
extension Array: ColumnValue where Element: ColumnValue {
  /// A list of the elements' type, never null itself; elements of optional type can be null.
  public static var columnType: ColumnType {
    var type = Element.columnType
    type.hasOptionalElements = type.isOptional
    type.isOptional = false
    type.isList = true
    return type
  }
  /// The elements as a JSON array, in their order. An integer beyond ±(2^53-1) is stored as text.
  /// An element that no column can store replaces the array, so that a write refuses it.
  public var datum: Datum {
    var elements: [JSON] = []
    elements.reserveCapacity(count)
    for element in self {
      let datum = element.datum
      guard datum.isStorable else { return datum }
      elements.append(datum.value.json)
    }
    return .json(.array(elements))
  }
  /// - Throws: `unreadable` for anything but a JSON array of elements of this type.
  public init(datum: Datum) throws(StoreError) {
    guard case .array(let elements) = datum.value.json else { throw Self.misfit(datum) }
    self = []
    reserveCapacity(elements.count)
    for element in elements { append(try Element(datum: Datum(element.value(as: Element.columnType)))) }
  }
}

extension JSON {
  /// An element of a list as a separate column would store it.
  func value(as type: ColumnType) -> Value {
    switch (self, type.scalar) {
    case (.null, _): .null
    case (.bool(let flag), _): .bool(flag)
    case (.int(let number), .float): .double(Double(number))
    case (.int(let number), _): .int(number)
    case (.number(let text), _): Double(text).map { .double($0) } ?? .string(text)
    case (.string(let text), .int), (.string(let text), .awsTimestamp):
      Int64(text).map { .int($0) } ?? .string(text)
    case (.string(let text), _): .string(text)
    case (.array, _), (.object, _): .json(canonicalText)
    }
  }
}

/// An enum is stored as its raw value. The store keeps a value that is no case, which a newer
/// program may have written; reading it throws.
extension ColumnValue where Self: RawRepresentable, RawValue: ColumnValue {
  /// The column type of the raw values.
  public static var columnType: ColumnType { RawValue.columnType }
  /// The raw value.
  public var datum: Datum { rawValue.datum }
  /// - Throws: `unreadable` for a raw value that is no case.
  public init(datum: Datum) throws(StoreError) {
    guard let value = Self(rawValue: try RawValue(datum: datum)) else { throw Self.misfit(datum) }
    self = value
  }
}

extension ColumnValue where Self: RawRepresentable & CaseIterable, RawValue == String {
  /// The schema lists the cases, if all of them are valid names.
  public static var columnType: ColumnType {
    let type = ColumnType.enumeration("\(Self.self)", of: Self.self)
    let areNames = type.cases.allSatisfy { $0.wholeMatch(of: /[A-Za-z][A-Za-z0-9_]*/) != nil }
    return areNames ? type : .text
  }
}
