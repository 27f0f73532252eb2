import StemmaSchema

/// A key as a person types it after the model's name: the bare value of a one-part key, else
/// `part=value …`. Words with special characters of a shell are quoted, so that the key of an error
/// can be pasted into the next command. Control characters use the syntax `$'…'`.
package enum KeyWords {
  package static func text(_ key: Key, of model: Model) -> String {
    let parts = key.parts
    guard parts.count == model.keyFields.count else { return text(key) }
    let names = model.keyFields.map { model.fields[$0].name }
    if parts.count == 1, isBare(parts[0].text, named: names[0]) { return quoted(parts[0].text) }
    return zip(names, parts).map { quoted("\($0)=\($1.text)") }.joined(separator: " ")
  }

  /// A key whose parts have no names, because no schema knows the model.
  package static func text(_ key: Key) -> String {
    key.parts.map { quoted($0.text) }.joined(separator: " ")
  }

  /// Whether a value alone is read as a key, and not as an option, as JSON or as a named part.
  private static func isBare(_ value: String, named name: String) -> Bool {
    guard let first = value.utf8.first else { return false }
    return first != UInt8(ascii: "-") && first != UInt8(ascii: "{")
      && !value.hasPrefix("\(name)=") && !value.hasPrefix("\(name):=")
  }

  private static func quoted(_ word: String) -> String {
    if printable(word) != word {
      let escaped = word.replacing(#"\"#, with: #"\\"#).replacing("'", with: #"\'"#)
      return "$'\(printable(escaped, as: .shell))'"
    }
    let isPlain = word.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), 0x80...:
        true
      default: "_-./:@%+,=".utf8.contains(byte)
      }
    }
    return isPlain && !word.isEmpty ? word : "'" + word.replacing("'", with: #"'\''"#) + "'"
  }
}
