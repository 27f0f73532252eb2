import Foundation
import StemmaEvents
import StemmaHistory
import StemmaNode

/// Asks the user at the terminal about each conflict. Each answer is a separate commit, so quitting
/// loses nothing.
struct ResolveDialog {
  private let node: Node
  private let message: CommitMessage
  private let text: ConflictText

  init(_ node: Node, _ message: CommitMessage) {
    self.node = node
    self.message = message
    text = ConflictText(node)
  }

  private enum Answer {
    case resolution(Resolution)
    case skip
    case quit
    case again(String)
  }

  func run(_ filter: ConflictFilter) throws {
    var conflicts: [ConflictDescription] = []
    try node.conflicts(filter) { conflicts.append($0) }
    var resolved = 0
    asking: for (index, conflict) in conflicts.enumerated() {
      // An answer may have ended other conflicts of its record.
      if resolved > 0, try !isOpen(conflict) {
        resolved += 1
        continue
      }
      Output.line(Output.styled("(\(index + 1) of \(conflicts.count))", .dim))
      text.writeSideBySide(conflict)
      while true {
        switch try ask(conflict) {
        case .quit: break asking
        case .skip: continue asking
        case .again(let why): Output.line(why)
        case .resolution(let resolution):
          do {
            try resolve(conflict, resolution)
            resolved += 1
            continue asking
          } catch let error as NodeError {
            // The answer is invalid; the question is repeated.
            guard case .mutation = error else { throw error }
            Output.line(Output.styled(printable(Explanations.text(of: error)), .red))
          }
        }
      }
    }
    Output.line(
      conflicts.isEmpty ? "no conflicts" : "resolved \(resolved) of \(counted(conflicts.count, "conflict"))")
    Output.flush()
  }

  private func isOpen(_ conflict: ConflictDescription) throws -> Bool {
    let model = try RecordWords(node, model: conflict.model).model
    return try node.conflicts(of: try node.key(conflict.key, of: model), in: model).contains {
      $0.isSame(as: conflict)
    }
  }

  private func resolve(_ conflict: ConflictDescription, _ resolution: Resolution) throws {
    let model = try RecordWords(node, model: conflict.model).model
    try node.resolve(
      model, conflict.key, field: conflict.field, kind: conflict.kind, resolution, message)
  }

  /// Asks once.
  private func ask(_ conflict: ConflictDescription) throws -> Answer {
    let numbers = conflict.candidates.map { "\($0.number)" }.joined(separator: ", ")
    let choices =
      switch conflict.kind {
      case .value: "take \(numbers), (e)dit, (s)kip, (q)uit"
      case .delete: "(k)eep, (d)elete, (s)kip, (q)uit"
      case .cardinality: "take \(numbers), (s)kip, (q)uit"
      case .dangling: "(l)ink another, (u)nlink, (d)elete the record, (s)kip, (q)uit"
      }
    Output.bytes(Array("\(choices)? ".utf8))
    Output.flush()
    guard let line = readLine() else {
      Output.line()
      return .quit
    }
    let word = line.trimmingCharacters(in: .whitespaces).lowercased()
    switch (word, conflict.kind) {
    case ("q", _), ("quit", _): return .quit
    case ("s", _), ("skip", _), ("", _): return .skip
    case ("k", .delete), ("keep", .delete): return .resolution(.keep)
    case ("d", .delete), ("delete", .delete), ("d", .dangling), ("delete", .dangling):
      return .resolution(.delete)
    case ("u", .dangling), ("unlink", .dangling): return .resolution(.set(.null))
    case ("e", .value), ("edit", .value): return try edit(conflict)
    case ("l", .dangling), ("link", .dangling): return try linkAnother(conflict)
    default:
      if let number = Int(word), number > 0, conflict.kind != .dangling,
        conflict.candidates.indices.contains(number - 1)
      {
        guard conflict.kind == .delete else { return .resolution(.take(number)) }
        return .resolution(conflict.candidates[number - 1].value == .bool(true) ? .keep : .delete)
      }
      return .again("`\(line)` is none of these")
    }
  }

  /// Asks for the key of another record to refer to.
  private func linkAnother(_ conflict: ConflictDescription) throws -> Answer {
    guard let field = conflict.field else { return .again("there is nothing to link") }
    Output.bytes(Array("key of the \(conflict.record ?? "record")? ".utf8))
    Output.flush()
    guard let line = readLine() else { return .quit }
    let typed = line.trimmingCharacters(in: .whitespaces)
    if typed.isEmpty { return .again("no key, nothing was linked") }
    let reader = try RecordWords(node, model: conflict.model)
    do { return .resolution(.set(try reader.target(typed, of: field))) } catch let error as MutationError {
      return .again(Output.styled(printable(Explanations.text(of: error)), .red))
    } catch let failure as Failure {
      return .again(Output.styled(printable(failure.message), .red))
    }
  }

  // MARK: Editing

  /// Opens the shown value in an editor: text as it is, other values as JSON.
  private func edit(_ conflict: ConflictDescription) throws -> Answer {
    guard let shown = conflict.candidates.first else { return .again("there is nothing to edit") }
    let folder = try TemporaryFolder()
    defer { withExtendedLifetime(folder) {} }
    let path = folder.path + "/value.txt"
    let before = plain(shown.value)
    try (before + "\n").write(toFile: path, atomically: false, encoding: .utf8)
    let environment = ProcessInfo.processInfo.environment
    let editor = environment["VISUAL"] ?? environment["EDITOR"] ?? "vi"
    let status: Int32
    do throws(ShellCommand.Refusal) {
      // The editor is a command line with options, as in git.
      status = try ShellCommand(editor + " \"$1\"", path).wait()
    } catch { return .again("cannot start the editor `\(editor)`: \(error.text)") }
    guard status == 0 else { return .again("the editor gave up; nothing was changed") }
    var after = try readText(path, limit: Limits.value)
    if after.hasSuffix("\n") { after.removeLast() }
    return try value(after, conflict)
  }

  private func value(_ typed: String, _ conflict: ConflictDescription) throws -> Answer {
    let reader = try RecordWords(node, model: conflict.model)
    if let name = conflict.field, let field = reader.model.field(named: name) {
      do { return .resolution(.set(try reader.value(typed, of: field))) } catch let error as MutationError {
        return .again(Output.styled(printable(Explanations.text(of: error)), .red))
      }
    }
    do { return .resolution(.set(try JSON.parse(Array(typed.utf8)))) } catch {
      return .again(Output.styled("this is not JSON: \(Explanations.text(of: error))", .red))
    }
  }
}
