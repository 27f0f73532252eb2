import SwiftDiagnostics
import SwiftSyntax

/// A misuse of a macro, said at the place where it is.
struct Misuse: DiagnosticMessage {
  let id: String
  let message: String
  var severity: DiagnosticSeverity { .error }
  var diagnosticID: MessageID { MessageID(domain: "Stemma", id: id) }

  init(_ id: String, _ message: String) {
    self.id = id
    self.message = message
  }

  func error(at node: some SyntaxProtocol) -> DiagnosticsError {
    DiagnosticsError(diagnostics: [Diagnostic(node: node, message: self)])
  }
}
