import ArgumentParser
import StemmaEvents
import StemmaHistory
import StemmaNode
import StemmaSchema

struct Why: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "why",
    abstract: "Explain in words why a record, or one field of it, is shown as it is.",
    discussion: """
      Behind the key may stand a field, a relationship (its reference fields, and what `conflicts` lists of it), or \
      `existence`: whether the record exists. A record that is written as a whole (policy OPTIMISTIC) is explained as one.
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
    var explanation = try RecordExplanation(life, in: node)
    let open = explanation.open
    if let name = rest.first {
      let subject = try Subject(name, life.model, explanation.conflicts)
      // For an absent record, only its absence is explained.
      let isAbsent = explanation.decisions.count == 1
      explanation.decisions.removeAll {
        !isAbsent && !($0.field.map(subject.fields.contains) ?? subject.isExistence)
      }
      let isOfField = explanation.decisions.contains { $0.isConflict && $0.field != nil }
      explanation.conflicts.removeAll { conflict in
        conflict.field.map { !subject.relationships.contains($0) } ?? !isOfField
      }
      if explanation.decisions.isEmpty, explanation.conflicts.isEmpty, !format.isJSON {
        Output.line(
          "\(name) is stored in the records that refer to this one, and there is no conflict about it.")
      }
    } else if !format.isJSON, explanation.decisions.count > 1, let first = explanation.decisions.first,
      !first.isConflict
    {
      // The existence of a record with explained fields is obvious.
      explanation.decisions.removeFirst()
    }
    if format.isJSON {
      Output.line(explanation.json(node.schema))
    } else {
      if rest.isEmpty, explanation.conflicts.contains(where: \.isOfWholeRecord) {
        // The fields have no separate decisions, except timestamps, which merge.
        explanation.decisions.removeAll { $0.field != nil && $0.candidates.count > 1 && !$0.rule.mergesTimes }
      } else {
        explanation.conflicts.removeAll(where: \.isOfWholeRecord)
      }
      write(
        explanation.decisions.map { words(of: $0, open) } + explanation.conflicts.map { words(of: $0, open) })
    }
    Output.flush()
    if let missing = life.missing { throw NodeError.missing(missing) }
  }

  /// The subject of the word after the key.
  private struct Subject {
    var fields: Set<String> = []
    var relationships: Set<String> = []
    var isExistence = false

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
        relationships = [name]
      } else if ExistenceName.matches(name, in: model) {
        isExistence = true
      } else {
        throw FieldChoice.unknown(name, [model], model, .badData)
      }
    }
  }

  /// `open`: all conflicts of the record.
  private func words(of decision: FieldDecision, _ open: [ConflictDescription]) -> [String] {
    let listed = open.first { conflict in
      decision.field.map(conflict.fields.contains) ?? (conflict.kind == .delete)
    }
    guard decision.isConflict, let listed else { return decision.words }
    let what = listed.isOfWholeRecord ? "a part of an open conflict of the whole record" : "an open conflict"
    let way = listed.kind == .delete ? " --keep` or --delete" : " --take N`"
    return decision.words + [
      "It is \(what); decide with `\(ConflictText.command(listed, beside: open))\(way)."
    ]
  }

  private func words(of conflict: ConflictDescription, _ open: [ConflictDescription]) -> [String] {
    let command = "`\(ConflictText.command(conflict, beside: open))"
    let way =
      switch conflict.kind {
      case .dangling: "Create that record, or decide with \(command) --set KEY`, --unlink or --delete."
      case .cardinality: "It is an open conflict; decide with \(command) --take N`: the others are unlinked."
      case .value, .delete:
        "It is an open conflict of the whole record; decide with \(command) --take N`."
      }
    return conflict.words + [way]
  }

  private func write(_ paragraphs: [[String]]) {
    for (index, sentences) in paragraphs.enumerated() {
      if index > 0 { Output.line() }
      for (place, sentence) in sentences.map({ printable($0) }).enumerated() {
        Output.line(place == 0 ? Output.styled(sentence, .bold) : "  " + sentence)
      }
    }
  }
}
