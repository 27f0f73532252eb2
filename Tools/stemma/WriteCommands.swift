import ArgumentParser
import StemmaEvents
import StemmaHistory
import StemmaNode
import StemmaSchema

/// Options of the commands that write one record: a node, a message, and the output format.
struct WriteOptions: ParsableArguments {
  @OptionGroup var node: NodeOptions
  @OptionGroup var commit: CommitOptions
  @OptionGroup var format: FormatOptions

  /// Makes one change in a separate commit and reports it.
  func perform(_ mutation: Mutation, on node: Node, ifRevision: String? = nil, announcing verb: String) throws
  {
    let told = node.notices.count
    let (outcome, events) = try node.write(commit.message) { tx throws(NodeError) in
      (try tx.perform(mutation, ifRevision: ifRevision), tx.events)
    }
    for notice in node.notices.dropFirst(told) { Output.warning(notice) }
    guard let model = node.schema.model(named: mutation.model) else { return }
    // The commit is durable, even if a later read fails.
    do throws(NodeError) {
      for event in events { try warnOfDangling(event, isNamed: event.key == outcome.key, node) }
    } catch { Output.warning(Explanation(error).message) }
    let key = node.schema.json(of: outcome.key, model: model)
    if format.isJSON {
      let revision: JSON = try node.state(of: outcome.key, in: model).map { .string($0.revision) } ?? .null
      Output.line(
        .object([
          ("model", .string(model.name)), ("key", key), ("changed", .bool(outcome.isChanged)),
          ("revision", revision),
        ]))
    } else if mutation.operation == .create {
      // Prints only the value, so that `id=$(stemma create …)` holds an argument for the next
      // command. A terminal gets the quoted form, which contains no control sequences.
      let parts = outcome.key.parts
      let isBare = parts.count == 1 && !Output.isTerminal
      Output.line(isBare ? parts[0].text : KeyWords.text(outcome.key, of: model))
    } else {
      let text = "\(model.name) \(KeyWords.text(outcome.key, of: model))"
      Output.line(outcome.isChanged ? "\(verb) \(text)" : "\(text) is so already; nothing written")
    }
    Output.flush()
  }
}

extension WriteOptions {
  /// Warns about written references to missing records. That is not an error, because the records
  /// may arrive later. `isNamed`: whether the command names the event's record, not the other side.
  private func warnOfDangling(_ event: Event, isNamed: Bool, _ node: Node) throws(NodeError) {
    guard let model = node.schema.models.first(where: { $0.storedName == event.model }) else { return }
    var filter = ConflictFilter(model: model)
    filter.key = event.key
    filter.kinds = [.dangling]
    var dangling: [(ConflictDescription, name: String, target: ConflictDescription.Candidate)] = []
    try node.conflicts(filter) { conflict in
      guard let name = conflict.field, let target = conflict.candidates.first, target.id == event.id
      else { return }
      dangling.append((conflict, name, target))
    }
    guard !dangling.isEmpty else { return }
    // One changed field may cause the event to write others. If the changes are unknown, all fields
    // count as changed.
    let changes = try EventAccounts(of: [event], in: node).changes(of: event)
    let changed = changes.map { Set($0.map(\.field)) } ?? Set(model.fields.map(\.name))
    for (conflict, name, target) in dangling
    where event.operation == .create || model.hasReference(name, of: changed) {
      let subject = isNamed ? "" : " of \(model.name) \(KeyWords.text(event.key, of: model))"
      Output.warning(
        "`\(name)`\(subject) leads to \(conflict.record ?? "") \(target.value.keyWords), which is not here"
      )
    }
  }
}

extension Model {
  /// Whether one of these fields belongs to the reference of this name, which the other model may
  /// define. A create also writes references that are only part of the key.
  fileprivate func hasReference(_ name: String, of fields: Set<String>) -> Bool {
    references.contains { reference in
      reference.relationship ?? name == name && !fields.isDisjoint(with: reference.fields)
    }
  }
}

struct Create: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "create",
    abstract: "Make a record and print its key.",
    discussion: """
      Examples:
        stemma create Book isbn=978-0 title='A Book'
        stemma create Member name=Tim team=018f2b3c-… -m 'joined today'
      """)
  @Argument(help: "The model.", completion: .modelNames) var model: String
  @Argument(
    help: ArgumentHelp(
      "field=value, field:=JSON or field=@FILE (field=@-: standard input); a relationship's name is a field. Of a key in a file one last end of line is dropped.",
      valueName: "f=v"))
  var words: [String] = []
  @OptionGroup var options: WriteOptions

  func run() throws {
    let node = try options.node.openForAppending()
    let words = try RecordWords(node, model: model)
    var fields = try words.fields(self.words)
    let parts = Set(words.model.keyFields.map { words.model.fields[$0].name })
    let key = fields.filter { parts.contains($0.name) }
    fields.removeAll { parts.contains($0.name) }
    try options.perform(
      Mutation(.create, model: model, key: key.isEmpty ? nil : .object(key), fields: fields), on: node,
      announcing: "created")
  }
}

struct Update: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "update",
    abstract: "Change fields of a record.",
    discussion: """
      Examples:
        stemma update Book 978-0 title='Another Title'
        stemma update Book 978-0 pages:=null --if-revision 5-3fa9c1
      """)
  @Argument(help: "The model.", completion: .modelNames) var model: String
  @Argument(
    help: ArgumentHelp(
      "The key, then field=value, field:=JSON or field=@FILE (field=@-: standard input). Of a key in a file one last end of line is dropped.",
      valueName: "key f=v"))
  var words: [String]
  @Option(help: ArgumentHelp("Fail unless the record is at this revision.", valueName: "revision"))
  var ifRevision: String?
  @OptionGroup var options: WriteOptions

  func run() throws {
    let node = try options.node.openForAppending()
    let words = try RecordWords(node, model: model)
    let (key, rest) = try words.key(self.words)
    try options.perform(
      Mutation(.update, model: model, key: key, fields: try words.fields(rest)), on: node,
      ifRevision: ifRevision, announcing: "updated")
  }
}

struct Upsert: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "upsert",
    abstract: "Change a record, or make it if it is not there.",
    discussion: """
      Examples:
        stemma upsert Book 978-0 title='A Book'
        stemma upsert Genre genreId=1 name=Rock --json
      """)
  @Argument(help: "The model.", completion: .modelNames) var model: String
  @Argument(
    help: ArgumentHelp(
      "The key, then field=value, field:=JSON or field=@FILE (field=@-: standard input). Of a key in a file one last end of line is dropped.",
      valueName: "key f=v"))
  var words: [String]
  @OptionGroup var options: WriteOptions

  func run() throws {
    let node = try options.node.openForAppending()
    let words = try RecordWords(node, model: model)
    let (key, rest) = try words.key(self.words)
    try options.perform(
      Mutation(.upsert, model: model, key: key, fields: try words.fields(rest)), on: node,
      announcing: "wrote")
  }
}

struct Delete: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "delete",
    abstract: "Delete a record, and in the same commit what cannot be without it.",
    discussion: """
      Children whose reference is required are deleted, others are unlinked; onDelete: RESTRICT refuses.
      Examples:
        stemma delete Book 978-0
        stemma delete Enrollment courseID=5 studentID=7 -m 'left the course'
      """)
  @Argument(help: "The model.", completion: .modelNames) var model: String
  @Argument(help: "The key.") var key: [String]
  @Option(help: ArgumentHelp("Fail unless the record is at this revision.", valueName: "revision"))
  var ifRevision: String?
  @OptionGroup var options: WriteOptions

  func run() throws {
    let node = try options.node.openForAppending()
    let (key, rest) = try RecordWords(node, model: model).key(self.key)
    guard rest.isEmpty else { throw Failure("`\(rest.first ?? "")` is more than the key", .usage) }
    try options.perform(
      Mutation(.delete, model: model, key: key), on: node, ifRevision: ifRevision, announcing: "deleted")
  }
}

struct Link: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "link",
    abstract: "Connect two records.",
    discussion: """
      Works from either side of a relationship. Keys stand for themselves; RELATIONSHIP=@FILE reads one from a file.
      Examples:
        stemma link Member 5 team 3
        stemma link Post 7 tags 12
      """)
  @Argument(help: "The model.", completion: .modelNames) var model: String
  @Argument(
    help: ArgumentHelp(
      "The key, the relationship's name, the key of the other record.", valueName: "key relationship target"))
  var words: [String]
  @OptionGroup var options: WriteOptions

  func run() throws {
    let node = try options.node.openForAppending()
    let (key, relationship, target) = try linkWords(node, model, words, targetRequired: true)
    try options.perform(
      Mutation(.link, model: model, key: key, fields: [(relationship, target)]), on: node,
      announcing: "linked")
  }
}

struct Unlink: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "unlink",
    abstract: "Disconnect two records.",
    discussion: """
      Examples:
        stemma unlink Member 5 team
        stemma unlink Post 7 tags 12
      """)
  @Argument(help: "The model.", completion: .modelNames) var model: String
  @Argument(
    help: ArgumentHelp(
      "The key, the relationship's name, and on a to-many side the other record's key.",
      valueName: "key relationship target"))
  var words: [String]
  @OptionGroup var options: WriteOptions

  func run() throws {
    let node = try options.node.openForAppending()
    let (key, relationship, target) = try linkWords(node, model, words, targetRequired: false)
    try options.perform(
      Mutation(.unlink, model: model, key: key, fields: [(relationship, target)]), on: node,
      announcing: "unlinked")
  }
}

/// `KEY RELATIONSHIP TARGET` after a model's name.
private func linkWords(
  _ node: Node, _ model: String, _ words: [String], targetRequired: Bool
) throws -> (key: JSON, relationship: String, target: JSON) {
  let reader = try RecordWords(node, model: model)
  var (key, rest) = try reader.key(words)
  guard var name = rest.first else {
    throw Failure("which relationship? write its name after the key", .usage)
  }
  // RELATIONSHIP=TARGET, as in `create` and `update`.
  if let equals = name.firstIndex(of: "="), reader.model.relationship(named: String(name[..<equals])) != nil {
    rest.replaceSubrange(
      rest.startIndex...rest.startIndex,
      with: [String(name[..<equals]), try RecordWords.givenKey(String(name[name.index(after: equals)...]))])
    name = String(name[..<equals])
  }
  guard let relationship = reader.model.relationship(named: name) else {
    throw MutationError.unknownRelationship(
      model: model, name: name, known: reader.model.relationships.map(\.name))
  }
  let targetWords = Array(rest.dropFirst())
  if targetWords.isEmpty && !targetRequired { return (key, name, .null) }
  let (target, more) = try RecordWords(node, model: relationship.target).key(targetWords)
  guard more.isEmpty else { throw Failure("`\(more.first ?? "")` is more than the key", .usage) }
  return (key, name, target)
}
