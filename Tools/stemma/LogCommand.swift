import ArgumentParser
import Foundation
import StemmaEvents
import StemmaHistory
import StemmaNode
import StemmaReplication
import StemmaSchema

struct LogCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "log",
    abstract: "Show events, newest first.",
    discussion: """
      WHEN is a time (2026-11-21T05:14:01Z, 2026-11-21, 2h, yesterday; UTC where it names no zone), a position \
      (@5718), or an event (its name, or at least the first four digits of its digest, in lower case), which stands for its place in this node's \
      log. A date, month or year alone is its first moment; --until takes in all of it. Days have at most four digits; \
      what may be days or a digest is refused.

      Examples:
        stemma log -n 5 --model Book -p
        stemma log --since 2h --graph
        stemma log --reverse --ndjson --partition 'tenantId=ac*' | jq .event
        stemma log --format '{time} {author} {model}[{key}] {fields.title}'
      """)
  @Option(
    name: .customShort("n", allowingJoined: true),
    help: ArgumentHelp("Stop after this many events; -5 means -n 5.", valueName: "count"))
  var n: Int?
  @Flag(help: "Oldest first.") var reverse = false
  @OptionGroup(title: "Which events") var selection: EventSelection
  @Flag(help: "One line for each event.") var oneline = false
  @Flag(
    help:
      "One line for each event, beside a drawing of the nodes' branches: what lines lead to was seen above.")
  var graph = false
  @Flag(help: "For each commit, how many events of which model.") var stat = false
  @Flag(name: [.customShort("p"), .customLong("patch")], help: "The old and the new value of each field.")
  var patch = false
  @Option(
    name: .customLong("format"),
    help: ArgumentHelp(
      "A line for each event: text with {\(EventFormat.placeholders.joined(separator: "}, {"))} or {fields.NAME}; {{ and }} are braces, "
        + "\\t and \\n a tabulator and a line's end.",
      valueName: "text"))
  var template: String?
  @Flag(
    help: ArgumentHelp(
      "Events as mutations that `import` reads.",
      discussion:
        "With --reverse they make the same records elsewhere, if one node wrote them. Concurrent writes "
        + "of several nodes are no sequence of changes: an import may refuse one, as it would have been "
        + "refused here."
    ))
  var mutations = false
  @Flag(help: "Show the newest ten (or -n), oldest first, and go on with what is appended until interrupted.")
  var follow = false
  /// Refused with the correct spelling.
  @Argument(help: .hidden) var words: [String] = []
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func validate() throws {
    if let model = words.first {
      let keys = words.dropFirst()
      let options = (["--model \(model)"] + keys.map { "--key \($0)" }).joined(separator: " ")
      let history = keys.isEmpty ? "" : ", or `stemma history \(words.joined(separator: " "))`"
      throw ValidationError("a record is named by options: `stemma log \(options)`\(history)")
    }
    if let n, n < 0 { throw ValidationError("-n takes a number of events") }
    let forms = [oneline, stat, template != nil, mutations].count { $0 }
    if forms > 1 { throw ValidationError("--oneline, --stat, --format and --mutations exclude each other") }
    // Mutations are lines of JSON in any case.
    if format.isJSON && (oneline || graph || template != nil) {
      throw ValidationError("--oneline, --graph and --format are for people; leave them or --json out")
    }
    if patch && (oneline || graph || template != nil || mutations) {
      throw ValidationError(
        "-p shows values below each event; leave --oneline, --graph, --format and --mutations out")
    }
    if patch && stat { throw ValidationError("--stat shows no values; leave -p out") }
    if graph && (stat || mutations) { throw ValidationError("--graph goes with --oneline and --format") }
    if graph && reverse { throw ValidationError("--graph goes from new to old; leave --reverse out") }
    if follow && (graph || stat || reverse || format.json) {
      throw ValidationError(
        "--follow goes with --oneline, --format, --mutations, --ndjson or -p, and from old to new; leave --graph, --stat, "
          + "--reverse and --json out")
    }
  }

  func run() throws {
    let node = try options.open()
    let filter = try selection.filter(node)
    if !follow && !format.isJSON && !mutations { Pager.begin() }
    if stat {
      try writeCommits(node, filter)
    } else {
      let writer = EventWriter(node, try form(node, filter))
      if follow {
        try self.follow(node, filter, writer)
      } else if oneline && !graph && filter.needsNoEvents {
        try writeLines(node, filter)
      } else {
        try goingAroundCorruption {
          if n != 0 { try write(node, filter, writer) }
        } thenAlways: {
          try writer.finish()
        }
      }
    }
    Output.flush()
  }

  private func write(_ node: Node, _ filter: LogFilter, _ writer: EventWriter) throws {
    var shown = 0
    try node.forEachEvent(filter, newestFirst: !reverse) { stored, message in
      try writer.write(stored, message)
      shown += 1
      return n.map { shown < $0 } ?? true
    }
  }

  private func writeLines(_ node: Node, _ filter: LogFilter) throws {
    if n == 0 { return }
    var writer = OnelineWriter(node)
    var shown = 0
    let limit = n ?? .max
    try goingAroundCorruption {
      try node.scan(filter, newestFirst: !reverse) { event in
        writer.write(event)
        shown += 1
        return shown < limit
      }
    } thenAlways: {
      writer.flush()
    }
  }

  private func form(_ node: Node, _ filter: LogFilter) throws -> EventWriter.Form {
    if mutations { return .mutations }
    if format.json { return .json(patch: patch) }
    if format.ndjson { return .ndjson(patch: patch) }
    let template = try self.template.map { try EventFormat($0) }
    if let template { try selection.check(fields: template.fields, node, filter.models) }
    if graph { return .graph(try EventBranches(node, filter), template) }
    if let template { return .template(template) }
    return oneline ? .oneline : .full(patch: patch)
  }

  /// Writes one entry per run of adjacent events of a commit. On the node that made the commit,
  /// that is the whole commit.
  private func writeCommits(_ node: Node, _ filter: LogFilter) throws {
    let description = node.description
    var current: CommitStatistics?
    var array: [JSON] = []
    var shown = 0
    func finish() {
      guard let commit = current else { return }
      if format.json {
        array.append(commit.json(description))
      } else if format.ndjson {
        Output.line(commit.json(description))
      } else {
        if shown > 0 { Output.line() }
        commit.write(description)
      }
      shown += 1
      current = nil
    }
    try goingAroundCorruption {
      try node.forEachEvent(filter, newestFirst: !reverse) { stored, message in
        if current?.commit != stored.event.commit {
          finish()
          if let n, shown >= n { return false }
          current = CommitStatistics(stored.event.commit, message)
        }
        current?.add(stored.event, description)
        return true
      }
    } thenAlways: {
      finish()
      if format.json { Output.line(.array(array)) }
    }
  }

  /// The polling interval of `--follow`, in seconds.
  private static let interval = 0.2

  private func follow(_ node: Node, _ filter: LogFilter, _ writer: EventWriter) throws {
    var newest: [LoggedEvent] = []
    var end = node.logEnd
    try warningOfCorruption {
      try node.forEachEvent(filter, newestFirst: true) { stored, message in
        guard newest.count < n ?? 10 else { return false }
        newest.append(LoggedEvent(stored: stored, message: message))
        return true
      }
    }
    for noted in newest.reversed() { try writer.write(noted.stored, noted.message) }
    try writer.writeWaiting()
    Output.flush()
    while true {
      Thread.sleep(forTimeInterval: Self.interval)
      guard try node.refreshLog() else { continue }
      var filter = filter
      filter.since = .position(end)
      let newEnd = node.logEnd
      try warningOfCorruption {
        try node.forEachEvent(filter, newestFirst: false) { stored, message in
          try writer.write(stored, message)
          return true
        }
      }
      try writer.writeWaiting()
      end = newEnd
      Output.flush()
    }
  }
}

/// Reads, and prints a warning about events hidden by corruption, so that the caller can continue.
private func warningOfCorruption(_ read: () throws -> Void) throws {
  do { try read() } catch let error as NodeError {
    guard case .missing = error else { throw error }
    Output.warning(Explanation(error).message)
  }
}

/// Selects the events that a command reads.
struct EventSelection: ParsableArguments {
  @Option(
    parsing: .singleValue, help: "Only this model; may be repeated.", completion: .modelNames)
  var model: [String] = []
  @Option(
    parsing: .singleValue,
    help: "Only this record: a bare value, a JSON object, or part=value, once for each part.")
  var key: [String] = []
  @Option(
    parsing: .singleValue, help: ArgumentHelp("Only these partitions; may be repeated.", valueName: "pattern")
  )
  var partition: [String] = []
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("Only events that this node wrote; may be repeated.", valueName: "name"),
    completion: .originNames)
  var origin: [String] = []
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("Only events of this author's commits; may be repeated.", valueName: "name"))
  var author: [String] = []
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("create, update, delete, link, unlink or resolve; may be repeated.", valueName: "op"),
    completion: .operations)
  var op: [String] = []
  @Option(
    parsing: .singleValue,
    help:
      "Only events that write this field, or a field that stores this relationship. With `existence` (`_exists` beside a field of that name): events that resolve whether the record exists. May be repeated.",
    completion: .fieldNames)
  var field: [String] = []
  @Option(help: ArgumentHelp("Only events since then.", valueName: "when")) var since: String?
  @Option(help: ArgumentHelp("Only events until then: of a date, to its end.", valueName: "when")) var until:
    String?
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp(
      "Only events with this text in the message, in who made it, the source, the key, or a value; may be repeated: with any of them.",
      valueName: "text"))
  var grep: [String] = []
  @Option(
    parsing: .singleValue,
    help: ArgumentHelp("Only the events of this commit; may be repeated.", valueName: "name.number"))
  var commit: [String] = []

  func validate() throws {
    if !key.isEmpty && model.count != 1 { throw ValidationError("--key needs --model, once") }
  }

  func filter(_ node: Node) throws -> LogFilter {
    var filter = LogFilter()
    filter.texts = grep
    filter.authors = Set(author)
    for model in model {
      let words = try RecordWords(node, model: model)
      filter.models.append(words.model)
      filter.modelNames.insert(words.model.storedName)
      if !key.isEmpty { filter.key = try node.key(try words.onlyKey(key), of: words.model) }
    }
    for field in field { filter.fields.formUnion(try storedNames(ofField: field, node, filter.models)) }
    if !partition.isEmpty { filter.scope = NarrowedScope(try node.scope(ofPartitions: partition)) }
    for origin in origin {
      let named = node.metadata.origins(named: origin)
      guard !named.isEmpty else { throw Failure("no node named `\(origin)` has written here", .noInput) }
      filter.origins = filter.origins.map { $0.union(named) } ?? Set(named)
    }
    for commit in commit {
      let named = try node.commits(named: commit)
      filter.commits = filter.commits.map { $0.union(named) } ?? named
    }
    if !op.isEmpty { filter.operations = Set(try op.map(operation)) }
    let only = filter.onlyPartition(partition)
    if let since { filter.since = try node.pointInTime(since, in: only, takesPartition: true) }
    if let until {
      filter.until = try node.pointInTime(until, toTheEnd: true, in: only, takesPartition: true)
    }
    return filter
  }

  private func storedNames(ofField name: String, _ node: Node, _ chosen: [Model]) throws -> Set<String> {
    let models = chosen.isEmpty ? node.schema.models : chosen
    try FieldChoice.refuseKeyPart(name, models, "which no event writes; --key selects by it")
    let names = try LogFilter.storedNames(ofField: name, of: chosen, in: node)
    guard names.isEmpty else { return names }
    try FieldChoice.refuseStoredElsewhere(name, node.schema, models) { stored in
      let keyParts = stored.child.keyFields.map { stored.child.fields[$0].name }
      return stored.relationship.referenceFields.first { !keyParts.contains($0) }
    }
    throw FieldChoice.unknown(name, models, chosen.count == 1 ? chosen[0] : nil, .badData)
  }

  /// Refuses fields of a `--format` that no event can have.
  func check(fields: [String], _ node: Node, _ chosen: [Model]) throws {
    let models = chosen.isEmpty ? node.schema.models : chosen
    for name in fields where ![Event.existenceField, ExistenceName.usual].contains(name) {
      try FieldChoice.refuseKeyPart(name, models, "which no event writes; {key} shows it")
      if models.contains(where: { $0.field(named: name) != nil }) { continue }
      guard try LogFilter.isWritten(name, of: chosen, in: node) else {
        throw FieldChoice.unknown(name, models, chosen.count == 1 ? chosen[0] : nil, .usage)
      }
    }
  }

  private func operation(_ name: String) throws -> EventOperation {
    guard let operation = EventOperation.allCases.first(where: { $0.name == name }) else {
      let known = EventOperation.allCases.map(\.name).joined(separator: ", ")
      throw Failure("`\(name)` is no operation; there are \(known)", .usage)
    }
    return operation
  }
}
