import ArgumentParser
import StemmaEvents
import StemmaMerge
import StemmaHistory
import StemmaNode
import StemmaSchema

/// The record that a command reads.
struct RecordArguments: ParsableArguments {
  @Argument(help: "The model.", completion: .modelNames) var model: String
  @Argument(help: "The key: a bare value, a JSON object, or part=value for each part.") var key: [String] = []

  private func words(_ node: Node) throws -> (model: Model, key: Key, rest: [String]) {
    let words = try RecordWords(node, model: model)
    let (json, rest) = try words.key(key)
    return (words.model, try node.key(json, of: words.model), Array(rest))
  }

  /// For commands without arguments after the key.
  func onlyKey(_ node: Node) throws -> (model: Model, key: Key) {
    let words = try RecordWords(node, model: model)
    return (words.model, try node.key(try words.onlyKey(key), of: words.model))
  }

  /// The history of the record, and the arguments after its key.
  func life(_ node: Node) throws -> (life: RecordLife, rest: [String]) {
    let (model, key, rest) = try words(node)
    return (try node.existingLife(of: key, in: model), rest)
  }

  func onlyLife(_ node: Node) throws -> RecordLife {
    let (model, key) = try onlyKey(node)
    return try node.existingLife(of: key, in: model)
  }
}

struct History: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "history",
    abstract: "Show the life of a record, newest first, with every branch.",
    discussion: """
      As with `log`, newest is what this node came to hold last: what it pulled stands above what it had.

      Examples:
        stemma history Book 978-0
        stemma history Visit site=berlin number=1 --graph
      """)
  @OptionGroup var record: RecordArguments
  @Flag(help: "Draw the branches.") var graph = false
  @Flag(help: "Oldest first.") var reverse = false
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if graph && reverse { throw ValidationError("--graph goes from new to old; leave --reverse out") }
  }

  func run() throws {
    let node = try options.open()
    let life = try record.onlyLife(node)
    let text = EventText(node)
    // As in `log`: the order of position in this node.
    var steps = try life.steps(node)
    if !reverse { steps.reverse() }
    if format.isJSON {
      let lines = steps.map { $0.json(text.description) }
      if format.json { Output.line(.array(lines)) } else { lines.forEach { Output.line($0) } }
    } else {
      write(steps, text)
    }
    Output.flush()
    if let missing = life.missing { throw NodeError.missing(missing) }
  }

  private func write(_ steps: [LifeStep], _ text: EventText) {
    Pager.begin()
    var drawing = BranchDrawing<EventID>()
    for step in steps {
      let changes = text.body(step.event, step.changes)
      let lines = [text.headline(step.noted)] + changes.map { "    " + $0 }
      guard graph else {
        lines.forEach { Output.line($0) }
        continue
      }
      let drawn = drawing.draw([step.event.id], parents: step.parents ?? [])
      if let before = drawn.before { Output.line(before) }
      Output.line(drawn.line + lines[0])
      if let after = drawn.after { Output.line(after) }
      for line in lines.dropFirst() { Output.line(drawing.beside + line) }
    }
  }
}

struct Blame: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "blame",
    abstract: "Show for each field of a record who wrote its value, and what stands against it.",
    discussion: """
      Examples:
        stemma blame Book 978-0
        stemma blame Visit site=berlin number=1 --authors
        stemma blame Book 978-0 --json | jq '.fields[] | select(.conflict)'
      """)
  @OptionGroup var record: RecordArguments
  @Flag(help: "Also the author, which requires a read of the log.") var authors = false
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    let (model, key) = try record.onlyKey(node)
    let life = authors ? try node.existingLife(of: key, in: model) : nil
    let decisions =
      try life.map { try node.decisions(about: $0) } ?? node.decisions(about: key, in: model)
    guard let decisions else {
      // The record may be among the lost events.
      try node.checkTablesAreWhole(for: (key, model))
      throw MutationError.notFound(model: model.name, key: KeyWords.text(key, of: model))
    }
    if format.isJSON {
      Output.line(
        .object([
          ("model", .string(model.name)), ("key", node.schema.json(of: key, model: model)),
          ("fields", .array(decisions.map(\.json))),
        ]))
    } else {
      write(decisions, model)
    }
    Output.flush()
    if let missing = life?.missing { throw NodeError.missing(missing) }
    try node.checkTablesAreWhole(for: (key, model))
  }

  private func write(_ decisions: [FieldDecision], _ model: Model) {
    var table = TextTable(
      ["field", "value", "version", "time", "event"] + (authors ? ["author"] : []), numeric: [2])
    for decision in decisions {
      // The existence of the record is obvious.
      if decision.field == nil && decision.shown == .bool(true) && !decision.isConflict { continue }
      for (index, candidate) in decision.candidates.enumerated() {
        // Timestamps that merge automatically are not a conflict.
        if index > 0 && (!decision.isConflict || candidate.value == decision.candidates[0].value) { continue }
        table.append(
          [
            printable(index == 0 ? decision.field ?? ExistenceName.name(in: model) : "  or"),
            EventText.short(index == 0 ? decision.shown : candidate.value), "\(candidate.version)",
            candidate.time, printable(candidate.event),
          ] + (authors ? [printable(candidate.author ?? "")] : []))
      }
    }
    table.write()
  }
}
