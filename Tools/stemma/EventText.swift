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
      printable(description.name(event.dot)), Output.styled(event.operation.name, .cyan), record(event),
      printable(event.relationship ?? ""),
      event.assignments.map { "\(fieldName($0, event))=\(Self.short($0.value.json))" }.joined(separator: " "),
    ].filter { !$0.isEmpty }.joined(separator: " ")
  }

  /// The first line of a step in a record's history.
  func headline(_ noted: NotedEvent) -> String {
    let event = noted.event
    let remark = noted.note.note.map { Self.lines(ofNote: $0).first { !$0.isEmpty } ?? "" }
    return [
      Output.styled(printable(description.name(event.dot)), .yellow), description.time(event.timestamp),
      Output.styled(event.operation.name, .cyan), printable(event.relationship ?? ""),
      "version \(event.version)", noted.note.by.map { "by \(printable($0))" } ?? "",
      remark.map { "(\($0))" } ?? "",
    ].filter { !$0.isEmpty }.joined(separator: "  ")
  }

  func record(_ event: Event) -> String {
    "\(printable(description.modelName(event)))[\(description.keyText(event))]"
  }

  private func fieldName(_ assignment: Assignment, _ event: Event) -> String {
    printable(description.fieldName(assignment.field, description.model(of: event)))
  }

  /// Everything that stands in the event, with what it changed if that is given.
  func lines(_ stored: StoredEvent, _ note: CommitNote, changes: [ChangeDescription]? = nil) -> [String] {
    let event = stored.event
    var lines = [
      Output.styled("event \(printable(description.name(event.dot)))", .yellow)
        + " in \(printable(event.partition.description))  "
        + Output.styled("@\(stored.position)  \(event.digest.description.prefix(8))", .dim)
    ]
    lines.append("Date:   \(description.time(event.timestamp))")
    lines.append(
      printable(
        "Commit: \(description.name(event.commit))" + (note.by.map { "  by \($0)" } ?? "")
          + (note.source.map { "  from \($0)" } ?? "")))
    lines.append(
      printable(
        "Record: \(description.modelName(event)) \(description.keyText(event))  version \(event.version)"
          + (event.context.isEmpty ? "" : " after \(context(event.context))")))
    if let cause = event.cause {
      lines.append(printable("Cause:  \(description.name(cause.dot)) in \(cause.partition)"))
    }
    if let text = note.note {
      lines.append("")
      lines += Self.lines(ofNote: text).map { "    " + $0 }
    }
    lines.append("")
    lines.append(
      "    " + Output.styled(event.operation.name, .cyan)
        + printable(event.relationship.map { " \($0)" } ?? ""))
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
    let field = printable(change.field)
    return switch (change.from.isNull, change.to.isNull) {
    case (true, _): "\(field): " + Output.styled(short(change.to), .green)
    case (false, true): "\(field): " + Output.styled(short(change.from), .red) + " → nothing"
    case (false, false):
      "\(field): " + Output.styled(short(change.from), .red) + " → "
        + Output.styled(short(change.to), .green)
    }
  }

  /// The lines of a note, none of which holds what a terminal obeys. A Character may be CR and LF together.
  static func lines(ofNote text: String) -> [String] {
    text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }.map { printable(String($0)) }
  }

  /// Characters of a value that are shown on one line.
  static let width = 100

  /// A value on one line, cut where it is long.
  static func short(_ value: JSON) -> String {
    let text = printable(value.canonicalText, as: .json)
    return text.utf8.count > width && text.count > width ? text.prefix(width - 1) + "…" : text
  }
}
