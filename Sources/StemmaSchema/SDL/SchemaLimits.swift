/// All limits on schemas. They protect memory and stack, because peers send schemas.
package enum SchemaLimits {
  /// Longest text of a schema, in bytes.
  package static let text = 1 << 20
  /// Longest name, in bytes.
  package static let name = 255
  /// Most types and enums.
  package static let types = 2000
  /// Deepest nesting of list and object literals in directives.
  package static let literalDepth = 32
  /// Most diagnostics that one reading collects.
  package static let diagnostics = 100
  /// Most stored fields of a model: SQLite's default limit of 2000 columns, minus two of ours.
  package static let fields = 1998
}
