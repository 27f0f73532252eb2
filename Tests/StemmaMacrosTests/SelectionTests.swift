import SwiftSyntax
import SwiftSyntaxMacroExpansion
import SwiftSyntaxMacrosGenericTestSupport
import Testing

@testable import StemmaMacros

/// `assertMacroExpansion`, with failures that Swift Testing sees. (The variant of
/// SwiftSyntaxMacrosTestSupport reports to XCTest, and passes here whatever the expansion is.)
func expectExpansion(
  of source: String, as expected: String, diagnostics: [DiagnosticSpec] = [],
  _ location: Testing.SourceLocation = #_sourceLocation
) {
  assertMacroExpansion(
    source, expandedSource: expected, diagnostics: diagnostics,
    macroSpecs: [
      "Table": MacroSpec(type: TableMacro.self), "Column": MacroSpec(type: MarkerMacro.self),
      "Selection": MacroSpec(type: SelectionMacro.self), "BelongsTo": MacroSpec(type: BelongsToMacro.self),
      "HasMany": MacroSpec(type: HasManyMacro.self), "HasOne": MacroSpec(type: HasOneMacro.self),
    ],
    indentationWidth: .spaces(2),
    failureHandler: { Issue.record("\($0.message)", sourceLocation: location) })
}

@Suite("@Selection")
struct SelectionTests {
  @Test("a key of several parts gives its parts, and is made of optional ones")
  func parts() {
    expectExpansion(
      of: """
        @Selection struct ID: Hashable {
          let courseID: Int
          let studentID: Int
        }
        """,
      as: """
        struct ID: Hashable {
          let courseID: Int
          let studentID: Int
        }

        extension ID: Stemma.TableKey {
          init?(optionalParts: (Int?, Int?)) {
            guard let part0 = optionalParts.0, let part1 = optionalParts.1 else {
              return nil
            }
            self.courseID = part0
            self.studentID = part1
          }
          var parts: (Int, Int) {
            (self.courseID, self.studentID)
          }
          func write(to record: inout Stemma.RecordWriter) {
            record.key(self.courseID)
            record.key(self.studentID)
          }
        }
        """)
  }

  @Test("the harness notices a wrong expansion")
  func harness() {
    withKnownIssue {
      expectExpansion(of: "@HasMany(\"a\") var a: Related<B>", as: "var a: Related<B>")
    }
  }

  @Test("a table without a key is refused at its name")
  func noKey() {
    expectExpansion(
      of: "@Table struct Book {\n  var title: String\n}", as: "struct Book {\n  var title: String\n}",
      diagnostics: [
        DiagnosticSpec(
          message:
            "Book has no primary key: name a property `id`, or mark one with @Column(primaryKey: true)",
          line: 1, column: 15, fixIts: [FixItSpec(message: "add `let id: UUID`")])
      ])
  }
}
