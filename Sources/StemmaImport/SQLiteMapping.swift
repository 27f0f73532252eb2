import StemmaNode
import StemmaSchema
import StemmaTables

/// Maps each table of a SQLite file to a model, and each column to a field. Inference creates the
/// models and fields by these names, and an import finds them again.
///
/// Both maps are one to one and depend only on the names in the file. A name that needs no change
/// goes first. A duplicate gets a number: the columns `a b` and `a_b` are the fields `a_b_2` and
/// `a_b`. SQLite and a node both ignore the case of names.
struct SQLiteMapping {
  struct Entry {
    let table: SQLiteFile.Table
    let model: String
    /// The table of the model in a node.
    let tableName: String
    /// In the order of the table's columns.
    let fields: [String]
    /// The field for the row number of a table without a usable key; nil: rows have no number.
    let rowNumberField: String?

    func field(_ column: String) -> String? {
      let pairs = zip(table.columns, fields)
      let found =
        pairs.first { $0.0.name == column } ?? pairs.first { $0.0.name.lowercased() == column.lowercased() }
      return found?.1
    }
  }

  let entries: [Entry]

  init(_ tables: [SQLiteFile.Table]) {
    let tableNames = Self.unique(tables.map(\.name), Self.tableName)
    var taken: Set<String> = []
    var models = tables.map(\.name)
    for index in Self.plainFirst(models, tableNames) {
      models[index] = Self.free(Self.modelName(tables[index].name), &taken) {
        Self.isSchema("type \($0) @model @table(name: \"\(tableNames[index])\") { id: ID! }")
      }
    }
    entries = tables.indices.map { index in
      let fields = Self.unique(tables[index].columns.map(\.name), Self.fieldName)
      var taken = Set(fields.map { $0.lowercased() })
      return Entry(
        table: tables[index], model: models[index], tableName: tableNames[index], fields: fields,
        rowNumberField: tables[index].rowNumber.map { _ in Self.free("rowid", &taken) })
    }
  }

  /// The entry of each model that has a table in the file. A model prefers a table with the name of
  /// its own table over one with a similar name.
  func entries(for models: [Model]) -> [String: Entry] {
    var found: [String: Entry] = [:]
    var free = Array(entries.indices)
    let rules: [(Model, Entry) -> Bool] = [
      { $0.tableName == $1.table.name },
      { $0.name == $1.model && $0.tableName == $1.tableName },
      { $0.tableName.lowercased() == $1.table.name.lowercased() },
      { $0.name.lowercased() == $1.table.name.lowercased() },
      { $0.name == $1.model },
      { $0.name == Self.modelName($1.table.name) },
    ]
    for rule in rules {
      for model in models where found[model.name] == nil {
        guard let place = free.firstIndex(where: { rule(model, entries[$0]) }) else { continue }
        found[model.name] = entries[free.remove(at: place)]
      }
    }
    return found
  }

  // MARK: Names

  /// Applies the rule to each name, and numbers the duplicates.
  private static func unique(_ names: [String], _ rule: (String) -> String) -> [String] {
    var results = names.map(rule)
    var taken: Set<String> = []
    for index in plainFirst(names, results) { results[index] = free(results[index], &taken) }
    return results
  }

  /// The indices of names that a rule leaves unchanged, then the others.
  private static func plainFirst(_ names: [String], _ results: [String]) -> [Int] {
    names.indices.filter { names[$0] == results[$0] } + names.indices.filter { names[$0] != results[$0] }
  }

  /// The name, or the first of `name_2`, `name_3` … that is free and allowed.
  private static func free(
    _ name: String, _ taken: inout Set<String>, isAllowed: (String) -> Bool = { _ in true }
  ) -> String {
    var candidate = name
    var number = 1
    while taken.contains(candidate.lowercased()) || !isAllowed(candidate) {
      number += 1
      candidate = "\(name)_\(number)"
    }
    taken.insert(candidate.lowercased())
    return candidate
  }

  private static func isSchema(_ text: String) -> Bool {
    do { return try !SDL.read(text).schema.models.isEmpty } catch { return false }
  }

  /// Letters, digits and `_`, a letter first, short enough to append a number.
  private static func plain(_ name: String, prefix: String) -> String {
    let name = String(name.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    let start = name.drop { $0 == "_" }
    return String(
      (start.first?.isLetter == true ? String(start) : prefix + start).prefix(SchemaLimits.name - 8))
  }

  /// A column's name as a field's.
  private static func fieldName(_ column: String) -> String { plain(column, prefix: "f") }

  private static func tableName(_ table: String) -> String {
    let name = plain(table, prefix: "t")
    return name.lowercased().hasPrefix("sqlite_") ? "t_" + name : name
  }

  /// `order_items` → `OrderItem`.
  private static func modelName(_ table: String) -> String {
    let words = table.prefix(SchemaLimits.name - 8).split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }
    let name = words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    return singular(name.first?.isLetter == true ? name : "T" + name)
  }

  /// Reverses the naive plural if possible.
  private static func singular(_ name: String) -> String {
    var candidates = [String(name.dropLast()), String(name.dropLast(2))]
    if name.hasSuffix("ies") { candidates.insert(name.dropLast(3) + "y", at: 0) }
    return candidates.first { !$0.isEmpty && Naming.plural($0) == name } ?? name
  }
}
