import StemmaEvents

import class Foundation.JSONDecoder
import class Foundation.JSONEncoder

/// A `Codable` value as JSON text. See `JSONRepresentation`.
public struct JSONText<Represented: Codable & Sendable>: ColumnRepresentation {
  /// The value itself.
  public let represented: Represented

  /// Encodes nothing; a write encodes the value.
  public init(representing value: Represented) { represented = value }

  /// JSON text, an AWSJSON; may be null if the value is an optional.
  public static var columnType: ColumnType {
    var type = ColumnType.json
    type.isOptional = Represented.self is any ExpressibleByNilLiteral.Type
    return type
  }

  /// The output of a `JSONEncoder` without settings, as canonical JSON: no white space, sorted
  /// members. JSON's `null` is SQL's. A write refuses a value that cannot be encoded.
  public var datum: Datum {
    do {
      let json = try JSON.parse(Array(try JSONEncoder().encode(represented)))
      return json.isNull ? .null : .text(json.canonicalText)
    } catch {
      // Invalid JSON: the write refuses it, and names the record, the field and this error.
      return .text("\(Represented.self) cannot be encoded: \(error)")
    }
  }

  /// Decodes with a `JSONDecoder` without settings; null is decoded from JSON's `null`.
  ///
  /// - Throws: `unreadable` if that fails.
  public init(datum: Datum) throws(StoreError) {
    let text: String
    switch datum.value {
    case .null: text = "null"
    case .string(let stored), .json(let stored): text = stored
    default: throw Self.misfit(datum)
    }
    do { represented = try JSONDecoder().decode(Represented.self, from: Data(text.utf8)) } catch {
      throw Self.misfit(datum)
    }
  }

  /// - Throws: `unreadable`, with table and column.
  public static func read(_ row: RowReader, _ column: Int) throws(StoreError) -> JSONText {
    do throws(StoreError) { return try JSONText(datum: row.datum(column, .json)) } catch {
      throw row.unreadable(column)
    }
  }
}

extension Decodable where Self: Encodable & Sendable {
  /// Stores the value as JSON: `@Column(as: [Tag].JSONRepresentation.self)`, or for an optional one
  /// `@Column(as: Address?.JSONRepresentation.self)`.
  public typealias JSONRepresentation = JSONText<Self>
}
