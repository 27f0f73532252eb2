import StemmaTables

/// An expression whose value is text, or an optional one.
public protocol TextValue: ColumnValue {}
extension String: TextValue {}
extension Optional: TextValue where Wrapped == String {}

/// Text is compared byte by byte, case included. Null contains no text.
extension ExpressionProtocol where Value: TextValue {
  /// Whether it contains this part. Every text contains the empty one. Reads each row: no index.
  public func contains(_ part: String) -> ColumnExpression<Bool> {
    ColumnExpression(
      .combination(.call("instr", text, StatementText(value: part)), " > ", StatementText("0")))
  }

  /// Whether the text begins like this. Can use an index, unless `start` contains U+0000.
  public func hasPrefix(_ start: String) -> ColumnExpression<Bool> {
    // GLOB patterns end at U+0000.
    if start.utf8.contains(0) {
      return ColumnExpression(
        .combination(.call("instr", text, StatementText(value: start)), " = ", StatementText("1")))
    }
    return glob(Self.escaped(start) + "*")
  }

  /// Whether the text ends like this; every text ends with the empty one. Reads each row: no index.
  public func hasSuffix(_ end: String) -> ColumnExpression<Bool> {
    if end.isEmpty { return hasPrefix(end) }
    // As bytes, because SQLite's text functions stop at U+0000.
    let last = StatementText.call("substr", text.bytes, StatementText("\(-end.utf8.count)"))
    return ColumnExpression(.combination(last, " = ", StatementText(value: end).bytes))
  }

  /// `*` matches any text, `?` one character, `[abc]` one of several. A pattern has up to 50 000
  /// bytes. Texts and patterns count up to their first U+0000.
  public func glob(_ pattern: String) -> ColumnExpression<Bool> {
    ColumnExpression(.combination(text, " GLOB ", StatementText(value: pattern)))
  }

  /// `%` matches any text, `_` one character; Latin letters match in either case. After `escape`,
  /// `%` and `_` match themselves. The limit is 50 000 bytes; texts and patterns count up to
  /// U+0000.
  public func like(_ pattern: String, escape: Character? = nil) -> ColumnExpression<Bool> {
    var pattern = StatementText(value: pattern)
    if let escape { pattern.append(.escape(escape)) }
    return ColumnExpression(.combination(text, " LIKE ", pattern))
  }

  /// Changes Latin letters only.
  public func lowercased() -> ColumnExpression<Value> { ColumnExpression(.call("lower", text)) }
  /// Changes Latin letters without accents only.
  public func uppercased() -> ColumnExpression<Value> { ColumnExpression(.call("upper", text)) }

  private static func escaped(_ text: String) -> String {
    var escaped = ""
    for character in text.unicodeScalars {
      if ["*", "?", "["].contains(character) {
        escaped += "[\(character)]"
      } else {
        escaped.unicodeScalars.append(character)
      }
    }
    return escaped
  }
}

extension StatementText {
  /// A text as its UTF-8.
  fileprivate var bytes: StatementText {
    var bytes = StatementText("CAST(")
    bytes.append(self)
    bytes.append(" AS BLOB)")
    return bytes
  }

  fileprivate static func escape(_ character: Character) -> StatementText {
    var text = StatementText(" ESCAPE ")
    text.append(StatementText(value: String(character)))
    return text
  }
}

extension ExpressionProtocol where Value == String {
  /// How many Unicode scalars it has.
  public var length: ColumnExpression<Int> { ColumnExpression(.call(SQLFunction.scalarCount.rawValue, text)) }
}

/// Both texts, concatenated.
public func + (a: some ExpressionProtocol<String>, b: some ExpressionProtocol<String>) -> ColumnExpression<
  String
> {
  ColumnExpression(.combination(a.text, " || ", b.text))
}

/// The column's text, followed by another.
public func + (a: some ExpressionProtocol<String>, b: String) -> ColumnExpression<String> {
  ColumnExpression(.combination(a.text, " || ", StatementText(value: b)))
}

/// A text, followed by the column's.
public func + (a: String, b: some ExpressionProtocol<String>) -> ColumnExpression<String> {
  ColumnExpression(.combination(StatementText(value: a), " || ", b.text))
}
