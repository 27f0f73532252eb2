import Foundation
import Testing

/// What a command says that cannot go on: what, where, and what to do next, which then helps.
@Suite("Ways out of what is refused")
struct WayOutTests {
  /// As a user who owns nothing here, and has no processes.
  private func stranger(_ user: UInt32, _ limits: [String] = [], _ arguments: [String], in work: Workplace)
    throws -> Tool.Result
  {
    try Tool.run(
      "/usr/bin/env",
      [
        "TMPDIR=\(work.path)", "timeout", "-s", "KILL", "60", "setpriv", "--reuid=\(user)", "--regid=\(user)",
        "--clear-groups",
      ]
        + limits + [Tool.path] + arguments, in: work.path)
  }

  /// A node with three rows that anybody may enter.
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
      ("node/log/00000001.journal", ["log"], "read that file"), ("node/log", ["log"], "list that folder"),
      ("node", ["status"], "enter that folder"), ("node/stemma.json", ["status"], "read that file"),
      ("node/tables.sqlite", ["get", "Row", "tenant=t0", "n=0"], "by this user"),
    ])
  func notPermitted(path: String, command: [String], advice: String) throws {
    let work = try openNode()
    let owner: UInt32 = 64_001
    _ = try Tool.run("/usr/bin/env", ["chown", "-R", "\(owner)", work.path], in: "/")
    // All but this is the user's.
    let closed = path == "node/tables.sqlite" ? "\(path) \(path)-wal \(path)-shm" : path
    _ = try Tool.run("/bin/sh", ["-c", "chown 0 \(closed); chmod go= \(closed)"], in: work.path)
    let refused = try stranger(owner, [], ["-C", "node"] + command, in: work)
    #expect(refused.status == 77, "\(refused)")
    #expect(refused.errors.contains(advice), "\(refused.errors)")
    _ = try Tool.run("/bin/sh", ["-c", "chown \(owner) \(closed); chmod u+rwX \(closed)"], in: work.path)
    let allowed = try stranger(owner, [], ["-C", "node"] + command, in: work)
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
    // Of the log only.
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
}
