import StemmaEvents
import StemmaSchema

/// A type that a column can hold.
///
/// Conform a type of your own by saying which datum stands for it. An enum with raw values needs nothing but the
/// conformance.
public protocol ColumnValue: Sendable {
  static var columnType: ColumnType { get }
  /// - Throws: `unreadable` for a datum that no value of this type gives.
  init(datum: Datum) throws(StoreError)
  var datum: Datum { get }
  /// Reads a column of the current row.
  static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> Self
}

extension ColumnValue {
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

/// What a column holds, in the words of the schema.
public struct ColumnType: Sendable, Hashable {
  package var scalar: Scalar
  package var isOptional = false
  package var isList = false
  /// For an enum whose cases the schema lists.
  package var enumeration: String?
  package var cases: [String] = []
  /// Whether a list's elements can be null.
  package var hasOptionalElements = false

  package init(_ scalar: Scalar) { self.scalar = scalar }

  public static let id = ColumnType(.id)
  public static let text = ColumnType(.string)
  public static let integer = ColumnType(.int)
  public static let real = ColumnType(.float)
  public static let boolean = ColumnType(.boolean)
  public static let date = ColumnType(.awsDate)
  public static let time = ColumnType(.awsTime)
  public static let dateTime = ColumnType(.awsDateTime)
  public static let timestamp = ColumnType(.awsTimestamp)
  public static let json = ColumnType(.awsJSON)
  public static let url = ColumnType(.awsURL)
  public static let email = ColumnType(.awsEmail)
  public static let phone = ColumnType(.awsPhone)
  public static let ipAddress = ColumnType(.awsIPAddress)

  /// Of one element, if it is a list.
  var base: FieldType.Base { enumeration.map { .enumeration($0) } ?? .scalar(scalar) }

  /// As SDL spells it.
  var typeText: String {
    let name = enumeration ?? scalar.rawValue
    let inner = isList ? "[\(name)\(hasOptionalElements ? "" : "!")]" : name
    return isOptional ? inner : inner + "!"
  }
}

/// A value that can be a part of a primary key, or a whole one.
public protocol KeyValue: ColumnValue, TableKey where Parts == Self, OptionalParts == Self? {}

extension KeyValue {
  public init?(optionalParts: Self?) {
    guard let optionalParts else { return nil }
    self = optionalParts
  }
  public var parts: Self { self }
  public func write(to record: inout RecordWriter) { record.key(self) }
}
