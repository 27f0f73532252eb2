import ArgumentParser
import StemmaEvents
import StemmaNode
import StemmaSchema

struct Why: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "why",
    abstract: "Explain in words why a record, or one field of it, is shown as it is.",
    discussion: """
      Behind the key may stand a field, or a relationship: its reference fields, and what `conflicts` lists of it.
      Examples:
        stemma why Visit site=berlin number=1 room
        stemma why Customer ada cart
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
    var conflicts = try self.conflicts(of: life, node)
    if let name = rest.first {
      let subject = try Subject(name, life.model, conflicts)
      conflicts.removeAll { $0.field.map { !subject.relationships.contains($0) } ?? true }
      // Of a record that is not there, its absence is all there is to explain.
      let isAbsent = decisions.count == 1
      decisions.removeAll { !isAbsent && !($0.field.map(subject.fields.contains) ?? false) }
      if decisions.isEmpty, conflicts.isEmpty, !format.isJSON {
        Output.line(
          "\(name) is stored in the records that refer to this one, and there is no conflict about it.")
      }
    } else if !format.isJSON, decisions.count > 1, let first = decisions.first, !first.isConflict {
      // That a record exists whose fields are explained goes without saying.
      decisions.removeFirst()
    }
    if format.isJSON {
      Output.line(RecordJSON.decisions(decisions, conflicts, life, node))
    } else {
      write(decisions.map { words(of: $0, life) } + conflicts.map(words))
    }
    Output.flush()
    if let missing = life.missing { throw NodeError.missing(missing) }
  }

  /// What a word behind the key means.
  private struct Subject {
    var fields: Set<String>
    var relationships: Set<String>

    init(_ name: String, _ model: Model, _ conflicts: [ConflictDescription]) throws {
      if let field = model.field(named: name) {
        fields = [field.name]
        relationships = Set(
          model.relationships.filter { $0.storesReference && $0.referenceFields.contains(field.name) }.map(
            \.name))
      } else if let relationship = model.relationship(named: name) {
        fields = relationship.storesReference ? Set(relationship.referenceFields) : []
        relationships = [name]
      } else if conflicts.contains(where: { $0.field == name }) {
        // A reference that only the other model declares.
        fields = []
        relationships = [name]
      } else {
        throw MutationError.unknownField(
          model: model.name, field: name,
          known: model.fields.map(\.name) + model.relationships.map(\.name))
      }
    }
  }

  /// The conflicts between this record and others.
  private func conflicts(of life: RecordLife, _ node: Node) throws -> [ConflictDescription] {
    var filter = ConflictFilter(model: life.model)
    filter.key = life.key
    filter.kinds = [.cardinality, .dangling]
    var found: [ConflictDescription] = []
    try node.conflicts(filter) { found.append($0) }
    return found
  }

  private func words(of decision: FieldDecision, _ life: RecordLife) -> [String] {
    guard decision.isConflict else { return decision.words }
    let key = KeyWords.text(life.key, of: life.model)
    let field = decision.field.map { " \($0) --take N`" } ?? " --keep` or --delete"
    return decision.words + [
      "It is an open conflict; decide with `stemma resolve \(life.model.name) \(key)\(field)."
    ]
  }

  private func words(of conflict: ConflictDescription) -> [String] {
    let field = conflict.field ?? ""
    let command = "`stemma resolve \(conflict.model) \(conflict.keyText) \(field)"
    guard let first = conflict.candidates.first else { return [] }
    let value = ConflictText.value(first, conflict)
    if conflict.kind == .dangling {
      return [
        "\(field) leads to \(value), which is not there.", "\(first.words) wrote it.",
        "Create that record, or decide with \(command) --set KEY`, --unlink or --delete.",
      ]
    }
    return [
      "\(field) is \(value).",
      "\(counted(conflict.candidates.count, "record")) refer to this one, where one may:",
    ]
      + conflict.candidates.map { "  \($0.number). \(ConflictText.value($0, conflict))  \($0.words)" }
      + [
        conflict.reason ?? "",
        "It is an open conflict; decide with \(command) --take N`: the others are unlinked.",
      ].filter { !$0.isEmpty }
  }

  private func write(_ paragraphs: [[String]]) {
    for (index, sentences) in paragraphs.enumerated() {
      if index > 0 { Output.line() }
      for (place, sentence) in sentences.enumerated() {
        Output.line(place == 0 ? Output.styled(sentence, .bold) : "  " + sentence)
      }
    }
  }
}
