import SwiftDiagnostics
import SwiftSyntax

/// A misuse of a macro, reported at its place.
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

/// The advice for a misuse.
struct Advice: FixItMessage {
  let message: String
  var fixItID: MessageID { MessageID(domain: "Stemma", id: message) }
}

/// A refused model, with the diagnostics of `@Table`: none if another attribute reports all errors.
struct Refusal: Error {
  let diagnostics: [Diagnostic]
}

/// The misuses of one declaration. All are reported together.
struct Misuses {
  private(set) var diagnostics: [Diagnostic] = []
  /// Whether another attribute reports errors.
  private(set) var hasOthers = false

  var hasErrors: Bool { hasOthers || diagnostics.contains { $0.diagMessage.severity == .error } }

  /// Adds errors that are reported elsewhere.
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

  /// A single misuse, for `throw`.
  static func error(_ id: String, _ message: String, at node: some SyntaxProtocol, fix: FixIt? = nil)
    -> DiagnosticsError
  {
    var misuses = Misuses()
    misuses.add(id, message, at: node, fix: fix)
    return DiagnosticsError(diagnostics: misuses.diagnostics)
  }

  /// Runs `body` and collects the errors that it throws.
  mutating func collect<Result>(_ body: () throws -> Result?) throws -> Result? {
    do { return try body() } catch let error as DiagnosticsError {
      diagnostics += error.diagnostics
      return nil
    }
  }
}

extension FixIt {
  /// Replaces a node by another one, and keeps the white space around it.
  static func replace(_ advice: String, _ old: some SyntaxProtocol, by new: some SyntaxProtocol) -> FixIt {
    replace(advice, [.replacement(of: old, by: new)])
  }

  /// Replaces several nodes that do not contain each other.
  static func replace(_ advice: String, _ changes: [Change]) -> FixIt {
    FixIt(message: Advice(message: advice), changes: changes)
  }
}

extension FixIt.Change {
  /// Replaces a node by another one, with the white space around the old one.
  static func replacement(of old: some SyntaxProtocol, by new: some SyntaxProtocol) -> Self {
    var new = Syntax(new)
    new.leadingTrivia = old.leadingTrivia
    new.trailingTrivia = old.trailingTrivia
    return .replace(oldNode: Syntax(old), newNode: new)
  }
}
