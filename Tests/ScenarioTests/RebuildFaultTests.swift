import Foundation
import Testing

extension SystemCallFaultTests {
  /// What changes files or makes changes durable, of SQLite and of the tool.
  static let changes: Set<String> = [
    "pwrite64", "write", "ftruncate", "fallocate", "fdatasync", "fsync", "rename", "unlink", "linkat",
  ]

  /// The tables are not on the simulated disk, because SQLite writes them: so a real rebuild that was killed somewhere is
  /// begun again, and killed again at each of its changes.
  @Test("a rebuild that was killed is killed again at each of its changes of files")
  func killedAgainWhileRebuilding() throws {
    let calls = try calls(of: [.rebuild]).filter { Self.changes.contains($0.name) }
    #expect(calls.count > 20)
    let work = try prepared(for: .rebuild)
    var killedTwice = 0
    for index in calls.indices {
      // Another place than the second one, each once.
      let first = try kill(at: calls[(index + calls.count / 2) % calls.count], in: work).status
      let second = try kill(at: calls[index], in: work).status
      if first == SIGKILL, second == SIGKILL { killedTwice += 1 }
      try checkRebuild(in: work, "\(calls[index]), the second time")
    }
    print("\(killedTwice) of \(calls.count) rebuilds were killed, and once more when they were begun again")
    #expect(killedTwice >= calls.count / 2)
  }

  /// It stayed until the next rebuild, as large as the tables.
  @Test("what a rebuild leaves that is killed goes with the next write")
  func killedRebuildsLeaveNothing() throws {
    let calls = try calls(of: [.rebuild])
    let last = try #require(calls.last { $0.name == "rename" })
    let work = try prepared(for: .rebuild)
    #expect(try kill(at: last, in: work).status == SIGKILL)
    func left() throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: work.file("a")).filter { $0.contains("building") }
    }
    #expect(try !left().isEmpty)
    for sidecar in ["-wal", "-shm", "-journal"] { try work.write("a/tables.sqlite.building" + sidecar, "x") }
    try work.stemma("-C", "a", "create", "Row", "tenant=new", "n=1", "text=x")
    #expect(try left() == [])
  }
}
