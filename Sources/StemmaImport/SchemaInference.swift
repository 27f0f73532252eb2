import Foundation
import StemmaEvents
import StemmaNode
import StemmaSchema
import StemmaTables

/// Infers a schema from the declarations and values of a SQLite file. `import` finds the models and
/// fields by the same names.
package enum SchemaInference {
  package struct Result: Sendable {
    /// SDL in its canonical form.
    package var text: String
    /// Properties that a schema cannot express; one sentence each.
    package var warnings: [String]
  }

  /// Reads all rows once, because a SQLite column may hold values of any type.
  package static func schema(ofFile path: String) throws(NodeError) -> Result {
    var drafts: [Draft] = []
    var warnings: [String] = []
    guard access(path, R_OK) == 0 else { throw .cannotRead(path: path, errno: errno) }
    do throws(TablesError) {
      let file = try SQLiteFile(path)
      let contents = try file.contents()
      warnings += contents.omittedObjects.map(notice)
      for entry in SQLiteMapping(contents.tables).entries {
        guard let draft = try Draft(entry, file, &warnings) else { continue }
        drafts.append(draft)
      }
    } catch { throw .tables(error) }
    guard !drafts.isEmpty else {
      throw .malformedInput(source: path, what: "\(path) has no tables that a schema can hold")
    }
    let plain = drafts
    for index in drafts.indices {
      for foreign in drafts[index].table.foreignKeys { relate(index, foreign, &drafts, &warnings) }
    }
    do { return try result(drafts, warnings) } catch {
      // A relationship breaks a schema rule, so they are tried one by one.
      drafts = plain
    }
    for index in plain.indices {
      for foreign in plain[index].table.foreignKeys {
        let before = drafts
        relate(index, foreign, &drafts, &warnings, isQuiet: true)
        do { _ = try result(drafts, []) } catch {
          warnings.append("\(place(foreign, plain[index])) breaks a rule of schemas: left out. \(error)")
          drafts = before
        }
      }
    }
    do { return try result(drafts, warnings) } catch { throw .schema(error) }
  }

  private static func result(_ drafts: [Draft], _ warnings: [String]) throws(SchemaError) -> Result {
    Result(
      text: SDL.print(try SDL.read(drafts.map(\.sdl).joined(separator: "\n")).schema), warnings: warnings)
  }

  /// An import reports an omission in the same words.
  static func notice(_ omitted: SQLiteFile.OmittedObject) -> String {
    switch omitted.kind {
    case .view: "\(omitted.name) is a view: left out"
    case .virtualTable: "\(omitted.name) is a virtual table: left out, with the tables that hold its data"
    }
  }

  // MARK: Models

  /// The kinds of values in a column.
  private struct Facts {
    var rows = 0
    /// Rows with a value that no type can hold.
    var bytes = 0
    var nulls = false, integers = false, reals = false, texts = false
    var areBooleans = true, areDates = true, areDateTimes = true
    /// Whether an integer has no exact double.
    var isInexact = false
    var isInfinite = false
    /// In bytes.
    var longestText = 0

    mutating func note(_ cell: SQLiteFile.Rows.Cell) {
      rows += 1
      switch cell {
      case .value(.null): nulls = true
      case .value(.int(let number)):
        integers = true
        if Int64(exactly: Double(number)) != number { isInexact = true }
        if number != 0 && number != 1 { areBooleans = false }
      case .value(.string(let text)):
        texts = true
        longestText = max(longestText, text.utf8.count)
        if areDates { areDates = Scalar.awsDate.rule(brokenBy: text) == nil }
        if areDateTimes { areDateTimes = Scalar.awsDateTime.rule(brokenBy: text) == nil }
      case .value(.double(let number)):
        reals = true
        if !number.isFinite { isInfinite = true }
      // SQLite has no other kinds of values.
      case .value, .blob, .notUTF8: bytes += 1
      }
    }

    /// The reason why the column has no field; nil if it has one.
    func omission(declared: String) -> String? {
      if bytes > 0 {
        let place = rows == 1 ? "its row" : "\(bytes) of \(rows) rows"
        return "holds bytes in \(place), and there is no type for bytes"
      }
      if longestText > Limits.value { return "holds a text of more than \(Limits.value) bytes" }
      return declared.uppercased().contains("BLOB") && !texts && !integers && !reals
        ? "is declared \(declared), and there is no type for bytes" : nil
    }

    /// The reason why numbers are kept as text; nil if they are not.
    var widening: String? {
      guard integers || reals else { return nil }
      return texts
        ? "text and numbers"
        : isInfinite ? "an infinite number" : reals && isInexact ? "fractions and integers beyond 2^53" : nil
    }

    /// - Parameter isKey: whether the column is part of a key or of a foreign key.
    func type(declared: String, isKey: Bool) -> Scalar {
      let declared = declared.uppercased()
      func isAny(_ words: String...) -> Bool { words.contains { declared.contains($0) } }
      if widening != nil { return .string }
      // A decimal with a precision and no scale holds whole numbers only.
      let isWhole = declared.contains(#/\(\s*\d+\s*(,\s*0\s*)?\)/#)
      let isFractional = isAny("REAL", "FLOA", "DOUB") || isAny("DEC", "NUM") && !isWhole
      let isBoolean = isAny("BOOL") && areBooleans
      if reals { return .float }
      if integers { return isBoolean ? .boolean : isFractional && !isInexact ? .float : .int }
      if texts {
        // A key with a time is stored in UTC, so two texts of the source could become one key.
        if isKey { return .string }
        if isAny("DATE", "TIMESTAMP"), areDateTimes { return .awsDateTime }
        return isAny("DATE") && areDates ? .awsDate : .string
      }
      return isBoolean ? .boolean : isFractional ? .float : isAny("INT", "DEC", "NUM") ? .int : .string
    }
  }

  private struct Draft {
    struct Field {
      var name: String
      var type: Scalar
      var isRequired: Bool
    }

    let entry: SQLiteMapping.Entry
    var table: SQLiteFile.Table { entry.table }
    var name: String { entry.model }
    var fields: [Field] = []
    var key: [String] = []
    /// Whether the source has records without a time, which a node would fill in.
    private var keepsTimes = false
    /// Lines for relationships, and the names they use.
    var relationships: [(name: String, text: String)] = []

    /// Nil, with a warning, if no field can be the key.
    init?(_ entry: SQLiteMapping.Entry, _ file: SQLiteFile, _ warnings: inout [String]) throws(TablesError) {
      self.entry = entry
      let table = entry.table
      var facts = [Facts](repeating: Facts(), count: table.columns.count)
      var rows = try file.rows(table.name, table.columns.map(\.name))
      while let row = try rows.next() {
        for (index, cell) in row.enumerated() { facts[index].note(cell) }
      }
      var messages: [String] = []
      for (index, column) in table.columns.enumerated() {
        let (facts, field, place) = (facts[index], entry.fields[index], "\(table.name).\(column.name)")
        if let reason = facts.omission(declared: column.type) {
          messages.append("\(place) \(reason): left out")
          continue
        }
        let isKey = table.primaryKey.contains(column.name)
        let isReference = table.foreignKeys.contains { $0.columns.contains(column.name) }
        let type = facts.type(declared: column.type, isKey: isKey || isReference)
        fields.append(
          Field(name: field, type: type, isRequired: (column.isRequired || isKey) && !facts.nulls))
        messages += Self.notes(column, field, type, facts, place)
        if ["createdAt", "updatedAt"].contains(field), facts.nulls { keepsTimes = true }
      }
      if Self.isKey(table, facts) {
        key = table.primaryKey.compactMap(entry.field)
      } else if let field = entry.rowNumberField {
        key = [field]
        fields.insert(Field(name: field, type: .int, isRequired: true), at: 0)
        messages.append(
          "\(table.name) has no primary key that a model can have: SQLite's rowid is the key, in the field "
            + "`\(field)`. VACUUM and a new dump of the source can change it")
      } else {
        warnings.append("\(table.name) has no primary key that a model can have, and no rowid: left out")
        return nil
      }
      warnings += messages + Self.notes(table)
    }

    /// Whether the primary key is valid for a model: present and unique in each row.
    private static func isKey(_ table: SQLiteFile.Table, _ facts: [Facts]) -> Bool {
      let parts = zip(table.columns, facts).filter { table.primaryKey.contains($0.0.name) }
      let isFit = parts.allSatisfy { column, facts in
        // A text and a number of the source could become equal texts.
        facts.omission(declared: column.type) == nil && !facts.nulls
          && !(facts.texts && facts.widening != nil)
      }
      // The first of several parts names a partition. A byte of text becomes at most two in a key,
      // and three in a partition name, which begins with the field name and an equals sign.
      let longest = parts.count == 1 ? Limits.key / 2 - 2 : (Limits.partition - Limits.name - 1) / 3
      return !parts.isEmpty && isFit && parts.reduce(0) { $0 + $1.1.longestText } <= longest
    }

    /// Properties of a column that a model cannot keep.
    private static func notes(
      _ column: SQLiteFile.Column, _ field: String, _ type: Scalar, _ facts: Facts, _ place: String
    ) -> [String] {
      var messages: [String] = []
      if let widening = facts.widening {
        messages.append("\(place) holds \(widening): its numbers become text")
      }
      let declared = column.type.uppercased()
      if type == .float, declared.contains("DEC") || declared.contains("NUM") {
        messages.append("\(place) is declared \(column.type): Float keeps about 15 digits")
      }
      if column.isGenerated {
        messages.append("\(place) is a generated column: its values become plain ones")
      }
      if let value = column.defaultValue { messages.append("the default \(value) of \(place): left out") }
      if column.name != field { messages.append("\(place) becomes the field `\(field)`") }
      return messages
    }

    /// Properties of a table that a model cannot keep.
    private static func notes(_ table: SQLiteFile.Table) -> [String] {
      var messages: [String] = []
      for columns in table.uniques {
        messages.append("UNIQUE (\(columns.joined(separator: ", "))) of \(table.name): left out")
      }
      if checks(table.declaration) { messages.append("the CHECK constraints of \(table.name): left out") }
      for trigger in table.triggers { messages.append("the trigger \(trigger) of \(table.name): left out") }
      return messages
    }

    /// Whether a statement has the word CHECK outside of quotes and comments.
    private static func checks(_ sql: String) -> Bool {
      sql.replacing(#/'[^']*'|"[^"]*"|`[^`]*`|\[[^\]]*\]|--[^\n]*|/\*(?s:.*?)\*//#, with: " ")
        .contains(#/(?i)\bcheck\s*\(/#)
    }

    func field(_ name: String) -> Field? { fields.first { $0.name == name } }

    func isTaken(_ name: String) -> Bool {
      (fields.map(\.name) + relationships.map(\.name)).contains { $0.lowercased() == name.lowercased() }
    }

    /// The first unused name.
    func free(_ candidates: String...) -> String? { candidates.first { !$0.isEmpty && !isTaken($0) } }

    var sdl: String {
      var text = "type \(name) @model\(keepsTimes ? "(timestamps: null)" : "")"
      if entry.tableName != Naming.tableName(ofModel: name) {
        text += " @table(name: \"\(entry.tableName)\")"
      }
      text += " {\n"
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

  private static func place(_ foreign: SQLiteFile.ForeignKey, _ draft: Draft) -> String {
    "the foreign key \(draft.table.name)(\(foreign.columns.joined(separator: ", ")))"
  }

  private static func relate(
    _ index: Int, _ foreign: SQLiteFile.ForeignKey, _ drafts: inout [Draft], _ warnings: inout [String],
    isQuiet: Bool = false
  ) {
    let place = place(foreign, drafts[index])
    func warn(_ text: String) { if !isQuiet { warnings.append("\(place) \(text)") } }
    guard
      let target = drafts.firstIndex(where: { $0.table.name.lowercased() == foreign.table.lowercased() }),
      let references = references(foreign, from: drafts[index], to: drafts[target])
    else { return warn("does not fit the primary key of \(foreign.table): left out") }
    let (child, parent) = (drafts[index].name, drafts[target].name)
    let base = references.count == 1 ? withoutSuffix(references[0]) : ""
    let fallback = Naming.lowerCamel(parent)
    guard let own = drafts[index].free(base, fallback, fallback + "Ref") else {
      return warn("finds no free name for its relationship: left out")
    }
    let list = references.map { "\"\($0)\"" }.joined(separator: ", ")
    let isRequired = references.contains { drafts[index].field($0)?.isRequired == true }
    drafts[index].relationships.append(
      (own, "\(own): \(parent)\(isRequired ? "!" : "") @belongsTo(references: [\(list)])"))
    let children = Naming.plural(Naming.lowerCamel(child))
    let capital = own.prefix(1).uppercased() + own.dropFirst()
    for (word, action) in [("ON DELETE", foreign.onDelete), ("ON UPDATE", foreign.onUpdate)] {
      if let action { warn("has \(word) \(action): left out") }
    }
    guard let theirs = drafts[target].free(children, children + "By" + capital) else {
      return warn("has no list of its records in \(parent), which has fields of that name")
    }
    drafts[target].relationships.append((theirs, "\(theirs): [\(child)] @hasMany(references: [\(list)])"))
  }

  /// The child's fields in the order of the parent's key; nil if they do not fit it.
  private static func references(
    _ foreign: SQLiteFile.ForeignKey, from child: Draft, to parent: Draft
  ) -> [String]? {
    let columns = foreign.columns.compactMap(child.entry.field)
    let targets = (foreign.targets.isEmpty ? parent.table.primaryKey : foreign.targets).compactMap(
      parent.entry.field)
    guard columns.count == foreign.columns.count, targets.count == columns.count,
      targets.count == parent.key.count
    else { return nil }
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
