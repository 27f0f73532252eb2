import ArgumentParser
import StemmaEvents
import StemmaHistory
import StemmaImport
import StemmaNode
import StemmaSchema
import StemmaTables

struct Get: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "get",
    abstract: "Show one record.",
    discussion: """
      Examples:
        stemma get Book 978-0
        stemma get Team 3 --include members --json
        stemma get Book 978-0 --as-of 2026-11-17
      """)
  @Argument(help: "The model.", completion: .modelNames) var model: String
  @Argument(help: "The key.") var key: [String]
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "Also the records of this relationship; may be repeated, `a.b` goes on from there, up to 32 of them.",
      valueName: "relationship"))
  var include: [String] = []
  @OptionGroup var past: PastOptions
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    let words = try RecordWords(node, model: model)
    let (keyJSON, rest) = try words.key(key)
    guard rest.isEmpty else { throw Failure("`\(rest.first ?? "")` is more than the key", .usage) }
    let key = try node.key(keyJSON, of: words.model)
    var row: JSON?
    try goingAroundCorruption {
      try find(node, words.model, key) { row = $0 }
      if past.asOf == nil { try node.checkTablesAreWhole(for: (key, words.model)) }
    } thenAlways: {
      guard let row else { return }
      if format.isJSON {
        Output.line(row)
      } else {
        try RecordText(node, isOfThePast: past.asOf != nil).write(row)
      }
      Output.flush()
    }
    if row == nil { throw MutationError.notFound(model: model, key: KeyWords.text(key, of: words.model)) }
  }

  private func find(_ node: Node, _ model: Model, _ key: Key, _ body: (JSON?) -> Void) throws {
    guard let pointInTime = try past.pointInTime(node, in: Partition(model: model, key: key)) else {
      return body(try node.row(model, key, including: include))
    }
    if include.isEmpty { return body(try node.row(model, key, asOf: pointInTime)) }
    try node.withTables(asOf: pointInTime) { body(try $0.row(model, key, including: include)) }
  }
}

/// A record as text, one line per field.
struct RecordText {
  private let node: Node
  /// Whether it shows a past state. No command shows the conflicts of a past state.
  private let isOfThePast: Bool

  init(_ node: Node, isOfThePast: Bool) {
    self.node = node
    self.isOfThePast = isOfThePast
  }

  /// `fields`: the names of the shown fields, in this order. Nil: all fields, and the revision.
  func write(_ row: JSON, fields: [String]? = nil, indent: String = "") throws {
    let conflicts = RowConflicts(row)
    var table = TextTable()
    var values: [(name: String, value: JSON)] = []
    for group in ["key", "fields"] { if case .object(let members)? = row[group] { values += members } }
    for name in fields ?? values.map(\.name) {
      guard let value = values.first(where: { $0.name == name })?.value else { continue }
      table.append([conflicts.marked(name, name), printable(plain(value))])
    }
    if fields == nil, let revision = row["revision"] { table.append(["revision", plain(revision)]) }
    table.write(indent: indent)
    if !conflicts.names.isEmpty {
      Output.line("\(indent)! in conflict: \(try advice(row, conflicts.names))")
    }
    try writeIncluded(row, indent)
  }

  private func writeIncluded(_ row: JSON, _ indent: String) throws {
    guard case .object(let included)? = row["included"] else { return }
    for (name, value) in included {
      switch value {
      case .array(let rows):
        Output.line("\(indent)\(name): \(counted(rows.count, "record"))")
        for row in rows {
          try write(row, indent: indent + "  ")
          Output.line()
        }
      case .null: Output.line("\(indent)\(name): \(try omitted(row, name) ?? "none")")
      default:
        Output.line("\(indent)\(name):")
        try write(value, indent: indent + "  ")
      }
    }
  }

  /// The fields in conflict, and the command that shows their values.
  private func advice(_ row: JSON, _ names: [String]) throws -> String {
    let fields = names.joined(separator: ", ")
    guard !isOfThePast, let model = model(of: row), let key = row["key"] else { return fields }
    return "\(fields); `stemma conflicts show \(try self.name(model, key))` shows the values"
  }

  /// The target of a relationship if it is outside of the scope.
  private func omitted(_ row: JSON, _ relationship: String) throws -> String? {
    guard let key = row["outsideScope"]?[relationship],
      let target = model(of: row)?.relationship(named: relationship)?.target,
      let model = node.schema.model(named: target)
    else { return nil }
    return "\(try name(model, key)), outside of this node's scope"
  }

  private func model(of row: JSON) -> Model? {
    guard case .string(let name)? = row["model"] else { return nil }
    return node.schema.model(named: name)
  }

  private func name(_ model: Model, _ key: JSON) throws -> String {
    "\(model.name) \(KeyWords.text(try node.key(key, of: model), of: model))"
  }
}

/// The conflicts of a row of `get` or `list`.
struct RowConflicts {
  /// The names of fields, and of the record's existence.
  let names: [String]
  /// The names of the marked columns. A conflict outside of the row's fields marks the key.
  private let metadata: Set<String>

  init(_ row: JSON) {
    var names: [String] = []
    if case .array(let conflicts)? = row["conflicts"] { names = conflicts.map(plain) }
    var metadata = Set(names)
    if names.contains(where: { row["fields"]?[$0] == nil }), case .object(let key)? = row["key"] {
      metadata.formUnion(key.prefix(1).map(\.name))
    }
    (self.names, self.metadata) = (names, metadata)
  }

  /// The text of a column, followed by ` !` if the column is in conflict.
  func marked(_ text: String, _ column: String) -> String {
    metadata.contains(column) ? Output.styled(text.isEmpty ? "!" : text + " !", .red) : text
  }
}

/// A value without JSON's quotes.
func plain(_ value: JSON) -> String { value.plainText }

struct List: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List records of a model.",
    discussion: """
      A condition is field=value, !=, <, <=, >, >=, ^= (begins with) or ~= (contains); several must all hold.
      Examples:
        stemma list Track --where 'milliseconds>600000' --limit 5
        stemma list File --where partition=Tests --ndjson
        stemma list Book --as-of yesterday --fields isbn,title
        stemma list Book --limit 3 --vertical
      """)
  @Argument(help: "The model.", completion: .modelNames) var model: String
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("Only records for which this holds; may be repeated.", valueName: "condition"))
  var `where`: [String] = []
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "Order by this field; `-field` backwards (write --order=-field); may be repeated.", valueName: "field"))
  var order: [String] = []
  @Option(help: "At most so many.") var limit: Int?
  @Option(help: "Leave out so many first.") var offset: Int = 0
  @Option(
    help: ArgumentHelp(
      "Show only these fields, in this order; JSON also has the whole key.", valueName: "field,field"),
    completion: .fieldNames)
  var fields: String?
  @Flag(help: "A line for each field, as `get` shows a record.") var vertical = false
  @OptionGroup var past: PastOptions
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if let limit, limit < 0 { throw ValidationError("--limit takes a number of records, 0 or more") }
    if offset < 0 { throw ValidationError("--offset takes a number of records, 0 or more") }
    if vertical, format.isJSON { throw ValidationError("--vertical is for people; leave it or JSON out") }
  }

  func run() throws {
    let node = try options.open()
    let words = try RecordWords(node, model: model)
    let conditions = try self.where.map { try condition($0, words) }
    let ordering = order.map { name in
      name.hasPrefix("-")
        ? Listing.Order(String(name.dropFirst()), isDescending: true) : Listing.Order(name)
    }
    var array: [JSON] = []
    let fields = try shownFields(words)
    var table = TextTable(fields.map { Output.styled($0.name, .bold) })
    var shown = 0
    var hasConflicts = false
    let listing = Listing(model, where: conditions, order: ordering, limit: limit, offset: offset)
    let show: (JSON) throws -> Void = { row in
      if format.isJSON {
        let row = self.fields == nil ? row : Self.narrowed(row, to: fields)
        if format.json { array.append(row) } else { Output.line(row) }
        return
      }
      let conflicts = RowConflicts(row)
      if vertical {
        if shown > 0 { Output.line() }
        try RecordText(node, isOfThePast: past.asOf != nil).write(
          row, fields: self.fields == nil ? nil : fields.map(\.name))
      } else {
        hasConflicts = hasConflicts || !conflicts.names.isEmpty
        table.append(
          fields.map { field in
            let value = row["key"]?[field.name] ?? row["fields"]?[field.name]
            let text = printable(value.map(plain) ?? "")
            return conflicts.marked(text.count > 60 ? text.prefix(59) + "…" : text, field.name)
          })
      }
      shown += 1
    }
    try goingAroundCorruption {
      try past.read(node, words.model) { try $0.list(listing, show) }
      if past.asOf == nil { try node.checkTablesAreWhole() }
    } thenAlways: {
      if format.json { Output.line(.array(array)) }
      if !format.isJSON, !vertical {
        table.write()
        if hasConflicts {
          let command = past.asOf == nil ? "; `stemma conflicts --model \(model)` lists all" : ""
          Output.line("! in conflict\(command)")
        }
      }
      Output.flush()
    }
  }

  /// The fields of --fields, or all.
  private func shownFields(_ words: RecordWords) throws -> [Field] {
    guard let fields else { return words.model.fields }
    return try fields.split(separator: ",").map { name in
      guard let field = words.model.field(named: String(name)) else {
        throw MutationError.unknownField(
          model: model, field: String(name), known: words.model.fields.map(\.name))
      }
      return field
    }
  }

  /// A row with a subset of its fields.
  private static func narrowed(_ row: JSON, to fields: [Field]) -> JSON {
    guard case .object(let members) = row else { return row }
    return .object(
      members.map { (member) -> (name: String, value: JSON) in
        guard member.name == "fields" else { return member }
        let values: [(name: String, value: JSON)] = fields.compactMap { field in
          member.value[field.name].map { (field.name, $0) }
        }
        return (member.name, .object(values))
      })
  }

  private func condition(_ text: String, _ words: RecordWords) throws -> Listing.Condition {
    guard let (name, comparison, value) = Listing.Condition.parts(of: text) else {
      throw Failure("`\(text)` is not field=value, or with !=, <, <=, >, >=, ^= or ~=", .usage)
    }
    guard let field = words.model.field(named: name) else {
      throw MutationError.unknownField(model: model, field: name, known: words.model.fields.map(\.name))
    }
    let isText = comparison == .beginsWith || comparison == .contains
    return Listing.Condition(
      field.name, comparison, isText ? .string(value) : try words.stored(value, of: field))
  }
}

struct Query: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "query",
    abstract: "Run an SQL query on the tables, read-only.",
    discussion: """
      `*` leaves out the columns _version and _state, which are there by name.

      Examples:
        stemma query 'SELECT count(*) FROM tracks'
        stemma query --json 'SELECT name, unitPrice FROM tracks LIMIT 3'
        stemma query --as-of 2h 'SELECT count(*) FROM tracks'
      """)
  @Argument(help: "One SELECT statement.") var sql: String
  @Flag(
    help: ArgumentHelp(
      "Values with tabs between, no header: for other programs. In a value \\t, \\n, \\r and \\\\ mean tab, line feed, carriage return and backslash; \\N is null."
    ))
  var tsv = false
  @OptionGroup var past: PastOptions
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    var array: [JSON] = []
    var rows: [[String]] = []
    var header: [String] = []
    let show: ([String], [Value]) throws -> Void = { names, values in
      if header.isEmpty, format.isJSON { try QueryRows.refuseDuplicates(names) }
      header = names
      if format.isJSON {
        let row = JSON.object(zip(names, values).map { ($0, $1.json) })
        if format.json { array.append(row) } else { Output.line(row) }
      } else if tsv {
        Output.line(values.map(Self.tsv).joined(separator: "\t"))
      } else {
        rows.append(values.map { printable(plain($0.json)) })
      }
    }
    try goingAroundCorruption {
      try past.read(node) { try QueryRows.forEach(of: sql, in: $0, show) }
      if past.asOf == nil { try node.checkTablesAreWhole() }
    } thenAlways: {
      if format.json {
        Output.line(.array(array))
      } else if !format.ndjson, !rows.isEmpty {
        var table = TextTable(header.map { Output.styled(printable($0), .bold) })
        for row in rows { table.append(row) }
        table.write()
      }
      Output.flush()
    }
  }

  /// A value in the format that other programs read (PostgreSQL's COPY, MySQL's LOAD DATA).
  private static func tsv(_ value: Value) -> String {
    if value.isNull { return "\\N" }
    let text = plain(value.json)
    guard text.utf8.contains(where: { [9, 10, 13, 92].contains($0) }) else { return text }
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\t": escaped += "\\t"
      case "\n": escaped += "\\n"
      case "\r": escaped += "\\r"
      case "\\": escaped += "\\\\"
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}

struct Export: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write records in key order.",
    discussion: """
      Lines are {"model":…,"key":{…},"fields":{…}}; `import` reads them back.
      Examples:
        stemma export > all.ndjson
        stemma export Book --format csv
      """)
  enum Form: String, ExpressibleByArgument, CaseIterable {
    case ndjson, csv
  }

  @Argument(help: "Only these models.", completion: .modelNames) var models: [String] = []
  @Option(help: "ndjson or csv (one model).") var format: Form = .ndjson
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    let chosen = try models.map { try RecordWords(node, model: $0).model }
    switch format {
    case .ndjson: try node.export(chosen) { Output.bytes($0) }
    case .csv:
      guard chosen.count == 1, let model = chosen.first else {
        throw Failure(
          "CSV holds one model: name it, as in `stemma export \(node.schema.models.first?.name ?? "MODEL") --format csv`",
          .usage)
      }
      Output.bytes(CSV.line(model.fields.map(\.name)))
      try node.list(Listing(model.name)) { row in
        var values: [String: JSON] = [:]
        if case .object(let members) = row {
          for case (_, .object(let group)) in members { for (name, value) in group { values[name] = value } }
        }
        Output.bytes(CSV.line(model.fields.map { values[$0.name].flatMap { $0.isNull ? nil : plain($0) } }))
      }
    }
    Output.flush()
    try node.checkTablesAreWhole()
  }
}
