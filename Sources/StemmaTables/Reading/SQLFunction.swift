import GRDBSQLite
import StemmaSchema

/// Functions in addition to SQLite's own. Every connection registers them.
/// No table and no index names one, so any other program can read the file.
package enum SQLFunction: String, CaseIterable, Sendable {
  /// The point in time of an AWSDateTime, in milliseconds since 1970. A floating-point number is
  /// returned unchanged; any other value gives null. SQLite's own functions support neither offsets
  /// with seconds nor offsets of 15 hours.
  case milliseconds = "stemma_milliseconds"
  /// The inverse, in UTC; a floating-point number is returned unchanged.
  case dateTime = "stemma_date_time"
  /// The text from before `escaped`; other values are returned unchanged.
  case unescaped = "stemma_unescaped"
  /// The number of Unicode scalars of a text, also after U+0000; null for other values.
  case scalarCount = "stemma_scalar_count"
  /// The rank of the write of a child's reference, a blob; from the child's `_state` and a
  /// `ReferenceRank`. Of several children, a `hasOne` shows the one with the highest rank.
  case referenceRank = "stemma_reference_rank"

  private var argumentCount: Int32 { self == .referenceRank ? 2 : 1 }

  /// Precedes a digit: 0 for U+0000, 1 for the escape itself.
  private static let escape: UInt8 = 1

  /// The text without U+0000.
  package static func escaped(_ text: String) -> String {
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if byte <= escape { bytes += [escape, UInt8(ascii: "0") + byte] } else { bytes.append(byte) }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func unescaped(_ text: String) -> String {
    var bytes: [UInt8] = []
    var isEscaped = false
    for byte in text.utf8 {
      if isEscaped { bytes.append(byte &- UInt8(ascii: "0")) } else if byte != escape { bytes.append(byte) }
      isEscaped = !isEscaped && byte == escape
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Registers all functions with a connection.
  static func install(on connection: Connection) throws(TablesError) {
    let flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC
    for function in allCases {
      let code = sqlite3_create_function_v2(
        connection.handle, function.rawValue, function.argumentCount, flags, nil, function.body, nil, nil, nil
      )
      guard code == SQLITE_OK else { throw connection.failure(code) }
    }
  }

  private typealias Body =
    @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void

  /// SQLite calls the body with `argumentCount` arguments.
  private var body: Body {
    switch self {
    case .milliseconds:
      { context, _, arguments in
        guard let date = SQLFunction.text(arguments?[0]).flatMap({ DateText(dateTime: $0) }) else {
          SQLFunction.giveNumber(arguments?[0], context)
          return
        }
        sqlite3_result_int64(context, date.millisecondsSince1970)
      }
    case .dateTime:
      { context, _, arguments in
        guard let value = arguments?[0], sqlite3_value_type(value) == SQLITE_INTEGER else {
          SQLFunction.giveNumber(arguments?[0], context)
          return
        }
        let date = DateText(millisecondsSince1970: sqlite3_value_int64(value))
        SQLFunction.give(date.utcText, context)
      }
    case .unescaped:
      { context, _, arguments in
        guard let value = arguments?[0], let text = SQLFunction.text(value) else {
          sqlite3_result_value(context, arguments?[0])
          return
        }
        SQLFunction.give(SQLFunction.unescaped(text), context)
      }
    case .scalarCount:
      { context, _, arguments in
        guard let count = SQLFunction.withText(arguments?[0], { $0.count { $0 & 0xC0 != 0x80 } }) else {
          sqlite3_result_null(context)
          return
        }
        sqlite3_result_int64(context, Int64(count))
      }
    case .referenceRank:
      { context, _, arguments in
        guard let state = arguments?[0], let reference = ReferenceRank.of(arguments?[1]) else {
          sqlite3_result_null(context)
          return
        }
        // The pointer comes first: asking for the size may otherwise convert the value under it.
        let start = sqlite3_value_blob(state)
        let bytes = UnsafeRawBufferPointer(start: start, count: Int(sqlite3_value_bytes(state)))
        do {
          guard let rank = try reference.rank(of: bytes) else {
            sqlite3_result_null(context)
            return
          }
          rank.withUnsafeBytes {
            sqlite3_result_blob64(context, $0.baseAddress, UInt64($0.count), Statement.copied)
          }
        } catch { sqlite3_result_error_code(context, SQLITE_CORRUPT) }
      }
    }
  }

  /// Nil for a value that is not text.
  private static func text(_ value: OpaquePointer?) -> String? {
    withText(value) { String(decoding: $0, as: UTF8.self) }
  }

  /// The UTF-8 of a text, valid only in `body`; nil for a value that is not text.
  private static func withText<Result>(
    _ value: OpaquePointer?, _ body: (UnsafeBufferPointer<UInt8>) -> Result
  ) -> Result? {
    guard let value, sqlite3_value_type(value) == SQLITE_TEXT, let start = sqlite3_value_text(value) else {
      return nil
    }
    return body(UnsafeBufferPointer(start: start, count: Int(sqlite3_value_bytes(value))))
  }

  /// Returns a floating-point number to SQLite, or null.
  private static func giveNumber(_ value: OpaquePointer?, _ context: OpaquePointer?) {
    if let value, sqlite3_value_type(value) == SQLITE_FLOAT {
      sqlite3_result_value(context, value)
    } else {
      sqlite3_result_null(context)
    }
  }

  private static func give(_ text: String?, _ context: OpaquePointer?) {
    guard var text else {
      sqlite3_result_null(context)
      return
    }
    text.withUTF8 { bytes in
      bytes.withMemoryRebound(to: CChar.self) { characters in
        let count = UInt64(characters.count)
        sqlite3_result_text64(
          context, characters.baseAddress, count, Statement.copied, UInt8(SQLITE_UTF8))
      }
    }
  }
}
