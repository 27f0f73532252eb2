import StemmaEvents
import StemmaNode

/// How events look to people.
struct EventText {
  let description: EventDescription

  init(_ description: EventDescription) { self.description = description }

  init(_ node: Node) { self.init(node.description) }

  /// One line: position, time, name, operation, record, values.
  func summary(_ stored: StoredEvent) -> String {
    let event = stored.event
    return [
      Output.styled("@\(stored.position)", .yellow), description.time(event.timestamp),
      description.name(event.dot), Output.styled(event.operation.name, .cyan), record(event),
      event.relationship ?? "",
      event.assignments.map { "\(fieldName($0, event))=\(Self.short($0.value.json))" }.joined(separator: " "),
    ].filter { !$0.isEmpty }.joined(separator: " ")
  }

  /// The first line of a step in a record's history.
  func headline(_ noted: NotedEvent) -> String {
    let event = noted.event
    return [
      Output.styled(description.name(event.dot), .yellow), description.time(event.timestamp),
      Output.styled(event.operation.name, .cyan), event.relationship ?? "", "version \(event.version)",
      noted.note.by.map { "by \($0)" } ?? "",
      noted.note.note.map { "(" + ($0.split(separator: "\n").first.map(String.init) ?? "") + ")" } ?? "",
    ].filter { !$0.isEmpty }.joined(separator: "  ")
  }

  func record(_ event: Event) -> String { "\(description.modelName(event))[\(description.keyText(event))]" }

  private func fieldName(_ assignment: Assignment, _ event: Event) -> String {
    description.fieldName(assignment.field, description.model(of: event))
  }

  /// Everything that stands in the event, with what it changed if that is given.
  func lines(_ stored: StoredEvent, _ note: CommitNote, changes: [ChangeDescription]? = nil) -> [String] {
    let event = stored.event
    var lines = [
      Output.styled("event \(description.name(event.dot))", .yellow) + " in \(event.partition)  "
        + Output.styled("@\(stored.position)  \(event.digest.description.prefix(8))", .dim)
    ]
    lines.append("Date:   \(description.time(event.timestamp))")
    lines.append(
      "Commit: \(description.name(event.commit))" + (note.by.map { "  by \($0)" } ?? "")
        + (note.source.map { "  from \($0)" } ?? ""))
    lines.append(
      "Record: \(description.modelName(event)) \(description.keyText(event))  version \(event.version)"
        + (event.context.isEmpty ? "" : " after \(context(event.context))"))
    if let cause = event.cause {
      lines.append("Cause:  \(description.name(cause.dot)) in \(cause.partition)")
    }
    if let text = note.note {
      lines.append("")
      lines += text.split(separator: "\n", omittingEmptySubsequences: false).map { "    \($0)" }
    }
    lines.append("")
    lines.append(
      "    " + Output.styled(event.operation.name, .cyan) + (event.relationship.map { " \($0)" } ?? ""))
    if let changes {
      lines += changes.map { "      " + Self.text(of: $0) }
    } else {
      lines += assignments(event).map { "      " + $0 }
    }
    return lines
  }

  /// What an event wrote, of which cannot be told what it changed.
  func assignments(_ event: Event) -> [String] {
    event.assignments.map { "\(fieldName($0, event)) = \(Self.short($0.value.json))" }
  }

  private func context(_ context: Context) -> String {
    context.entries.map { description.name(Dot($0.origin, $0.sequence)) }.joined(separator: ", ")
  }

  /// `field: old → new`; a side that is null is left out.
  static func text(of change: ChangeDescription) -> String {
    switch (change.from.isNull, change.to.isNull) {
    case (true, _): "\(change.field): " + Output.styled(short(change.to), .green)
    case (false, true): "\(change.field): " + Output.styled(short(change.from), .red) + " → nothing"
    case (false, false):
      "\(change.field): " + Output.styled(short(change.from), .red) + " → "
        + Output.styled(short(change.to), .green)
    }
  }

  /// Characters of a value that are shown on one line.
  static let width = 100

  /// A value on one line, cut where it is long.
  static func short(_ value: JSON) -> String {
    let text = value.canonicalText
    return text.utf8.count > width && text.count > width ? text.prefix(width - 1) + "…" : text
  }
}
