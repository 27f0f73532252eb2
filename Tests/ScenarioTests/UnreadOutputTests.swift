import Foundation
import Testing

/// In `restore … | head` the reader ends early. The command must complete or write nothing, whether
/// or not its output is read.
@Suite("going back, with unread output")
struct UnreadOutputTests {
  /// The output, 50 bytes per record, always exceeds a pipe's buffer (64 KiB) and one read of it.
  /// The tool is therefore still writing when the reader ends.
  private static let count = 4_000

  private func shop() throws -> Workplace {
    let work = try Shop.open()
    for name in ["old", "new"] {
      let lines = (0..<Self.count).map {
        #"{"op":"upsert","model":"Customer","key":"c\#($0)","fields":{"name":"\#(name) \#($0)"}}"# + "\n"
      }
      try work.stemma("-C", "shop", "import", "-", "--batch", "\(Self.count)", input: lines.joined())
    }
    return work
  }

  private func isOld(_ work: Workplace) throws -> Bool {
    let names = try work.stemma(
      "-C", "shop", "query", "--tsv", "SELECT DISTINCT substr(name, 1, 3) FROM customers"
    ).lines
    #expect(names.count == 1, "all or nothing")
    return names == ["old"]
  }

  @Test(
    "it is done, and reported on the other stream",
    arguments: ["restore Customer --as-of @\(Self.count)", "undo shop.2"],
    [" | head -n 1", " | true", " --json | true"])
  func isDone(command: String, reader: String) throws {
    let work = try shop()
    #expect(try isOld(work) == false)
    let result = try ConsolePage.shell(
      "set -o pipefail; stemma -C shop \(command)\(reader)", in: work.path)
    #expect(result.status == 0, "\(result.errors)")
    if !reader.contains("--json") {
      #expect(result.errors == "the output was closed early; 4,000 events appended\n")
    }
    #expect(try isOld(work))
  }

  @Test("what only shows ends with its reader")
  func showingEnds() throws {
    let work = try shop()
    let result = try ConsolePage.shell(
      "set -o pipefail; stemma -C shop undo shop.2 -n | head -n 1", in: work.path)
    #expect(result.status == 141)
    #expect(try isOld(work) == false)
  }
}
