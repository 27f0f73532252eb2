import SwiftDiagnostics
import SwiftParser
import SwiftSyntax
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacros
import SwiftSyntaxMacrosGenericTestSupport
import Testing

@testable import StemmaMacros

/// `assertMacroExpansion` with failures for Swift Testing. (The variant of
/// SwiftSyntaxMacrosTestSupport reports to XCTest and passes here with every expansion.)
func expectExpansion(
  of source: String, as expected: String, diagnostics: [DiagnosticSpec] = [],
  applying fixIts: [String]? = nil, fixed: String? = nil,
  _ location: Testing.SourceLocation = #_sourceLocation
) {
  assertMacroExpansion(
    source, expandedSource: expected, diagnostics: diagnostics, macroSpecs: macros, applyFixIts: fixIts,
    fixedSource: fixed, indentationWidth: .spaces(2),
    failureHandler: { Issue.record("\($0.message)", sourceLocation: location) })
}

private let macros = [
  "Table": MacroSpec(type: TableMacro.self, conformances: ["Stemma.Table"]),
  "Column": MacroSpec(type: MarkerMacro.self),
  "Selection": MacroSpec(type: SelectionMacro.self), "BelongsTo": MacroSpec(type: BelongsToMacro.self),
  "HasMany": MacroSpec(type: HasManyMacro.self), "HasOne": MacroSpec(type: HasOneMacro.self),
  "ManyToMany": MacroSpec(type: HasManyMacro.self),
  "_Tracked": MacroSpec(type: TrackedMacro.self), "Ephemeral": MacroSpec(type: MarkerMacro.self),
  "Index": MacroSpec(type: MarkerMacro.self),
]

/// Expects one misuse: its message, its place, and the fixed source, which must have no misuse. The
/// expansion is not checked.
func expectMisuse(
  _ source: String, _ message: String, line: Int, column: Int, severity: DiagnosticSeverity = .error,
  fix: String? = nil, fixed: String? = nil, _ location: Testing.SourceLocation = #_sourceLocation
) {
  expectExpansion(
    of: source, as: expand(source).expansion,
    diagnostics: [
      DiagnosticSpec(
        message: message, line: line, column: column, severity: severity,
        fixIts: fix.map { [FixItSpec(message: $0)] } ?? [])
    ], applying: fix.map { [$0] }, fixed: fixed, location)
  #expect((fix == nil) == (fixed == nil), "what the fix makes is compared", sourceLocation: location)
  guard let fixed else { return }
  let rest = expand(filled(fixed)).messages
  #expect(rest.isEmpty, "the fix is refused: \(rest)", sourceLocation: location)
}

/// Expects one misuse among the members of a model `Book`, after its `id`. `line`, `column` and
/// `fixed` refer to the members.
func expectMisuse(
  inBook members: String, _ message: String, line: Int, column: Int,
  severity: DiagnosticSeverity = .error, fix: String? = nil, fixed: String? = nil,
  _ location: Testing.SourceLocation = #_sourceLocation
) {
  expectMisuse(
    book(members), message, line: line + 2, column: column + 2, severity: severity, fix: fix,
    fixed: fixed.map(book), location)
}

private func book(_ members: String) -> String {
  let lines = members.split(separator: "\n", omittingEmptySubsequences: false)
  let indented = lines.map { $0.isEmpty ? "" : "  \($0)" }.joined(separator: "\n")
  return "@Table struct Book {\n  let id: Int\n\(indented)\n}"
}

/// Expects a source without messages.
func expectNone(_ source: String, _ location: Testing.SourceLocation = #_sourceLocation) {
  let messages = expand(source).messages
  #expect(messages.isEmpty, "\(messages)", sourceLocation: location)
}

/// The source with values in all placeholders of a fix.
private func filled(_ source: String) -> String {
  source.replacing("<#name#>", with: "name").replacing("<#Type#>", with: "Int")
    .replacing("<#value#>", with: "true")
}

/// The expansion of a source by the macros, and their messages.
private func expand(_ source: String) -> (expansion: String, messages: [String]) {
  let file = Parser.parse(source: source)
  let context = BasicMacroExpansionContext(sourceFiles: [
    file: .init(moduleName: "Test", fullFilePath: "test.swift")
  ])
  let expansion = file.expand(
    macroSpecs: macros,
    contextGenerator: {
      BasicMacroExpansionContext(sharingWith: context, lexicalContext: $0.allMacroLexicalContexts())
    },
    indentationWidth: .spaces(2)
  ).description
  return (expansion, context.diagnostics.map(\.message))
}
