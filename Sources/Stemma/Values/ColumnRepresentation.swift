import StemmaEvents

/// A way to store values that are no column values by themselves, or to store them otherwise than they are by
/// themselves: `@Column(as: [Tag].JSONRepresentation.self) var tags: [Tag]`.
public protocol ColumnRepresentation: ColumnValue {
  /// The type of the property.
  associatedtype Represented: Sendable
  init(representing value: Represented)
  var represented: Represented { get }
}

extension Optional: ColumnRepresentation where Wrapped: ColumnRepresentation {
  public init(representing value: Wrapped.Represented?) { self = value.map { Wrapped(representing: $0) } }
  public var represented: Wrapped.Represented? { self?.represented }
}

// MARK: Text of a stricter kind

/// What kind of text a column takes. See the types of `String`, such as `String.AWSEmail`.
public protocol TextKind: Sendable {
  static var columnType: ColumnType { get }
}

/// A `String` in a column that takes only texts of one kind. Others are refused when they are written, with the rule
/// that they break.
public struct TextRepresentation<Kind: TextKind>: ColumnRepresentation, Hashable {
  public let represented: String

  public init(representing text: String) { represented = text }

  public static var columnType: ColumnType { Kind.columnType }
  public var datum: Datum { .text(represented) }
  public init(datum: Datum) throws(StoreError) { represented = try String(datum: datum) }
}

extension TextRepresentation: TableKey, KeyValue {}

/// The kinds of text that the schema knows.
public enum TextKinds {
  public enum ID: TextKind { public static var columnType: ColumnType { .id } }
  public enum Date: TextKind { public static var columnType: ColumnType { .date } }
  public enum Time: TextKind { public static var columnType: ColumnType { .time } }
  public enum DateTime: TextKind { public static var columnType: ColumnType { .dateTime } }
  public enum Email: TextKind { public static var columnType: ColumnType { .email } }
  public enum Phone: TextKind { public static var columnType: ColumnType { .phone } }
  public enum IPAddress: TextKind { public static var columnType: ColumnType { .ipAddress } }
  public enum JSON: TextKind { public static var columnType: ColumnType { .json } }
}

extension String {
  /// Any text; a UUID becomes lower case.
  public typealias ID = TextRepresentation<TextKinds.ID>
  /// `2024-02-29`
  public typealias AWSDate = TextRepresentation<TextKinds.Date>
  /// `23:59:59.999`
  public typealias AWSTime = TextRepresentation<TextKinds.Time>
  /// `2024-02-29T23:59:59+01:00`, with its zone, which a `Date` does not keep.
  public typealias AWSDateTime = TextRepresentation<TextKinds.DateTime>
  /// `name@example.org`
  public typealias AWSEmail = TextRepresentation<TextKinds.Email>
  /// `+49 30 123456`
  public typealias AWSPhone = TextRepresentation<TextKinds.Phone>
  /// `2001:db8::/32`
  public typealias AWSIPAddress = TextRepresentation<TextKinds.IPAddress>
  /// JSON text; becomes canonical, without white space and with sorted members.
  public typealias AWSJSON = TextRepresentation<TextKinds.JSON>
}
