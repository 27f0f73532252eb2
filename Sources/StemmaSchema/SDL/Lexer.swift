/// One lexical unit of SDL (GraphQL specification, October 2021, section 2.1).
struct Token: Equatable {
  enum Kind: Equatable {
    case name(String)
    case string(String)
    case int(String)
    case float(String)
    /// One of `! $ & ( ) : = @ [ ] { | }`, or `...`.
    case punctuator(String)
    case end
  }

  var kind: Kind
  var place: Place

  /// The token in error messages.
  var text: String {
    switch kind {
    case .name(let text), .int(let text), .float(let text), .punctuator(let text): "`\(text)`"
    case .string: "a string"
    case .end: "the end of the schema"
    }
  }
}

/// Splits SDL into tokens; comments, commas and white space are skipped. An error consumes at least
/// one character, so that reading always ends.
struct Lexer {
  private let scalars: [Unicode.Scalar]
  private var index = 0
  private var place = Place(line: 1, column: 1)

  init(_ text: String) {
    scalars = Array(text.unicodeScalars)
    if scalars.first == "\u{FEFF}" { index = 1 }
  }

  mutating func next() throws(SyntaxError) -> Token {
    skipIgnored()
    let start = place
    guard let scalar = peek() else { return Token(kind: .end, place: start) }
    switch scalar {
    case "!", "$", "&", "(", ")", ":", "=", "@", "[", "]", "{", "|", "}":
      advance()
      return Token(kind: .punctuator(String(scalar)), place: start)
    case ".":
      let isEllipsis = peek(1) == "." && peek(2) == "."
      for _ in 0..<(isEllipsis ? 3 : 1) { advance() }
      guard isEllipsis else { throw SyntaxError(start, "unexpected `.`") }
      return Token(kind: .punctuator("..."), place: start)
    case "\"":
      let text = peek(1) == "\"" && peek(2) == "\"" ? try blockString() : try string()
      return Token(kind: .string(text), place: start)
    case "-", "0"..."9": return Token(kind: try number(), place: start)
    case _ where scalar.startsName:
      var name = ""
      while let next = peek(), next.continuesName {
        name.unicodeScalars.append(next)
        advance()
      }
      guard name.utf8.count <= SchemaLimits.name else {
        throw SyntaxError(start, "name of \(name.utf8.count) bytes", "use at most \(SchemaLimits.name)")
      }
      return Token(kind: .name(name), place: start)
    default:
      advance()
      let code = String(scalar.value, radix: 16, uppercase: true)
      throw SyntaxError(
        start, "unexpected character U+\(String(repeating: "0", count: max(0, 4 - code.count)))\(code)",
        "names are made of A-Z, a-z, 0-9 and _; text is quoted")
    }
  }

  private func peek(_ ahead: Int = 0) -> Unicode.Scalar? {
    index + ahead < scalars.count ? scalars[index + ahead] : nil
  }

  private mutating func advance() {
    guard index < scalars.count else { return }
    let scalar = scalars[index]
    index += 1
    if scalar == "\n" || (scalar == "\r" && peek() != "\n") {
      place = Place(line: place.line + 1, column: 1)
    } else {
      place.column += 1
    }
  }

  private mutating func skipIgnored() {
    while let scalar = peek() {
      switch scalar {
      case " ", "\t", "\n", "\r", ",": advance()
      case "#": while let next = peek(), next != "\n", next != "\r" { advance() }
      default: return
      }
    }
  }

  private mutating func number() throws(SyntaxError) -> Token.Kind {
    let start = place
    var text = ""
    func isDigit(_ scalar: Unicode.Scalar?) -> Bool { scalar.map { ("0"..."9").contains($0) } ?? false }
    func take(_ lexer: inout Lexer) {
      if let scalar = lexer.peek() { text.unicodeScalars.append(scalar) }
      lexer.advance()
    }
    if peek() == "-" { take(&self) }
    guard isDigit(peek()) else { throw SyntaxError(start, "`-` without a number") }
    while isDigit(peek()) { take(&self) }
    if text.hasPrefix("0") && text.count > 1 || text.hasPrefix("-0") && text.count > 2 {
      throw SyntaxError(start, "number `\(text)` begins with 0", "write it without leading zeros")
    }
    var isFloat = false
    if peek() == ".", isDigit(peek(1)) {
      isFloat = true
      take(&self)
      while isDigit(peek()) { take(&self) }
    }
    if peek() == "e" || peek() == "E" {
      isFloat = true
      take(&self)
      if peek() == "+" || peek() == "-" { take(&self) }
      guard isDigit(peek()) else { throw SyntaxError(start, "number `\(text)` has no exponent") }
      while isDigit(peek()) { take(&self) }
    }
    if let next = peek(), next.continuesName || next == "." {
      throw SyntaxError(start, "number `\(text)` runs into `\(next)`", "put a space between them")
    }
    return isFloat ? .float(text) : .int(text)
  }

  private mutating func string() throws(SyntaxError) -> String {
    let start = place
    advance()
    var text = ""
    while let scalar = peek() {
      switch scalar {
      case "\"":
        advance()
        return text
      case "\n", "\r":
        throw SyntaxError(start, "string without end", "close it with \" on the same line")
      case "\\":
        let escape = place
        advance()
        text.unicodeScalars.append(try escaped(at: escape))
      default:
        text.unicodeScalars.append(scalar)
        advance()
      }
    }
    throw SyntaxError(start, "string without end", "close it with \"")
  }

  private mutating func escaped(at start: Place) throws(SyntaxError) -> Unicode.Scalar {
    let scalar = peek()
    advance()
    switch scalar {
    case "\"": return "\""
    case "\\": return "\\"
    case "/": return "/"
    case "b": return "\u{8}"
    case "f": return "\u{C}"
    case "n": return "\n"
    case "r": return "\r"
    case "t": return "\t"
    case "u":
      let high = try hexadecimal(start)
      if let scalar = Unicode.Scalar(high) { return scalar }
      if (0xD800...0xDBFF).contains(high), peek() == "\\", peek(1) == "u" {
        advance()
        advance()
        let low = try hexadecimal(start)
        if (0xDC00...0xDFFF).contains(low),
          let scalar = Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
        {
          return scalar
        }
      }
      throw SyntaxError(start, "half of a surrogate pair", "write both halves, or the character itself")
    default: throw SyntaxError(start, "unknown escape", #"known are \" \\ \/ \b \f \n \r \t \uXXXX"#)
    }
  }

  private mutating func hexadecimal(_ start: Place) throws(SyntaxError) -> UInt32 {
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let scalar = peek(), let digit = Character(scalar).hexDigitValue, scalar.isASCII else {
        throw SyntaxError(start, #"`\u` needs four hexadecimal digits"#)
      }
      value = value << 4 | UInt32(digit)
      advance()
    }
    return value
  }

  /// `"""…"""`: drops common indentation and blank first and last lines, as specified.
  private mutating func blockString() throws(SyntaxError) -> String {
    let start = place
    for _ in 0..<3 { advance() }
    var raw = ""
    while let scalar = peek() {
      if scalar == "\"", peek(1) == "\"", peek(2) == "\"" {
        for _ in 0..<3 { advance() }
        return Self.dedented(raw)
      }
      if scalar == "\\", peek(1) == "\"", peek(2) == "\"", peek(3) == "\"" {
        raw += "\"\"\""
        for _ in 0..<4 { advance() }
      } else {
        raw.unicodeScalars.append(scalar)
        advance()
      }
    }
    throw SyntaxError(start, "block string without end", #"close it with """"#)
  }

  private static func dedented(_ raw: String) -> String {
    let isBlank = { (line: Substring) in line.allSatisfy { $0 == " " || $0 == "\t" } }
    var lines = raw.split(omittingEmptySubsequences: false) { $0.isNewline }
    let indents = lines.dropFirst().filter { !isBlank($0) }
      .map { $0.prefix { $0 == " " || $0 == "\t" }.count }
    let common = indents.min() ?? 0
    for index in lines.indices.dropFirst() { lines[index] = lines[index].dropFirst(common) }
    while let first = lines.first, isBlank(first) { lines.removeFirst() }
    while let last = lines.last, isBlank(last) { lines.removeLast() }
    return lines.joined(separator: "\n")
  }
}

extension Unicode.Scalar {
  var startsName: Bool {
    ("a"..."z").contains(self) || ("A"..."Z").contains(self) || self == "_"
  }
  var continuesName: Bool { startsName || ("0"..."9").contains(self) }
}
