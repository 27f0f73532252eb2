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
    var killed = 0
    for index in calls.indices {
      // Another place than the second one, each once.
      for call in [calls[(index + calls.count / 2) % calls.count], calls[index]] {
        if try kill(at: call, in: work).status == SIGKILL { killed += 1 }
      }
      try checkRebuild(in: work, "\(calls[index]), the second time")
    }
    print("\(killed) rebuilds were killed, two at each of \(calls.count) calls")
    #expect(killed >= calls.count)
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
