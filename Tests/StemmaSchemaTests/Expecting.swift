import StemmaSchema
import Testing

/// Reads a schema with a `‸` before the place of its error. Checks place, message and advice.
func expectError(
  _ marked: String, _ message: String, _ advice: String? = nil,
  sourceLocation: SourceLocation = #_sourceLocation
) {
  let (text, line, column) = place(of: marked)
  do {
    _ = try SDL.read(text)
    Issue.record("no error", sourceLocation: sourceLocation)
  } catch {
    check(error.diagnostics, line, column, message, advice, sourceLocation)
  }
}

/// The same for a warning.
func expectWarning(
  _ marked: String, _ message: String, _ advice: String? = nil,
  sourceLocation: SourceLocation = #_sourceLocation
) throws {
  let (text, line, column) = place(of: marked)
  check(try SDL.read(text).warnings, line, column, message, advice, sourceLocation)
}

private func place(of marked: String) -> (text: String, line: Int, column: Int) {
  let before = marked.prefix { $0 != "‸" }
  let lines = before.split(separator: "\n", omittingEmptySubsequences: false)
  return (
    marked.replacing("‸", with: ""), lines.count, (lines.last?.unicodeScalars.count ?? 0) + 1
  )
}

private func check(
  _ found: [Diagnostic], _ line: Int, _ column: Int, _ message: String, _ advice: String?,
  _ sourceLocation: SourceLocation
) {
  let wanted = Diagnostic(line: line, column: column, message: message, advice: advice)
  let isThere = found.contains { diagnostic in
    diagnostic.line == line && diagnostic.column == column && diagnostic.message.contains(message)
      && (advice.map { diagnostic.advice?.contains($0) == true } ?? true)
  }
  #expect(isThere, "wanted \(wanted), found \(found)", sourceLocation: sourceLocation)
}
