import ArgumentParser
import StemmaEvents
import StemmaHistory
import StemmaNode

/// The options that select conflicts.
struct ConflictOptions: ParsableArguments {
  @Option(help: "Only this model.", completion: .modelNames) var model: String?
  @Option(
    parsing: .singleValue,
    help: "Only this record: a bare value, a JSON object, or part=value, once for each part.")
  var key: [String] = []
  @Option(
    parsing: .singleValue,
    help:
      "Only this field or relationship, or `existence` (`_exists` beside a field of that name): whether the record exists; may be repeated. With `show` instead of a field behind the key.",
    completion: .fieldNames)
  var field: [String] = []
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("value, delete, cardinality or dangling; may be repeated.", valueName: "kind"),
    completion: .list(ConflictFilter.Kind.allCases.map(\.rawValue)))
  var kind: [String] = []

  func validate() throws {
    if !key.isEmpty && model == nil { throw ValidationError("--key needs --model") }
    try kind.forEach(Self.check)
  }

  static func check(_ kind: String) throws {
    guard ConflictFilter.Kind(rawValue: kind) == nil else { return }
    let known = ConflictFilter.Kind.allCases.map(\.rawValue).joined(separator: ", ")
    throw ValidationError("`\(kind)` is no kind of conflict; there are \(known)")
  }

  func filter(_ node: Node) throws -> ConflictFilter {
    var filter = ConflictFilter()
    if !kind.isEmpty { filter.kinds = Set(kind.compactMap { ConflictFilter.Kind(rawValue: $0) }) }
    filter.fields = Set(field)
    if let model {
      let words = try RecordWords(node, model: model)
      filter.model = words.model
      if !key.isEmpty { filter.key = try node.key(try words.onlyKey(key), of: words.model) }
    }
    for field in field where !ExistenceName.matches(field, in: filter.model) {
      let models = filter.model.map { [$0] } ?? node.schema.models
      try FieldChoice.refuseKeyPart(field, models, "which is never in conflict; --key selects by it")
      let owners = try models.filter { try RecordWords(node, model: $0.name).isKnown(field) }
      if owners.isEmpty { throw FieldChoice.unknown(field, models, filter.model, .badData) }
      // A to-many relationship has no cardinality conflict, and the other side stores it.
      let isToMany = owners.allSatisfy {
        $0.relationship(named: field).map { $0.kind == .hasMany || $0.kind == .manyToMany } ?? false
      }
      if isToMany {
        try FieldChoice.refuseStoredElsewhere(field, node.schema, owners) { $0.relationship.name }
      }
    }
    return filter
  }
}

struct Conflicts: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "conflicts",
    abstract: "List what concurrent writes left open.",
    discussion: """
      Kinds: value (a field), delete (deleted and changed), cardinality (two where one may be), dangling (a \
      reference to a record that is not there). The first candidate is the one that is shown. `show` puts the \
      candidates of one record side by side and says how to decide.
      Examples:
        stemma conflicts --model Book --kind value
        stemma conflicts show Book 978-0 title
        stemma conflicts --check || echo 'somebody has to decide'
      """)
  @Argument(
    help: ArgumentHelp(
      "`show`, a model, a key, and a field if there are several.", valueName: "show model key"))
  var words: [String] = []
  @OptionGroup var conflicts: ConflictOptions
  @Flag(
    help: ArgumentHelp(
      "Exit with 1 if there is a value, delete or cardinality conflict; print nothing, or with --json how many there are."
    ))
  var check = false
  @Flag(help: "Only how many there are of each model and kind.") var count = false
  @Flag(help: "Long values whole.") var full = false
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    guard let first = words.first else { return }
    if first != "show" {
      throw ValidationError("did you mean `stemma conflicts show \(words.joined(separator: " "))`?")
    }
    if words.count < 3 { throw ValidationError("which record? stemma conflicts show MODEL KEY [FIELD]") }
    if check || count { throw ValidationError("`show` does not go with --check and --count") }
    if conflicts.model != nil {
      throw ValidationError("`show` names its record; leave --model and --key out")
    }
  }

  func run() throws {
    let node = try options.open()
    var filter = try conflicts.filter(node)
    if !words.isEmpty {
      let named = try ConflictText.filter(node, words.dropFirst())
      if !named.fields.isEmpty, !conflicts.field.isEmpty {
        throw Failure("name the fields once: behind the key, or with --field", .usage)
      }
      (filter.model, filter.key) = (named.model, named.key)
      filter.fields.formUnion(named.fields)
    }
    if check {
      // Dangling references are excluded: their records may still arrive.
      if conflicts.kind.isEmpty { filter.kinds.remove(.dangling) }
      var open = 0
      try node.openConflicts(filter) { _ in open += 1 }
      if format.isJSON {
        Output.line(.object([("conflicts", .int(Int64(open)))]))
        Output.flush()
      }
      if open > 0 { throw ExitCode.no }
      return try node.checkTablesAreWhole()
    }
    if count {
      try writeCounts(node, filter)
      return try node.checkTablesAreWhole()
    }
    if words.isEmpty { Pager.begin() }
    var array: [JSON] = []
    var ofRecord: [ConflictDescription] = []
    var tally = ConflictTally()
    let text = ConflictText(node, isFull: full)
    try node.conflicts(filter) { conflict in
      if format.json {
        array.append(conflict.json)
      } else if format.ndjson {
        Output.line(conflict.json)
      } else if !words.isEmpty {
        ofRecord.append(conflict)
      } else {
        if conflict.model != tally.lastModel { Output.line(Output.styled(conflict.model, .bold)) }
        text.write(conflict)
      }
      tally.add(conflict.model, conflict.kind)
    }
    if format.json { Output.line(.array(array)) }
    if !ofRecord.isEmpty, let model = filter.model, let key = filter.key {
      // The meaning of a command depends on all open conflicts, not only the selected ones.
      let open = try node.conflicts(of: key, in: model)
      for conflict in ofRecord {
        text.writeSideBySide(conflict)
        text.writeAdvice(conflict, beside: open)
      }
    }
    if !words.isEmpty, tally.total == 0 {
      Output.flush()
      try node.checkTablesAreWhole()
      throw try nothing(filter, node)
    }
    if !format.isJSON, words.isEmpty {
      Output.line(tally.words)
    }
    Output.flush()
    try node.checkTablesAreWhole()
  }

  /// The error for a record without a selected conflict. It lists the conflicts that the record
  /// has.
  private func nothing(_ filter: ConflictFilter, _ node: Node) throws -> Failure {
    var open: [ConflictDescription] = []
    if let model = filter.model, let key = filter.key { open = try node.conflicts(of: key, in: model) }
    guard let first = open.first else {
      return Failure("\(words.dropFirst().joined(separator: " ")) is not in conflict", .noInput)
    }
    let kinds = conflicts.kind.isEmpty ? "" : " of the kind \(conflicts.kind.joined(separator: " or "))"
    let fields = filter.fields.isEmpty ? "" : " about \(filter.fields.sorted().joined(separator: " or "))"
    let known = open.map { $0.kind.rawValue + ($0.field.map { " (\($0))" } ?? "") }
    return Failure(
      "\(first.model) \(first.keyText) has no conflict\(kinds)\(fields); it has \(known.joined(separator: ", "))",
      .noInput)
  }

  private func writeCounts(_ node: Node, _ filter: ConflictFilter) throws {
    var tally = ConflictTally()
    try node.openConflicts(filter) { tally.add($0.model, $0.kind) }
    let kinds = ConflictFilter.Kind.allCases
    if format.isJSON {
      if format.json { Output.line(.array(tally.rows)) } else { for row in tally.rows { Output.line(row) } }
    } else {
      var table = TextTable(
        ["model"] + kinds.map(\.rawValue), numeric: Set(1...kinds.count))
      for model in tally.models {
        table.append([model] + kinds.map { grouped(UInt64(tally.count(model, $0))) })
      }
      if tally.total > 0 { table.write() }
      Output.line(tally.words)
    }
    Output.flush()
  }
}
