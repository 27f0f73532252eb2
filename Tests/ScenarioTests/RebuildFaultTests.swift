import Foundation
import StemmaSimulation
import Testing

extension SystemCallFaultTests {
  /// System calls of SQLite and of the tool that change files or sync them.
  static let changes: Set<String> = [
    "pwrite64", "write", "ftruncate", "fallocate", "fdatasync", "fsync", "rename", "unlink", "linkat",
  ]

  /// SQLite writes the tables, so they are not on the simulated disk. Instead, a real rebuild is
  /// killed, restarted, and killed again at each of its changes.
  @Test("a rebuild that was killed is killed again at each of its changes of files")
  func killedAgainWhileRebuilding() throws {
    let calls = try calls(of: [.rebuild]).filter { Self.changes.contains($0.name) }
    #expect(calls.count > 20)
    let work = try prepared(for: .rebuild)
    var killedTwice = 0
    let places = Array(stride(from: 0, to: calls.count, by: Trials.stride(5)))
    for index in places {
      // Different from the second place, and each only once.
      let first = try kill(at: calls[(index + calls.count / 2) % calls.count], in: work).status
      let second = try kill(at: calls[index], in: work).status
      if first == SIGKILL, second == SIGKILL { killedTwice += 1 }
      try checkRebuild(in: work, "\(calls[index]), the second time")
    }
    print("\(killedTwice) of \(places.count) rebuilds were killed, and once more when they were begun again")
    #expect(killedTwice >= places.count / 2)
  }

  /// The leftover file is as large as the tables.
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
