import StemmaEvents
import StemmaNode

/// How events look to people.
struct EventText {
  let description: EventDescription

  init(_ node: Node) { description = node.description }

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
      lines += event.assignments.map { "      \(fieldName($0, event)) = \(Self.short($0.value.json))" }
    }
    return lines
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

  /// A value on one line, cut where it is long.
  static func short(_ value: JSON) -> String {
    let text = value.canonicalText
    return text.count > 100 ? text.prefix(99) + "…" : text
  }
}

/// What one commit did, as `log --stat` shows it.
struct CommitStatistics {
  struct Counts {
    var created = 0
    var changed = 0
    var deleted = 0
    var all: Int { created + changed + deleted }
  }

  let commit: CommitID
  let note: CommitNote
  private var latest = Timestamp.zero
  private var models: [String: Counts] = [:]
  private var partitions: Set<Partition> = []

  /// The longest bar.
  private static let width = 40

  init(_ commit: CommitID, _ note: CommitNote) {
    self.commit = commit
    self.note = note
  }

  mutating func add(_ event: Event, _ description: EventDescription) {
    latest = max(latest, event.timestamp)
    partitions.insert(event.partition)
    let model = description.modelName(event)
    switch event.operation {
    case .create: models[model, default: Counts()].created += 1
    case .delete: models[model, default: Counts()].deleted += 1
    case .update, .link, .unlink, .resolve: models[model, default: Counts()].changed += 1
    }
  }

  private var events: Int { models.values.reduce(0) { $0 + $1.all } }

  func json(_ description: EventDescription) -> JSON {
    .object([
      ("commit", .string(description.name(commit))), ("time", .string(description.time(latest))),
      ("by", note.by.map { .string($0) } ?? .null), ("note", note.note.map { .string($0) } ?? .null),
      ("source", note.source.map { .string($0) } ?? .null), ("events", .int(Int64(events))),
      ("partitions", .int(Int64(partitions.count))),
      (
        "models",
        .object(
          models.sorted { $0.key < $1.key }.map { name, counts in
            (
              name,
              .object([
                ("created", .int(Int64(counts.created))), ("changed", .int(Int64(counts.changed))),
                ("deleted", .int(Int64(counts.deleted))),
              ])
            )
          })
      ),
    ])
  }

  func write(_ description: EventDescription) {
    Output.line(
      Output.styled("commit \(description.name(commit))", .yellow) + "  \(description.time(latest))"
        + (note.by.map { "  by \($0)" } ?? "") + (note.source.map { "  from \($0)" } ?? ""))
    for line in (note.note ?? "").split(separator: "\n") { Output.line("    \(line)") }
    let highest = models.values.map(\.all).max() ?? 1
    var table = TextTable(numeric: [1])
    for (name, counts) in models.sorted(by: { $0.key < $1.key }) {
      let scale = min(1, Double(Self.width) / Double(highest))
      func bar(_ count: Int, _ sign: String, _ style: Output.Style) -> String {
        let length = count == 0 ? 0 : max(1, Int((Double(count) * scale).rounded()))
        return length == 0 ? "" : Output.styled(String(repeating: sign, count: length), style)
      }
      table.append([
        name, "\(counts.all)",
        bar(counts.created, "+", .green) + bar(counts.changed, "~", .cyan) + bar(counts.deleted, "-", .red),
      ])
    }
    table.write(indent: "  ")
    Output.line("  \(counted(events, "event")) in \(counted(partitions.count, "partition"))")
  }
}
