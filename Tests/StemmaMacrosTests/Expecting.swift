import SwiftSyntax
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacrosGenericTestSupport
import Testing

@testable import StemmaMacros

/// `assertMacroExpansion`, with failures that Swift Testing sees. (The variant of
/// SwiftSyntaxMacrosTestSupport reports to XCTest, and passes here whatever the expansion is.)
func expectExpansion(
  of source: String, as expected: String, diagnostics: [DiagnosticSpec] = [],
  applying fixIts: [String]? = nil, fixed: String? = nil,
  _ location: Testing.SourceLocation = #_sourceLocation
) {
  assertMacroExpansion(
    source, expandedSource: expected, diagnostics: diagnostics,
    macroSpecs: [
      "Table": MacroSpec(type: TableMacro.self, conformances: ["Stemma.Table"]),
      "Column": MacroSpec(type: MarkerMacro.self),
      "Selection": MacroSpec(type: SelectionMacro.self), "BelongsTo": MacroSpec(type: BelongsToMacro.self),
      "HasMany": MacroSpec(type: HasManyMacro.self), "HasOne": MacroSpec(type: HasOneMacro.self),
      "ManyToMany": MacroSpec(type: HasManyMacro.self),
      "_Tracked": MacroSpec(type: TrackedMacro.self), "Ephemeral": MacroSpec(type: MarkerMacro.self),
      "Index": MacroSpec(type: MarkerMacro.self),
    ], applyFixIts: fixIts, fixedSource: fixed,
    indentationWidth: .spaces(2),
    failureHandler: { Issue.record("\($0.message)", sourceLocation: location) })
}

/// Expects one misuse: what is said, where, and what the fix makes of the source.
func expectMisuse(
  _ source: String, _ message: String, line: Int, column: Int, fix: String? = nil, fixed: String? = nil,
  expanded: String? = nil, _ location: Testing.SourceLocation = #_sourceLocation
) {
  expectExpansion(
    of: source,
    as: expanded
      ?? source.replacing(#/@(Table|HasMany|HasOne|BelongsTo|Column|Selection)(\(.*?\))? /#, with: ""),
    diagnostics: [
      DiagnosticSpec(
        message: message, line: line, column: column, fixIts: fix.map { [FixItSpec(message: $0)] } ?? [])
    ], applying: fix.map { [$0] }, fixed: fixed, location)
}
