import Foundation
import Testing

/// A git repository and the node made from it answer the same questions.
@Suite("git and stemma agree about the past")
struct RealRepositoryTests {
  /// A repository with added, changed, moved and deleted files, made by the git of this machine.
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

  /// A node with the history of a repository, made by the tools.
  private func twin(of repository: String, in work: Workplace) throws -> TwinHistory {
    let history =
      "git-history --schema > git.graphql && git-history '\(repository)' > mutations.ndjson"
    try #require(try ConsolePage.run(history, in: work.path, showsStatus: true) == [])
    try work.stemma("init", "node", "--schema", "git.graphql")
    try work.stemma("-C", "node", "import", "mutations.ndjson")
    let commits = try TwinHistory.git(
      ["log", "--first-parent", "--reverse", "--format=%H"], in: repository
    ).split(separator: "\n").map(String.init)
    // At the position before the next commit's first event.
    let events = try work.stemma("-C", "node", "log", "--reverse", "--ndjson").objects()
    var positions: [String] = []
    for (index, event) in events.enumerated() {
      guard event.text("model") == "Commit", event.text("op") == "create", index > 1 else { continue }
      positions.append(events[index - 1].text("position") ?? "")
    }
    positions.append(events.last?.text("position") ?? "")
    try #require(positions.count == commits.count)
    return TwinHistory(
      repository: repository, node: work.file("node"),
      points: zip(commits, positions).map { TwinHistory.Point(name: $0, position: $1) })
  }

  @Test("diff equals git diff --raw, and get --as-of equals git ls-tree")
  func agree() throws {
    let work = try Workplace()
    try work.write("make.sh", Self.script)
    let made = try Tool.run("/bin/bash", ["make.sh"], in: work.path)
    try #require(made.status == 0, "\(made.errors)")
    let twin = try twin(of: work.file("repository"), in: work)
    for (index, a) in twin.points.enumerated() {
      for b in twin.points {
        #expect(try twin.differences(a, b) == twin.gitsDifferences(a, b), "\(a) \(b)")
      }
      for path in ["README", "src/c.txt", "a folder/ü.txt"] {
        #expect(try twin.file(path, at: a) == twin.gitsFile(path, at: a), "\(path) at \(index)")
      }
    }
  }

  private static let isInARepository = FileManager.default.fileExists(
    atPath: ConsolePage.root.appendingPathComponent(".git").path)

  @Test(
    "and so they do of the repository that this file is in, for random pairs and paths",
    .enabled(if: isInARepository))
  func agreeAboutThisRepository() throws {
    let work = try Workplace()
    let twin = try twin(of: ConsolePage.root.path, in: work)
    let paths = Set(
      try TwinHistory.git(
        ["log", "--first-parent", "--format=", "--name-only", "--no-renames", "-z"], in: twin.repository
      ).split(separator: "\0").map(String.init)
    ).sorted()
    #expect(try twin.compareDifferences(of: 15, seed: 52) > 0)
    #expect(try twin.compareFiles(paths, count: 15, seed: 53) > 0)
  }
}
