import Foundation
import StemmaEvents
import StemmaSchema
import StemmaTables

/// A schema for the tables of a SQLite file: what its declarations and its values allow. `import` finds the models and
/// fields again by the same names.
package enum SchemaInference {
  package struct Result: Sendable {
    /// SDL in its canonical form.
    package var text: String
    /// What could not be said in a schema; one sentence each.
    package var warnings: [String]
  }

  /// Reads all rows once, because a column of SQLite may hold anything whatever its declaration says.
  package static func schema(ofFile path: String) throws(NodeError) -> Result {
    var drafts: [Draft] = []
    var warnings: [String] = []
    guard access(path, R_OK) == 0 else { throw .cannotRead(path: path, errno: errno) }
    do throws(TablesError) {
      let file = try SQLiteFile(path)
      for table in try file.tables() where !table.name.hasPrefix("_") {
        drafts.append(try Draft(table, file, &warnings))
      }
    } catch { throw .tables(error) }
    guard !drafts.isEmpty else {
      throw .malformedInput(source: path, what: "\(path) has no tables")
    }
    let plain = drafts.map(\.sdl).joined(separator: "\n")
    for index in drafts.indices { relate(index, &drafts, &warnings) }
    do {
      return Result(
        text: SDL.print(try SDL.read(drafts.map(\.sdl).joined(separator: "\n")).schema), warnings: warnings)
    } catch {
      warnings.append("the foreign keys are left out: \(error.description)")
    }
    do { return Result(text: SDL.print(try SDL.read(plain).schema), warnings: warnings) } catch {
      throw .schema(error)
    }
  }

  // MARK: Names

  /// A column's name as a field's: what no field may be called becomes `_`.
  package static func fieldName(_ column: String) -> String {
    let name = String(column.map { $0.isASCII && ($0.isLetter || $0.isNumber) ? $0 : "_" })
    let start = name.drop { $0 == "_" }
    return start.first?.isLetter == true ? String(start) : "f" + start
  }

  /// `order_items` → `OrderItem`.
  package static func modelName(_ table: String) -> String {
    let words = table.split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }
    let name = words.map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined()
    return singular(name.first?.isLetter == true ? name : "T" + name)
  }

  /// Undoes the naive plural where that is possible.
  private static func singular(_ name: String) -> String {
    var candidates = [String(name.dropLast()), String(name.dropLast(2))]
    if name.hasSuffix("ies") { candidates.insert(name.dropLast(3) + "y", at: 0) }
    return candidates.first { !$0.isEmpty && Naming.plural($0) == name } ?? name
  }

  // MARK: Models

  /// What the values of a column are.
  private struct Facts {
    var nulls = false, integers = false, reals = false, texts = false, bytes = false
    var areBooleans = true, areDates = true, areDateTimes = true

    mutating func note(_ cell: SQLiteFile.Rows.Cell) {
      switch cell {
      case .value(.null): nulls = true
      case .value(.int(let number)):
        integers = true
        if number != 0 && number != 1 { areBooleans = false }
      case .value(.string(let text)):
        texts = true
        if areDates { areDates = Scalar.awsDate.rule(brokenBy: text) == nil }
        if areDateTimes { areDateTimes = Scalar.awsDateTime.rule(brokenBy: text) == nil }
      case .value: reals = true
      case .blob, .notUTF8: bytes = true
      }
    }

    /// Nil if no type holds the values.
    func type(declared: String) -> Scalar? {
      let declared = declared.uppercased()
      func isAny(_ words: String...) -> Bool { words.contains { declared.contains($0) } }
      if bytes || (isAny("BLOB") && !texts && !integers && !reals) { return nil }
      let isFractional = isAny("REAL", "FLOA", "DOUB", "DEC", "NUM")
      let isBoolean = isAny("BOOL") && areBooleans
      switch (integers, reals, texts) {
      case (true, false, false): return isBoolean ? .boolean : isFractional ? .float : .int
      case (_, true, false): return .float
      case (false, false, true):
        if isAny("DATE", "TIMESTAMP"), areDateTimes { return .awsDateTime }
        return isAny("DATE") && areDates ? .awsDate : .string
      case (true, _, true), (false, true, true): return .string
      case (false, false, false):
        return isBoolean ? .boolean : isFractional ? .float : isAny("INT") ? .int : .string
      }
    }
  }

  private struct Draft {
    struct Field {
      var name: String
      var type: Scalar
      var isRequired: Bool
    }

    let table: SQLiteFile.Table
    let name: String
    var fields: [Field] = []
    var key: [String] = []
    /// Lines for relationships, and the names they use.
    var relationships: [(name: String, text: String)] = []

    init(_ table: SQLiteFile.Table, _ file: SQLiteFile, _ warnings: inout [String]) throws(TablesError) {
      self.table = table
      name = SchemaInference.modelName(table.name)
      var facts = [Facts](repeating: Facts(), count: table.columns.count)
      var rows = try file.rows(table.name, table.columns.map(\.name))
      while let row = try rows.next() {
        for (index, cell) in row.enumerated() { facts[index].note(cell) }
      }
      for (column, facts) in zip(table.columns, facts) where !column.name.hasPrefix("_") {
        let field = SchemaInference.fieldName(column.name)
        guard let type = facts.type(declared: column.type) else {
          warnings.append("\(table.name).\(column.name) holds bytes, for which there is no type: left out")
          continue
        }
        guard !fields.contains(where: { $0.name.lowercased() == field.lowercased() }) else {
          warnings.append("\(table.name).\(column.name) would be a second field `\(field)`: left out")
          continue
        }
        let isKey = table.primaryKey.contains(column.name)
        fields.append(
          Field(name: field, type: type, isRequired: (column.isRequired || isKey) && !facts.nulls))
      }
      let wanted = table.primaryKey.map(SchemaInference.fieldName)
      if !wanted.isEmpty, wanted.allSatisfy({ part in fields.contains { $0.name == part && $0.isRequired } })
      {
        key = wanted
      } else {
        warnings.append(
          "\(table.name) has no primary key that a model can have: "
            + (fields.contains { $0.name == "id" }
              ? "give the model one" : "each import of its rows makes new records"))
      }
    }

    func field(_ name: String) -> Field? { fields.first { $0.name == name } }

    func isTaken(_ name: String) -> Bool {
      (fields.map(\.name) + relationships.map(\.name)).contains { $0.lowercased() == name.lowercased() }
    }

    /// The first of these names that is free.
    func free(_ candidates: String...) -> String? { candidates.first { !$0.isEmpty && !isTaken($0) } }

    var sdl: String {
      let isNamed =
        table.name != Naming.tableName(ofModel: name) && SchemaInference.fieldName(table.name) == table.name
      var text = "type \(name) @model\(isNamed ? " @table(name: \"\(table.name)\")" : "") {\n"
      for field in fields {
        text += "  \(field.name): \(field.type.rawValue)\(field.isRequired ? "!" : "")"
        if field.name == key.first {
          let rest = key.dropFirst().map { "\"\($0)\"" }.joined(separator: ", ")
          text += " @primaryKey" + (rest.isEmpty ? "" : "(sortKeyFields: [\(rest)])")
        }
        text += "\n"
      }
      for relationship in relationships { text += "  \(relationship.text)\n" }
      return text + "}\n"
    }
  }

  // MARK: Foreign keys

  private static func relate(_ index: Int, _ drafts: inout [Draft], _ warnings: inout [String]) {
    for foreign in drafts[index].table.foreignKeys {
      let columns = foreign.columns.map(fieldName)
      let place = "\(drafts[index].table.name)(\(foreign.columns.joined(separator: ", ")))"
      guard
        let target = drafts.firstIndex(where: { $0.table.name.lowercased() == foreign.table.lowercased() }),
        let references = references(columns, foreign, from: drafts[index], to: drafts[target])
      else {
        warnings.append(
          "the foreign key \(place) does not lead to the primary key of \(foreign.table): left out")
        continue
      }
      let (child, parent) = (drafts[index].name, drafts[target].name)
      let base = columns.count == 1 ? withoutSuffix(columns[0]) : ""
      let fallback = Naming.lowerCamel(parent)
      guard let own = drafts[index].free(base, fallback, fallback + "Ref") else { continue }
      let list = references.map { "\"\($0)\"" }.joined(separator: ", ")
      let isRequired = references.contains { drafts[index].field($0)?.isRequired == true }
      drafts[index].relationships.append(
        (own, "\(own): \(parent)\(isRequired ? "!" : "") @belongsTo(references: [\(list)])"))
      let children = Naming.plural(Naming.lowerCamel(child))
      let capital = own.prefix(1).uppercased() + own.dropFirst()
      guard let theirs = drafts[target].free(children, children + "By" + capital) else { continue }
      drafts[target].relationships.append((theirs, "\(theirs): [\(child)] @hasMany(references: [\(list)])"))
    }
  }

  /// The child's fields in the order of the parent's key; nil if they do not fit it.
  private static func references(
    _ columns: [String], _ foreign: SQLiteFile.ForeignKey, from child: Draft, to parent: Draft
  ) -> [String]? {
    let targets = foreign.targets.isEmpty ? parent.key : foreign.targets.map(fieldName)
    guard !parent.key.isEmpty, targets.count == columns.count, Set(targets) == Set(parent.key) else {
      return nil
    }
    var found: [String] = []
    for part in parent.key {
      guard let index = targets.firstIndex(of: part), let own = child.field(columns[index]),
        own.type == parent.field(part)?.type
      else { return nil }
      found.append(own.name)
    }
    return found
  }

  /// `artist_id`, `artistId` → `artist`.
  private static func withoutSuffix(_ column: String) -> String {
    for suffix in ["_id", "_ID", "Id", "ID"] where column.hasSuffix(suffix) {
      return String(column.dropLast(suffix.count))
    }
    return ""
  }
}
