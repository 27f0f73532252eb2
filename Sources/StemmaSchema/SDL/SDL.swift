/// GraphQL's schema definition language as AWS Amplify uses it: the canonical text of a schema.
///
/// Reading has three steps. The lexer and the parser build a syntax tree with places. A syntax
/// error ends its definition, and after any of them reading ends here. `SchemaReader` then builds
/// models in phases: types and fields, keys, indexes, relationships, names. Each phase needs the
/// one before for all models. The reader continues after an error if it can, so that one run
/// reports most errors. The schema contains implied parts, too: the field `id`, reference fields,
/// join models.
///
/// `print` makes keys, reference fields and names explicit. Its `fields` are fields of the
/// declaring model, its `references` fields of the other one. Reading the result gives an equal
/// schema.
package enum SDL {
  /// Reads a schema. Throws all errors in it, at most `SchemaLimits.diagnostics`.
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

  /// Reads a schema for a node to store, and returns its canonical text. The text is read back
  /// here, because it is what a node stores.
  ///
  /// Throws as `read` does, and if the canonical text cannot be read: it has implied fields and
  /// names, and can be longer than `SchemaLimits.text`.
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
