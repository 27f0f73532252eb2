/// What the declarations of a schema are called in Swift: as there, but for names that Swift, the library or what its macros
/// write has taken. Those get a word behind them, and the declaration says by what name the schema knows it.
struct SwiftNames {
  /// Of types, by their names in the schema.
  private let types: [String: String]

  init(_ schema: Schema) {
    let all =
      schema.models.map { ($0.name, "Model") } + schema.enums.map { ($0.name, "Enum") }
      + schema.embeddedTypes.map { ($0.name, "Type") }
    var taken = Set(all.map(\.0))
    var types: [String: String] = [:]
    for (name, word) in all where Self.takenTypes.contains(name) {
      let free = Self.free(name + word, taken)
      taken.insert(free)
      types[name] = free
    }
    self.types = types
  }

  /// The Swift type of a model, an enum or an embedded type.
  func type(_ name: String) -> String { types[name] ?? name }

  /// The property of a field, without ticks: as macros are told it.
  ///
  /// A field that is called as a type would hide the type from what macros write. `isPart`: of a key with several.
  func property(_ name: String, besides others: [String], isPart: Bool) -> String {
    isTaken(name) || isPart && Self.takenParts.contains(name)
      ? Self.free(Naming.lowerCamel(name) + "Field", Set(others)) : name
  }

  /// Whether no property can have the name.
  func isTaken(_ name: String) -> Bool {
    Self.takenMembers.contains(name) || Self.takenTypes.contains(name) || types[name] != nil
  }

  /// What the cases of an enum are called, in their order: `IN_PROGRESS` → `inProgress`.
  static func cases(_ values: [String]) -> [String] {
    // A case that is spelled as Swift spells it keeps its name.
    var taken = Set(values.filter { caseName($0) == $0 && !takenCases.contains($0) })
    return values.map { value in
      let name = caseName(value)
      if name == value, taken.contains(name) { return name }
      let isFree = !taken.contains(name) && !takenCases.contains(name)
      let free = isFree ? name : Self.free(name + "Case", taken)
      taken.insert(free)
      return free
    }
  }

  private static func caseName(_ value: String) -> String {
    guard value.contains("_") || value == value.uppercased() else { return Naming.small(value) }
    let words = value.lowercased().split(separator: "_").map(String.init)
    let name = words.enumerated().map { $0 == 0 ? $1 : Naming.capital($1) }.joined()
    return name.first?.isLetter == true ? name : value
  }

  /// The name, with as many `_` behind it as make it another than all that are taken.
  static func free(_ name: String, _ taken: Set<String>) -> String {
    var free = name
    while taken.contains(free) { free += "_" }
    return free
  }

  /// The name, in ticks if it is a word of the language.
  static func quoted(_ name: String) -> String { keywords.contains(name) ? "`\(name)`" : name }

  /// Types that the structs name, macros among them, and what those write into each of them.
  private static let takenTypes: Set<String> = [
    "String", "Int", "Double", "Bool", "Date", "URL", "UUID", "Related", "Codable", "Hashable", "Sendable",
    "CaseIterable", "KeyValue", "Swift", "Stemma", "Any", "Self", "Type", "Protocol", "Table", "Column",
    "Index", "Selection", "BelongsTo", "HasMany", "HasOne", "ManyToMany", "ID", "Key", "Draft", "Columns",
    "Relationships", "PrimaryKey",
  ]

  /// Properties that mean something else wherever they are used, or that macros write.
  private static let takenMembers: Set<String> = [
    "self", "init", "await", "let", "var", "inout", "primaryKey",
  ]

  /// What a struct of key parts has besides.
  private static let takenParts: Set<String> = ["parts", "hashValue"]

  /// Likewise of cases: static members of an enum with raw values that is a column.
  private static let takenCases: Set<String> = [
    "self", "init", "Self", "Type", "Protocol", "allCases", "columnType", "read", "misfit",
  ]

  /// Words that a Swift declaration cannot be called without ticks.
  private static let keywords: Set<String> = [
    "as", "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer", "deinit", "do",
    "else", "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if",
    "import", "in", "init", "inout", "internal", "is", "let", "nil", "operator", "precedencegroup", "private",
    "protocol", "public", "repeat", "rethrows", "return", "self", "static", "struct", "subscript", "super",
    "switch", "throw", "throws", "true", "try", "typealias", "var", "where", "while", "Any", "Self", "Type",
  ]
}
