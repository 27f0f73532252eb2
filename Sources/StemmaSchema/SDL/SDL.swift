/// GraphQL's schema definition language as AWS Amplify uses it: the canonical text of a schema.
///
/// Reading has three steps. The lexer and the parser make a syntax tree with places; a syntax error ends the
/// definition in which it stands, and if there was any, reading ends here. `SchemaReader` then makes models
/// of the tree, in phases that each need the one before for all models: types and fields, keys, indexes,
/// relationships, names. It goes on after an error where it can, so that one run tells most of what is
/// wrong. What the text leaves unsaid (the field `id`, reference fields, join models) is then in the schema
/// like everything else.
///
/// `print` writes it all out: keys, reference fields and names are explicit, `fields` names fields of the
/// declaring model and `references` fields of the other one. Reading the result gives an equal schema.
package enum SDL {
  /// Reads a schema. Throws everything that is wrong with it, at most `SchemaLimits.diagnostics` places.
  package static func read(_ text: String) throws(SchemaError) -> (schema: Schema, warnings: [Diagnostic]) {
    guard text.utf8.count <= SchemaLimits.text else {
      let message = "schema of \(text.utf8.count) bytes; at most \(SchemaLimits.text) are read"
      throw SchemaError(diagnostics: [Diagnostic(line: 1, column: 1, message: message)])
    }
    var parser = Parser(text)
    let document = parser.document()
    guard parser.errors.isEmpty else { throw SchemaError(diagnostics: parser.errors) }
    var reader = SchemaReader(document)
    let schema = reader.read()
    guard reader.errors.isEmpty else {
      let sorted = reader.errors.sorted { ($0.line, $0.column) < ($1.line, $1.column) }
      throw SchemaError(diagnostics: Array(sorted.prefix(SchemaLimits.diagnostics)))
    }
    let warnings = (parser.warnings + reader.warnings)
      .sorted { ($0.line, $0.column) < ($1.line, $1.column) }
    return (schema, warnings)
  }

  /// Reads a schema that is to be stored, and gives its canonical text. A node stores that text, so it
  /// is read back here.
  ///
  /// Throws as `read` does. Throws also if the canonical text cannot be read: it spells out implied
  /// fields and names, and can be longer than `SchemaLimits.text`.
  package static func readForStoring(
    _ text: String
  ) throws(SchemaError) -> (schema: Schema, canonical: String, warnings: [Diagnostic]) {
    let (schema, warnings) = try read(text)
    let canonical = print(schema)
    let reason: String
    do throws(SchemaError) {
      if try read(canonical).schema == schema { return (schema, canonical, warnings) }
      reason = "it reads as another schema"
    } catch { reason = error.diagnostics.first?.message ?? "no reason given" }
    let message = "the canonical form of this schema cannot be stored: \(reason)"
    throw SchemaError(diagnostics: [
      Diagnostic(
        line: 1, column: 1, message: message, advice: "declare reference fields and names explicitly")
    ])
  }
}
