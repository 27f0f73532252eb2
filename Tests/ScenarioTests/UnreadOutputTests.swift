import Foundation
import Testing

/// `restore … | head` ended by SIGPIPE before anything was appended. What the user asked for is done, all of it or
/// nothing, whether or not anybody reads what it says.
@Suite("going back, with nobody reading")
struct UnreadOutputTests {
  /// So many records that what is shown of them, 50 bytes each, fits into a pipe (64 KiB) and one read of it together
  /// at no time: whoever shows them is still writing when the reader goes.
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
    "it is done, and told on the other stream",
    arguments: ["restore Customer --as-of @1.\(Self.count - 1)", "undo shop.2"],
    [" | head -n 1", " | true", " --json | true"])
  func isDone(command: String, reader: String) throws {
    let work = try shop()
    #expect(try isOld(work) == false)
    let result = try ConsolePage.shell(
      "set -o pipefail; stemma -C shop \(command)\(reader)", in: work.path)
    #expect(result.status == 0, "\(result.errors)")
    if !reader.contains("--json") {
      #expect(result.errors == "nobody read on; 4,000 events appended\n")
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
