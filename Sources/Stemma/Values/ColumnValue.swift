import StemmaEvents
import StemmaSchema
import StemmaTables

/// A type that a column can hold.
///
/// To conform a type of your own, define its datum. An enum with raw values needs the conformance
/// only.
public protocol ColumnValue: Sendable {
  /// The schema's type for the column, which also selects how a read decodes it; a constant.
  static var columnType: ColumnType { get }
  /// - Throws: `unreadable` for a datum without a value of this type.
  init(datum: Datum) throws(StoreError)
  /// The stored value; `init(datum:)` reads it.
  var datum: Datum { get }
  /// Reads a column of the current row.
  static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Self
}

extension ColumnValue {
  /// Reads the datum and converts it.
  ///
  /// - Throws: `unreadable`, with table, column and value, where `init(datum:)` throws.
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Self {
    do throws(StoreError) { return try Self(datum: row.datum(column, Self.columnType)) } catch {
      throw row.unreadable(column)
    }
  }

  /// The error of `init(datum:)`; `read` names table and column.
  static func misfit(_ datum: Datum) -> StoreError {
    .unreadable(table: "", column: "\(Self.self)", value: datum.value.json.text)
  }
}

/// A column's type in the schema.
public struct ColumnType: Sendable, Hashable {
  package var scalar: Scalar
  package var isOptional = false
  package var isList = false
  /// The name of an enum whose cases the schema lists.
  package var enumeration: String?
  package var cases: [String] = []
  /// Whether a list's elements can be null.
  package var hasOptionalElements = false
  /// The collation for text whose byte order is not the order of its values.
  package var collation: Collation?

  package init(_ scalar: Scalar) { self.scalar = scalar }

  func compared(as collation: Collation) -> ColumnType {
    var type = self
    type.collation = collation
    return type
  }

  /// `ID`: any text; a UUID becomes lower case.
  public static let id = ColumnType(.id)
  /// `String`: text of up to 16 MiB of UTF-8.
  public static let text = ColumnType(.string)
  /// `Int`: whole numbers of 64 bits.
  public static let integer = ColumnType(.int)
  /// `Float`: floating numbers of 64 bits, without NaN and infinities.
  public static let real = ColumnType(.float)
  /// `Boolean`: false or true.
  public static let boolean = ColumnType(.boolean)
  /// `AWSDate`: text as `2024-02-29`, an offset may follow.
  public static let date = ColumnType(.awsDate)
  /// `AWSTime`: text as `23:59`, `23:59:59` or `23:59:59.999`, an offset may follow.
  public static let time = ColumnType(.awsTime)
  /// `AWSDateTime`: text as `2024-02-29T23:59:59+01:00`, years 0000 to 9999.
  public static let dateTime = ColumnType(.awsDateTime)
  /// `AWSTimestamp`: whole seconds since 1970.
  public static let timestamp = ColumnType(.awsTimestamp)
  /// `AWSJSON`: JSON text; becomes canonical.
  public static let json = ColumnType(.awsJSON)
  /// `AWSURL`: text that is a URL.
  public static let url = ColumnType(.awsURL)
  /// `AWSEmail`: text as `name@example.org`.
  public static let email = ColumnType(.awsEmail)
  /// `AWSPhone`: text as `+49 30 123456`.
  public static let phone = ColumnType(.awsPhone)
  /// `AWSIPAddress`: text as `2001:db8::/32`.
  public static let ipAddress = ColumnType(.awsIPAddress)

  /// An enum whose cases the schema lists, for a type that has another name there.
  ///
  /// - Parameters:
  ///   - name: the enum's name in the schema. Opening a store refuses names and raw values that are
  ///     no valid names there.
  ///   - type: the Swift enum. Its cases in the order of `allCases` are the enum's values.
  public static func enumeration<Enumeration: CaseIterable & RawRepresentable<String>>(
    _ name: String, of type: Enumeration.Type
  ) -> ColumnType {
    var column = ColumnType(.string)
    column.enumeration = name
    column.cases = Enumeration.allCases.map(\.rawValue)
    return column
  }

  /// The type of a list's elements, or the type itself.
  var base: FieldType.Base { enumeration.map { .enumeration($0) } ?? .scalar(scalar) }

  /// The type in SDL.
  var typeText: String {
    let name = enumeration ?? scalar.rawValue
    let inner = isList ? "[\(name)\(hasOptionalElements ? "" : "!")]" : name
    return isOptional ? inner : inner + "!"
  }
}

/// A value that can be a part of a primary key, or a whole one.
public protocol KeyValue: ColumnValue, TableKey where Parts == Self, OptionalParts == Self? {
  /// The stored form in a key: `datum`, unless several data are equal as keys.
  var keyDatum: Datum { get }
}

extension KeyValue {
  /// The datum itself.
  public var keyDatum: Datum { datum }
  /// Nil for nil: a null reference leads nowhere.
  public init?(optionalParts: Self?) {
    guard let optionalParts else { return nil }
    self = optionalParts
  }
  /// The value itself, the only part of its key.
  public var parts: Self { self }
  /// Writes the value as the next part of the key.
  public func write(to record: inout RecordWriter) { record.key(self) }
  /// Reads the value, if it represents the stored one exactly.
  public static func readKey(_ row: RowReader) throws(StoreError) -> Self {
    try row.exactly(0, as: Self.self)
  }
}
