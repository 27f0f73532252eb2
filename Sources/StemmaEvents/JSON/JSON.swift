/// A JSON value (RFC 8259) of mutations, keys and commands.
///
/// The parser is strict: UTF-8 without a byte order mark, no repeated names, no half surrogates, no
/// trailing text, bounded nesting. Whole numbers of 64 bits are numbers. All others keep their
/// text, so no digit is lost before the field's type decides about it.
package enum JSON: Sendable {
  case null
  case bool(Bool)
  case int(Int64)
  /// A number with a fraction or an exponent, beyond 64 bits, or -0: the original text.
  case number(String)
  case string(String)
  case array([JSON])
  /// In the order of the text; names differ as bytes.
  case object([(name: String, value: JSON)])
}

extension JSON: Equatable {
  /// Equality of content, strings as bytes; the order of an object's members counts.
  package static func == (a: JSON, b: JSON) -> Bool {
    switch (a, b) {
    case (.null, .null): true
    case (.bool(let x), .bool(let y)): x == y
    case (.int(let x), .int(let y)): x == y
    case (.number(let x), .number(let y)), (.string(let x), .string(let y)): x.hasSameBytes(as: y)
    case (.array(let x), .array(let y)): x == y
    case (.object(let x), .object(let y)):
      x.count == y.count
        && zip(x, y).allSatisfy { $0.name.hasSameBytes(as: $1.name) && $0.value == $1.value }
    default: false
    }
  }

  package var isNull: Bool { if case .null = self { true } else { false } }

  /// A member of an object, by the bytes of its name; nil if absent, or if this is no object.
  package subscript(name: String) -> JSON? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.name.hasSameBytes(as: name) }?.value
  }

  /// An object with further members.
  package func adding(_ members: [(name: String, value: JSON)]) -> JSON {
    guard case .object(let own) = self else { return self }
    return .object(own + members)
  }
}

/// The reason why bytes are not JSON.
package struct JSONError: Error, Equatable, Sendable {
  package enum Problem: Equatable, Sendable {
    /// A value, or the named token, is missing.
    case expected(String)
    /// The text ends inside of a value.
    case cutShort
    /// A number is not written as JSON demands.
    case number
    /// An unknown escape, or half of a surrogate pair.
    case escape
    /// A string has an unescaped control character.
    case controlCharacter
    case notUTF8
    /// The text begins with a byte order mark.
    case byteOrderMark
    /// An object has a name twice.
    case repeatedName(String)
    case tooDeep(limit: Int)
    case trailingText
  }

  package var problem: Problem
  /// The offset of the byte at which reading failed.
  package var offset: Int

  package init(_ problem: Problem, at offset: Int) {
    self.problem = problem
    self.offset = offset
  }
}
