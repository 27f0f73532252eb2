extension SchemaReader {
  /// ⚑ SQLite ignores ASCII case in names of tables and columns, so names that differ only in case
  /// would clash. Stored names must differ as well, or two fields would share their events.
  mutating func checkNames() {
    checkTables()
    var stored: [String: String] = [:]
    for model in models {
      if let other = stored[model.storedName] {
        error(
          model.place, "`\(model.name)` and `\(other)` are both stored as `\(model.storedName)`",
          "give one of them another name in `@mapsTo`")
      }
      stored[model.storedName] = model.name
      checkFields(of: model)
    }
  }

  private mutating func checkTables() {
    var tables: [String: String] = [:]
    for model in models {
      let table = model.tableName
      let folded = table.lowercased()
      let isPlain =
        table.unicodeScalars.first.map { $0.startsName && $0 != "_" } == true
        && table.unicodeScalars.allSatisfy(\.continuesName) && table.utf8.count <= SchemaLimits.name
      if !isPlain || folded.hasPrefix("sqlite_") {
        error(
          model.tablePlace, "`\(table)` cannot name a table",
          "use letters, digits and _, a letter first, not sqlite_")
      } else if let other = tables[folded] {
        error(
          model.tablePlace,
          "tables of `\(other)` and `\(model.name)` have the same name `\(table)` except for case",
          "add `@table(name: \"…\")` to one of them")
      }
      tables[folded] = tables[folded] ?? model.name
    }
  }

  private mutating func checkFields(of model: ModelDraft) {
    var columns: [String: FieldDraft] = [:]
    var stored: [String: FieldDraft] = [:]
    for draft in model.fields {
      let folded = draft.field.name.lowercased()
      if let other = columns[folded] {
        error(
          draft.place,
          "`\(other.field.name)` and `\(draft.field.name)` of `\(model.name)` differ only in case",
          "rename one of them: SQLite takes them for one column")
      }
      columns[folded] = columns[folded] ?? draft
      if let other = stored[draft.field.storedName] {
        error(
          draft.place,
          "`\(other.field.name)` and `\(draft.field.name)` of `\(model.name)` are both stored as "
            + "`\(draft.field.storedName)`", "give one of them another name in `@mapsTo`")
      }
      stored[draft.field.storedName] = stored[draft.field.storedName] ?? draft
    }
    if model.fields.count > SchemaLimits.fields {
      error(
        model.place, "`\(model.name)` has \(model.fields.count) fields with the implied ones",
        "use at most \(SchemaLimits.fields), or embedded types")
    }
  }
}
