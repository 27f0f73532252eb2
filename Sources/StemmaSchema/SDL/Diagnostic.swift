/// An error or a warning at one place of a schema's text.
package struct Diagnostic: Sendable, Equatable, CustomStringConvertible {
  /// Counted from 1.
  package var line: Int
  /// Counted from 1, in Unicode scalars.
  package var column: Int
  /// The problem.
  package var message: String
  /// The correction.
  package var advice: String?

  package init(line: Int, column: Int, message: String, advice: String? = nil) {
    self.line = line
    self.column = column
    self.message = message
    self.advice = advice
  }

  package var description: String {
    "\(line):\(column): \(message)" + (advice.map { "; \($0)" } ?? "")
  }
}

/// A schema's text is invalid. All errors found, in the order of the text; never empty.
package struct SchemaError: Error, Sendable, Equatable, CustomStringConvertible {
  package let diagnostics: [Diagnostic]

  package init(diagnostics: [Diagnostic]) { self.diagnostics = diagnostics }

  package var description: String { diagnostics.map(\.description).joined(separator: "\n") }
}

/// A place in a schema's text, both counted from 1; columns in Unicode scalars.
struct Place: Equatable, Comparable {
  var line: Int
  var column: Int

  static func < (a: Place, b: Place) -> Bool { (a.line, a.column) < (b.line, b.column) }
}

extension Diagnostic {
  init(_ place: Place, _ message: String, _ advice: String? = nil) {
    self.init(line: place.line, column: place.column, message: message, advice: advice)
  }
}

/// Ends the reading of one definition; the reader continues with the next one.
struct SyntaxError: Error {
  let diagnostic: Diagnostic

  init(_ place: Place, _ message: String, _ advice: String? = nil) {
    diagnostic = Diagnostic(place, message, advice)
  }
}
