import StemmaEvents

/// One JSON object of the node metadata, read member by member. Other members are ignored.
///
/// Every command reads the metadata. Foundation's decoder inspects types at run time, which takes
/// half a millisecond.
struct MetadataReader {
  /// The path of the metadata file, for errors.
  let path: String
  let json: JSON

  func failure() -> NodeError {
    .badMetadata(path: path, what: "it is not the JSON object that a node has")
  }

  /// Whether the member exists and is not null.
  func has(_ name: String) -> Bool { json[name].map { !$0.isNull } ?? false }

  func text(_ name: String) throws(NodeError) -> String {
    guard case .string(let text)? = json[name] else { throw failure() }
    return text
  }

  func flag(_ name: String) throws(NodeError) -> Bool {
    guard case .bool(let flag)? = json[name] else { throw failure() }
    return flag
  }

  func number<Number: FixedWidthInteger>(_ name: String, as: Number.Type = Number.self) throws(NodeError)
    -> Number
  {
    try number(json[name])
  }

  func numbers<Number: FixedWidthInteger>(_ name: String) throws(NodeError) -> [Number] {
    guard case .array(let elements)? = json[name] else { throw failure() }
    return try elements.map { element throws(NodeError) in try number(element) }
  }

  private func number<Number: FixedWidthInteger>(_ json: JSON?) throws(NodeError) -> Number {
    let number: Number? =
      switch json {
      case .int(let number): Number(exactly: number)
      // Numbers beyond a signed 64-bit integer are kept as text.
      case .number(let text): Number(text)
      default: nil
      }
    guard let number else { throw failure() }
    return number
  }

  func texts(_ name: String) throws(NodeError) -> [String] {
    guard case .array(let elements)? = json[name] else { throw failure() }
    return try elements.map { element throws(NodeError) in
      guard case .string(let text) = element else { throw failure() }
      return text
    }
  }

  func textMembers(_ name: String) throws(NodeError) -> [(name: String, text: String)] {
    guard case .object(let members)? = json[name] else { throw failure() }
    return try members.map { member throws(NodeError) in
      guard case .string(let text) = member.value else { throw failure() }
      return (member.name, text)
    }
  }

  func member(_ name: String) throws(NodeError) -> MetadataReader {
    guard let member = json[name], case .object = member else { throw failure() }
    return MetadataReader(path: path, json: member)
  }

  func members(_ name: String) throws(NodeError) -> [MetadataReader] {
    guard case .array(let elements)? = json[name] else { throw failure() }
    return elements.map { MetadataReader(path: path, json: $0) }
  }

  func origin(_ text: String) throws(NodeError) -> Origin {
    guard text.utf8.count == 16, let raw = UInt64(text, radix: 16) else {
      throw .badMetadata(path: path, what: "`\(text)` is not sixteen hexadecimal digits")
    }
    return Origin(raw)
  }
}
