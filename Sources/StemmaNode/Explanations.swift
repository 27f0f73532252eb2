import Foundation
import StemmaEvents
import StemmaLog
import StemmaMerge
import StemmaReplication
import StemmaSchema
import StemmaTables

/// Texts of all errors: the object, the cause and the next step.
package enum Explanations {
  package static func text(of error: NodeError) -> Notice {
    switch error {
    case .noNode(let path):
      "there is no node in \(path) or above it; make one with \(step: .initialize), or name one with -C"
    case .alreadyANode(let path, let source):
      "\(path) holds a node already; choose another directory"
        + (source.map { ", or fetch what \($0) has with \(step: .pull($0, directory: path))" } ?? "")
    case .unfinishedClone(let path, let source, let reason):
      (reason.map { text(of: $0) + "; " } ?? "")
        + "\(path) holds an unfinished clone\(source.map { " of \($0)" } ?? ""); "
        + "\(step: .pull(source == nil ? NextStep.peer : nil, directory: path)) goes on with it"
        + (reason == nil ? "; or take that directory away" : "")
    case .logWithoutMetadata(let path):
      "there is a log in \(path), and no \(NodeMetadata.fileName) beside it; put that file back from a backup, or choose "
        + "another directory"
    case .lostMetadata(let path, true):
      "the node in \(path) has lost its \(NodeMetadata.fileName), and has the copy of it: "
        + "\(step: .copyMetadata(from: Node.path(path, NodeMetadata.copyName), to: Node.path(path, NodeMetadata.fileName))) "
        + "brings it back"
    case .lostMetadata(let path, false):
      "the node in \(path) has lost its \(NodeMetadata.fileName) and the copy of it; put them back from a backup, or make a new "
        + "one with \(step: .repairMetadata(directory: path)): the log is kept; "
        + "set scope and remotes again"
    case .noParent(let path):
      "\(path) cannot be made: the directory \(Log.parent(of: path)) is not there; make it first"
    case .occupied(let path, let what):
      "\(path) is there, and \(what), so it is not replaced; name another file"
    case .noTemporaryPlace(_, let error):
      "\(text(of: error)); temporary files are made there: name another folder, with `TMPDIR`"
    case .badMetadata(let path, let what):
      "\(path): \(what); restore it from a backup, or take it away, and its copy if there is "
        + "one, and \(step: .repairMetadata(directory: Log.parent(of: path))) makes a new one"
    case .noSchema(let path): "\(path) is missing or empty; " + restoring(schema: path)
    case .badSchema(let path, let what): "\(path): \(what); " + restoring(schema: path)
    case .newerFormat(let path, let found, let supported):
      "\(path) has format \(found), this program knows up to \(supported); update it"
    case .schema(let error): Notice(error.description)
    case .refusedSchema(let refusals): "the schema is refused: \(refusals.joined(separator: "; "))"
    case .mutation(let error): text(of: error)
    case .log(let error): text(of: error)
    case .tables(let error): text(of: error)
    case .replication(let error): text(of: error)
    case .inspection(let error): text(of: error)
    // `importLine` adds source and line.
    case .lineTooLong(_, _, let limit): "the line is longer than \(limit >> 20) MiB; split the record"
    case .malformedInput(_, let what): what
    case .cannotRead(let path, let code): "cannot read \(path): \(system(code))"
    case .importLine(let source, let line, let reason, let resume, let earlier):
      "\(source):\(line): \(clause(of: reason)); "
        + (resume.map {
          "nothing of its commit was written; "
            + (earlier.map { "an earlier import is durable through line \($0), " } ?? remedy(of: reason))
            + "go on with --from-line \($0)"
        } ?? "this was only tried, and nothing was written")
    case .importEnded(let source, let reason, let resume):
      "\(clause(of: reason)); \(source) is durable through line \(resume - 1), go on with --from-line \(resume)"
    case .unknownRemote(let name, let known):
      "`\(name)` is neither a remote\(known.isEmpty ? "" : " (there are \(known.joined(separator: ", ")))") nor a directory with a node"
    case .notAPeer(let path, let reason): "\(path): \(reason)"
    case .unauthenticated(let address):
      "\(address): the peer requires a valid token; its operator can create one"
    case .missingPrerequisites(let bundle, let missing):
      "\(bundle): this node lacks events that the bundle continues: \(missing.text); apply the earlier bundles first, "
        + "or create one that begins there"
    case .noRemotes: "this node has no remotes; name a peer's directory, or add one with \(step: .addRemote)"
    case .scopeChanged(let node):
      "the scope of \(node) changed during the exchange; run the command again"
    case .unacknowledged(let partition, let events):
      "partition \(partition) has events (up to number \(events)) that no peer is known to hold; "
        + "push first, or give them up with --discard"
    case .corrupt(let what): Notice(what)
    case .missing(let missing): text(of: missing)
    case .corruptPartition(let partition):
      "the log has lost events of partition \(partition), or may have, so its records can only be read until that is "
        + "repaired; \(step: .verify) shows how"
    case .duplicateEvents(let node, let path, let partition, let event):
      "the log of \(node) has \(event) of partition \(partition) twice: a machine was set back and wrote again; "
        + "\(step: .repairFork(directory: path, hasPeer: false)) repairs that; nothing is written or exchanged before"
    case .abandoned: "the commit was abandoned; nothing of it was written"
    case .unforeseen(let what): Notice(what)
    }
  }

  /// The text of an error, for use before a semicolon.
  private static func clause(of error: NodeError) -> Notice { text(of: error).droppingFullStop() }

  /// The step before an import continues. The error of a corrupt file includes it.
  private static func remedy(of reason: NodeError) -> Notice {
    switch reason {
    // The line is not at fault.
    case .malformedInput, .cannotRead, .log, .tables, .corrupt, .missing, .corruptPartition, .duplicateEvents:
      ""
    default: "fix the line and "
    }
  }

  private static let pointsInTime =
    "a time (2026-11-21T05:14:01Z, 2026-11-21, 2h, yesterday), a position (@5718) or an event (NAME:SEQUENCE, or "
    + "the first digits of its digest)"

  package static func text(of error: InspectionError) -> Notice {
    switch error {
    case .notAPointInTime(let text): "`\(text)` is no point in history; write \(pointsInTime)"
    case .notAPointInTimeOrNode(let text):
      "`\(text)` is neither a point in history nor a node; write \(pointsInTime), or name a remote or a node's directory"
    case .notAnEvent(let text):
      "`\(text)` names nothing in the log; write a position (@5718), an event (NAME:SEQUENCE, or the first digits of its "
        + "digest) or, where one is taken, a commit (NAME.NUMBER; \(step: .listCommits) shows them)"
    case .noSuchEvent(let text, let partition):
      "there is no event `\(text)` in \(partition.map { "partition \($0) of " } ?? "")this node; \(step: .listEvents) lists them"
    case .beyondTheEnd(let text, let last):
      "`\(text)` lies beyond the end of the log; \(last.map { "the last event is @\($0)" } ?? "it has no events")"
    case .daysOrEvent(let text, let events):
      "`\(text)` may be so many days ago, or the event \(list(events, "or")); write the days as hours"
        + (Int(text.dropLast()).map { " (\($0 * 24)h)" } ?? "") + ", or more digits of the digest"
    case .severalEvents(let text, let names, let takesPartition):
      "`\(text)` may be \(list(names, "or")); name it by its position or digest (\(step: .listEvents) shows them)"
        + (takesPartition ? ", or add --partition" : "")
    case .severalCommits(let text, let names): "`\(text)` may be \(list(names, "or"))"
    case .noSuchCommit(let text):
      "there is no commit `\(text)` in this node; \(step: .listCommits) lists them"
    case .overwritten(let event, let record, let field, let later):
      "\(field) of \(record) was written after \(event), by \(later); undo that first, or use --force"
    case .emptyPast(let records):
      "the node held no event at that time, so this would delete \(counted(records, "record")); name a later time "
        + "(\(step: .listFirstEvents) shows the first), or use --force"
    case .takesAlong(let records):
      "\(list(records, "and")) would be deleted too, or lose a link, with a record that has to go; --force does it, -n "
        + "with it shows what"
    case .existenceInConflict(let record):
      "whether \(record) exists is an open conflict; decide with \(step: .decideExistence(record))"
    case .changedMeanwhile:
      "others have written in the meantime, and the changes are not those that were shown any more; nothing was "
        + "written; look again"
    case .unknownPlaceholder(let name, let known):
      "unknown placeholder {\(name)}; there are {\(known.joined(separator: "}, {"))}"
    case .unclosedPlaceholder(let text, let known):
      "the brace of `{\(text)` is not closed; there are {\(known.joined(separator: "}, {"))}, and {{ is a brace"
    }
  }

  private static func text(of missing: MissingEvents) -> Notice {
    let first = missing.places.first.map { "log/\($0.file) is corrupt at byte \($0.offset)" }
    let others = missing.places.count > 1 ? " and in \(counted(missing.places.count - 1, "other place"))" : ""
    let why = (first ?? "the log is corrupt") + others
    let advice: Notice = "; \(step: .verify) lists all"
    if let record = missing.record { return "\(record) may have lost events: \(why)\(advice)" }
    if missing.isTold {
      return "what cannot be read is left out, and what would be wrong without it\(advice)"
    }
    guard let words = RecordedCorruption.words(missing.losses) else {
      return "\(why)\(missing.isVague ? ", and the lost events cannot be determined" : "")\(advice)"
    }
    return "\(words) cannot be read; they are left out, and what would be wrong without them: \(why)\(advice)"
  }

  static func list(_ texts: [String], _ word: String) -> String {
    guard texts.count > 1, let last = texts.last else { return texts.first ?? "" }
    if texts.count > 6 {
      return texts.prefix(4).joined(separator: ", ") + " \(word) \(texts.count - 4) others"
    }
    return texts.dropLast().joined(separator: ", ") + " \(word) \(last)"
  }

  package static func text(of error: MutationError) -> Notice {
    switch error {
    case .notJSON(let error): "this is not JSON: \(text(of: error))"
    case .wrongShape(let what): Notice(what)
    case .unknownOperation(let name):
      "unknown op `\(name)`; there are \(Mutation.Operation.allCases.map(\.rawValue).joined(separator: ", "))"
    case .unknownModel(let name, let known):
      "unknown model `\(name)`\(suggestion(name, known, else: "\(step: .listModels) lists all"))"
    case .unknownField(let model, let field, let known):
      "\(model) has no field `\(field)`\(suggestion(field, known))"
    case .unknownRelationship(let model, let name, let known):
      "\(model) has no relationship `\(name)`"
        + (known.isEmpty ? "" : "; there are \(known.joined(separator: ", "))")
    case .value(let error): Notice(text(of: error))
    case .missingKey(let model, let parts): "\(model) needs a key with \(parts.joined(separator: " and "))"
    case .missingField(let model, let key, let field):
      "\(model) \(key) needs a value for the required field `\(field)`"
    case .keyFieldAssigned(let model, let key, let field):
      "`\(field)` is a part of the key of \(model) \(key) and never changes; delete the record and create another"
    case .alreadyExists(let model, let key): "\(model) \(key) exists already; use upsert or update"
    case .notFound(let model, let key): "there is no \(model) \(key)"
    case .requiredReference(let model, let key, let relationship):
      "`\(relationship)` of \(model) \(key) is required: link it to another record, or delete the record"
    case .fixedReference(let model, let key, let field):
      "`\(field)` is a part of the key of \(model) \(key): it can only be linked to a record with the same value there"
    case .notLinked(let model, let key, let relationship):
      "`\(relationship)` of \(model) \(key) does not lead to that record"
    case .danglingReference(let model, let key, let relationship, let target):
      "`\(relationship)` of \(model) \(key) leads to \(target), which is not there"
    case .restricted(let model, let key, let by, let count):
      "\(model) \(key) still has \(count) \(by); delete or unlink them first"
    case .outsideScope(let partition):
      "partition \(partition) is outside of this node's scope; add it with \(step: .addToScope(partition))"
    case .revisionMismatch(let model, let key, let expected, let current):
      "\(model) \(key) is at revision \(current), not \(expected.isEmpty ? "at none" : expected); read it again"
    case .noConflict(let model, let key, let field, let kind):
      "\(field.map { "`\($0)` of " } ?? "")\(model) \(key) "
        + (kind.map { "is in no conflict of the kind \($0)" } ?? "is not in conflict")
        + "; \(step: .listConflicts()) lists what is"
    case .noCandidate(let model, let key, let field, let asked, let count):
      "\(field.map { "`\($0)` of " } ?? "")\(model) \(key) has \(count) candidates, and `\(asked)` is none of them"
    case .severalConflicts(let model, let key, let names):
      "\(model) \(key) has several conflicts; name one of \(names.joined(separator: ", "))"
    }
  }

  package static func text(of error: ValueError) -> String {
    let place = error.field.map { "\(error.model).\($0)" } ?? "the key of \(error.model)"
    let record = error.key.map { " of \($0)" } ?? ""
    return "\(place)\(record): \(error.value) is wrong: \(error.rule)"
  }

  package static func text(of error: JSONError) -> String {
    let what =
      switch error.problem {
      case .expected(let token): "expected \(token)"
      case .cutShort: "it ends too early"
      case .number: "a number is malformed"
      case .escape: "an escape in a string is malformed"
      case .controlCharacter: "a control character stands unescaped in a string"
      case .notUTF8: "it is not UTF-8"
      case .byteOrderMark: "it begins with a byte order mark"
      case .repeatedName(let name): "the name `\(name)` occurs twice"
      case .tooDeep(let limit): "it is nested deeper than \(limit) levels"
      case .trailingText: "more follows behind the value"
      }
    return "\(what) at byte \(error.offset)"
  }

  package static func text(of error: LogError) -> Notice {
    switch error {
    case .corrupt(_, _, let flaw) where flaw.isDuplicate: "\(error)"
    case .corrupt: "\(error); \(step: .verify) lists all corruption"
    case .noManifest: "\(error); \(step: .repairManifest) rebuilds it from the files"
    case .noLog:
      "\(error): put it back from a backup, or go on with \(step: .clone(nil)); only the tables are left here"
    case .system(let path, let operation, let code) where isRefusalToLock(error):
      "\(operation) \(path): \(system(code)); this node can only be read here: "
        + "\(step: .clone(String(path.dropLast(Node.lockFileName.count + 1)))) makes one that can be written"
    case .system(_, _, EIO): failedDisk("\(error)")
    default: "\(error)"
    }
  }

  private static func failedDisk(_ failure: Notice) -> Notice {
    "\(failure); then \(step: .verify) lists what is corrupt, and \(step: .repair(from: [NextStep.peer])) puts it back"
  }

  package static func text(of error: ReplicationError) -> Notice {
    switch error {
    case .sameLog:
      "\(error); if both were written to since, run \(step: .repairFork(hasPeer: true)) on one of them, and sync again; "
        + "if only one was, make the other again with \(step: .clone(nil))"
    case .fork:
      "\(error); run \(step: .repairFork(hasPeer: true)) on the one that was copied or set back, and then on every node "
        + "that is still refused"
    case .corruptLog, .inconsistentLog: "\(error); run \(step: .verify) on that node"
    case .refusedByPeer(let inner): "the peer refused: \(text(of: inner))"
    default: "\(error)"
    }
  }

  /// A notice for an incomplete node, which may look empty or complete.
  package static let unfinishedClone: Notice =
    "this node is an unfinished clone; \(step: .pull(nil)) goes on with it"
  /// The same for a peer.
  package static let unfinishedPeer: Notice =
    "it is an unfinished clone, which may lack events; \(step: .pull(nil)) there goes on with it"

  private static func restoring(schema path: String) -> Notice {
    "restore it from a backup, or take it from another node of the same data: \(step: .restoreSchema(path))"
  }

  package static func text(of reason: RebuildReason) -> String {
    switch reason {
    case .missing: "it is missing"
    case .corrupt(let what): what
    case .format(nil): "it holds no tables of a node"
    case .format: "it is of another version's format"
    case .schema: "it was made for another schema"
    case .asOf: "it shows the past"
    }
  }

  package static func text(of error: TablesError) -> Notice {
    switch error {
    case .needsRebuild(let path, let reason):
      "\(path) cannot be used (\(text(of: reason))); \(step: .rebuild(directory: Log.parent(of: path))) rebuilds it from "
        + "the log"
    case .rebuilt(let path, let reason):
      "\(path) could not be used (\(text(of: reason))), and was rebuilt from the log; try again"
    case .replaced(let path): "\(path) was rebuilt by another process; try again"
    case .busy(let path): "\(path) is kept busy by another process; try again, or wait longer with --wait"
    case .sqlite(let path, _, let message): sqlite(error, path, message)
    case .io(let path, let operation, EIO): failedDisk(Notice(System.failure(of: operation, at: path, EIO)))
    case .io(let path, let operation, let code): Notice(System.failure(of: operation, at: path, code))
    case .pathTooLong(let path, let limit):
      "\(path) is longer than the \(limit) bytes that SQLite takes; choose a directory with a shorter path"
    case .gap(let partition, let id, let held):
      "partition \(partition): event \(id) came, but only \(held) before it is held"
    case .merge(let model, let key, let error):
      "an event of \(model) \(KeyWords.text(key)) cannot be merged: \(error)"
    case .unfitKey(let model, let key):
      "an event of \(model) has the key \(KeyWords.text(key)), which the schema does not allow"
    case .foreignPartition(let partition, let model, let key):
      "an event of \(model) \(KeyWords.text(key)) is in the foreign partition \(partition)"
    case .unknownModel(let name): "unknown model `\(name)`"
    case .unknownField(let model, let field): "\(model) has no field `\(field)`"
    case .unknownRelationship(let model, let name): "\(model) has no relationship `\(name)`"
    case .notAQuery(let sql): "`\(sql)` is not one statement that only reads"
    case .inconsistent(let what): Notice(what)
    }
  }

  private static func sqlite(_ error: TablesError, _ path: String, _ message: String) -> Notice {
    let says = "SQLite says \(message)"
    // The query is wrong, not the file.
    if error.isOfTheQuery {
      return message.hasPrefix("no such table")
        ? "\(says); \(step: .listTables) lists what there is" : Notice(says)
    }
    if error.isDiskFull {
      return "\(path): \(says); make room there, or, if there is room, see that its disk is well and "
        + "files may grow (`ulimit -f`); then try again"
    }
    if error.isRefusalToOpen {
      return "\(path): \(says); see that it and its folder may be written to"
        + (error.isNotPermitted ? " by this user" : "") + ", and try again"
    }
    if error.isOfTheFiles {
      return "\(path): \(says); see that its disk is well and files may grow (`ulimit -f`), and try again"
    }
    return "\(path): \(says)"
  }

  package static func text(of warning: Diagnostic, in file: String) -> String {
    "\(file):\(warning.description)"
  }

  /// Whether the lock could not be taken because the node is not writable.
  package static func isRefusalToLock(_ error: LogError) -> Bool {
    guard case .system(let path, _, let code) = error else { return false }
    return path.hasSuffix("/" + Node.lockFileName) && [EROFS, EACCES, EPERM].contains(code)
  }

  private static func system(_ code: Int32) -> String { System.text(of: code) }

  /// A duration in its largest unit.
  static func duration(_ milliseconds: UInt64) -> String {
    let seconds = milliseconds / 1000
    for (unit, length) in [("year", 31_557_600), ("day", 86_400), ("hour", 3_600), ("minute", 60)]
      as [(_, UInt64)]
    where seconds >= length {
      return "\(seconds / length) \(unit)\(seconds / length == 1 ? "" : "s")"
    }
    return "\(seconds) seconds"
  }

  /// `; did you mean X?` if a known name is similar, otherwise the known names.
  package static func suggestion(_ name: String, _ known: [String], else fallback: Notice? = nil) -> Notice {
    if let near = Spelling.nearest(to: name, among: known) { return "; did you mean `\(near)`?" }
    if let fallback { return "; \(fallback)" }
    return known.isEmpty || known.count > 12 ? "" : "; there are \(known.joined(separator: ", "))"
  }
}
