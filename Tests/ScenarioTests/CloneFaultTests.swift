import Foundation
import Testing

extension SystemCallFaultTests {
  /// Killed late, a clone once left a node without a record, which a second clone took for somebody else's.
  @Test("a clone that was killed at any of its changes of files goes on when it is repeated, or with a pull")
  func killedClonesGoOn() throws {
    let calls = try calls(of: [.clone]).filter { Self.changes.contains($0.name) && $0.isOfMainThread }
    #expect(calls.count > 40)
    var killed = 0
    var unfinished = 0
    for (index, call) in calls.enumerated() {
      let work = try prepared(for: .clone)
      if try kill(at: call, in: work).status == SIGKILL { killed += 1 }
      let mark = FileManager.default.contents(atPath: work.file("b/stemma.json"))
      let isUnfinished = mark.map { String(decoding: $0, as: UTF8.self).contains("unfinishedClone") } ?? false
      if isUnfinished, index % 2 == 0 {
        unfinished += 1
        #expect(try work.stemma("-C", "b", "status").output.contains("`stemma pull` goes on"), "\(call)")
        try work.stemma("-C", "b", "pull")
        #expect(try !work.stemma("-C", "b", "status").output.contains("unfinished"), "\(call)")
      }
      try checkClone(in: work, "\(call)")
    }
    print("\(killed) clones were killed at \(calls.count) calls, and \(unfinished) went on with a pull")
    #expect(killed >= calls.count - 3 && unfinished > 5)
  }

  /// A clone goes on, or was at its end and says so; either way it is whole.
  func checkClone(in work: Workplace, _ place: Comment) throws {
    let again = try Tool.run(Tool.path, Command.clone.arguments, in: work.path)
    if again.status != 0 {
      #expect(again.status == 73, "\(place): \(again.errors)")
      #expect(again.errors.contains("`stemma -C b pull a`"), "\(place): \(again.errors)")
    }
    try checkEnd("b", in: work, place)
    let digests = try ["a", "b"].map { try work.stemma("-C", $0, "digest").output }
    #expect(digests[0] == digests[1], place)
    #expect(try work.stemma("-C", "b", "remote", "list").output.hasPrefix("source"), place)
    #expect(try work.attempt("clone", "a", "b").status == 73, place)
  }
}

@Suite("Unfinished clones")
struct UnfinishedCloneTests {
  @Test("a clone that is refused says how to go on, and does when the reason is gone")
  func refused() throws {
    let work = try Workplace()
    try work.rows("a")
    try work.write("lines.ndjson", Rows.lines(120))
    try work.stemma("-C", "a", "import", "--batch", "10", "--segment-size", "3000", "lines.ndjson")
    try work.rows("c")
    let path = work.file("a/log/00000001.segment")
    let whole = try work.bytes("a/log/00000001.segment")
    var bytes = whole
    bytes[300] ^= 1
    func write(_ bytes: Data) throws {
      let handle = try #require(FileHandle(forWritingAtPath: path))
      try handle.write(contentsOf: bytes)
      try handle.close()
    }
    try write(bytes)
    let refused = try work.attempt("clone", "a", "b", "--name", "b")
    #expect(refused.status == 74, "\(refused.errors)")
    #expect(refused.errors.contains("`stemma -C b pull` goes on"), "\(refused.errors)")
    for other in [["clone", "c", "b"], ["clone", "a", "b", "--partition", "tenant=t1"]] {
      let result = try Tool.run(Tool.path, other, in: work.path)
      #expect(result.status == 73, "\(other): \(result.errors)")
      #expect(result.errors.contains("b holds an unfinished clone of /"), "\(result.errors)")
    }
    try write(whole)
    try work.stemma("clone", "a", "b", "--name", "b")
    #expect(try work.export("b") == work.export("a"))
  }
}
