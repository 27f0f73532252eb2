/// A text for people in which next steps are values. Each interface spells them in its own terms:
/// the tool as a command, `description` in plain words.
package struct Notice: Sendable, Hashable {
  private enum Part: Sendable, Hashable {
    case text(String)
    case step(NextStep)
  }

  private var parts: [Part] = []

  package init(_ text: String) { parts = [.text(text)] }

  /// The text, with each step as `spelling` gives it.
  package func text(_ spelling: (NextStep) -> String) -> String {
    parts.reduce(into: "") { text, part in
      switch part {
      case .text(let words): text += words
      case .step(let step): text += spelling(step)
      }
    }
  }

  /// For use before a semicolon.
  func droppingFullStop() -> Notice {
    guard case .text(let last)? = parts.last, last.hasSuffix(".") else { return self }
    var notice = self
    notice.parts[parts.count - 1] = .text(String(last.dropLast()))
    return notice
  }

  package static func + (first: Notice, second: Notice) -> Notice {
    var notice = first
    notice.parts += second.parts
    return notice
  }
}

extension Notice: CustomStringConvertible {
  package var description: String { text(\.description) }
}

extension Notice: ExpressibleByStringInterpolation {
  package init(stringLiteral text: String) { self.init(text) }

  package init(stringInterpolation interpolation: StringInterpolation) { self = interpolation.notice }

  package struct StringInterpolation: StringInterpolationProtocol {
    fileprivate var notice = Notice("")

    package init(literalCapacity: Int, interpolationCount: Int) {}

    package mutating func appendLiteral(_ literal: String) { notice.parts.append(.text(literal)) }
    package mutating func appendInterpolation(_ value: some CustomStringConvertible) {
      notice.parts.append(.text(value.description))
    }
    package mutating func appendInterpolation(step: NextStep) { notice.parts.append(.step(step)) }
    package mutating func appendInterpolation(_ other: Notice) { notice.parts += other.parts }
  }
}
