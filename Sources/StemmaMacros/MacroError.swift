import SwiftDiagnostics
import SwiftSyntax

/// A misuse of a macro, said at the place where it is.
struct Misuse: DiagnosticMessage {
  let id: String
  let message: String
  var severity: DiagnosticSeverity = .error
  var diagnosticID: MessageID { MessageID(domain: "Stemma", id: id) }

  init(_ id: String, _ message: String) {
    self.id = id
    self.message = message
  }

  func error(at node: some SyntaxProtocol) -> DiagnosticsError {
    DiagnosticsError(diagnostics: [Diagnostic(node: node, message: self)])
  }
}

/// What to do about a misuse.
struct Advice: FixItMessage {
  let message: String
  var fixItID: MessageID { MessageID(domain: "Stemma", id: message) }
}

/// A model that is refused, with what `@Table` has to say of it: nothing, where another attribute says it all.
struct Refusal: Error {
  let diagnostics: [Diagnostic]
}

/// The misuses of one declaration. All are said at once.
struct Misuses {
  private(set) var diagnostics: [Diagnostic] = []
  /// Whether there are errors that another attribute says.
  private(set) var hasOthers = false

  var hasErrors: Bool { hasOthers || diagnostics.contains { $0.diagMessage.severity == .error } }

  /// Has the same errors, which are said elsewhere.
  mutating func follow(_ other: Misuses) { hasOthers = hasErrors || other.hasErrors }

  mutating func add(_ id: String, _ message: String, at node: some SyntaxProtocol, fix: FixIt? = nil) {
    diagnostics.append(
      Diagnostic(node: node, message: Misuse(id, message), fixIts: fix.map { [$0] } ?? []))
  }

  mutating func warn(_ id: String, _ message: String, at node: some SyntaxProtocol, fix: FixIt? = nil) {
    var misuse = Misuse(id, message)
    misuse.severity = .warning
    diagnostics.append(Diagnostic(node: node, message: misuse, fixIts: fix.map { [$0] } ?? []))
  }

  /// One misuse, to be thrown.
  static func error(_ id: String, _ message: String, at node: some SyntaxProtocol, fix: FixIt? = nil)
    -> DiagnosticsError
  {
    var misuses = Misuses()
    misuses.add(id, message, at: node, fix: fix)
    return DiagnosticsError(diagnostics: misuses.diagnostics)
  }

  /// Runs `body` and keeps what it throws.
  mutating func collect<Result>(_ body: () throws -> Result?) throws -> Result? {
    do { return try body() } catch let error as DiagnosticsError {
      diagnostics += error.diagnostics
      return nil
    }
  }
}

extension FixIt {
  /// Replaces a node by another, and keeps the white space around it.
  static func replace(_ advice: String, _ old: some SyntaxProtocol, by new: some SyntaxProtocol) -> FixIt {
    replace(advice, [.replacement(of: old, by: new)])
  }

  /// Replaces several nodes, of which none holds another.
  static func replace(_ advice: String, _ changes: [Change]) -> FixIt {
    FixIt(message: Advice(message: advice), changes: changes)
  }
}

extension FixIt.Change {
  /// A node in the place of another, with the white space around that.
  static func replacement(of old: some SyntaxProtocol, by new: some SyntaxProtocol) -> Self {
    var new = Syntax(new)
    new.leadingTrivia = old.leadingTrivia
    new.trailingTrivia = old.trailingTrivia
    return .replace(oldNode: Syntax(old), newNode: new)
  }
}
