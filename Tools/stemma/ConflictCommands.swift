import ArgumentParser
import StemmaEvents
import StemmaNode

struct Conflicts: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List what concurrent writes left open.",
    discussion: """
      Kinds: value (a field), delete (deleted and changed), cardinality (two where one may be), dangling (a
      reference to a record that is not there). The first candidate is the one that is shown.
      Examples:
        stemma conflicts
        stemma conflicts --check --model Book
      """)
  @Option(help: "Only this model.") var model: String?
  @Flag(help: "Exit with 1 if there is a value, delete or cardinality conflict; print nothing.") var check =
    false
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    let chosen = try model.map { try RecordWords(node, model: $0).model }
    if check {
      if try node.openConflicts(chosen) > 0 { throw ExitCode.no }
      return
    }
    var count = 0
    var array: [JSON] = []
    try node.conflicts(chosen) { conflict in
      count += 1
      if format.json {
        array.append(conflict.json)
      } else if format.ndjson {
        Output.line(conflict.json)
      } else {
        show(conflict)
      }
    }
    if format.json { Output.line(.array(array)) }
    if !format.isJSON { Output.line(count == 0 ? "no conflicts" : counted(count, "conflict")) }
    Output.flush()
  }

  private func show(_ conflict: ConflictDescription) {
    let field = conflict.field.map { " \($0)" } ?? ""
    Output.line(
      "\(Output.styled(conflict.kind.rawValue, .red)) \(Output.styled(conflict.model, .bold)) \(conflict.keyText)\(field)"
    )
    var table = TextTable(numeric: [0])
    for candidate in conflict.candidates {
      table.append([
        "\(candidate.number)", plain(candidate.value), candidate.event, candidate.time,
        candidate.by ?? "",
      ])
    }
    table.write(indent: "  ")
  }
}

struct Resolve: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "End a conflict by a write that has seen all candidates.",
    discussion: """
      Examples:
        stemma resolve Book 978-0 title --take 2
        stemma resolve Book 978-0 title --set 'The Title'
        stemma resolve --all --model Book --take newest
      """)
  @Argument(
    help: ArgumentHelp(
      "The model, the key, and the field if there are several.", valueName: "model key field"))
  var words: [String] = []
  @Option(
    help: ArgumentHelp("A candidate's number or event; with --all: shown or newest.", valueName: "n|event"))
  var take: String?
  @Option(help: ArgumentHelp("Write this value.", valueName: "value")) var set: String?
  @Flag(help: "The record stays, although it was deleted elsewhere.") var keep = false
  @Flag(help: "The record goes, although it was changed elsewhere.") var delete = false
  @Flag(help: "Every value and delete conflict.") var all = false
  @Option(help: "With --all: only this model.") var model: String?
  @OptionGroup var note: NoteOptions
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    let ways = [take != nil, set != nil, keep, delete].count { $0 }
    if ways != 1 { throw ValidationError("say how: one of --take, --set, --keep and --delete") }
    if all {
      if !words.isEmpty { throw ValidationError("--all names no record; --model narrows it") }
      if take != "shown" && take != "newest" {
        throw ValidationError("--all goes with --take shown or --take newest")
      }
    } else if words.count < 2 {
      throw ValidationError("which record? MODEL KEY [FIELD]; or --all")
    }
  }

  func run() throws {
    let node = try options.openForWriting()
    let count: Int
    if all {
      let chosen = try model.map { try RecordWords(node, model: $0).model }
      count = try node.resolveAll(chosen, take == "newest" ? .newest : .shown, note.note)
    } else {
      let reader = try RecordWords(node, model: words[0])
      let (key, rest) = try reader.key(Array(words.dropFirst()))
      guard rest.count <= 1 else { throw Failure("`\(rest.last ?? "")` is more than one field", .usage) }
      let field = rest.first
      if let field, reader.model.field(named: field) == nil, reader.model.relationship(named: field) == nil {
        throw MutationError.unknownField(
          model: reader.model.name, field: field,
          known: reader.model.fields.map(\.name) + reader.model.relationships.map(\.name))
      }
      try node.resolve(reader.model, key, field: field, try resolution(node, reader, field), note.note)
      count = 1
    }
    if format.isJSON {
      Output.line(.object([("resolved", .int(Int64(count)))]))
    } else {
      Output.line("resolved \(counted(count, "conflict"))")
    }
    Output.flush()
  }

  private func resolution(_ node: Node, _ reader: RecordWords, _ field: String?) throws -> Resolution {
    if keep { return .keep }
    if delete { return .delete }
    if let set {
      guard let field else { throw Failure("--set needs the field after the key", .usage) }
      if let declared = reader.model.field(named: field) { return .set(try reader.value(set, of: declared)) }
      let pair = try reader.fields(["\(field)=\(set)"])
      return .set(pair[0].value)
    }
    let take = take ?? ""
    if let number = Int(take) { return .take(number) }
    if take == "shown" { return .shown }
    if take == "newest" { return .newest }
    let dots = node.description.dots(named: take)
    guard let dot = dots.first else {
      throw Failure(
        "`\(take)` is neither a candidate's number nor an event such as \(node.mark.name):5", .usage)
    }
    return .takeEvent(dot)
  }
}
