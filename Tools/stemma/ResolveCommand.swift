import ArgumentParser
import Foundation
import StemmaEvents
import StemmaHistory
import StemmaNode
import StemmaSchema

struct Resolve: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "resolve",
    abstract: "End a conflict by a write that has seen all candidates.",
    discussion: """
      On a terminal, without --take, --set, --keep, --delete and --unlink, the candidates are shown side by side and \
      you choose; without a record, one conflict after the other.
      Value: --take, or --set VALUE. Delete: --keep, --take, or --delete; a deletion takes along what `stemma delete` \
      does, and is refused where that is. Cardinality: --take keeps that link and \
      unlinks the others. Dangling: --set KEY links another record, --unlink clears the reference, --delete the record. \
      Whether the record exists is called `existence`, `_exists` beside a field of that name; \
      a whole record (policy OPTIMISTIC) has no name, \
      --kind value means it where it was deleted, too, and FIELD --set VALUE takes what is shown but for that field. \
      --all ends all or none: where a deletion is refused, end that conflict first, or leave its model out by --model. \
      An event is named as everywhere: office:5, @5718, or at least the first four digits of its digest, in lower case.
      Examples:
        stemma resolve Book 978-0 title --take 2
        stemma resolve Book 978-0 title --set 'The Title'
        stemma resolve --all --model Book --take newest
      """)
  @Argument(
    help: ArgumentHelp(
      "The model, the key, and the field if there are several.", valueName: "model key field"))
  var words: [String] = []
  @Option(
    help: ArgumentHelp("A candidate's number or event; with --all: shown or newest.", valueName: "n|event"))
  var take: String?
  @Option(help: ArgumentHelp("Write this value.", valueName: "value")) var set: String?
  @Option(
    help: "value, delete, cardinality or dangling, where the record has several conflicts of one name.",
    completion: .list(ConflictFilter.Kind.allCases.map(\.rawValue)))
  var kind: String?
  @Flag(help: "The record stays, although it was deleted elsewhere.") var keep = false
  @Flag(help: "The record goes, although it was changed elsewhere.") var delete = false
  @Flag(help: "A reference to a record that is not there is cleared.") var unlink = false
  @Flag(help: "Every value and delete conflict.") var all = false
  @Option(help: "With --all, or in a dialog: only this model.", completion: .modelNames) var model: String?
  @OptionGroup var commit: CommitOptions
  @OptionGroup var format: FormatOptions
  @OptionGroup var options: NodeOptions

  private static let dangling = ConflictFilter.Kind.dangling.rawValue

  /// Whether the command asks the user at the terminal.
  private var isDialog: Bool { take == nil && set == nil && !keep && !delete && !unlink && !all }

  func validate() throws {
    if let kind { try ConflictOptions.check(kind) }
    if unlink, kind ?? Self.dangling != Self.dangling {
      throw ValidationError(
        "--unlink is for dangling references, not for a conflict of the kind \(kind ?? "")")
    }
    let ways = [take != nil, set != nil, keep, delete, unlink].count { $0 }
    if isDialog {
      if format.isJSON || isatty(0) == 0 || !Output.isTerminal {
        throw ValidationError(
          "say how: one of --take, --set, --keep, --delete and --unlink; only on a terminal you are asked")
      }
      if words.count == 1 { throw ValidationError("which record? MODEL KEY [FIELD]; or nothing, for all") }
      return
    }
    if ways != 1 {
      throw ValidationError(
        all
          ? "say how: --take shown or --take newest"
          : "say how: one of --take, --set, --keep, --delete and --unlink")
    }
    if all {
      if !words.isEmpty { throw ValidationError("--all names no record; --model narrows it") }
      if kind != nil { throw ValidationError("--all is for value and delete conflicts; leave --kind out") }
      if take != "shown" && take != "newest" {
        throw ValidationError("--all goes with --take shown or --take newest")
      }
    } else if words.count < 2 {
      throw ValidationError("which record? MODEL KEY [FIELD]; or --all")
    }
  }

  func run() throws {
    let node = try options.openForAppending()
    if isDialog {
      var filter = try ConflictText.filter(node, words[...])
      if let model { filter.model = try RecordWords(node, model: model).model }
      if let kind = kind.flatMap({ ConflictFilter.Kind(rawValue: $0) }) { filter.kinds = [kind] }
      return try ResolveDialog(node, commit.message).run(filter)
    }
    let count: Int
    if all {
      let chosen = try model.map { try RecordWords(node, model: $0).model }
      do throws(NodeError) {
        count = try node.resolveAll(chosen, take == "newest" ? .newest : .shown, commit.message).count
      } catch {
        guard case .mutation = error else { throw error }
        let explanation = Explanation(error)
        throw Failure(
          "nothing was resolved: \(explanation.message); end that conflict by itself, "
            + "`stemma conflicts` lists all, or go on with the others by --model",
          explanation.exitCode)
      }
    } else {
      let reader = try RecordWords(node, model: words[0])
      let (key, rest) = try reader.key(Array(words.dropFirst()))
      guard rest.count <= 1 else { throw Failure("`\(rest.last ?? "")` is more than one field", .usage) }
      let record = try node.key(key, of: reader.model)
      let open = try node.conflicts(of: record, in: reader.model)
      let (field, kind) = try subject(rest.first, reader, open)
      let asked = open.filter { $0.isMeant(by: field, kind) }
      try node.resolve(
        reader.model, key, field: field, kind: kind, try resolution(node, reader, record, field, asked),
        commit.message)
      // A deleted record or a cleared reference also ends other conflicts.
      let left = try node.conflicts(of: record, in: reader.model)
      count = open.count { conflict in !left.contains { $0.isSame(as: conflict) } }
    }
    if format.isJSON {
      Output.line(.object([("resolved", .int(Int64(count)))]))
    } else {
      Output.line("resolved \(counted(count, "conflict"))")
    }
    Output.flush()
  }

  /// The field or relationship, and the kind of conflict, from the word after the key and `--kind`.
  private func subject(
    _ name: String?, _ reader: RecordWords, _ open: [ConflictDescription]
  ) throws -> (field: String?, kind: ConflictFilter.Kind?) {
    let kind = unlink ? .dangling : kind.flatMap { ConflictFilter.Kind(rawValue: $0) }
    guard let name, !reader.isKnown(name), !open.contains(where: { $0.isMeant(by: name, kind) }) else {
      return (name, kind)
    }
    guard ExistenceName.matches(name, in: reader.model) else {
      throw FieldChoice.unknown(name, [reader.model], reader.model, .badData)
    }
    if let kind, kind != .delete {
      throw Failure("whether a record exists is a conflict of the kind delete, not \(kind.rawValue)", .usage)
    }
    return (nil, .delete)
  }

  private func resolution(
    _ node: Node, _ reader: RecordWords, _ key: Key, _ field: String?, _ asked: [ConflictDescription]
  ) throws -> Resolution {
    if keep { return .keep }
    if delete { return .delete }
    if unlink { return .set(.null) }
    if let set {
      guard let field else { throw Failure("--set needs the field after the key", .usage) }
      if let declared = reader.model.field(named: field) { return .set(try reader.value(set, of: declared)) }
      if reader.isKnown(field) { return .set(try reader.target(set, of: field)) }
      return .set(try Self.unknownValue(set, asked))
    }
    let take = take ?? ""
    let count = asked.map(\.candidates.count).max() ?? 0
    // Four or more digits may be a prefix of a digest.
    if let number = Int(take), number <= count || take.utf8.count < 4 { return .take(number) }
    if take == "shown" { return .shown }
    if take == "newest" { return .newest }
    guard !asked.isEmpty else {
      throw MutationError.noConflict(
        model: reader.model.name, key: KeyWords.text(key, of: reader.model), field: field, kind: kind)
    }
    return try candidate(take, node, reader.model, key, asked)
  }

  /// The value of `--set` for a field that the schema does not have: text if a candidate is text,
  /// otherwise JSON.
  private static func unknownValue(_ text: String, _ asked: [ConflictDescription]) throws -> JSON {
    let values = asked.flatMap { $0.candidates.map(\.value) }
    if values.contains(where: { if case .string = $0 { true } else { false } }) { return .string(text) }
    do { return try JSON.parse(text) } catch {
      throw Failure("the JSON of --set is wrong: \(Explanations.text(of: error))", .badData)
    }
  }

  /// The candidate that an event wrote, by any name of the event.
  private func candidate(
    _ word: String, _ node: Node, _ model: Model, _ key: Key, _ asked: [ConflictDescription]
  ) throws -> Resolution {
    var resolutions: [QualifiedEventID: Resolution] = [:]
    for conflict in asked {
      for candidate in conflict.candidates {
        var partition = Partition(model: model, key: key)
        // Candidates may be events of several records with the same event id.
        let child = conflict.kind == .cardinality ? conflict.record.flatMap(node.schema.model(named:)) : nil
        if let child { partition = Partition(model: child, key: try node.key(candidate.value, of: child)) }
        let name = QualifiedEventID(partition: partition, id: candidate.id)
        resolutions[name] = child == nil ? .takeEvent(candidate.id) : .take(candidate.number)
      }
    }
    let ids = node.description.ids(named: word)
    let named = resolutions.filter { ids.contains($0.key.id) }
    if named.count == 1, let only = named.first { return only.value }
    var meaning = ""
    if ids.isEmpty || !named.isEmpty {
      let event = try event(word, node)
      if let resolution = resolutions[event.name] { return resolution }
      meaning = "\(node.description.name(event.id)) in \(event.partition), "
    }
    let candidates = Set(asked.flatMap { $0.candidates.map(\.event) }).sorted().joined(separator: ", ")
    throw Failure("`\(word)` is \(meaning)no candidate of this conflict; there are \(candidates)", .badData)
  }

  private func event(_ word: String, _ node: Node) throws -> Event {
    do { return try node.event(named: word).event } catch NodeError.inspection(.notAnEvent) {
      throw Failure(
        "`\(word)` is neither a candidate's number nor an event such as \(node.metadata.name):5", .usage)
    }
  }
}

extension ConflictDescription {
  /// Whether the conflict matches a field or relationship, and a kind. Nil matches any.
  func isMeant(by field: String?, _ kind: ConflictFilter.Kind?) -> Bool {
    if let kind, kind != self.kind { return false }
    guard let field else { return true }
    return field == self.field || fields.contains(field)
  }
}
