import StemmaEvents
import StemmaHistory
import StemmaNode

/// The number of created, changed and deleted records, or of events, for each model, with bars.
struct ModelCounts {
  struct Counts {
    var created = 0
    var changed = 0
    var deleted = 0
    var sum: Int { created + changed + deleted }
  }

  private var models: [String: Counts] = [:]

  /// The length of the longest bar.
  private static let width = 40

  mutating func add(_ operation: EventOperation, _ model: String) {
    switch operation {
    case .create: models[model, default: Counts()].created += 1
    case .delete: models[model, default: Counts()].deleted += 1
    case .update, .link, .unlink, .resolve: models[model, default: Counts()].changed += 1
    }
  }

  mutating func add(_ kind: RecordDifference.Kind, _ model: String) {
    switch kind {
    case .added: models[model, default: Counts()].created += 1
    case .removed: models[model, default: Counts()].deleted += 1
    case .changed: models[model, default: Counts()].changed += 1
    }
  }

  var all: Counts {
    models.values.reduce(into: Counts()) { all, counts in
      all.created += counts.created
      all.changed += counts.changed
      all.deleted += counts.deleted
    }
  }

  var json: JSON {
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
  }

  func write() {
    let scale = min(1, Double(Self.width) / Double(max(1, models.values.map(\.sum).max() ?? 1)))
    func bar(_ count: Int, _ sign: String, _ style: Output.Style) -> String {
      let length = count == 0 ? 0 : max(1, Int((Double(count) * scale).rounded()))
      return length == 0 ? "" : Output.styled(String(repeating: sign, count: length), style)
    }
    var table = TextTable(numeric: [1])
    for (name, counts) in models.sorted(by: { $0.key < $1.key }) {
      table.append([
        printable(name), grouped(UInt64(counts.sum)),
        bar(counts.created, "+", .green) + bar(counts.changed, "~", .cyan) + bar(counts.deleted, "-", .red),
      ])
    }
    table.write(indent: "  ")
  }
}

/// The effect of one commit, as in `log --stat`.
struct CommitStatistics {
  let commit: CommitID
  let message: CommitMessage
  private var latest = Timestamp.zero
  private var counts = ModelCounts()
  private var partitions: Set<Partition> = []

  init(_ commit: CommitID, _ message: CommitMessage) {
    self.commit = commit
    self.message = message
  }

  mutating func add(_ event: Event, _ description: EventDescription) {
    latest = max(latest, event.timestamp)
    partitions.insert(event.partition)
    counts.add(event.operation, description.modelName(event))
  }

  func json(_ description: EventDescription) -> JSON {
    .object([
      ("commit", .string(description.name(commit))), ("time", .string(description.time(latest))),
      ("author", message.author.map { .string($0) } ?? .null),
      ("message", message.text.map { .string($0) } ?? .null),
      ("source", message.source.map { .string($0) } ?? .null), ("events", .int(Int64(counts.all.sum))),
      ("partitions", .int(Int64(partitions.count))), ("models", counts.json),
    ])
  }

  func write(_ description: EventDescription) {
    Output.line(
      Output.styled("commit \(printable(description.name(commit)))", .yellow)
        + "  \(description.time(latest))"
        + printable(
          (message.author.map { "  by \($0)" } ?? "") + (message.source.map { "  from \($0)" } ?? "")))
    for line in EventText.lines(ofMessage: message.text ?? "") where !line.isEmpty {
      Output.line("    " + line)
    }
    counts.write()
    Output.line("  \(counted(counts.all.sum, "event")) in \(counted(partitions.count, "partition"))")
  }
}
