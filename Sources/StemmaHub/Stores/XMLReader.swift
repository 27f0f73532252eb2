/// Reads the documents of S3: elements and text, without attributes and name spaces.
///
/// Foundation's parser is not used: on Linux it is a module of its own that loads libxml2.
struct XMLReader {
  enum Part: Equatable {
    case start(String)
    case end(String)
    case text(String)
  }

  struct Malformed: Error {}

  private let bytes: [UInt8]
  private var position = 0
  /// The end of an element like `<Prefix/>`, which has just started.
  private var pendingEnd: String?

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// nil at the end of the document.
  mutating func next() throws(Malformed) -> Part? {
    if let name = pendingEnd {
      pendingEnd = nil
      return .end(name)
    }
    while position < bytes.count {
      guard bytes[position] == UInt8(ascii: "<") else { return .text(try text()) }
      if try skips("<?", to: "?>") { continue }
      if try skips("<!--", to: "-->") { continue }
      if starts(with: "<![CDATA[") {
        let start = position + 9
        _ = try skips("<![CDATA[", to: "]]>")
        return .text(String(decoding: bytes[start..<position - 3], as: UTF8.self))
      }
      // A DOCTYPE declares entities, which could grow without limit.
      if starts(with: "<!") { throw Malformed() }
      return try tag()
    }
    return nil
  }

  private func starts(with text: String) -> Bool { bytes[position...].starts(with: text.utf8) }

  private mutating func skips(_ start: String, to end: String) throws(Malformed) -> Bool {
    guard starts(with: start) else { return false }
    position += start.utf8.count
    while position < bytes.count {
      if starts(with: end) {
        position += end.utf8.count
        return true
      }
      position += 1
    }
    throw Malformed()
  }

  private mutating func tag() throws(Malformed) -> Part {
    guard let end = bytes[position...].firstIndex(of: UInt8(ascii: ">")) else { throw Malformed() }
    var inner = bytes[position + 1..<end]
    position = end + 1
    let isEnd = inner.first == UInt8(ascii: "/")
    if isEnd { inner.removeFirst() }
    let isEmpty = !isEnd && inner.last == UInt8(ascii: "/")
    if isEmpty { inner.removeLast() }
    var name = inner.prefix { !Self.isSpace($0) }
    if let colon = name.firstIndex(of: UInt8(ascii: ":")) { name = name[(colon + 1)...] }
    guard !name.isEmpty else { throw Malformed() }
    let text = String(decoding: name, as: UTF8.self)
    if isEmpty { pendingEnd = text }
    return isEnd ? .end(text) : .start(text)
  }

  private static func isSpace(_ byte: UInt8) -> Bool { [0x20, 0x09, 0x0a, 0x0d].contains(byte) }

  private mutating func text() throws(Malformed) -> String {
    let end = bytes[position...].firstIndex(of: UInt8(ascii: "<")) ?? bytes.count
    let raw = bytes[position..<end]
    position = end
    var decoded: [UInt8] = []
    var rest = raw[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "&") else {
        decoded.append(byte)
        continue
      }
      guard let semicolon = rest.prefix(12).firstIndex(of: UInt8(ascii: ";")) else { throw Malformed() }
      decoded += Array(try Self.character(String(decoding: rest[..<semicolon], as: UTF8.self)).utf8)
      rest = rest[(semicolon + 1)...]
    }
    return String(decoding: decoded, as: UTF8.self)
  }

  private static func character(_ entity: String) throws(Malformed) -> String {
    switch entity {
    case "amp": return "&"
    case "lt": return "<"
    case "gt": return ">"
    case "quot": return "\""
    case "apos": return "'"
    default:
      let number =
        entity.hasPrefix("#x")
        ? UInt32(entity.dropFirst(2), radix: 16)
        : entity.hasPrefix("#") ? UInt32(entity.dropFirst(1)) : nil
      guard let number, let scalar = Unicode.Scalar(number) else { throw Malformed() }
      return String(Character(scalar))
    }
  }
}

/// The answer to ListObjectsV2.
struct S3List {
  struct Object: Equatable {
    var key = ""
    var tag = ""
  }

  var objects: [Object] = []
  var isTruncated = false

  init(_ bytes: [UInt8]) throws(XMLReader.Malformed) {
    var path: [String] = []
    var object = Object()
    var text = ""
    var isEncoded = false
    var isComplete = false
    try XMLReader.read(bytes) { part in
      switch part {
      case .start(let name):
        path.append(name)
        text = ""
        if path == ["ListBucketResult", "Contents"] { object = Object() }
      case .text(let more): text += more
      case .end:
        switch path.dropFirst().joined(separator: "/") {
        case "Contents/Key": object.key = text
        case "Contents/ETag": object.tag = text.filter { $0 != "\"" }
        case "Contents": objects.append(object)
        case "IsTruncated": isTruncated = text == "true"
        case "EncodingType": isEncoded = text == "url"
        case "": isComplete = path == ["ListBucketResult"]
        default: break
        }
        path.removeLast()
        text = ""
      }
    }
    guard isComplete else { throw XMLReader.Malformed() }
    if isEncoded {
      for index in objects.indices { objects[index].key = Self.decoded(objects[index].key) }
    }
  }

  /// Undoes percent encoding and the plus signs of S3, which mean spaces.
  static func decoded(_ text: String) -> String {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.count >= 2,
        let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      {
        bytes.append(value)
        rest.removeFirst(2)
      } else {
        bytes.append(byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

/// The document of an error status; empty if there is none.
struct S3Refusal: Equatable {
  var code = ""
  var message = ""

  init(_ bytes: [UInt8]) {
    var path: [String] = []
    var text = ""
    var refusal = (code: "", message: "")
    do throws(XMLReader.Malformed) {
      try XMLReader.read(bytes) { part in
        switch part {
        case .start(let name):
          path.append(name)
          text = ""
        case .text(let more): text += more
        case .end:
          if path == ["Error", "Code"] { refusal.code = text }
          if path == ["Error", "Message"] { refusal.message = text }
          path.removeLast()
        }
      }
    } catch {
      // A proxy's page, for example. The status remains.
      return
    }
    code = ObjectKey.printable(refusal.code, limit: 60)
    message = ObjectKey.printable(refusal.message)
  }
}

extension XMLReader {
  /// Calls the function with all parts. Each end has the name of its start.
  static func read(_ bytes: [UInt8], _ body: (Part) -> Void) throws(Malformed) {
    var reader = XMLReader(bytes)
    var open: [String] = []
    while let part = try reader.next() {
      switch part {
      case .start(let name):
        // S3's documents have four levels.
        guard open.count < 32 else { throw Malformed() }
        open.append(name)
      case .end(let name): guard open.popLast() == name else { throw Malformed() }
      case .text: break
      }
      body(part)
    }
    guard open.isEmpty else { throw Malformed() }
  }
}
