import StemmaEvents
import StemmaSchema

/// A stored form for values that are no column values, or an alternative to their own:
/// `@Column(as: [Tag].JSONRepresentation.self) var tags: [Tag]`.
public protocol ColumnRepresentation: ColumnValue {
  /// The type of the property.
  associatedtype Represented: Sendable
  /// The representation of a property's value; a write stores its datum.
  init(representing value: Represented)
  /// The property's value, after a read.
  var represented: Represented { get }
}

extension Optional: ColumnRepresentation where Wrapped: ColumnRepresentation {
  /// Nil stays nil, which is null in the table.
  public init(representing value: Wrapped.Represented?) { self = value.map { Wrapped(representing: $0) } }
  /// Nil for null.
  public var represented: Wrapped.Represented? { self?.represented }
}

// MARK: Text of a stricter kind

/// A kind of text in a column. See the types of `String`, such as `String.AWSEmail`.
public protocol TextKind: Sendable {
  /// The draft's type for a key part of this kind that is named `id`.
  associatedtype DraftPart = TextRepresentation<Self>
  /// The schema's name of the kind. A write checks its rule.
  static var columnType: ColumnType { get }
}

/// A `String` in a column for texts of one kind. A write refuses other texts, with the rule that
/// they break.
public struct TextRepresentation<Kind: TextKind>: ColumnRepresentation, Hashable {
  /// The text as given, or as stored.
  public let represented: String

  /// Accepts any text; a write checks the rule of the kind.
  public init(representing text: String) { represented = text }

  /// The column type of the kind.
  public static var columnType: ColumnType { Kind.columnType }
  /// The text as given. A write may store another spelling: an `ID` that is a UUID becomes lower
  /// case, JSON canonical.
  public var datum: Datum { .text(represented) }
  /// Accepts any stored text, of whatever kind.
  ///
  /// - Throws: `unreadable` for anything but text.
  public init(datum: Datum) throws(StoreError) { represented = try String(datum: datum) }
}

extension TextRepresentation: TableKey, KeyValue {
  /// The type for the kind.
  public typealias DraftPart = Kind.DraftPart

  /// The stored spelling: a UUID in lower case, a point in time in UTC.
  public var keyDatum: Datum {
    switch Kind.columnType.scalar {
    case .id:
      var text = represented
      return .text(text.withUTF8 { UUIDText.uuid(of: $0) } == nil ? represented : represented.lowercased())
    case .awsDateTime: return .text(DateText(dateTime: represented)?.utcText ?? represented)
    default: return datum
    }
  }
}

extension TextRepresentation: ExpressibleByStringLiteral, CustomStringConvertible, Codable {
  /// Accepts any text, as `init(representing:)`.
  public init(_ text: String) { represented = text }
  /// Accepts any text, as `init(representing:)`.
  public init(stringLiteral text: String) { represented = text }
  /// The text.
  public var description: String { represented }
  /// Decodes a text, whether or not the kind's rule allows it.
  public init(from decoder: any Decoder) throws {
    represented = try decoder.singleValueContainer().decode(String.self)
  }
  /// Encodes the text alone.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(represented)
  }
}

/// The kinds of text that the schema knows.
public enum TextKinds {
  /// Text that names something; `String.ID`.
  public enum ID: TextKind {
    /// Minted by the node where a draft leaves it out.
    public typealias DraftPart = TextRepresentation<ID>?
    /// `ID`: any text; a UUID becomes lower case.
    public static var columnType: ColumnType { .id }
  }
  /// Text that is a day; `String.AWSDate`.
  public enum Date: TextKind {
    /// `AWSDate`: a day, an offset may follow.
    public static var columnType: ColumnType { .date }
  }
  /// Text that is a time of day; `String.AWSTime`.
  public enum Time: TextKind {
    /// `AWSTime`: with or without seconds, an offset may follow.
    public static var columnType: ColumnType { .time }
  }
  /// Text that is a point in time; `String.AWSDateTime`.
  public enum DateTime: TextKind {
    /// `AWSDateTime`: day, time and offset.
    public static var columnType: ColumnType { .dateTime }
  }
  /// Text that is an email address; `String.AWSEmail`.
  public enum Email: TextKind {
    /// `AWSEmail`: as `name@example.org`.
    public static var columnType: ColumnType { .email }
  }
  /// Text that is a phone number; `String.AWSPhone`.
  public enum Phone: TextKind {
    /// `AWSPhone`: 3 to 15 digits; a leading `+`, and spaces, hyphens, points and brackets between.
    public static var columnType: ColumnType { .phone }
  }
  /// Text that is a URL; `String.AWSURL`.
  public enum URL: TextKind {
    /// `AWSURL`: with a scheme.
    public static var columnType: ColumnType { .url }
  }
  /// Text that is an IP address or a range of them; `String.AWSIPAddress`.
  public enum IPAddress: TextKind {
    /// `AWSIPAddress`: of version 4 or 6, alone or as `192.0.2.0/24`.
    public static var columnType: ColumnType { .ipAddress }
  }
  /// Text that is JSON; `String.AWSJSON`.
  public enum JSON: TextKind {
    /// `AWSJSON`: becomes canonical, without white space and with sorted members.
    public static var columnType: ColumnType { .json }
  }
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
  /// `https://example.org`, byte by byte; not every stored one is a `URL` of Foundation.
  public typealias AWSURL = TextRepresentation<TextKinds.URL>
  /// `2001:db8::/32`
  public typealias AWSIPAddress = TextRepresentation<TextKinds.IPAddress>
  /// JSON text; becomes canonical, without white space and with sorted members.
  public typealias AWSJSON = TextRepresentation<TextKinds.JSON>
}
