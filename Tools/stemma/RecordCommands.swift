import ArgumentParser
import StemmaEvents
import StemmaMerge
import StemmaNode
import StemmaSchema

/// A record that a command looks at.
struct RecordArguments: ParsableArguments {
  @Argument(help: "The model.", completion: .modelNames) var model: String
  @Argument(help: "The key: a bare value, a JSON object, or part=value for each part.") var key: [String] = []

  private func words(_ node: Node) throws -> (model: Model, key: Key, rest: [String]) {
    let words = try RecordWords(node, model: model)
    let (json, rest) = try words.key(key)
    return (words.model, try node.key(json, of: words.model), Array(rest))
  }

  /// For commands that take nothing behind the key.
  func onlyKey(_ node: Node) throws -> (model: Model, key: Key) {
    let (model, key, rest) = try words(node)
    if let word = rest.first { throw Failure("`\(word)` is more than the key", .usage) }
    return (model, key)
  }

  /// The life of the record, and the words that follow its key.
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
    let history = life.history
    let text = EventText(node)
    // The steps are those of the history, in its order.
    var steps: [(index: Int, noted: NotedEvent, changes: [ChangeDescription])] = []
    try node.forEachStep(of: life) { noted, changes in steps.append((steps.count, noted, changes)) }
    if !reverse { steps.reverse() }
    if format.isJSON {
      let lines = steps.map { step in
        json(step.noted, step.changes, parents: history.parents(of: step.index), life, text.description)
      }
      if format.json { Output.line(.array(lines)) } else { lines.forEach { Output.line($0) } }
      Output.flush()
      return
    }
    Pager.begin()
    var drawing = BranchDrawing<Dot>()
    for (index, noted, changes) in steps {
      let event = noted.event
      let lines = [text.headline(noted)] + changes.map { "    " + EventText.text(of: $0) }
      guard graph else {
        lines.forEach { Output.line($0) }
        continue
      }
      let drawn = drawing.draw(event.dot, parents: history.parents(of: index).map { history.events[$0].dot })
      if let before = drawn.before { Output.line(before) }
      Output.line(drawn.line + lines[0])
      if let after = drawn.after { Output.line(after) }
      for line in lines.dropFirst() { Output.line(drawing.beside + line) }
    }
    Output.flush()
  }

  private func json(
    _ noted: NotedEvent, _ changes: [ChangeDescription], parents: [Int], _ life: RecordLife,
    _ description: EventDescription
  ) -> JSON {
    guard case .object(let members) = description.json(noted.stored, noted.note) else { return .null }
    let parents = parents.map {
      JSON.string(description.name(life.history.events[$0].dot))
    }
    return .object(
      members + [("changes", .array(changes.map(\.json))), ("parents", .array(parents))])
  }
}

struct Blame: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "blame",
    abstract: "Show for each field of a record who wrote its value, and what stands against it.",
    discussion: """
      Examples:
        stemma blame Book 978-0
        stemma blame Visit site=berlin number=1 --by
        stemma blame Visit site=berlin number=1 --json | jq '.fields[] | select(.conflict)'
      """)
  @OptionGroup var record: RecordArguments
  @Flag(help: "Also who made the commit, which only the log knows.") var by = false
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    let (model, key) = try record.onlyKey(node)
    let decisions =
      by
      ? try node.decisions(about: try node.existingLife(of: key, in: model))
      : try node.decisions(about: key, in: model)
    guard let decisions else {
      throw MutationError.notFound(model: model.name, key: KeyWords.text(key, of: model))
    }
    if format.isJSON {
      Output.line(RecordJSON.decisions(decisions, model, key, node))
    } else {
      write(decisions)
    }
    Output.flush()
  }

  private func write(_ decisions: [FieldDecision]) {
    var table = TextTable(
      ["field", "value", "version", "time", "event"] + (by ? ["by"] : []), numeric: [2])
    for decision in decisions {
      // That the record exists goes without saying.
      if decision.field == nil && decision.shown == .bool(true) && !decision.isConflict { continue }
      for (index, candidate) in decision.candidates.enumerated() {
        if index > 0 && candidate.value == decision.candidates[0].value { continue }
        table.append(
          [
            index == 0 ? decision.field ?? "(exists)" : "  or",
            EventText.short(index == 0 ? decision.shown : candidate.value), "\(candidate.version)",
            candidate.time, candidate.event,
          ] + (by ? [candidate.by ?? ""] : []))
      }
    }
    table.write()
  }
}

struct Why: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "why",
    abstract: "Explain in words why a record, or one field of it, is shown as it is.",
    discussion: """
      Examples:
        stemma why Visit site=berlin number=1 room
        stemma why Book 978-0 --json
      """)
  @OptionGroup var record: RecordArguments
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try options.open()
    let (life, rest) = try record.life(node)
    guard rest.count < 2 else { throw Failure("`\(rest[1])` is more than a field", .usage) }
    var decisions = try node.decisions(about: life)
    if let name = rest.first {
      guard let field = life.model.field(named: name) else {
        throw MutationError.unknownField(
          model: life.model.name, field: name, known: life.model.fields.map(\.name))
      }
      // Of a record that is not there, its absence is all there is to explain.
      decisions =
        decisions.contains { $0.field == field.name }
        ? decisions.filter { $0.field == field.name } : decisions
    } else if !format.isJSON, decisions.count > 1, let first = decisions.first, !first.isConflict {
      // That a record exists whose fields are explained goes without saying.
      decisions.removeFirst()
    }
    if format.isJSON {
      Output.line(RecordJSON.decisions(decisions, life.model, life.key, node))
    } else {
      write(decisions, life, node)
    }
    Output.flush()
  }

  private func write(_ decisions: [FieldDecision], _ life: RecordLife, _ node: Node) {
    let key = KeyWords.text(life.key, of: life.model)
    for (index, decision) in decisions.enumerated() {
      if index > 0 { Output.line() }
      for (place, sentence) in decision.words.enumerated() {
        Output.line(place == 0 ? Output.styled(sentence, .bold) : "  " + sentence)
      }
      if decision.isConflict {
        let field = decision.field.map { " \($0)" } ?? ""
        Output.line(
          "  It is an open conflict; decide with `stemma resolve \(life.model.name) \(key)\(field) --take N`."
        )
      }
    }
  }
}

/// What several commands print of a record.
enum RecordJSON {
  static func decisions(_ decisions: [FieldDecision], _ model: Model, _ key: Key, _ node: Node) -> JSON {
    .object([
      ("model", .string(model.name)), ("key", node.schema.json(of: key, model: model)),
      ("fields", .array(decisions.map(\.json))),
    ])
  }
}
