import Foundation
import Testing

/// Errors of commands that cannot continue: object, cause, and a next step that works.
@Suite("Ways out of what is refused")
struct WayOutTests {
  /// Runs the tool as a user who owns no files here and has no processes.
  private func stranger(_ user: UInt32, _ arguments: [String], in work: Workplace)
    throws -> Tool.Result
  {
    try Tool.run(
      "/usr/bin/env",
      [
        "TMPDIR=\(work.path)", "timeout", "-s", "KILL", "60", "setpriv", "--reuid=\(user)", "--regid=\(user)",
        "--clear-groups",
      ]
        + [Tool.path] + arguments, in: work.path)
  }

  /// A node with three rows that every user may access.
  private func openNode() throws -> Workplace {
    let work = try Workplace()
    try work.rows("node")
    try work.stemma("-C", "node", "import", "-", input: Rows.lines(3))
    return work
  }

  @Test(
    "what this user may not do ends with 77 and says what is to be allowed",
    .enabled(if: Machine.canBeOthers),
    arguments: [
      ("node/log/00000001.journal", ["log"], "read that file"), ("node/log", ["log"], "read that file"),
      ("node", ["status"], "enter that folder"), ("node/stemma.json", ["status"], "read that file"),
      ("node/tables.sqlite", ["get", "Row", "tenant=t0", "n=0"], "by this user"),
    ])
  func notPermitted(path: String, command: [String], advice: String) throws {
    let work = try openNode()
    let owner: UInt32 = 64_001
    _ = try Tool.run("/usr/bin/env", ["chown", "-R", "\(owner)", work.path], in: "/")
    // The user owns everything except this.
    let closed = path == "node/tables.sqlite" ? "\(path) \(path)-wal \(path)-shm" : path
    _ = try Tool.run("/bin/sh", ["-c", "chown 0 \(closed); chmod go= \(closed)"], in: work.path)
    let refused = try stranger(owner, ["-C", "node"] + command, in: work)
    #expect(refused.status == 77, "\(refused)")
    #expect(refused.errors.contains(advice), "\(refused.errors)")
    _ = try Tool.run("/bin/sh", ["-c", "chown \(owner) \(closed); chmod u+rwX \(closed)"], in: work.path)
    let allowed = try stranger(owner, ["-C", "node"] + command, in: work)
    #expect(allowed.status == 0, "\(allowed.errors)")
  }

  @Test(
    "a call that fails says what to do about it", .enabled(if: Machine.strace != nil),
    arguments: [
      ("pwrite64", "ENOSPC", 74, "make room there, and try again"),
      ("pwrite64", "EIO", 74, "check the disk"), ("fdatasync", "EIO", 74, "check the disk"),
      ("pread64", "EIO", 74, "`stemma repair --from PEER` puts it back"),
      ("pwrite64", "EROFS", 77, "make the disk writable"),
    ])
  func failingCalls(call: String, code: String, status: Int32, advice: String) throws {
    let work = try openNode()
    let strace = try #require(Machine.strace)
    // Only calls on the log.
    let result = try Tool.run(
      strace,
      [
        "-f", "-o", "/dev/null", "-P", work.file("node/log/00000001.journal"), "-e", "trace=\(call)", "-e",
        "inject=\(call):error=\(code):when=1+", Tool.path, "-C", "node", "create", "Row", "tenant=x", "n=1",
        "text=x",
      ], in: work.path)
    #expect(result.status == status, "\(result)")
    #expect(result.errors.contains(advice), "\(result.errors)")
    try work.stemma("-C", "node", "create", "Row", "tenant=x", "n=2", "text=x")
  }

  @Test("a node that lost its metadata, and the copy of it, gets a new one")
  func lostMetadata() throws {
    let work = try openNode()
    try work.stemma("clone", "node", "peer", "--name", "peer")
    let (export, log) = (
      try work.export("node"), try work.stemma("-C", "node", "log", "--oneline").lines.count
    )
    try FileManager.default.removeItem(atPath: work.file("node/stemma.json"))
    let first = try work.attempt("-C", "node", "status")
    #expect(first.status == 66, "\(first)")
    let copying = try #require(first.errors.firstMatch(of: /`(cp [^`]*)`/)).1
    #expect(try Tool.run("/bin/sh", ["-c", String(copying)], in: work.path).status == 0)
    #expect(try work.export("node") == export)
    for name in ["stemma.json", "stemma.json.copy"] {
      try FileManager.default.removeItem(atPath: work.file("node/" + name))
    }
    for arguments in [["status"], ["verify"], ["log"], ["repair"], ["repair", "--from", "peer"]] {
      let refused = try Tool.run(Tool.path, ["-C", "node"] + arguments, in: work.path)
      #expect(refused.status == 66, "\(arguments): \(refused)")
      #expect(refused.errors.contains("`stemma -C node repair --name NAME`"), "\(refused.errors)")
    }
    let made = try work.stemma("-C", "node", "repair", "--name", "again")
    #expect(made.output.contains("nothing to repair"), "\(made)")
    #expect(try work.export("node") == export)
    #expect(try work.stemma("-C", "node", "log", "--oneline").lines.count == log)
    #expect(try work.stemma("-C", "node", "verify").output.contains("all good"))
    try work.stemma("-C", "node", "create", "Row", "tenant=x", "n=1", "text=x", "--author", "ann")
    try work.stemma("-C", "peer", "create", "Row", "tenant=x", "n=2", "text=x")
    try work.stemma("-C", "node", "sync", "peer")
    #expect(try work.export("node") == work.export("peer"))
    #expect(try work.events("peer") == log + 2)
    // Other folders with the same file names are not nodes.
    try FileManager.default.createDirectory(
      atPath: work.file("other/log"), withIntermediateDirectories: true)
    try work.write("other/schema.graphql", Rows.schema)
    try work.write("other/log/server.log", "x")
    #expect(try work.attempt("-C", "other", "status").errors.contains("there is no node in other"))
    // Existing metadata is not replaced.
    #expect(try work.attempt("-C", "node", "repair", "--name", "again").status == 64)
    #expect(try work.attempt("-C", "nothing", "repair", "--name", "again").status == 66)
  }

  /// The outer node must not be used in its place.
  @Test("a node that lost its metadata is named, wherever it is and whatever command needs it")
  func lostMetadataElsewhere() throws {
    let work = try openNode()
    try work.stemma("clone", "node", "node/inner", "--name", "inner")
    try work.stemma("clone", "node", "far", "--name", "far")
    for name in [
      "node/inner/stemma.json", "node/inner/stemma.json.copy", "far/stemma.json", "far/stemma.json.copy",
    ] {
      try FileManager.default.removeItem(atPath: work.file(name))
    }
    let before = try work.export("node")
    for directory in ["node/inner", "node/inner/log"] {
      let refused = try work.attempt("-C", directory, "create", "Row", "tenant=x", "n=1", "text=x")
      #expect(
        refused.status == 66 && refused.errors.contains("node/inner has lost its stemma.json"), "\(refused)")
    }
    #expect(try work.export("node") == before)
    for arguments in [
      ["-C", "node", "pull", "far"], ["-C", "node", "sync", "far"],
      ["-C", "node", "remote", "add", "r", "far"],
      ["-C", "node", "repair", "--from", "far"], ["clone", "far", "new"], ["-C", "node", "diff", "far"],
    ] {
      let refused = try Tool.run(Tool.path, arguments, in: work.path)
      #expect(
        refused.status == 66 && refused.errors.contains("far has lost its stemma.json"),
        "\(arguments): \(refused)")
    }
    #expect(!FileManager.default.fileExists(atPath: work.file("new")))
    try work.stemma("-C", "node/inner", "repair", "--name", "again")
    #expect(try work.export("node/inner") == before)
  }

  @Test("a place or a name that cannot serve is refused with what helps")
  func wrongPlaces() throws {
    let work = try openNode()
    for (words, status, advice) in [
      (["clone", "nowhere", "x"], 66, "name the directory of the one to clone"),
      (["clone", "node", "node"], 73, "name another directory"),
      (["clone", "node", "x/y/z"], 73, "the directory x/y is not there; make it first"),
      (["init", "x/y/z"], 73, "the directory x/y is not there; make it first"),
      (["-C", "node", "remote", "add", "", "node"], 64, "a remote needs a name"),
      (["-C", "node", "remote", "add", "me", "./node"], 64, "is this node itself"),
      (["-C", "node", "remote", "add", "me", work.file("node")], 64, "is this node itself"),
    ] as [([String], Int32, String)] {
      let refused = try Tool.run(Tool.path, words, in: work.path)
      #expect(refused.status == status && refused.errors.contains(advice), "\(words): \(refused)")
      if words[0] == "clone" { #expect(!refused.errors.contains("`stemma"), "\(refused.errors)") }
    }
    #expect(try work.stemma("-C", "node", "remote", "list", "--json").array().isEmpty)
    #expect(!FileManager.default.fileExists(atPath: work.file("x")))
  }

  @Test("columns of one name are no members of one JSON object")
  func duplicateColumns() throws {
    let work = try openNode()
    for format in ["--json", "--ndjson"] {
      let refused = try work.attempt("-C", "node", "query", format, "SELECT 1 AS id, 2 AS id")
      #expect(refused.status == 65 && refused.output.isEmpty, "\(refused)")
      #expect(refused.errors.contains("`id`") && refused.errors.contains("with AS"), "\(refused.errors)")
    }
    #expect(try work.stemma("-C", "node", "query", "--tsv", "SELECT 1 AS id, 2 AS id").output == "1\t2\n")
    let apart = try work.stemma("-C", "node", "query", "--json", "SELECT 1 AS id, 2 AS other")
    #expect(apart.output == "[{\"id\":1,\"other\":2}]\n")
  }

  @Test("temporary folders go with their process, and those of a killed one with the next process")
  func temporaryFolders() throws {
    let work = try openNode()
    let (place, left) = (work.file("places"), "places/stemma-temporary-left")
    for name in ["lock", "tables.sqlite"] {
      try FileManager.default.createDirectory(atPath: work.file(left), withIntermediateDirectories: true)
      try work.write(left + "/" + name, "x")
    }
    try work.stemma("-C", "node", "verify", environment: ["TMPDIR": place])
    #expect(try FileManager.default.contentsOfDirectory(atPath: place).isEmpty)
    for arguments in [["verify"], ["list", "Row", "--as-of", "@1"]] {
      let refused = try Tool.run(
        Tool.path, ["-C", "node"] + arguments, in: work.path, environment: ["TMPDIR": work.file("nowhere")])
      #expect(refused.status == 73 && refused.errors.contains("nowhere"), "\(refused)")
      #expect(refused.errors.contains("name another folder, with `TMPDIR`"), "\(refused.errors)")
    }
  }

  /// Two snapshots of one disk: everything that identifies a copy is equal in both.
  @Test("indistinguishable copies that were both written to are brought together as the refusal says")
  func twins() throws {
    let work = try openNode()
    try FileManager.default.copyItem(atPath: work.file("node"), toPath: work.file("twin"))
    try beTheOnlyOne("twin", in: work)
    let pure = try work.attempt("-C", "node", "sync", "twin")
    #expect(
      pure.status == 65 && pure.errors.contains("make the other again with `stemma clone PEER DIR`"),
      "\(pure)")
    try work.stemma("-C", "node", "create", "Row", "tenant=x", "n=1", "text=mine")
    try work.stemma("-C", "twin", "create", "Row", "tenant=x", "n=2", "text=other")
    try work.stemma("-C", "twin", "create", "Row", "tenant=y", "n=1", "text=other")
    let refused = try work.attempt("-C", "node", "sync", "twin")
    #expect(
      refused.status == 65 && refused.errors.contains("`stemma repair --fork --from PEER`"), "\(refused)")
    try work.stemma("-C", "twin", "repair", "--fork", "--from", "node")
    try work.stemma("-C", "twin", "sync", "node")
    #expect(try work.export("node") == work.export("twin"))
    #expect(try work.stemma("-C", "node", "list", "Row", "--json").output.contains("other"))
    for name in ["node", "twin"] {
      #expect(try work.events(name) == 6)
      try work.stemma("-C", name, "verify")
    }
  }

  /// Makes a copy consider itself the original.
  private func beTheOnlyOne(_ name: String, in work: Workplace) throws {
    let url = URL(fileURLWithPath: work.file(name + "/stemma.json"))
    var metadata = try #require(
      try JSONSerialization.jsonObject(with: try Data(contentsOf: url)) as? [String: Any])
    let birth = try Tool.run(
      "/usr/bin/env", ["stat", "-c", "%i %w %W", name + "/log/watermark"], in: work.path)
    let words = birth.output.split(whereSeparator: \.isWhitespace)
    let fraction = try #require(words[2].split(separator: ".").last)
    metadata["watermark"] = [
      "inode": try #require(UInt64(words[0])), "birthSeconds": try #require(Int64(words[words.count - 1])),
      "birthNanoseconds": try #require(UInt32(fraction)),
    ]
    metadata["checksum"] = nil
    try JSONSerialization.data(withJSONObject: metadata).write(to: url)
  }

  @Test("who follows a log of which the watermark is removed is shown what was written meanwhile")
  func followingWithoutAWatermark() throws {
    let work = try openNode()
    let journal = "node/log/00000001.journal"
    try FileManager.default.copyItem(atPath: work.file("node"), toPath: work.file("later"))
    for number in 1...2 {
      try work.stemma("-C", "later", "create", "Row", "tenant=x", "n=\(number)", "text=x")
    }
    let following = try Following(["-C", "node", "log", "--oneline", "--follow"], in: work)
    #expect(following.lines(3).count == 3)
    // Simulates a writer that has the watermark open, continues, and ends.
    try FileManager.default.removeItem(atPath: work.file("node/log/watermark"))
    let count = try work.bytes(journal).count
    let file = try FileHandle(forWritingTo: URL(fileURLWithPath: work.file(journal)))
    try file.seekToEnd()
    try file.write(contentsOf: try work.bytes("later/log/00000001.journal").dropFirst(count))
    try file.close()
    #expect(following.lines(5).count == 5)
  }
}
