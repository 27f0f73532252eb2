import Foundation
import Testing

/// The README matches the real output.
@Suite("README")
struct ReadmeTests {
  /// Times, ids, digests and sizes differ from run to run.
  private func normalized(_ text: String) -> String {
    text.replacing(#/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/#, with: "TIME")
      .replacing(#/\b\d+-[0-9a-f]{6}\b/#, with: "REVISION")
      .replacing(#/\b[0-9a-f]{32}\b/#, with: "DIGEST")
      .replacing(#/\b[0-9a-f]{16}\b/#, with: "ORIGIN")
      .replacing(#/\b[0-9a-f]{8}\b/#, with: "SHORT")
      .replacing(#/\b\d+(\.\d+)? (B|KiB|MiB)\b/#, with: "SIZE")
      .split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.replacing(#/ +$/#, with: "") }.joined(separator: "\n")
      .replacing(#/ {2,}/#, with: "  ")
  }

  @Test(
    "the commands of a page run as printed",
    arguments: ["README.md", "docs/IMPORTING.md", "docs/OPERATING.md", "docs/SCHEMA.md"])
  func pageRuns(page: String) throws {
    let work = try Workplace()
    let steps = try ConsolePage(ConsolePage.root.appendingPathComponent(page)).steps
    #expect(steps.count > (page == "README.md" ? 10 : 0))
    let outputs = try ConsolePage.run(steps.map(\.command), in: work.path)
    try #require(outputs.count == steps.count)
    for (step, printed) in zip(steps, outputs) {
      let wanted = step.output.joined(separator: "\n")
      #expect(
        normalized(printed).trimmed == normalized(wanted).trimmed, "$ \(step.command)\nprinted:\n\(printed)")
    }
  }

  @Test("the two commands of the README are there and can be run")
  func commandsAreThere() throws {
    let page = try String(contentsOf: ConsolePage.root.appendingPathComponent("README.md"), encoding: .utf8)
    for command in ["Tools/demo", "Tools/test"] {
      #expect(page.contains(command))
      #expect(
        FileManager.default.isExecutableFile(atPath: ConsolePage.root.appendingPathComponent(command).path))
    }
    #expect(try Workplace().stemma("--help").output.contains("SUBCOMMANDS"))
  }
}

extension String {
  fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
