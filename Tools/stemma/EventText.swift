import StemmaEvents
import StemmaHistory
import StemmaNode

/// Events as text.
struct EventText {
  let description: EventDescription

  init(_ description: EventDescription) { self.description = description }

  init(_ node: Node) { self.init(node.description) }

  /// One line: position, time, event id, operation, record, values.
  func summary(_ stored: StoredEvent) -> String {
    let event = stored.event
    return [
      Output.styled("@\(stored.position)", .yellow), description.time(event.timestamp),
      printable(description.name(event.id)), Output.styled(event.operation.name, .cyan), record(event),
      printable(event.relationship ?? ""),
      event.assignments.map { "\(fieldName($0, event))=\(Self.short($0.value.json))" }.joined(separator: " "),
    ].filter { !$0.isEmpty }.joined(separator: " ")
  }

  /// The first line of a step in a record's history.
  func headline(_ noted: LoggedEvent) -> String {
    let event = noted.event
    let remark = noted.message.text.map { Self.lines(ofMessage: $0).first { !$0.isEmpty } ?? "" }
    return [
      Output.styled(printable(description.name(event.id)), .yellow), description.time(event.timestamp),
      Output.styled(event.operation.name, .cyan), printable(event.relationship ?? ""),
      "version \(event.version)", noted.message.author.map { "by \(printable($0))" } ?? "",
      remark.map { "(\($0))" } ?? "",
    ].filter { !$0.isEmpty }.joined(separator: "  ")
  }

  func record(_ event: Event) -> String {
    "\(printable(description.modelName(event)))[\(description.keyText(event))]"
  }

  private func fieldName(_ assignment: Assignment, _ event: Event) -> String {
    printable(description.word(forField: assignment.field, description.model(of: event)))
  }

  /// The complete event, and its changes if they are given.
  func lines(_ stored: StoredEvent, _ message: CommitMessage, changes: [ChangeDescription]? = nil) -> [String]
  {
    let event = stored.event
    var lines = [
      Output.styled("event \(printable(description.name(event.id)))", .yellow)
        + " in \(printable(event.partition.description))  "
        + Output.styled("@\(stored.position)  \(event.digest.description.prefix(8))", .dim)
    ]
    lines.append("Date:   \(description.time(event.timestamp))")
    lines.append(
      printable(
        "Commit: \(description.name(event.commit))" + (message.author.map { "  by \($0)" } ?? "")
          + (message.source.map { "  from \($0)" } ?? "")))
    lines.append(
      printable(
        "Record: \(description.modelName(event)) \(description.keyText(event))  version \(event.version)"
          + (event.context.isEmpty ? "" : " after \(context(event.context))")))
    if let cause = event.cause {
      lines.append(printable("Cause:  \(description.name(cause.id)) in \(cause.partition)"))
    }
    if let text = message.text {
      lines.append("")
      lines += Self.lines(ofMessage: text).map { "    " + $0 }
    }
    lines.append("")
    lines.append(
      "    " + Output.styled(event.operation.name, .cyan)
        + printable(event.relationship.map { " \($0)" } ?? ""))
    return lines + body(event, changes).map { "      " + $0 }
  }

  /// The changes of an event, or its writes if the changes are unknown.
  func body(_ event: Event, _ changes: [ChangeDescription]?) -> [String] {
    guard let changes else {
      return event.assignments.map { "\(fieldName($0, event)) = \(Self.short($0.value.json))" }
    }
    // The existence of a record is not a field change.
    let decisions = event.assignments.filter { $0.field == Event.existenceField }
    return decisions.map { "\(fieldName($0, event)): " + Output.styled(Self.short($0.value.json), .green) }
      + changes.map(Self.text) + kept(event, changes)
  }

  /// The values that a decision kept: they were shown before it, and only the conflict ended.
  private func kept(_ event: Event, _ changes: [ChangeDescription]) -> [String] {
    guard event.isDecision else { return [] }
    let changed = Set(changes.map { printable($0.field) })
    return event.assignments.filter {
      $0.field != Event.existenceField && !changed.contains(fieldName($0, event))
    }.map { "\(fieldName($0, event)): " + Output.styled(Self.short($0.value.json), .green) + " (kept)" }
  }

  private func context(_ context: Context) -> String {
    context.entries.map { description.name(EventID($0.origin, $0.sequence)) }.joined(separator: ", ")
  }

  /// `field: old → new`; a null side is omitted.
  static func text(of change: ChangeDescription) -> String {
    let field = printable(change.field)
    return switch (change.from.isNull, change.to.isNull) {
    case (true, _): "\(field): " + Output.styled(short(change.to), .green)
    case (false, true): "\(field): " + Output.styled(short(change.from), .red) + " → nothing"
    case (false, false): "\(field): " + pair(change.from, change.to)
    }
  }

  private static func pair(_ from: JSON, _ to: JSON) -> String {
    let (old, new) = distinct(from, to)
    return Output.styled(old, .red) + " → " + Output.styled(new, .green)
  }

  /// Two values in `short` form, unless they look equal. Examples are composed and decomposed `é`,
  /// or a difference in the part that is cut off. Then non-ASCII characters are escaped, and the
  /// texts start shortly before the first difference.
  private static func distinct(_ from: JSON, _ to: JSON) -> (String, String) {
    // Swift compares texts by Unicode equivalence.
    guard short(from) == short(to) else { return (short(from), short(to)) }
    let (old, new) = (spelled(from), spelled(to))
    let common = zip(old, new).prefix { $0 == $1 }.count
    func cut(_ text: String) -> String {
      let start = text.count > width ? max(0, common - width / 4) : 0
      let rest = text.dropFirst(start)
      return (start > 0 ? "…" : "") + (rest.count > width ? rest.prefix(width - 1) + "…" : rest)
    }
    return (cut(old), cut(new))
  }

  private static func spelled(_ value: JSON) -> String {
    value.canonicalText.utf16.map { unit in
      let digits = String(unit, radix: 16)
      return unit < 0x7F
        ? String(UnicodeScalar(UInt8(unit)))
        : "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }.joined()
  }

  /// The lines of a message without terminal control sequences. CR and LF together are one
  /// Character.
  static func lines(ofMessage text: String) -> [String] {
    text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }.map { printable(String($0)) }
  }

  /// The maximum number of characters of a value on one line.
  static let width = 100

  /// A value on one line, cut if it is long.
  static func short(_ value: JSON) -> String {
    let text = printable(value.canonicalText, as: .json)
    return text.utf8.count > width && text.count > width ? text.prefix(width - 1) + "…" : text
  }
}
