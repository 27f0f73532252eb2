import StemmaEvents

/// The shape of a JSON value, parsed from the notation of docs/JSON.md.
indirect enum JSONShape {
  /// One of `builtIn`, or a shape of the page.
  case named(String)
  case literal(String)
  case either([JSONShape])
  /// Objects whose members are merged into one object.
  case joined([JSONShape])
  case array(JSONShape)
  case tuple([JSONShape])
  case map(JSONShape)
  case object([Member])

  struct Member {
    var name: String
    var isOptional: Bool
    var shape: JSONShape
  }

  struct Mistake: Error, CustomStringConvertible {
    var description: String
  }

  init(_ text: String) throws(Mistake) {
    var reader = Reader(rest: Substring(text))
    self = try reader.shape()
    if !reader.rest.isEmpty { throw reader.mistake("the end") }
  }

  /// The shape of one line with `--ndjson`: the elements of an array.
  var line: JSONShape {
    switch self {
    case .array(let element): element
    case .either(let shapes): .either(shapes.map(\.line))
    default: self
    }
  }

  private struct Reader {
    var rest: Substring

    func mistake(_ expected: String) -> Mistake { Mistake(description: "\(expected) expected at `\(rest)`") }

    private mutating func skip(_ sign: Character) -> Bool {
      guard rest.first == sign else { return false }
      rest.removeFirst()
      return true
    }

    private mutating func take(_ sign: Character) throws(Mistake) {
      if !skip(sign) { throw mistake("`\(sign)`") }
    }

    mutating func shape() throws(Mistake) -> JSONShape {
      var options = [try sum()]
      while skip("|") { options.append(try sum()) }
      return options.count == 1 ? options[0] : .either(options)
    }

    private mutating func sum() throws(Mistake) -> JSONShape {
      var parts = [try term()]
      while skip("+") { parts.append(try term()) }
      return parts.count == 1 ? parts[0] : .joined(parts)
    }

    private mutating func term() throws(Mistake) -> JSONShape {
      switch rest.first {
      case "\"": return .literal(try text())
      case "[":
        let elements = try list(from: "[", to: "]") { reader throws(Mistake) in try reader.shape() }
        return elements.count == 1 ? .array(elements[0]) : .tuple(elements)
      case "{":
        if rest.hasPrefix("{name:") {
          rest = rest.dropFirst("{name:".count)
          let shape = try shape()
          try take("}")
          return .map(shape)
        }
        return .object(try list(from: "{", to: "}") { reader throws(Mistake) in try reader.member() })
      default:
        let word = rest.prefix { $0.isLetter }
        if word.isEmpty { throw mistake("a shape") }
        rest = rest.dropFirst(word.count)
        return .named(String(word))
      }
    }

    private mutating func list<Element>(
      from open: Character, to close: Character, _ element: (inout Reader) throws(Mistake) -> Element
    ) throws(Mistake) -> [Element] {
      try take(open)
      var elements = [try element(&self)]
      while skip(",") { elements.append(try element(&self)) }
      try take(close)
      return elements
    }

    private mutating func member() throws(Mistake) -> Member {
      let name = try text()
      let isOptional = skip("?")
      return Member(name: name, isOptional: isOptional, shape: skip(":") ? try shape() : .named("text"))
    }

    private mutating func text() throws(Mistake) -> String {
      try take("\"")
      let text = rest.prefix { $0 != "\"" }
      rest = rest.dropFirst(text.count)
      try take("\"")
      return String(text)
    }
  }
}

/// Compares values with shapes, and records which parts of the shapes have occurred.
struct ShapeComparison {
  /// The named shapes.
  let shapes: [String: JSONShape]
  /// Parts that have occurred in a value: see `parts(of:at:)`.
  private(set) var met: Set<String> = []

  init(_ shapes: [String: JSONShape]) { self.shapes = shapes }

  private static func isBuiltIn(_ name: String, _ value: JSON) -> Bool? {
    switch (name, value) {
    case ("value", _), ("text", .string), ("bool", .bool), ("null", .null): true
    case ("number", .int), ("number", .number): true
    case ("integer", .int(let number)): number.magnitude < 1 << 53
    case ("integer", .string(let digits)): Int64(digits).map { $0.magnitude >= 1 << 53 } ?? false
    case ("count", .int(let number)): (0..<1 << 53).contains(number)
    case ("originID", .string(let digits)): digits.utf8.count == 16 && UInt64(digits, radix: 16) != nil
    case ("originID", _), ("text", _), ("bool", _), ("null", _), ("number", _), ("integer", _), ("count", _):
      false
    default: nil
    }
  }

  /// The differences between a value and a shape. Only valid values record parts.
  mutating func problems(of value: JSON, _ shape: JSONShape, at path: String) -> [String] {
    switch (shape, value) {
    case (.named(let name), _):
      if let isRight = Self.isBuiltIn(name, value) { return isRight ? [] : ["\(path): not \(name)"] }
      guard let shape = shapes[name] else { return ["\(path): the page has no shape `\(name)`"] }
      return problems(of: value, shape, at: name)
    case (.literal(let text), _): return value == .string(text) ? [] : ["\(path): not \"\(text)\""]
    case (.either(let options), _): return problems(of: value, options: options, at: path)
    case (.array(let element), .array(let values)):
      if !values.isEmpty { met.insert("\(path)[]") }
      return values.flatMap { problems(of: $0, element, at: "\(path)[]") }
    case (.tuple(let elements), .array(let values)) where elements.count == values.count:
      return zip(values, elements).flatMap { problems(of: $0, $1, at: "\(path)[]") }
    case (.map(let shape), .object(let members)):
      if !members.isEmpty { met.insert("\(path){}") }
      return members.flatMap { problems(of: $0.value, shape, at: "\(path){}") }
    case (.object, .object(let values)), (.joined, .object(let values)):
      return problems(of: values, members: members(of: shape), at: path)
    default: return ["\(path): another kind of value"]
    }
  }

  private mutating func problems(of value: JSON, options: [JSONShape], at path: String) -> [String] {
    var fewest: [String]?
    for (index, option) in options.enumerated() {
      var attempt = self
      let problems = attempt.problems(of: value, option, at: path)
      if problems.isEmpty {
        self = attempt
        met.insert("\(path), option \(index + 1)")
        return []
      }
      if problems.count < fewest?.count ?? .max { fewest = problems }
    }
    return fewest ?? []
  }

  private mutating func problems(
    of values: [(name: String, value: JSON)], members: [JSONShape.Member], at path: String
  ) -> [String] {
    var problems: [String] = []
    for (name, value) in values {
      guard let member = members.first(where: { $0.name == name }) else {
        problems.append("\(path).\(name): not on the page")
        continue
      }
      problems += self.problems(of: value, member.shape, at: "\(path).\(name)")
      if member.isOptional { met.insert("\(path).\(name)") }
    }
    for member in members where !values.contains(where: { $0.name == member.name }) {
      if member.isOptional {
        met.insert("\(path).\(member.name), left out")
      } else {
        problems.append("\(path).\(member.name): not printed")
      }
    }
    return problems
  }

  /// The members of an object, or of joined objects.
  private func members(of shape: JSONShape) -> [JSONShape.Member] {
    switch shape {
    case .object(let members): members
    case .joined(let parts): parts.flatMap(members)
    case .named(let name): shapes[name].map(members) ?? []
    default: []
    }
  }

  /// Every optional part of a shape: alternatives, optional members, elements.
  func parts(of shape: JSONShape, at path: String) -> Set<String> {
    switch shape {
    case .named, .literal: []
    case .either(let options):
      options.enumerated().reduce(into: []) { parts, option in
        if case .literal = option.element { return }
        parts.insert("\(path), option \(option.offset + 1)")
        parts.formUnion(self.parts(of: option.element, at: path))
      }
    case .array(let element): self.parts(of: element, at: "\(path)[]").union(["\(path)[]"])
    case .tuple(let elements): Set(elements.flatMap { self.parts(of: $0, at: "\(path)[]") })
    case .map(let shape): parts(of: shape, at: "\(path){}").union(["\(path){}"])
    case .object(let members):
      members.reduce(into: []) { parts, member in
        let path = "\(path).\(member.name)"
        parts.formUnion(self.parts(of: member.shape, at: path))
        if member.isOptional { parts.formUnion([path, "\(path), left out"]) }
      }
    case .joined(let shapes): Set(shapes.flatMap { parts(of: $0, at: path) })
    }
  }
}
