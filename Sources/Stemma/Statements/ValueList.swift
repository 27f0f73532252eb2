import StemmaEvents
import StemmaTables

/// Values, or keys of several parts, as one parameter, so that the statement's text does not depend
/// on their count.
struct ValueList {
  /// A JSON array of the values, or of arrays of the parts.
  let parameter: Value
  /// Whether texts are escaped, because SQLite's JSON functions cut a text at U+0000.
  private let isEscaped: Bool

  /// All `rows` have equal lengths.
  init(_ rows: [[Value]]) {
    let isEscaped = rows.contains { $0.contains(where: Self.holdsZero) }
    let parts = rows.map { row in row.map { Self.json($0, isEscaped) } }
    parameter = .string(JSON.array(parts.map { $0.count == 1 ? $0[0] : .array($0) }).canonicalText)
    self.isEscaped = isEscaped
  }

  /// `(SELECT … FROM json_each(?))`, with each value transformed by `shown`.
  func text(_ shown: (StatementText) -> StatementText = { $0 }) -> StatementText {
    var text = StatementText("(SELECT ")
    text.append(shown(StatementText(part("value"))))
    text.append(StatementText(" FROM json_each(?))", [parameter]))
    return text
  }

  /// The same for keys with this number of parts, without the parameter.
  func sql(parts: Int) -> String {
    let columns =
      parts == 1 ? [part("value")] : (0..<parts).map { part("json_extract(value, '$[\($0)]')") }
    return "(SELECT \(columns.joined(separator: ", ")) FROM json_each(?))"
  }

  private func part(_ text: String) -> String {
    isEscaped ? "\(SQLFunction.unescaped.rawValue)(\(text))" : text
  }

  private static func holdsZero(_ value: Value) -> Bool {
    if case .string(let text) = value { text.utf8.contains(0) } else { false }
  }

  /// JSON for SQLite: unlike in `Value.json`, a large integer is a number, and not text.
  private static func json(_ value: Value, _ isEscaped: Bool) -> JSON {
    switch value {
    case .int(let number): .int(number)
    case .string(let text) where isEscaped: .string(SQLFunction.escaped(text))
    default: value.json
    }
  }
}
