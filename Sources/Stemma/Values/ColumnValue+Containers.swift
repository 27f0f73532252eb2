import StemmaEvents

extension Optional: ColumnValue where Wrapped: ColumnValue {
  /// The type of what is wrapped, and null beside it.
  public static var columnType: ColumnType {
    var type = Wrapped.columnType
    type.isOptional = true
    return type
  }
  /// Null for nil.
  public var datum: Datum { self?.datum ?? .null }
  /// Nil for null.
  ///
  /// - Throws: `unreadable` for anything else that is not of the wrapped type.
  public init(datum: Datum) throws(StoreError) {
    self = datum.isNull ? nil : try Wrapped(datum: datum)
  }
  /// Nil for null; anything else as the wrapped type reads it.
  @inlinable
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Wrapped? {
    row.isNull(column) ? nil : try Wrapped.read(row, column)
  }
}

/// A list, stored as JSON text.
extension Array: ColumnValue where Element: ColumnValue {
  /// A list of the elements' type, itself not null; elements can be null if their type is an optional.
  public static var columnType: ColumnType {
    var type = Element.columnType
    type.hasOptionalElements = type.isOptional
    type.isOptional = false
    type.isList = true
    return type
  }
  /// The elements as a JSON array, in their order. A whole number beyond ±(2^53-1) stands there as text.
  /// One with an element that no column holds is that element, and refused like it.
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
  /// - Throws: `unreadable` for what is no JSON array, or has an element that is none of this type.
  public init(datum: Datum) throws(StoreError) {
    guard case .array(let elements) = datum.value.json else { throw Self.misfit(datum) }
    self = []
    reserveCapacity(elements.count)
    for element in elements { append(try Element(datum: Datum(element.value(as: Element.columnType)))) }
  }
}

extension JSON {
  /// An element of a list as the value that a column of its own would hold.
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

/// An enum with raw values is stored as they are. A value that is no case, which a newer program may have
/// written, is kept in the store; reading it throws.
extension ColumnValue where Self: RawRepresentable, RawValue: ColumnValue {
  /// That of the raw values.
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
  /// The schema lists the cases, if all of them can be names there.
  public static var columnType: ColumnType {
    let type = ColumnType.enumeration("\(Self.self)", of: Self.self)
    let areNames = type.cases.allSatisfy { $0.wholeMatch(of: /[A-Za-z][A-Za-z0-9_]*/) != nil }
    return areNames ? type : .text
  }
}
