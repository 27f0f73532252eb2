/// The Swift names for a schema's declarations: the same, except for names reserved by Swift, the
/// library or generated code. Those get a suffix, and the declaration gives the schema's name.
struct SwiftNames {
  /// The renamed types, by their names in the schema.
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

  /// The property of a field, without backticks, as macros take it.
  ///
  /// A type's name would hide the type in generated code. `isPart`: of a key of several parts.
  func property(_ name: String, besides others: [String], isPart: Bool) -> String {
    isTaken(name) || isPart && Self.takenParts.contains(name)
      ? Self.free(Naming.lowerCamel(name) + "Field", Set(others)) : name
  }

  /// Whether the name is reserved.
  func isTaken(_ name: String) -> Bool {
    Self.takenMembers.contains(name) || Self.takenTypes.contains(name) || types[name] != nil
  }

  /// The Swift names of an enum's cases, in their order: `IN_PROGRESS` → `inProgress`.
  static func cases(_ values: [String]) -> [String] {
    // A case in Swift's spelling keeps its name.
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

  /// The name, with as many `_` after it as make it unique.
  static func free(_ name: String, _ taken: Set<String>) -> String {
    var free = name
    while taken.contains(free) { free += "_" }
    return free
  }

  /// The name, in backticks if it is a keyword.
  static func quoted(_ name: String) -> String { keywords.contains(name) ? "`\(name)`" : name }

  /// Types that the structs use, macros among them, and types generated in each struct.
  private static let takenTypes: Set<String> = [
    "String", "Int", "Double", "Bool", "Date", "URL", "UUID", "Related", "Codable", "Hashable", "Sendable",
    "CaseIterable", "KeyValue", "Swift", "Stemma", "Any", "Self", "Type", "Protocol", "Table", "Column",
    "Index", "Selection", "BelongsTo", "HasMany", "HasOne", "ManyToMany", "ID", "Key", "Draft", "Columns",
    "Relationships", "PrimaryKey",
  ]

  /// Properties with another meaning at each use, and generated ones.
  private static let takenMembers: Set<String> = [
    "self", "init", "await", "let", "var", "inout", "primaryKey",
  ]

  /// Members of a struct of key parts.
  private static let takenParts: Set<String> = ["parts", "hashValue"]

  /// Static members of an enum with raw values that is a column.
  private static let takenCases: Set<String> = [
    "self", "init", "Self", "Type", "Protocol", "allCases", "columnType", "read", "misfit",
  ]

  /// Words that name a Swift declaration only in backticks.
  private static let keywords: Set<String> = [
    "as", "associatedtype", "break", "case", "catch", "class", "continue", "default", "defer", "deinit", "do",
    "else", "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if",
    "import", "in", "init", "inout", "internal", "is", "let", "nil", "operator", "precedencegroup", "private",
    "protocol", "public", "repeat", "rethrows", "return", "self", "static", "struct", "subscript", "super",
    "switch", "throw", "throws", "true", "try", "typealias", "var", "where", "while", "Any", "Self", "Type",
  ]
}
