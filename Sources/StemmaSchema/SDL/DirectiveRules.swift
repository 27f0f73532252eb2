/// The known directives and arguments.
///
/// Directives that affect data are read. Directives that are known not to affect data cause a
/// warning. All others are errors, because an ignored directive might have changed what is stored.
enum DirectiveRules {
  struct Rule {
    var arguments: [String]
    /// Known, but without effect here.
    var ignored: [String] = []
    var isRepeatable = false
  }

  static let onModels: [String: Rule] = [
    "model": Rule(arguments: ["timestamps"], ignored: ["queries", "mutations", "subscriptions"]),
    "partition": Rule(arguments: ["fields"]),
    "conflict": Rule(arguments: ["policy", "deletes"]),
    "table": Rule(arguments: ["name"]),
    "mapsTo": Rule(arguments: ["name"]),
  ]

  static let onFields: [String: Rule] = [
    "primaryKey": Rule(arguments: ["sortKeyFields"], ignored: ["queryField"]),
    "index": Rule(arguments: ["name", "sortKeyFields"], ignored: ["queryField"], isRepeatable: true),
    "default": Rule(arguments: ["value"]),
    "mapsTo": Rule(arguments: ["name"]),
    "hasMany": Rule(arguments: ["fields", "indexName", "references", "onDelete"], ignored: ["limit"]),
    "hasOne": Rule(arguments: ["fields", "references", "onDelete"]),
    "belongsTo": Rule(arguments: ["fields", "references"]),
    "manyToMany": Rule(arguments: ["relationName"], ignored: ["limit"]),
  ]

  static let onEmbeddedFields: [String: Rule] = ["default": Rule(arguments: ["value"])]

  static let ignored: Set<String> = [
    "auth", "searchable", "function", "http", "predictions", "deprecated", "specifiedBy", "sql", "validate",
    "conversation", "generation", "aws_api_key", "aws_iam", "aws_oidc", "aws_lambda", "aws_auth",
    "aws_cognito_user_pools", "aws_subscribe",
  ]

  /// Directives of Amplify's first transformer, with their replacements.
  static let replaced: [String: String] = [
    "key": "write `@primaryKey` on the first field of the key, and `@index` for the others",
    "connection": "write `@hasMany`, `@hasOne` or `@belongsTo`",
    "versioned": "leave it out: every record has its versions",
    "ttl": "leave it out: records do not expire",
  ]

  static let relationships: [String: Relationship.Kind] = [
    "hasMany": .hasMany, "hasOne": .hasOne, "belongsTo": .belongsTo, "manyToMany": .manyToMany,
  ]
}

extension SchemaReader {
  /// Keeps the directives that are valid at this place, and reports the others.
  mutating func known(
    _ directives: [DirectiveSyntax], _ rules: [String: DirectiveRules.Rule], on subject: String
  ) -> [DirectiveSyntax] {
    var kept: [DirectiveSyntax] = []
    for directive in directives {
      let name = directive.name.text
      let place = directive.name.place
      guard let rule = rules[name] else {
        if DirectiveRules.ignored.contains(name) {
          warn(place, "`@\(name)` is ignored: it does not bear on data")
        } else if let advice = DirectiveRules.replaced[name] {
          error(place, "`@\(name)` is not supported", advice)
        } else if DirectiveRules.onModels[name] != nil || DirectiveRules.onFields[name] != nil {
          error(place, "`@\(name)` is not allowed on \(subject)", Self.rightPlace(of: name))
        } else {
          error(place, "unknown directive `@\(name)`", Self.advice(for: name, rules.keys.sorted(), subject))
        }
        continue
      }
      if !rule.isRepeatable, kept.contains(where: { $0.name.text == name }) {
        error(place, "`@\(name)` stands twice on \(subject)", "keep one of them")
        continue
      }
      for argument in directive.arguments where !rule.arguments.contains(argument.name.text) {
        if rule.ignored.contains(argument.name.text) {
          warn(
            argument.name.place, "`\(argument.name.text)` of `@\(name)` is ignored: it does not bear on data")
        } else {
          error(
            argument.name.place, "`@\(name)` has no argument `\(argument.name.text)`",
            Spelling.nearest(to: argument.name.text, among: rule.arguments.sorted())
              .map { "did you mean `\($0)`?" }
              ?? (rule.arguments.isEmpty
                ? "it takes none" : "it takes \(rule.arguments.joined(separator: ", "))"))
        }
      }
      kept.append(directive)
    }
    return kept
  }

  private static func advice(for name: String, _ known: [String], _ subject: String) -> String {
    if let near = Spelling.nearest(to: name, among: known) { return "did you mean `@\(near)`?" }
    if known.isEmpty { return "write `@model` if it is to be a model; \(subject) takes none" }
    return "\(subject) takes \(known.map { "@\($0)" }.joined(separator: ", "))"
  }

  private static func rightPlace(of name: String) -> String {
    if DirectiveRules.onModels[name] != nil { return "write it behind the name of a type with `@model`" }
    return "write it behind a field of a type with `@model`"
  }

  // MARK: Arguments

  /// A required string argument.
  mutating func string(_ name: String, of directive: DirectiveSyntax) -> String? {
    guard let argument = directive.argument(name) else {
      error(
        directive.name.place, "`@\(directive.name.text)` needs the argument `\(name)`",
        "write `@\(directive.name.text)(\(name): \"…\")`")
      return nil
    }
    guard case .string(let text) = argument.value.kind else {
      error(argument.value.place, "`\(name)` must be a string", "write it in quotes")
      return nil
    }
    return text
  }

  /// A list of strings, or one string. Nil if absent, or invalid and reported.
  mutating func strings(_ name: String, of directive: DirectiveSyntax) -> [String]? {
    guard let argument = directive.argument(name) else { return nil }
    switch argument.value.kind {
    case .string(let text): return [text]
    case .list(let elements):
      var texts: [String] = []
      for element in elements {
        guard case .string(let text) = element.kind else {
          error(element.place, "`\(name)` must hold strings", "write `\(name): [\"…\"]`")
          return nil
        }
        if texts.contains(text) {
          error(element.place, "`\(text)` stands twice in `\(name)`", "name each field once")
          return nil
        }
        texts.append(text)
      }
      return texts
    default:
      error(argument.value.place, "`\(name)` must be a list of field names", "write `\(name): [\"…\"]`")
      return nil
    }
  }

  /// One of several words, with or without quotes. Nil if absent, or invalid and reported.
  mutating func word<Word: RawRepresentable & CaseIterable>(
    _ name: String, of directive: DirectiveSyntax, as type: Word.Type
  ) -> Word? where Word.RawValue == String {
    guard let argument = directive.argument(name) else { return nil }
    switch argument.value.kind {
    case .name(let text), .string(let text):
      if let word = Word(rawValue: text) { return word }
      fallthrough
    default:
      error(
        argument.value.place, "`\(name)` of `@\(directive.name.text)` is none of its words",
        "write one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))")
      return nil
    }
  }
}
