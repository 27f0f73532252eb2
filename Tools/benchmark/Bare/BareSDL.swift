import Foundation
import Measuring

/// The types of a schema in GraphQL SDL, as far as the baseline needs them.
///
/// An independent parser: sharing StemmaSchema would put one mistake on both sides of the
/// comparison. It does not validate the schema; creating a node does.
struct BareSDL {
  struct Directive {
    var name: String
    /// All words and strings of an argument in source order, also those in lists and objects.
    var arguments: [String: [String]] = [:]
  }

  struct Field {
    var name: String
    var type: String
    var isList: Bool
    var isRequired: Bool
    var directives: [Directive]
    /// In the schema, from 1.
    var line: Int
  }

  struct TypeDefinition {
    var name: String
    var directives: [Directive]
    var fields: [Field] = []
  }

  private struct Token {
    var text: String
    var isString = false
    var line: Int
  }

  private(set) var types: [TypeDefinition] = []
  private(set) var enums: Set<String> = []
  private var tokens: [Token] = []
  private var place = 0
  private let name: String

  /// `name`: the name of the schema, for errors.
  init(_ text: String, name: String) throws {
    self.name = name
    try cut(Array(text.utf8))
    while place < tokens.count {
      switch tokens[place].text {
      case _ where tokens[place].isString: place += 1
      case "type":
        place += 1
        types.append(try type())
      case "enum":
        place += 1
        enums.insert(try word())
      case "{", "(": try skipGroup()
      default: place += 1
      }
    }
  }

  func failure(_ line: Int, _ what: String) -> BenchError { BenchError("\(name), line \(line): \(what)") }

  // MARK: Tokens

  private mutating func cut(_ bytes: [UInt8]) throws {
    var line = 1
    var index = 0
    func isWord(_ byte: UInt8) -> Bool {
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "+"),
        UInt8(ascii: "."):
        true
      default: false
      }
    }
    while index < bytes.count {
      let start = index
      switch bytes[index] {
      case UInt8(ascii: "\n"):
        line += 1
        index += 1
      case UInt8(ascii: "#"): while index < bytes.count, bytes[index] != UInt8(ascii: "\n") { index += 1 }
      case UInt8(ascii: "\"") where bytes[index...].starts(with: Self.blockQuote):
        index += 3
        while index < bytes.count, !bytes[index...].starts(with: Self.blockQuote) { index += 1 }
        index = min(index + 3, bytes.count)
        // A block string is a description, or too long to be a value in the data. Its text is not
        // needed.
        tokens.append(Token(text: "", isString: true, line: line))
        line += bytes[start..<index].count { $0 == UInt8(ascii: "\n") }
      case UInt8(ascii: "\""):
        index += 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
          index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        index = min(index + 1, bytes.count)
        let text = try JSONSerialization.jsonObject(
          with: Data(bytes[start..<index]), options: .fragmentsAllowed)
        tokens.append(Token(text: text as? String ?? "", isString: true, line: line))
      case let byte where isWord(byte):
        while index < bytes.count, isWord(bytes[index]) { index += 1 }
        tokens.append(Token(text: String(decoding: bytes[start..<index], as: UTF8.self), line: line))
      case let byte:
        index += 1
        // White space, commas and a byte order mark have no meaning.
        if byte > 0x20, byte < 0x7F, byte != UInt8(ascii: ",") {
          tokens.append(Token(text: String(UnicodeScalar(byte)), line: line))
        }
      }
    }
  }

  private static let blockQuote = Array("\"\"\"".utf8)

  private func isNext(_ sign: String) -> Bool {
    place < tokens.count && !tokens[place].isString && tokens[place].text == sign
  }

  private mutating func take(_ sign: String) -> Bool {
    guard isNext(sign) else { return false }
    place += 1
    return true
  }

  private mutating func word() throws -> String {
    guard place < tokens.count else {
      throw failure(tokens.last?.line ?? 1, "the schema ends in a definition")
    }
    defer { place += 1 }
    return tokens[place].text
  }

  private mutating func expect(_ sign: String) throws {
    let line = place < tokens.count ? tokens[place].line : tokens.last?.line ?? 1
    guard take(sign) else { throw failure(line, "the baseline cannot read this: no `\(sign)`") }
  }

  /// Skips the next bracketed group. Returns the words and strings inside it.
  @discardableResult
  private mutating func skipGroup() throws -> [String] {
    var depth = 0
    var texts: [String] = []
    repeat {
      let isString = place < tokens.count && tokens[place].isString
      let text = try word()
      switch isString ? "" : text {
      case "{", "(", "[": depth += 1
      case "}", ")", "]": depth -= 1
      case ":": break
      default: texts.append(text)
      }
    } while depth > 0
    return texts
  }

  // MARK: Definitions

  private mutating func type() throws -> TypeDefinition {
    var type = TypeDefinition(name: try word(), directives: try directives())
    try expect("{")
    while !take("}") {
      if place < tokens.count, tokens[place].isString {
        place += 1
        continue
      }
      let line = place < tokens.count ? tokens[place].line : 0
      let name = try word()
      if isNext("(") { try skipGroup() }
      try expect(":")
      let isList = take("[")
      var field = Field(
        name: name, type: try word(), isList: isList, isRequired: false, directives: [], line: line)
      if isList {
        _ = take("!")
        try expect("]")
      }
      field.isRequired = take("!")
      field.directives = try directives()
      type.fields.append(field)
    }
    return type
  }

  private mutating func directives() throws -> [Directive] {
    var directives: [Directive] = []
    while take("@") {
      var directive = Directive(name: try word())
      if take("(") {
        while !take(")") {
          let name = try word()
          try expect(":")
          directive.arguments[name] = isNext("[") || isNext("{") ? try skipGroup() : [try word()]
        }
      }
      directives.append(directive)
    }
    return directives
  }
}

extension [BareSDL.Directive] {
  subscript(name: String) -> BareSDL.Directive? { first { $0.name == name } }
}
