import StemmaEvents
import StemmaNode

/// A line for each event: text with placeholders named after members of the event's JSON
/// (`{time}`). Placeholders `{key}` and `{position}` have the form that commands accept. One field
/// is `{fields.NAME}`. Escapes are `{{`, `}}`, `\t`, `\n` and `\\`. Control characters in values
/// are escaped as by `printable`, so a value never ends a line.
package struct EventFormat: Sendable {
  private enum Part: Sendable {
    case text(String)
    case member(String)
    case field(String)
  }

  package static let placeholders = [
    "event", "partition", "position", "digest", "time", "timestamp", "op", "model", "key", "relationship",
    "fields", "version", "context", "origin", "sequence", "commit", "cause", "author", "message", "source",
  ]

  private static let known = placeholders + ["fields.NAME"]

  private static let escapes: [(sign: Character, written: Character)] = [
    ("\t", "t"), ("\n", "n"), ("\\", "\\"),
  ]

  private var parts: [Part] = []

  /// The field names in `{fields.NAME}`.
  package var fields: [String] {
    parts.compactMap { if case .field(let name) = $0 { name } else { nil } }
  }

  package init(_ text: String) throws(NodeError) {
    var plain = ""
    var rest = Substring(text)
    while let character = rest.first {
      rest = rest.dropFirst()
      if character == "\\", let (sign, _) = Self.escapes.first(where: { $0.written == rest.first }) {
        rest = rest.dropFirst()
        plain.append(sign)
        continue
      }
      if character == "}", rest.first == "}" { rest = rest.dropFirst() }
      guard character == "{" else {
        plain.append(character)
        continue
      }
      if rest.first == "{" {
        rest = rest.dropFirst()
        plain.append("{")
        continue
      }
      let name = String(rest.prefix { $0 != "}" })
      if name.count == rest.count {
        throw .inspection(.unclosedPlaceholder(name, known: Self.known))
      }
      rest = rest.dropFirst(name.count + 1)
      parts.append(.text(plain))
      plain = ""
      if Self.placeholders.contains(name) {
        parts.append(.member(name))
      } else if name.hasPrefix("fields.") {
        parts.append(.field(String(name.dropFirst(7))))
      } else {
        throw .inspection(.unknownPlaceholder(name, known: Self.known))
      }
    }
    parts.append(.text(plain))
  }

  package func line(_ stored: StoredEvent, _ message: CommitMessage, _ description: EventDescription)
    -> String
  {
    let json = description.json(stored, message)
    return parts.map { part in
      switch part {
      case .text(let text): text
      // In the form that commands accept.
      case .member("position"): "@\(stored.position)"
      case .member("key"): description.keyText(stored.event)
      case .member(let name): plain(json[name])
      case .field(let name): plain(json["fields"]?[name] ?? Self.existence(name, stored.event, description))
      }
    }.joined()
  }

  private static func existence(_ name: String, _ event: Event, _ description: EventDescription) -> JSON? {
    guard ExistenceName.matches(name, in: description.model(of: event)) else { return nil }
    return event.assignments.first { $0.field == Event.existenceField }?.value.json
  }

  private func plain(_ value: JSON?) -> String {
    switch value {
    case nil, .null: ""
    case .string(let text): printable(text)
    case .some(let value): printable(value.text, as: .json)
    }
  }
}
