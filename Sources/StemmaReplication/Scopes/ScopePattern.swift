import StemmaEvents

/// One pattern of a scope.
///
/// The text, without the `!` of an exclusion, is matched against the whole name of a partition:
///
///     *        any run of characters, the empty one too; alone: every partition
///     ?        any one character
///     [a-z_]   one character of a set or range; `[!a-z]` one outside of it; `]` directly after `[`
///              or `[!` is a character like any other
///     other    itself, in the escaped form of partition names: a comma inside of a value is `%2C`
///
/// A character is a Unicode scalar, without normalization: `É` differs from its decomposed form.
package struct ScopePattern: Hashable, Sendable, Comparable, CustomStringConvertible {
  package let isExclusion: Bool
  /// The text without `!`, in canonical form (uppercase escapes).
  package let bytes: [UInt8]
  let tokens: [Token]

  enum Token: Hashable, Sendable {
    case byte(UInt8)
    case anyCharacter
    case anyRun
    case set(ranges: [ClosedRange<UInt32>], isNegated: Bool)
  }

  package static let everything = ScopePattern(isExclusion: false, bytes: [0x2A], tokens: [.anyRun])

  private init(isExclusion: Bool, bytes: [UInt8], tokens: [Token]) {
    self.isExclusion = isExclusion
    self.bytes = bytes
    self.tokens = tokens
  }

  /// The pattern that matches this one partition.
  package init(_ partition: Partition) {
    self.init(isExclusion: false, bytes: partition.bytes, tokens: partition.bytes.map(Token.byte))
  }

  /// Parses a pattern as a person writes it, or as `description` prints it.
  package init(_ text: String) throws(ReplicationError) {
    var reader = PatternParser(text)
    let (isExclusion, bytes, tokens) = try reader.pattern()
    self.init(isExclusion: isExclusion, bytes: bytes, tokens: tokens)
  }

  /// The partition that an exact pattern names; nil for a glob.
  package var partition: Partition? {
    for token in tokens { guard case .byte = token else { return nil } }
    return Partition(description: bytes)
  }

  package var matchesEverything: Bool { tokens.allSatisfy { $0 == .anyRun } }

  /// The same text with the opposite sign: included for excluded.
  package var opposite: ScopePattern {
    ScopePattern(isExclusion: !isExclusion, bytes: bytes, tokens: tokens)
  }

  package var description: String { (isExclusion ? "!" : "") + String(decoding: bytes, as: UTF8.self) }

  /// Inclusions before exclusions, then by bytes: the order in which a scope lists its patterns.
  package static func < (a: ScopePattern, b: ScopePattern) -> Bool {
    if a.isExclusion != b.isExclusion { return b.isExclusion }
    return a.bytes.lexicographicallyPrecedes(b.bytes)
  }

  /// Whether the text matches, for inclusions and exclusions alike. Linear in the name for patterns
  /// with one `*`. With more, at worst the product of both lengths (only the last `*` is retried).
  package func matches(_ partition: Partition) -> Bool {
    let name = partition.bytes
    var at = 0
    var token = 0
    var retry: (token: Int, at: Int)?
    while true {
      if token == tokens.count {
        if at == name.count { return true }
      } else if case .anyRun = tokens[token] {
        token += 1
        retry = (token, at)
        continue
      } else if let length = Self.length(of: tokens[token], in: name, at: at) {
        token += 1
        at += length
        continue
      }
      guard let last = retry, last.at < name.count else { return false }
      retry = (last.token, last.at + 1)
      token = last.token
      at = last.at + 1
    }
  }

  /// How many bytes of `name` from `at` one token matches; nil if it does not match there.
  private static func length(of token: Token, in name: [UInt8], at: Int) -> Int? {
    guard at < name.count else { return nil }
    switch token {
    case .byte(let byte): return name[at] == byte ? 1 : nil
    case .anyRun: return nil
    case .anyCharacter: return scalar(in: name, at: at)?.length
    case .set(let ranges, let isNegated):
      guard let (scalar, length) = scalar(in: name, at: at) else { return nil }
      return ranges.contains { $0.contains(scalar) } != isNegated ? length : nil
    }
  }

  /// The character that begins at `at`; nil within a character. Partition names are valid UTF-8.
  private static func scalar(in name: [UInt8], at: Int) -> (UInt32, length: Int)? {
    let lead = name[at]
    let length = lead < 0x80 ? 1 : lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4
    guard length > 0, at + length <= name.count else { return nil }
    if length == 1 { return (UInt32(lead), 1) }
    var value = UInt32(lead) & (0x7F >> UInt32(length))
    for index in at + 1..<at + length { value = value << 6 | UInt32(name[index] & 0x3F) }
    return (value, length)
  }
}

extension Partition {
  /// Adopts a name whose bytes are valid UTF-8 already.
  fileprivate init(description bytes: [UInt8]) { self.init(String(decoding: bytes, as: UTF8.self)) }
}

/// Parses the text of one pattern.
private struct PatternParser {
  private let text: String
  private let scalars: [Unicode.Scalar]
  private var index = 0
  private var bytes: [UInt8] = []

  init(_ text: String) {
    self.text = text
    scalars = Array(text.unicodeScalars)
  }

  mutating func pattern() throws(ReplicationError) -> (Bool, [UInt8], [ScopePattern.Token]) {
    guard text.utf8.count <= ReplicationLimits.pattern else { throw .scope(.patternTooLong(text.utf8.count)) }
    let isExclusion = scalars.first == "!"
    if isExclusion { index = 1 }
    guard index < scalars.count else { throw .scope(.emptyPattern) }
    var tokens: [ScopePattern.Token] = []
    while let scalar = next() {
      switch scalar {
      case "*":
        if tokens.last == .anyRun { continue }
        bytes.append(0x2A)
        tokens.append(.anyRun)
      case "?":
        bytes.append(0x3F)
        tokens.append(.anyCharacter)
      case "[": tokens.append(try set())
      case "%": for byte in try escape() { tokens.append(.byte(byte)) }
      case "!": throw .scope(.mustBeEscaped(pattern: text, character: "!", write: "%21"))
      case "\0": throw .scope(.neverMatches(pattern: text, part: "a NUL"))
      default: for byte in append(scalar) { tokens.append(.byte(byte)) }
      }
    }
    return (isExclusion, bytes, tokens)
  }

  private mutating func next() -> Unicode.Scalar? {
    guard index < scalars.count else { return nil }
    index += 1
    return scalars[index - 1]
  }

  private mutating func append(_ scalar: Unicode.Scalar) -> [UInt8] {
    let encoded = Array(String(scalar).utf8)
    bytes += encoded
    return encoded
  }

  /// Parses `%XX` of a character that partition names escape; any other would never match.
  private mutating func escape() throws(ReplicationError) -> [UInt8] {
    let digits = String(String.UnicodeScalarView(scalars[index..<min(index + 2, scalars.count)]))
    guard digits.utf8.count == 2, digits.utf8.allSatisfy({ Unicode.Scalar($0).properties.isASCIIHexDigit }),
      let code = UInt8(digits, radix: 16)
    else { throw .scope(.mustBeEscaped(pattern: text, character: "%", write: "%25")) }
    guard Partition.escapedCharacters.contains(code) else {
      throw .scope(.neverMatches(pattern: text, part: "%" + digits))
    }
    index += 2
    let escaped = Array(("%" + digits.uppercased()).utf8)
    bytes += escaped
    return escaped
  }

  private mutating func set() throws(ReplicationError) -> ScopePattern.Token {
    bytes.append(0x5B)
    var isNegated = false
    if index < scalars.count, scalars[index] == "!" {
      isNegated = true
      index += 1
      bytes.append(0x21)
    }
    var ranges: [ClosedRange<UInt32>] = []
    while let first = next() {
      if first == "]", !ranges.isEmpty {
        bytes.append(0x5D)
        return .set(ranges: ranges, isNegated: isNegated)
      }
      let low = try member(first)
      var high = low
      if index + 1 < scalars.count, scalars[index] == "-", scalars[index + 1] != "]" {
        bytes.append(0x2D)
        high = try member(scalars[index + 1])
        index += 2
      }
      guard low <= high else {
        throw .scope(.neverMatches(pattern: text, part: "a range that runs backwards"))
      }
      ranges.append(low.value...high.value)
    }
    throw .scope(.openSet(pattern: text))
  }

  private mutating func member(_ scalar: Unicode.Scalar) throws(ReplicationError) -> Unicode.Scalar {
    guard !["%", "*", "?", "[", "!", "\0"].contains(scalar) else {
      throw .scope(.neverMatches(pattern: text, part: "\(scalar) inside of [ ]"))
    }
    _ = append(scalar)
    return scalar
  }
}

extension Partition {
  /// The characters that partition names escape in values: `% = , * ? [ !`.
  static let escapedCharacters: Set<UInt8> = Set("%=,*?[!".utf8)
}
