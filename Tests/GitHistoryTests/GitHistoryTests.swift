import Foundation
import StemmaSchema
import Testing

/// Replaying the tool's output for a repository gives git's state at HEAD.
@Suite struct GitHistoryTests {
  private func history(of repository: Repository, _ options: String...) throws -> [UInt8] {
    try run([tool, repository.path] + options, ["LC_ALL": "C"])
  }

  /// Replays, and compares files, commits and authors with git.
  @discardableResult
  private func check(_ path: String) throws -> NaiveReplay {
    let replay = try NaiveReplay(try run([tool, path]))
    let tree = try run(["git", "-C", path, "ls-tree", "-r", "-z", "-l", "HEAD"]).split(separator: 0)
    var expected: [String] = []
    for line in tree {
      let tab = try #require(line.firstIndex(of: 9))
      let words = String(decoding: line[..<tab], as: UTF8.self).split(separator: " ")
      let size = words[3] == "-" ? "nil" : String(words[3])
      expected.append("\(words[0]) \(words[2]) \(size) \(escaped(Array(line[(tab + 1)...])))")
    }
    let found = replay.rows("File").map {
      "\($0["mode"] ?? "") \($0["blob"] ?? "") \($0["size"] ?? "nil") \($0["path"] ?? "")"
    }
    #expect(found.sorted() == expected.sorted())
    for file in replay.rows("File") {
      let path = file["path"] ?? ""
      let top = path.contains("/") ? String(path.prefix { $0 != "/" }) : "."
      #expect(file["partition"] == top)
      #expect(
        replay.rows("FileAuthor").contains { $0["path"] == path && $0["authorId"] == file["lastAuthorId"] })
    }
    #expect(
      replay.rows("FileAuthor").allSatisfy { row in replay.rows("File").contains { $0["path"] == row["path"] }
      })

    let commits = try run(["git", "-C", path, "log", "--first-parent", "--format=%H %P", "HEAD"])
    let shas = String(decoding: commits, as: UTF8.self).split(separator: "\n").map {
      $0.split(separator: " ").map(String.init)
    }
    #expect(Set(replay.rows("Commit").compactMap { $0["sha"] }) == Set(shas.map { $0[0] }))
    for words in shas {
      let row = replay.rows("Commit").first { $0["sha"] == words[0] }
      #expect(row?["parentSha"] == (words.count > 1 ? words[1] : nil))
    }
    return replay
  }

  private func escaped(_ path: [UInt8]) -> String {
    String(validating: path, as: UTF8.self)
      ?? path.map {
        $0 >= 0x80 || $0 == 0x25 ? "%" + String($0, radix: 16, uppercase: true) : String(Unicode.Scalar($0))
      }.joined()
  }

  @Test func ordinaryHistory() throws {
    let repository = try Repository()
    try repository.write("README", "one\n")
    try repository.write("src/a/b.txt", "b\n")
    try repository.commit("first \"quoted\" é")
    try repository.write("README", "one\ntwo\n")
    try repository.commit("second", author: "Bob <bob@example.org>")
    try repository.git("mv", "src/a/b.txt", "lib.txt")
    try repository.commit("exact rename")
    try repository.git("rm", "-q", "README")
    try repository.commit("deleted", author: "Robert <bob@example.org>")
    try repository.write("README", "again\n")
    try repository.commit("")
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: repository.path + "/README")
    try repository.commit("mode")
    try repository.commit("nothing changed")
    let replay = try check(repository.path)
    #expect(replay.rows("File").first { $0["path"] == "lib.txt" }?["renamedFrom"] == "src/a/b.txt")
    #expect(replay.rows("File").first { $0["path"] == "README" }?["mode"] == "100755")
    #expect(replay.rows("Author").compactMap { $0["name"] }.sorted() == ["Ann", "Robert"])
    #expect(replay.operations.filter { $0 == "update Author" }.count == 1)
    #expect(replay.operations.filter { $0 == "unlink FileAuthor" }.count == 3)
    #expect(Set(replay.rows("Commit").compactMap { $0["subject"] }).contains("first \"quoted\" é"))
  }

  /// Only the first parent's line counts. The changes of a merged branch appear as one change, in
  /// the merge commit.
  @Test func mergesFollowTheFirstParent() throws {
    let repository = try Repository()
    try repository.write("a", "1\n")
    try repository.commit("base")
    try repository.git("checkout", "-q", "-b", "side")
    try repository.write("b/c", "2\n")
    try repository.commit("side 1", author: "Bob <bob@example.org>")
    try repository.write("b/c", "3\n")
    try repository.commit("side 2", author: "Bob <bob@example.org>")
    try repository.git("checkout", "-q", "main")
    try repository.write("a", "4\n")
    try repository.commit("main 1")
    try repository.git("merge", "-q", "--no-ff", "-m", "merge", "side")
    let replay = try check(repository.path)
    #expect(replay.rows("Commit").count == 3)
    // JSONSerialization writes true as 1.
    let merges = replay.rows("Commit").filter { $0["isMerge"] == "1" || $0["isMerge"] == "true" }
    #expect(merges.map { $0["subject"] } == ["merge"])
    #expect(replay.rows("Author").map { $0["name"] } == ["Ann"])
  }

  @Test func namesThatShellsAndParsersTripOver() throws {
    let repository = try Repository()
    for name in [
      "with space", "new\nline", "quote\"d", "back\\slash", "tab\tbed", "é/ü", "e\u{301}", "日本/語", ":000",
      "-dash",
      "%41", "a,b=c/[x]*?!", "\u{1}start",
    ] { try repository.write(name, name) }
    try repository.commit("names")
    // Paths that are not UTF-8. Only git's index accepts them on every file system.
    let blob = String(decoding: try repository.git("rev-parse", "HEAD:with space"), as: UTF8.self)
      .trimmingCharacters(in: .whitespacesAndNewlines)
    let script =
      "printf '100644 \(blob)\\t\\377dir/\\376%%x\\n' | git -C '\(repository.path)' update-index --index-info"
    try run(["sh", "-c", script])
    try repository.git("commit", "-q", "-m", "bytes")
    let replay = try check(repository.path)
    #expect(replay.rows("File").contains { $0["path"] == "%FFdir/%FE%25x" && $0["partition"] == "%FFdir" })
    #expect(replay.rows("File").contains { $0["path"] == "new\nline" })
  }

  @Test func filesBecomeDirectoriesLinksAndFilesAgain() throws {
    let repository = try Repository()
    try repository.write("x", "file\n")
    try repository.commit("file")
    try repository.git("rm", "-q", "x")
    try repository.write("x/y", "inside\n")
    try repository.commit("directory")
    try repository.git("rm", "-q", "-r", "x")
    try FileManager.default.createSymbolicLink(atPath: repository.path + "/x", withDestinationPath: "nowhere")
    try repository.commit("link")
    try FileManager.default.removeItem(atPath: repository.path + "/x")
    try repository.write("x", "file\n")
    try repository.commit("file again")
    try check(repository.path)
  }

  @Test func submodulesHaveNoSize() throws {
    let inner = try Repository()
    try inner.write("z", "z\n")
    try inner.commit("inner")
    let repository = try Repository()
    try repository.git("submodule", "--quiet", "add", inner.path, "vendor/inner")
    try repository.commit("submodule")
    let replay = try check(repository.path)
    let row = try #require(replay.rows("File").first { $0["mode"] == "160000" })
    #expect(row["path"] == "vendor/inner" && row["size"] == nil)
  }

  @Test func anEmptyRepositoryHasNoHistory() throws {
    let repository = try Repository()
    #expect(try history(of: repository).isEmpty)
  }

  @Test func aShallowCloneBeginsWithAWholeTree() throws {
    let repository = try Repository()
    for round in 0..<5 {
      try repository.write("a", "\(round)\n")
      try repository.write("d/\(round)", "\(round)\n")
      try repository.commit("round \(round)")
    }
    let shallow = try Repository(initialized: false)
    try run(["git", "clone", "-q", "--depth", "2", "file://" + repository.path, shallow.path + "/clone"])
    let replay = try check(shallow.path + "/clone")
    #expect(replay.rows("Commit").count == 2)
  }

  @Test func theNameOfTheRepositoryIsPartOfKeys() throws {
    let repository = try Repository()
    try repository.write("a", "a")
    try repository.commit("a")
    let name = URL(fileURLWithPath: repository.path).lastPathComponent
    #expect(try NaiveReplay(history(of: repository)).rows("Commit").map { $0["repo"] } == [name])
    #expect(
      try NaiveReplay(history(of: repository, "--repo", "r")).rows("Commit").map { $0["repo"] } == ["r"])
  }

  @Test func theConfigurationOfThePersonDoesNotMatter() throws {
    let repository = try Repository()
    try repository.write("a", "a\n")
    try repository.commit("a")
    try repository.git("mv", "a", "b")
    try repository.commit("b")
    let plain = try history(of: repository)
    for (key, value) in [
      ("diff.renames", "copies"), ("log.showSignature", "true"), ("color.ui", "always"),
      ("diff.noprefix", "true"),
      ("log.date", "relative"), ("format.pretty", "oneline"), ("log.decorate", "full"),
      ("core.quotePath", "true"),
      ("log.follow", "true"), ("diff.relative", "true"), ("log.diffMerges", "combined"),
      ("notes.displayRef", "*"),
    ] { try repository.git("config", key, value) }
    #expect(try history(of: repository) == plain)
  }

  /// Old, converted repositories have commits like this.
  @Test func timesThatNoCalendarHasAreGivenInUTC() throws {
    let repository = try Repository()
    let tree = String(decoding: try repository.git("mktree", "--missing"), as: UTF8.self)
      .trimmingCharacters(in: .whitespacesAndNewlines)
    let text = "tree \(tree)\nauthor A <a> 1112911993 -7400\ncommitter A <a> 1112911993 -7400\n\nodd\n"
    try repository.write("../\(URL(fileURLWithPath: repository.path).lastPathComponent)/object", text)
    let sha = String(
      decoding: try repository.git(
        "hash-object", "--literally", "-t", "commit", "-w", repository.path + "/object"),
      as: UTF8.self
    ).trimmingCharacters(in: .whitespacesAndNewlines)
    try repository.git("update-ref", "refs/heads/main", sha)
    let replay = try NaiveReplay(history(of: repository))
    #expect(replay.rows("Commit").map { $0["authoredAt"] } == ["2005-04-07T22:13:13Z"])
  }

  @Test func whatIsNoRepositoryIsNamed() throws {
    let folder = try Repository(initialized: false)
    try run([tool, folder.path], ["GIT_CEILING_DIRECTORIES": "/"], status: 66)
    try run([tool, folder.path + "/nowhere"], status: 66)
  }

  @Test func theSchemaFitsTheMutations() throws {
    let (schema, warnings) = try SDL.read(String(decoding: try run([tool, "--schema"]), as: UTF8.self))
    #expect(warnings.isEmpty)
    #expect(schema.models.map(\.name) == ["Author", "Commit", "File", "FileAuthor"])
    #expect(schema.models.map(\.partitionDepth) == [0, 1, 1, 1])
    #expect(schema.models.map(\.isJoinModel) == [false, false, false, true])
  }

  /// This project's own history, if the tests run in a checkout of it.
  @Test func theHistoryOfThisProject() throws {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent().path
    guard FileManager.default.fileExists(atPath: root + "/.git") else { return }
    try check(root)
  }
}
