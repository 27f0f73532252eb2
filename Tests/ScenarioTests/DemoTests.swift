import Foundation
import Testing

/// The demo on another repository, with the tested tool.
@Suite("Demonstration")
struct DemoTests {
  /// Difficult paths: blanks, non-ASCII letters, bytes that are not UTF-8.
  private static let script = #"""
    set -e
    git init -q -b main repository && cd repository
    git config user.name Ann && git config user.email ann@example.org
    mkdir -p src 'a folder'
    echo one > README; echo c > 'a folder/ü.txt'; echo d > "src/caf$(printf '\351') 100%"
    git add -A && git commit -q -m first
    echo two > README; git mv 'a folder/ü.txt' src/moved; git add -A && git commit -q -m second
    """#

  @Test("holds on another repository")
  func otherRepository() throws {
    let work = try Workplace()
    try work.write("make.sh", Self.script)
    #expect(try ConsolePage.run("bash make.sh", in: work.path, showsStatus: true) == [])
    let demo = ConsolePage.root.appendingPathComponent("Tools/demo").path
    let result = try Tool.run(
      "/bin/bash", [demo, "repository"], in: work.path, environment: ["STEMMA_TOOL": Tool.path])
    #expect(result.status == 0, "\(result.output)\(result.errors)")
    #expect(result.lines.last == "== Everything held.")
    #expect(result.lines.contains("ok: the File table equals git ls-tree -r HEAD"))
  }

  @Test("a folder without history is refused")
  func noRepository() throws {
    let work = try Workplace()
    let demo = ConsolePage.root.appendingPathComponent("Tools/demo").path
    let result = try Tool.run("/bin/bash", [demo, "."], in: work.path)
    #expect(result.status == 66)
    #expect(result.errors.contains("is no git repository with a commit"))
  }
}
