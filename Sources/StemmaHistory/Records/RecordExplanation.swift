import StemmaEvents
import StemmaNode
import StemmaSchema

/// Why a record is shown as it is: the decision on each field, and the conflicts beyond one field.
package struct RecordExplanation: Sendable {
  package let model: Model
  package let key: Key
  package var decisions: [FieldDecision]
  /// Conflicts of the whole record, or between it and others.
  package var conflicts: [ConflictDescription]
  /// All open conflicts of the record.
  package let open: [ConflictDescription]

  package init(_ life: RecordLife, in node: Node) throws(NodeError) {
    (model, key) = (life.model, life.key)
    decisions = try node.decisions(about: life)
    open = try node.conflicts(of: life.key, in: life.model)
    conflicts = open.filter { $0.isOfWholeRecord || $0.kind == .cardinality || $0.kind == .dangling }
  }

  /// The form of `why --json`.
  package func json(_ schema: Schema) -> JSON {
    .object([
      ("model", .string(model.name)), ("key", schema.json(of: key, model: model)),
      ("fields", .array(decisions.map { $0.json.adding([("words", Self.json($0.words))]) })),
      ("conflicts", .array(conflicts.map { $0.json.adding([("words", Self.json($0.words))]) })),
    ])
  }

  private static func json(_ words: [String]) -> JSON { .array(words.map { .string($0) }) }
}

extension ConflictDescription {
  /// The conflict in sentences, without the ways to resolve it.
  package var words: [String] {
    guard let first = candidates.first else { return [] }
    let field = field ?? ""
    let listed = candidates.map { "  \($0.number). \(printable(text(of: $0)))  \($0.words)" }
    let value = printable(text(of: first))
    let reason = reason.map { [$0] } ?? []
    switch kind {
    case .dangling: return ["\(field) leads to \(value), which is not there.", "\(first.words) wrote it."]
    case .cardinality:
      return [
        "\(field) is \(value).",
        "\(counted(UInt64(candidates.count), "record")) refer to this one, where one may:",
      ] + listed + reason
    case .value, .delete:
      let subject = isOfWholeRecord ? "The record" : field.isEmpty ? "Its existence" : field
      return [
        "\(subject) is \(value).", "\(candidates.count) writes had not seen each other:",
      ] + listed + reason
    }
  }

  /// The value of a candidate as a person reads it.
  package func text(of candidate: Candidate) -> String {
    if kind == .delete { return candidate.value == .bool(true) ? "exists" : "deleted" }
    if let record { return "\(record) \(candidate.value.keyWords)" }
    return candidate.value.plainText
  }
}
