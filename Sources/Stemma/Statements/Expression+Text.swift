import StemmaTables

/// An expression whose value is text, or an optional one.
public protocol TextValue: ColumnValue {}
extension String: TextValue {}
extension Optional: TextValue where Wrapped == String {}

/// Text is compared byte by byte, so that case counts. Null has no text in it.
extension ExpressionProtocol where Value: TextValue {
  /// Whether the text has this part anywhere. Every text has the empty one. Reads each row: no index helps.
  public func contains(_ part: String) -> ColumnExpression<Bool> {
    ColumnExpression(
      .combination(.call("instr", text, StatementText(value: part)), " > ", StatementText("0")))
  }

  /// Can be looked up in an index, unless there is a U+0000 in it.
  public func hasPrefix(_ start: String) -> ColumnExpression<Bool> {
    // Patterns end there.
    if start.utf8.contains(0) {
      return ColumnExpression(
        .combination(.call("instr", text, StatementText(value: start)), " = ", StatementText("1")))
    }
    return glob(Self.escaped(start) + "*")
  }

  /// Whether the text ends like this; every text ends with the empty one. Reads each row: no index helps.
  public func hasSuffix(_ end: String) -> ColumnExpression<Bool> {
    if end.isEmpty { return hasPrefix(end) }
    // As bytes, because SQLite looks for the end of a text no further than to U+0000.
    let last = StatementText.call("substr", text.bytes, StatementText("\(-end.utf8.count)"))
    return ColumnExpression(.combination(last, " = ", StatementText(value: end).bytes))
  }

  /// `*` matches any text, `?` one character, `[abc]` one of several. A pattern has up to 50 000 bytes. A text or a
  /// pattern counts up to its first U+0000.
  public func glob(_ pattern: String) -> ColumnExpression<Bool> {
    ColumnExpression(.combination(text, " GLOB ", StatementText(value: pattern)))
  }

  /// `%` matches any text, `_` one character; Latin letters match in upper and lower case. A pattern has up to
  /// 50 000 bytes. Behind `escape`, `%` and `_` match themselves. A text or a pattern counts up to its first U+0000.
  public func like(_ pattern: String, escape: Character? = nil) -> ColumnExpression<Bool> {
    var pattern = StatementText(value: pattern)
    if let escape { pattern.append(.escape(escape)) }
    return ColumnExpression(.combination(text, " LIKE ", pattern))
  }

  /// Of Latin letters only.
  public func lowercased() -> ColumnExpression<Value> { ColumnExpression(.call("lower", text)) }
  /// Of Latin letters only, without accents.
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

/// Both texts, one behind the other.
public func + (a: some ExpressionProtocol<String>, b: some ExpressionProtocol<String>) -> ColumnExpression<
  String
> {
  ColumnExpression(.combination(a.text, " || ", b.text))
}

/// The column's text and another behind it.
public func + (a: some ExpressionProtocol<String>, b: String) -> ColumnExpression<String> {
  ColumnExpression(.combination(a.text, " || ", StatementText(value: b)))
}

/// A text and the column's behind it.
public func + (a: String, b: some ExpressionProtocol<String>) -> ColumnExpression<String> {
  ColumnExpression(.combination(StatementText(value: a), " || ", b.text))
}
