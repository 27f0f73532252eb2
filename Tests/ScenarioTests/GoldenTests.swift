import Foundation
import Testing

/// Output of the commands in files that also serve as documentation: `Golden/*.md`. Each `console`
/// block holds commands and their output, with the exit status if it is not 0.
///
/// A new file needs only the commands. `STEMMA_GOLDEN=write` adds their output, which must be
/// reviewed before the commit. `STEMMA_GOLDEN=NAME.md` does the same for one file. The commands run
/// in a folder with the nodes of `FixedNodes`. `git`, `a` and `b` are read-only; `shop` and `field`
/// are made for each page. Output about events that the commands write must not depend on the time.
@Suite("Golden output", .enabled(if: RealData.isThere))
struct GoldenTests {
  static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appendingPathComponent("Golden")

  private static let wish = ProcessInfo.processInfo.environment["STEMMA_GOLDEN"]
  private static let only = wish.flatMap { $0.hasSuffix(".md") ? $0 : nil }

  /// The golden pages, and the pages under docs that read the same nodes.
  static let names: [String] = {
    do {
      return
        (try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".md") }
        .sorted() + ["../../../docs/INSPECTING.md"]).filter { only == nil || $0.hasSuffix(only ?? "") }
    } catch { return [] }
  }()

  @Test("every command prints what its page says", arguments: names)
  func pageIsRight(name: String) throws {
    let work = try Workplace()
    let nodes = try FixedNodes.folder.get()
    for node in ["git", "a", "b"] {
      try FileManager.default.createSymbolicLink(
        atPath: work.file(node), withDestinationPath: nodes + "/" + node)
    }
    try FixedNodes.makeShop(in: work.path)
    let page = try ConsolePage(Self.folder.appendingPathComponent(name))
    #expect(!page.steps.isEmpty)
    if page.steps.contains(where: { $0.command.contains("script ") }), !Pseudoterminal.isThere { return }
    let outputs = try page.steps.map {
      try ConsolePage.run($0.command, in: work.path, showsStatus: true)
    }
    if Self.wish == "write" || Self.only != nil {
      try Data(page.text(with: outputs).utf8).write(to: page.url)
      return
    }
    for (step, output) in zip(page.steps, outputs) {
      #expect(output == step.output, "\(name): $ \(step.command)")
    }
  }

  @Test("every command is on a page in each format that it has")
  func formats() throws {
    let files = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
    // Every command of a pipe or a list.
    let pages = files.filter { $0.hasSuffix(".md") }
    let steps = try pages.flatMap { try ConsolePage(Self.folder.appendingPathComponent($0)).steps }
    let calls = steps.flatMap { step -> [ArraySlice<Substring>] in
      step.command.split { "|;&{".contains($0) }.map { command -> ArraySlice<Substring> in
        let words = command.split(separator: " ").drop { $0 != "stemma" }.dropFirst()
        return words.first == "-C" ? words.dropFirst(2) : words
      }
    }
    let work = try Workplace()
    var found = 0
    let commands = try HelpTests().commands(in: work).filter { !$0.isEmpty }
    for command in commands where !commands.contains(where: { $0 != command && $0.starts(with: command) }) {
      let isShown = calls.contains { call in
        call.prefix(command.count).elementsEqual(command) { $0 == $1 }
          && !call.contains { $0 == "--json" || $0 == "--ndjson" }
      }
      #expect(isShown, "\(command.joined(separator: " ")) in words")
    }
    for command in commands {
      let help = try Tool.run(Tool.path, command + ["--help"], in: work.path).output
      for format in ["--json", "--ndjson", "--tsv", "--format"] where help.contains("\n  \(format) ") {
        let isShown = calls.contains { call in
          call.prefix(command.count).elementsEqual(command) { $0 == $1 } && call.contains { $0 == format }
        }
        #expect(isShown, "\(command.joined(separator: " ")) \(format)")
        found += 1
      }
    }
    #expect(found > 70)
  }
}
