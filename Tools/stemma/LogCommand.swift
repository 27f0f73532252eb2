import ArgumentParser
import StemmaEvents
import StemmaNode

struct LogCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log",
    abstract: "Show events, newest first.",
    discussion: """
      Examples:
        stemma log -n 5 --model Book
        stemma log --reverse --ndjson --partition 'tenantId=ac*' | jq .event
      """)
  @Option(name: .short, help: ArgumentHelp("Stop after this many events.", valueName: "count"))
  var n: Int?
  @Flag(help: "Oldest first.") var reverse = false
  @Option(help: "Only this model.") var model: String?
  @Option(
    parsing: .singleValue,
    help: "Only this record: a bare value, a JSON object, or part=value, once for each part.")
  var key: [String] = []
  @Option(
    parsing: .singleValue, help: ArgumentHelp("Only these partitions; may be repeated.", valueName: "pattern")
  )
  var partition: [String] = []
  @Option(help: ArgumentHelp("Only events that this node wrote.", valueName: "name")) var origin: String?
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("create, update, delete, link, unlink or resolve; may be repeated.", valueName: "op"))
  var op: [String] = []
  @Option(help: "Only events that write this field.") var field: String?
  @Flag(help: "One line for each event.") var oneline = false
  @Flag(help: "Events as mutations that `import` reads.") var mutations = false
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if let n, n < 0 { throw ValidationError("-n takes a number of events") }
    if !key.isEmpty && model == nil { throw ValidationError("--key needs --model") }
  }

  func run() throws {
    let node = try options.open()
    let description = node.description
    var filter = LogFilter()
    if let model {
      let words = try RecordWords(node, model: model)
      filter.model = words.model.storedName
      if !key.isEmpty { filter.key = try node.key(try words.key(key).key, of: words.model) }
      if let field { filter.field = words.model.field(named: field)?.storedName ?? field }
    } else {
      filter.field = field
    }
    if !partition.isEmpty { filter.scope = try node.scope(partition) }
    if let origin {
      let named = node.mark.origins(named: origin)
      guard !named.isEmpty else { throw Failure("no node named `\(origin)` has written here", .noInput) }
      filter.origins = Set(named)
    }
    if !op.isEmpty {
      filter.operations = Set(
        try op.map { name in
          guard let operation = Operation.allCases.first(where: { $0.name == name }) else {
            throw Failure(
              "`\(name)` is no operation; there are \(Operation.allCases.map(\.name).joined(separator: ", "))",
              .usage)
          }
          return operation
        })
    }

    var shown = 0
    var array: [JSON] = []
    if n != 0 {
      try node.forEachEvent(filter, newestFirst: !reverse) { stored, note in
        if mutations {
          Output.line(description.mutation(stored.event))
        } else if format.json {
          array.append(description.json(stored, note))
        } else if format.ndjson {
          Output.line(description.json(stored, note))
        } else if oneline {
          Output.line(summary(stored, description))
        } else {
          if shown > 0 { Output.line() }
          show(stored, note, description)
        }
        shown += 1
        return n.map { shown < $0 } ?? true
      }
    }
    if format.json { Output.line(.array(array)) }
    Output.flush()
  }

  private func summary(_ stored: StoredEvent, _ description: EventDescription) -> String {
    let event = stored.event
    let fields = event.assignments.map { "\($0.field)=\(Self.short($0.value))" }.joined(separator: " ")
    return [
      Output.styled(String(event.digest.description.prefix(8)), .yellow),
      description.time(event.timestamp),
      description.name(event.dot),
      Output.styled(event.operation.name, .cyan),
      "\(description.modelName(event))[\(description.keyText(event))]",
      event.relationship ?? "", fields,
    ].filter { !$0.isEmpty }.joined(separator: " ")
  }

  private func show(_ stored: StoredEvent, _ note: CommitNote, _ description: EventDescription) {
    let event = stored.event
    Output.line(
      Output.styled("event \(description.name(event.dot))", .yellow)
        + " in \(event.partition)  \(Output.styled(String(event.digest.description.prefix(8)), .dim))")
    Output.line("Date:   \(description.time(event.timestamp))")
    if let by = note.by { Output.line("By:     \(by)") }
    if let source = note.source { Output.line("Source: \(source)") }
    Output.line(
      "Record: \(description.modelName(event)) \(description.keyText(event))  version \(event.version)"
        + (event.context.isEmpty ? "" : " after \(contextText(event.context, description))"))
    if let cause = event.cause {
      Output.line("Cause:  \(description.name(cause.dot)) in \(cause.partition)")
    }
    if let text = note.note {
      Output.line()
      for line in text.split(separator: "\n", omittingEmptySubsequences: false) { Output.line("    \(line)") }
    }
    Output.line()
    let relationship = event.relationship.map { " \($0)" } ?? ""
    Output.line("    " + Output.styled(event.operation.name, .cyan) + relationship)
    let model = description.model(of: event)
    for assignment in event.assignments {
      Output.line("      \(description.fieldName(assignment.field, model)) = \(Self.short(assignment.value))")
    }
  }

  private func contextText(_ context: Context, _ description: EventDescription) -> String {
    context.entries.map { description.name(Dot($0.origin, $0.sequence)) }.joined(separator: ", ")
  }

  /// A value on one line, cut where it is long.
  static func short(_ value: Value) -> String {
    let text = value.json.canonicalText
    return text.count > 100 ? text.prefix(99) + "…" : text
  }
}
