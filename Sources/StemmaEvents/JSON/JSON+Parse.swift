extension JSON {
  /// Maximum nesting of arrays and objects.
  package static let depthLimit = 128

  package static func parse(_ bytes: [UInt8]) throws(JSONError) -> JSON {
    let result = bytes.withUnsafeBytes { buffer -> Result<JSON, JSONError> in
      do throws(JSONError) { return .success(try parse(buffer)) } catch { return .failure(error) }
    }
    return try result.get()
  }

  package static func parse(_ text: String) throws(JSONError) -> JSON { try parse(Array(text.utf8)) }

  /// Reads one value that fills the buffer, except for white space. Keeps no reference to it.
  package static func parse(_ bytes: UnsafeRawBufferPointer) throws(JSONError) -> JSON {
    var parser = JSONParser(bytes: bytes)
    return try parser.document()
  }
}

/// Recursive descent over bytes. A raw buffer, because mutations are read in place in an import's
/// buffer. Every access uses `peek`, or is between two indices that were passed.
private struct JSONParser {
  let bytes: UnsafeRawBufferPointer
  var index = 0
  var depth = 0

  mutating func document() throws(JSONError) -> JSON {
    if bytes.count >= 3, bytes[0] == 0xEF, bytes[1] == 0xBB, bytes[2] == 0xBF {
      throw JSONError(.byteOrderMark, at: 0)
    }
    skipSpace()
    let value = try value()
    skipSpace()
    assert(holds(checkInvariants))
    if index < bytes.count { throw JSONError(.trailingText, at: index) }
    return value
  }

  /// Traps outside of the bytes, or inside of an array or an object. Called between values.
  private func checkInvariants() {
    precondition((0...bytes.count).contains(index), "the index is within the bytes")
    precondition(depth == 0, "what was opened is closed")
  }

  private var peek: UInt8? { index < bytes.count ? bytes[index] : nil }

  private mutating func skipSpace() {
    while index < bytes.count {
      switch bytes[index] {
      case 0x20, 0x0A, 0x0D, 0x09: index += 1
      default: return
      }
    }
  }

  private func failure(_ expected: String) -> JSONError {
    JSONError(index < bytes.count ? .expected(expected) : .cutShort, at: index)
  }

  private mutating func value() throws(JSONError) -> JSON {
    guard let first = peek else { throw failure("a value") }
    switch first {
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "{"): return try object()
    case UInt8(ascii: "["): return try array()
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
    case UInt8(ascii: "t"):
      try literal("true")
      return .bool(true)
    case UInt8(ascii: "f"):
      try literal("false")
      return .bool(false)
    case UInt8(ascii: "n"):
      try literal("null")
      return .null
    default: throw failure("a value")
    }
  }

  private mutating func literal(_ text: StaticString) throws(JSONError) {
    let start = index
    for offset in 0..<text.utf8CodeUnitCount {
      // Inside of the static string by the range above.
      guard peek == text.utf8Start[offset] else {
        throw index < bytes.count ? JSONError(.expected("a value"), at: start) : failure("a value")
      }
      index += 1
    }
  }

  private mutating func open() throws(JSONError) {
    depth += 1
    if depth > JSON.depthLimit { throw JSONError(.tooDeep(limit: JSON.depthLimit), at: index) }
    index += 1
    skipSpace()
  }

  private mutating func close() {
    depth -= 1
    index += 1
  }

  private mutating func array() throws(JSONError) -> JSON {
    try open()
    var elements: [JSON] = []
    if peek == UInt8(ascii: "]") {
      close()
      return .array(elements)
    }
    while true {
      elements.append(try value())
      skipSpace()
      switch peek {
      case UInt8(ascii: ","):
        index += 1
        skipSpace()
      case UInt8(ascii: "]"):
        close()
        return .array(elements)
      default: throw failure("`,` or `]`")
      }
    }
  }

  private mutating func object() throws(JSONError) -> JSON {
    try open()
    var members: [(name: String, value: JSON)] = []
    members.reserveCapacity(8)
    // From 16 members on, names are hashed, so that a hostile object costs no quadratic time.
    var names: Set<[UInt8]> = []
    if peek == UInt8(ascii: "}") {
      close()
      return .object(members)
    }
    while true {
      let start = index
      guard peek == UInt8(ascii: "\"") else { throw failure("a name in quotes") }
      let name = try string()
      if members.count < 16 {
        for member in members where member.name.hasSameBytes(as: name) {
          throw JSONError(.repeatedName(name), at: start)
        }
      } else {
        if members.count == 16 { for member in members { names.insert(Array(member.name.utf8)) } }
        if !names.insert(Array(name.utf8)).inserted { throw JSONError(.repeatedName(name), at: start) }
      }
      skipSpace()
      guard peek == UInt8(ascii: ":") else { throw failure("`:`") }
      index += 1
      skipSpace()
      members.append((name, try value()))
      skipSpace()
      switch peek {
      case UInt8(ascii: ","):
        index += 1
        skipSpace()
      case UInt8(ascii: "}"):
        close()
        return .object(members)
      default: throw failure("`,` or `}`")
      }
    }
  }

  // MARK: Numbers

  private mutating func number() throws(JSONError) -> JSON {
    let start = index
    let isNegative = peek == UInt8(ascii: "-")
    if isNegative { index += 1 }
    let digitsStart = index
    var magnitude: UInt64 = 0
    var fits = true
    while let byte = peek, byte.isDigit {
      let (product, overflow) = magnitude.multipliedReportingOverflow(by: 10)
      let (sum, carry) = product.addingReportingOverflow(UInt64(byte - UInt8(ascii: "0")))
      if overflow || carry { fits = false }
      magnitude = sum
      index += 1
    }
    let digits = index - digitsStart
    guard digits > 0 else { throw index < bytes.count ? JSONError(.number, at: start) : failure("") }
    if digits > 1 && bytes[digitsStart] == UInt8(ascii: "0") { throw JSONError(.number, at: start) }
    var isWhole = true
    if peek == UInt8(ascii: ".") {
      isWhole = false
      index += 1
      try takeDigits(start)
    }
    if peek == UInt8(ascii: "e") || peek == UInt8(ascii: "E") {
      isWhole = false
      index += 1
      if peek == UInt8(ascii: "+") || peek == UInt8(ascii: "-") { index += 1 }
      try takeDigits(start)
    }
    if isWhole && fits && !(isNegative && magnitude == 0) {
      if !isNegative, let number = Int64(exactly: magnitude) { return .int(number) }
      if isNegative, magnitude <= 1 << 63 { return .int(Int64(truncatingIfNeeded: 0 &- magnitude)) }
    }
    return .number(String(decoding: bytes[start..<index], as: UTF8.self))
  }

  private mutating func takeDigits(_ start: Int) throws(JSONError) {
    let first = index
    while let byte = peek, byte.isDigit { index += 1 }
    if index == first { throw index < bytes.count ? JSONError(.number, at: start) : failure("") }
  }

  // MARK: Strings

  /// Most strings have no escape: they are validated and copied at once.
  private mutating func string() throws(JSONError) -> String {
    index += 1
    let start = index
    var isASCII = true
    while true {
      skipPlain()
      guard index < bytes.count else { break }
      let byte = bytes[index]
      switch byte {
      case UInt8(ascii: "\""):
        let text = try text(start..<index, isASCII: isASCII)
        index += 1
        return text
      case UInt8(ascii: "\\"): return try escapedString(from: start)
      case 0..<0x20: throw JSONError(.controlCharacter, at: index)
      default:
        if byte >= 0x80 { isASCII = false }
        index += 1
      }
    }
    throw failure("")
  }

  /// Skips ASCII without a special character, eight bytes at once.
  private mutating func skipPlain() {
    let ones: UInt64 = 0x0101_0101_0101_0101
    while index + 8 <= bytes.count {
      let word = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
      let quote: UInt64 = word ^ (ones * 0x22)
      let backslash: UInt64 = word ^ (ones * 0x5C)
      // The lowest byte with its high bit set here is a quote, a backslash, a control or no ASCII
      // (https://graphics.stanford.edu/~seander/bithacks.html#ZeroInWord).
      let texts: UInt64 = ((quote &- ones) & ~quote) | ((backslash &- ones) & ~backslash)
      let others: UInt64 = ((word &- (ones * 0x20)) & ~word) | word
      let found: UInt64 = (texts | others) & (ones << 7)
      if found != 0 {
        index += found.trailingZeroBitCount / 8
        return
      }
      index += 8
    }
  }

  private func text(_ range: Range<Int>, isASCII: Bool) throws(JSONError) -> String {
    let slice = UnsafeRawBufferPointer(rebasing: bytes[range])
    if isASCII { return String(decoding: slice, as: UTF8.self) }
    guard let text = String(validating: slice, as: UTF8.self) else {
      throw JSONError(.notUTF8, at: range.lowerBound + Self.firstInvalid(slice))
    }
    return text
  }

  /// The offset of the first byte that is not UTF-8, for an error.
  private static func firstInvalid(_ slice: UnsafeRawBufferPointer) -> Int {
    var iterator = slice.makeIterator()
    var decoder = UTF8.ForwardParser()
    var offset = 0
    while case .valid(let encoded) = decoder.parseScalar(from: &iterator) { offset += encoded.count }
    return offset
  }

  private mutating func escapedString(from start: Int) throws(JSONError) -> String {
    var content = [UInt8](bytes[start..<index])
    while index < bytes.count {
      let byte = bytes[index]
      switch byte {
      case UInt8(ascii: "\""):
        index += 1
        guard let text = String(validating: content, as: UTF8.self) else {
          throw JSONError(.notUTF8, at: start)
        }
        return text
      case UInt8(ascii: "\\"): try escape(into: &content)
      case 0..<0x20: throw JSONError(.controlCharacter, at: index)
      default:
        content.append(byte)
        index += 1
      }
    }
    throw failure("")
  }

  private mutating func escape(into content: inout [UInt8]) throws(JSONError) {
    let start = index
    index += 1
    guard let byte = peek else { throw failure("") }
    index += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): content.append(byte)
    case UInt8(ascii: "b"): content.append(0x08)
    case UInt8(ascii: "f"): content.append(0x0C)
    case UInt8(ascii: "n"): content.append(0x0A)
    case UInt8(ascii: "r"): content.append(0x0D)
    case UInt8(ascii: "t"): content.append(0x09)
    case UInt8(ascii: "u"):
      var code = try hexadecimal(start)
      if (0xD800...0xDBFF).contains(code), peek == UInt8(ascii: "\\"), index + 1 < bytes.count,
        bytes[index + 1] == UInt8(ascii: "u")
      {
        index += 2
        let low = try hexadecimal(start)
        guard (0xDC00...0xDFFF).contains(low) else { throw JSONError(.escape, at: start) }
        code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
      }
      guard let scalar = Unicode.Scalar(code) else { throw JSONError(.escape, at: start) }
      content.append(contentsOf: Character(scalar).utf8)
    default: throw JSONError(.escape, at: start)
    }
  }

  private mutating func hexadecimal(_ start: Int) throws(JSONError) -> UInt32 {
    var code: UInt32 = 0
    for _ in 0..<4 {
      guard let byte = peek else { throw failure("") }
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
      default: throw JSONError(.escape, at: start)
      }
      code = code << 4 | UInt32(digit)
      index += 1
    }
    return code
  }
}

extension UInt8 {
  fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
}
