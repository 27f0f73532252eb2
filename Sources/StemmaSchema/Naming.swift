/// The names that a schema implies. All input names are GraphQL names, hence ASCII.
package enum Naming {
  /// The table of a model: lower camel case, plural. `Book` → `books`, `URLEntry` → `urlEntries`.
  package static func tableName(ofModel name: String) -> String { plural(lowerCamel(name)) }

  /// Lowercases the first letter, or all but the last of several capitals before a small letter.
  package static func lowerCamel(_ name: String) -> String {
    let capitals = name.prefix { $0.isUppercase }
    let count = capitals.count
    if count == name.count { return name.lowercased() }
    let follower = name.dropFirst(count).first
    let lowered = count > 1 && follower?.isLowercase == true ? count - 1 : count
    return name.prefix(lowered).lowercased() + name.dropFirst(lowered)
  }

  /// The rule of swift-structured-queries, simple on purpose: its result is predictable.
  package static func plural(_ name: String) -> String {
    let lower = name.lowercased()
    if ["ch", "sh", "s", "x", "z"].contains(where: lower.hasSuffix) { return name + "es" }
    if lower.hasSuffix("y"), let before = lower.dropLast().last, !"aeiou".contains(before) {
      return name.dropLast() + "ies"
    }
    return name + "s"
  }

  /// Amplify's name of an implicit reference field: the words in camel case, each otherwise
  /// unchanged. (`Post3aV2`, `comments`, `id`) → `post3aV2CommentsId`.
  static func referenceField(_ words: String...) -> String {
    words.enumerated().map { $0 == 0 ? small($1) : capital($1) }.joined()
  }

  /// Amplify's names in a join model: the first key part is capitalized, the others are appended
  /// unchanged. `postWithTagsCompositeKeyPostId`, `postWithTagsCompositeKeytitle`.
  static func joinFields(prefix: String, keyParts: [String]) -> [String] {
    keyParts.enumerated().map { prefix + ($0 == 0 ? capital($1) : $1) }
  }

  /// `byNameAndPhoneNumber`.
  static func index(on fields: [String]) -> String { "by" + fields.map(capital).joined(separator: "And") }

  static func small(_ word: String) -> String { word.prefix(1).lowercased() + word.dropFirst() }
  static func capital(_ word: String) -> String { word.prefix(1).uppercased() + word.dropFirst() }
}
