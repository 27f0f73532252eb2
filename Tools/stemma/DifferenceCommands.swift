import ArgumentParser
import Foundation
import StemmaEvents
import StemmaHistory
import StemmaNode
import StemmaSchema

struct Diff: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Show which records differ between two pointsInTime, or two nodes.",
    discussion: """
      A and B are points in history (see `stemma help log`; an event stands for its place in this node's log) or \
      nodes (a remote's name, or a directory). Without B, A is compared with this node as it is now. Of two nodes only records in the scope of both are compared; where \
      both are named by their directories, this need not be run in a node.

      Examples:
        stemma diff yesterday
        stemma diff @5718 @6000 --model Book --stat
        stemma diff office --exit-code && echo 'equal'
        stemma diff ../berlin --json
        stemma diff /mnt/monday/shop /mnt/tuesday/shop --stat
      """)
  @Argument(help: "The old state.") var a: String
  @Argument(help: "The new one.") var b: String?
  @Option(help: "Only this model.", completion: .modelNames) var model: String?
  @Flag(help: "For each model how many records differ.") var stat = false
  @Flag(help: "Exit with 1 if there are differences.") var exitCode = false
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  private enum Side {
    case pointInTime(PointInTime)
    case node(Node)
  }

  func run() throws {
    let (node, old, new) = try sides()
    let model = try model(of: node)
    let writer = DifferenceWriter(node, format, stat: stat)
    try goingAroundCorruption {
      try compare(node, old, new, of: model, writer)
    } thenAlways: {
      writer.finish()
    }
    if exitCode, writer.hasDifferences { throw ExitCode.no }
  }

  private func model(of node: Node) throws -> Model? {
    try model.map { try RecordWords(node, model: $0).model }
  }

  private func compare(
    _ node: Node, _ old: Side, _ new: Side?, of model: Model?, _ writer: DifferenceWriter
  ) throws {
    switch (old, new) {
    case (.pointInTime(let old), nil):
      try node.forEachDifference(from: old, to: .now, of: model, writer.write)
    case (.pointInTime(let old), .pointInTime(let new)):
      try node.forEachDifference(from: old, to: new, of: model, writer.write)
    case (.node(let other), nil), (.node(let other), .pointInTime(.now)):
      try other.forEachDifference(to: node, of: model, writer.write)
    case (.pointInTime(.now), .node(let other)):
      try node.forEachDifference(to: other, of: model, writer.write)
    case (.node(let old), .node(let new)): try old.forEachDifference(to: new, of: model, writer.write)
    case (.node, .pointInTime), (.pointInTime, .node):
      throw Failure("another node is compared as it is now; write `now` for this one", .usage)
    }
  }

  /// The sides of the comparison, and the node that reads them. That is the selected node. Without
  /// one, it is the first of two named nodes.
  private func sides() throws -> (node: Node, old: Side, new: Side?) {
    let node: Node
    do { node = try options.open() } catch NodeError.noNode(let path) {
      guard let b, !options.isNamed else { throw NodeError.noNode(path: path) }
      if let other = [a, b].first(where: { !Node.isNode(at: $0) }) {
        throw Failure(
          "there is no node in \(path), and none in \(other); name one with -C, or two directories with nodes",
          .noInput)
      }
      let (old, new) = (try open(a), try open(b))
      return (old, .node(old), .node(new))
    }
    let partition = try model(of: node).flatMap(Partition.init(of:))
    return (node, try side(a, node, partition), try b.map { try side($0, node, partition) })
  }

  /// `partition`: the only partition that is compared, if known.
  private func side(_ text: String, _ node: Node, _ partition: Partition?) throws -> Side {
    do { return .pointInTime(try node.pointInTime(text, in: partition?.description)) } catch {
      guard case .inspection(.notAPointInTime) = error else { throw error }
      guard let address = try peerAddress(text, node) else {
        throw NodeError.inspection(.notAPointInTimeOrNode(text))
      }
      return .node(try open(address))
    }
  }

  private func open(_ address: String) throws -> Node {
    let node = try Node.open(at: address, options.opening(.read))
    if node.metadata.unfinishedClone != nil {
      Output.warning("\(address): \(Explanations.unfinishedPeer)" as Notice)
    }
    return node
  }

  /// Nil if the text names neither a remote nor a directory with a node.
  private func peerAddress(_ text: String, _ node: Node) throws -> String? {
    do { return try node.peers(text).first?.address } catch {
      guard case .unknownRemote = error else { throw error }
      return nil
    }
  }
}

/// Writes a sequence of differences.
final class DifferenceWriter {
  private let description: EventDescription
  private let format: FormatOptions
  private let stat: Bool
  private var counts = ModelCounts()
  private var array: [JSON] = []
  private(set) var hasDifferences = false

  init(_ node: Node, _ format: FormatOptions, stat: Bool = false, pages: Bool = true) {
    description = node.description
    self.format = format
    self.stat = stat
    if pages && !format.isJSON { Pager.begin() }
  }

  func write(_ difference: RecordDifference) {
    counts.add(difference.kind, difference.model.name)
    hasDifferences = true
    if stat { return }
    if format.json {
      array.append(difference.json(description))
    } else if format.ndjson {
      Output.line(difference.json(description))
    } else {
      let record = "\(difference.model.name)[\(description.keyText(difference.key, difference.model))]"
      switch difference.kind {
      case .added: Output.line(Output.styled("+ \(record)", .green))
      case .removed: Output.line(Output.styled("- \(record)", .red))
      case .changed: Output.line(Output.styled("~ \(record)", .cyan))
      }
      if difference.keeps { Output.line("    the deletion is taken back") }
      for change in difference.descriptions(description) { Output.line("    " + EventText.text(of: change)) }
    }
  }

  func finish() {
    if format.isJSON {
      if stat {
        Output.line(counts.json)
      } else if format.json {
        Output.line(.array(array))
      }
    } else {
      if stat { counts.write() }
      let all = counts.all
      Output.line(
        "\(counted(all.created, "record")) added, \(grouped(UInt64(all.deleted))) removed, "
          + "\(grouped(UInt64(all.changed))) changed")
    }
    Output.flush()
  }
}

struct Restore: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Make a record, or all of a model, what it was, by appending new events.",
    discussion: """
      Shows what it changes, records that a deletion takes along included, and then does it, also if nobody reads \
      what it shows to the end. Without a key, records that were made since are deleted; if the node held nothing at that \
      time, nothing is done unless --force says so. A date is its first moment; an \
      event stands for its place in this node's log.

      Examples:
        stemma restore Book 978-0 --as-of yesterday
        stemma restore Book --as-of @5718 --field title -n
      """)
  @Argument(help: "The model.", completion: .modelNames) var model: String
  @Argument(help: "The key; none: all records of the model.") var key: [String] = []
  @Option(help: ArgumentHelp("As of when; see `stemma help log`.", valueName: "when")) var asOf: String
  @Option(
    parsing: .singleValue, help: "Only this field or relationship; may be repeated.", completion: .fieldNames)
  var field: [String] = []
  @Flag(help: "Also to a time at which the node held nothing.") var force = false
  @Flag(name: .short, help: "Only show what would be changed.") var n = false
  @OptionGroup var commit: CommitOptions
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try n ? options.openForRehearsal() : options.openForAppending()
    let words = try RecordWords(node, model: model)
    var record: Key?
    if !key.isEmpty { record = try node.key(try words.onlyKey(key), of: words.model) }
    let fields = try field.flatMap { try Self.fields(named: $0, words) }
    let partition = record.map { Partition(model: words.model, key: $0) } ?? Partition(of: words.model)
    let plan = try node.restoration(
      of: words.model, key: record, asOf: try node.pointInTime(asOf, in: partition?.description),
      fields: fields,
      isForced: force)
    try plan.run(node, commit.message, rehearses: n, format)
  }

  /// The field of this name, or the fields that store a relationship.
  private static func fields(named name: String, _ words: RecordWords) throws -> [Field] {
    let model = words.model
    var names = [name]
    if model.field(named: name) == nil {
      guard let relationship = model.relationship(named: name) else { throw words.unknownField(name) }
      guard relationship.storesReference else {
        let owner = relationship.joinModel ?? relationship.target
        throw Failure("`\(name)` of \(model.name) is stored by \(owner); restore that", .badData)
      }
      names = relationship.referenceFields
    }
    let keyParts = model.keyFields.map { model.fields[$0].name }
    let fields = names.filter { !keyParts.contains($0) }.compactMap(model.field(named:))
    if fields.isEmpty {
      throw Failure("`\(name)` is a part of the key of \(model.name), which never changes", .usage)
    }
    return fields
  }
}

struct Undo: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "undo",
    abstract: "Take back an event, or all of a commit, by appending new events.",
    discussion: """
      Shows what it changes, and then does it, also if nobody reads what it shows to the end. If another event has \
      written the same since, or other records refer to one that would be deleted, nothing is done unless --force \
      says so. Of a record that was deleted and changed at the same time, undoing the deletion keeps it, and undoing \
      a change gives the fields back and leaves open whether the record exists; where it is not there, that has to be \
      decided first (`resolve`). A value that is in an open conflict and is not shown stays there: `resolve` ends that.

      Examples:
        stemma undo @5718 -n
        stemma undo office.12 -m 'wrong price list'
      """)
  @Argument(help: "An event (see `stemma help show`), or a commit (NAME.NUMBER).") var change: String
  @Option(help: "The partition in which the event's name counts.") var partition: String?
  @Flag(help: "Also where others have written since.") var force = false
  @Flag(name: .short, help: "Only show what would be changed.") var n = false
  @OptionGroup var commit: CommitOptions
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  func run() throws {
    let node = try n ? options.openForRehearsal() : options.openForAppending()
    let isCommit = !node.description.commits(named: change).isEmpty
    if isCommit, partition != nil {
      throw Failure("`\(change)` is a commit, which is undone whole; --partition goes with an event", .usage)
    }
    let events =
      try isCommit
      ? node.commit(named: change) : [node.event(named: change, in: partition)]
    let plan = try node.undoing(events, isForced: force)
    var message = commit.message
    message.text = message.text ?? "undo \(change)"
    let lost = try node.conflicts(lostBy: events)
    try plan.run(node, message, rehearses: n, format, lost)
    if format.isJSON { return }
    for conflict in lost {
      let model = try RecordWords(node, model: conflict.model).model
      let open = try node.conflicts(of: try node.key(conflict.key, of: model), in: model)
      let name = "\(conflict.model) \(conflict.keyText)" + (conflict.field.map { " \($0)" } ?? "")
      Output.line(
        "The value of \(name) that \(change) wrote is not shown, but is in an open conflict; "
          + "`\(ConflictText.command(conflict, beside: open)) --take 1` ends it with what is shown.")
    }
    Output.flush()
  }
}

extension Reversal {
  /// Shows the changes, then writes them. A reader that stops after the first lines (`restore … |
  /// head`) does not interrupt the write.
  ///
  /// - Parameter lost: open conflicts that involve a value that is not restored.
  fileprivate func run(
    _ node: Node, _ message: CommitMessage, rehearses: Bool, _ format: FormatOptions,
    _ lost: [ConflictDescription] = []
  ) throws {
    let description = node.description
    func write() throws -> Int { rehearses ? 0 : try node.write(self, message).events }
    if !rehearses { Output.goesOnUnread() }
    if format.isJSON {
      let events = try write()
      Output.line(
        .object(
          [
            ("events", .int(Int64(events))), ("changes", .array(changes.map { $0.json(description) })),
          ] + (lost.isEmpty ? [] : [("conflicts", .array(lost.map(\.json)))])))
    } else if changes.isEmpty {
      Output.line("nothing to change")
    } else {
      let writer = DifferenceWriter(node, format, pages: rehearses)
      changes.forEach(writer.write)
      if rehearses { writer.finish() }
      if rehearses { return }
      Output.consequence = "nothing was written to the node"
      writer.finish()
      let events = counted(try write(), "event")
      Output.consequence = "\(events) appended to the node"
      Output.line("\(events) appended")
      Output.flush()
      if Output.isUnread { Output.error("the output was closed early; \(events) appended") }
    }
    Output.flush()
  }
}
