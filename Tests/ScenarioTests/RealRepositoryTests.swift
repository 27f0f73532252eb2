import Foundation
import Testing

/// A git repository and the node that was made of it, asked the same questions.
@Suite("git and stemma agree about the past")
struct RealRepositoryTests {
  /// A repository of some commits in which files come, change, move and go; made by the git of this machine.
  private static let script = #"""
    set -e
    git init -q -b main repository && cd repository
    git config user.name Ann && git config user.email ann@example.org
    commit() { git add -A && GIT_AUTHOR_DATE="$1 +0000" GIT_COMMITTER_DATE="$1 +0000" git commit -q -m "$2"; }
    mkdir -p src/a 'a folder'
    echo one > README; echo b > src/a/b.txt; commit 1600000000 first
    echo two > README; echo c > 'a folder/ü.txt'; commit 1600000000 'the same second'
    chmod +x src/a/b.txt; commit 1600000100 mode
    git mv src/a/b.txt src/c.txt; commit 1600000200 moved
    rm README; commit 1600000300 gone
    echo three > README; ln -s src link; commit 1600000400 back
    """#

  @Test("diff equals git diff --raw, and get --as-of equals git ls-tree")
  func agree() throws {
    let work = try Workplace()
    try work.write("make.sh", Self.script)
    let made = try Tool.run("/bin/bash", ["make.sh"], in: work.path)
    try #require(made.status == 0, "\(made.errors)")
    let history = "git-history --schema > git.graphql && git-history repository > mutations.ndjson"
    try #require(try ConsolePage.run(history, in: work.path, showsStatus: true) == [])
    try work.stemma("init", "node", "--schema", "git.graphql")
    try work.stemma("-C", "node", "import", "mutations.ndjson")

    let commits = try lines("git -C repository log --reverse --format=%H", work)
    // As of the event before the next commit's first one.
    let events = try work.stemma("-C", "node", "log", "--reverse", "--ndjson").objects()
    var positions: [String] = []
    for (index, event) in events.enumerated() {
      guard event.text("model") == "Commit", event.text("op") == "create", index > 1 else { continue }
      positions.append(events[index - 1].text("position") ?? "")
    }
    positions.append(events.last?.text("position") ?? "")
    try #require(positions.count == commits.count)

    for a in commits.indices {
      for b in commits.indices where (a + b) % 3 == 1 {
        let raw = try lines(
          "git -C repository -c core.quotePath=false diff --raw --no-renames --abbrev=40 \(commits[a]) \(commits[b])",
          work)
        let expected = raw.map { line in
          let words = line.split(separator: "\t")
          let sides = words[0].dropFirst().split(separator: " ")
          let kind = ["A": "added", "D": "removed"][sides[4]] ?? "changed"
          return "\(kind) \(words[1]) \(sides[2]) \(sides[3])"
        }
        let found = try work.stemma(
          "-C", "node", "diff", "@\(positions[a])", "@\(positions[b])", "--model", "File", "--ndjson"
        ).objects().compactMap { object -> String? in
          let fields = object.object("fields")
          guard fields["blob"] != nil || fields["mode"] != nil else { return nil }
          let path = object.object("key").text("path") ?? ""
          let zero = String(repeating: "0", count: 40)
          let blob = fields["blob"] as? [String: Any]
          // Only the mode differs: git prints the blob on both sides.
          let same = raw.first { $0.hasSuffix("\t\(path)") }?.split(separator: " ")[2] ?? ""
          return
            "\(object.text("change") ?? "") \(path) \(blob.map { $0.text("from") ?? zero } ?? String(same)) "
            + (blob.map { $0.text("to") ?? zero } ?? String(same))
        }
        #expect(found.sorted() == expected.sorted(), "\(a) \(b)")
      }
    }
    for (index, commit) in commits.enumerated() {
      for path in ["README", "src/c.txt", "a folder/ü.txt"] {
        let tree = try lines("git -C repository ls-tree \(commit) -- '\(path)'", work).first
        let partition = path.contains("/") ? String(path.prefix { $0 != "/" }) : "."
        let result = try work.attempt(
          "-C", "node", "get", "File", "partition=\(partition)", "path=\(path)", "--json", "--as-of",
          "@\(positions[index])")
        #expect(result.status == (tree == nil ? 66 : 0))
        guard let tree else { continue }
        let words = tree.split(separator: "\t")[0].split(separator: " ").map(String.init)
        let fields = try result.object().object("fields")
        #expect(fields.text("mode") == words[0])
        #expect(fields.text("blob") == words[2])
      }
    }
  }

  private func lines(_ command: String, _ work: Workplace) throws -> [String] {
    try ConsolePage.run(command, in: work.path)
  }
}
