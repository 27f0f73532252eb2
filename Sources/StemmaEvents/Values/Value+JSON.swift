extension Value {
  /// The widest range of whole numbers that every reader of JSON keeps exact.
  package static let exactIntegers: ClosedRange<Int64> = (-(1 << 53) + 1)...((1 << 53) - 1)

  /// Appends the value as JSON.
  ///
  /// ⚑ A whole number beyond ±(2^53-1) is written as a string, because readers such as jq would
  /// silently round it to a double. Both forms are read. A `.json` text from elsewhere that is not
  /// JSON becomes a string, so the output is always JSON.
  package func appendJSON(to bytes: inout [UInt8]) {
    switch self {
    case .null: bytes.append(contentsOf: "null".utf8)
    case .bool(let flag): bytes.append(contentsOf: (flag ? "true" : "false").utf8)
    case .int(let number):
      if Self.exactIntegers.contains(number) {
        JSON.append(number, to: &bytes)
      } else {
        bytes.append(UInt8(ascii: "\""))
        JSON.append(number, to: &bytes)
        bytes.append(UInt8(ascii: "\""))
      }
    // Swift's description is the shortest text that reads back as the same double, and is JSON.
    case .double(let number): bytes.append(contentsOf: (number.isFinite ? number.description : "null").utf8)
    case .string(let text): JSON.append(text, to: &bytes)
    case .json: json.append(to: &bytes)
    }
  }

  package var json: JSON {
    switch self {
    case .null: return .null
    case .bool(let flag): return .bool(flag)
    case .int(let number): return Self.exactIntegers.contains(number) ? .int(number) : .string(String(number))
    case .double(let number): return number.isFinite ? .number(number.description) : .null
    case .string(let text): return .string(text)
    case .json(let text):
      do { return try JSON.parse(text) } catch { return .string(text) }
    }
  }
}
