import Foundation
import StemmaSimulation
import Testing

extension SystemCallFaultTests {
  @Test("a clone that was killed at any of its changes of files goes on when it is repeated, or with a pull")
  func killedClonesGoOn() throws {
    let calls = try calls(of: [.clone]).filter { Self.changes.contains($0.name) && $0.isOfMainThread }
    #expect(calls.count > 40)
    var killed = 0
    var unfinished = 0
    let step = Trials.stride(3)
    let places = Array(stride(from: 0, to: calls.count, by: step))
    for (index, place) in places.enumerated() {
      let call = calls[place]
      let work = try prepared(for: .clone)
      if try kill(at: call, in: work).status == SIGKILL { killed += 1 }
      let metadata = FileManager.default.contents(atPath: work.file("b/stemma.json"))
      let isUnfinished =
        metadata.map { String(decoding: $0, as: UTF8.self).contains("unfinishedClone") } ?? false
      if isUnfinished, index % 2 == 0 {
        unfinished += 1
        #expect(try work.stemma("-C", "b", "status").output.contains("`stemma pull` goes on"), "\(call)")
        try work.stemma("-C", "b", "pull")
        #expect(try !work.stemma("-C", "b", "status").output.contains("unfinished"), "\(call)")
      }
      try checkClone(in: work, "\(call)")
    }
    print("\(killed) clones were killed, of \(calls.count) calls, and \(unfinished) went on with a pull")
    #expect(killed >= places.count - 3 && unfinished * step > 5)
  }

  /// A repeated clone either continues or reports that it is complete. Both ends are complete.
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

  /// Makes an unfinished clone "b" of "a": one of two segments is unreadable during the clone and
  /// is restored afterwards.
  private func interrupted(_ work: Workplace) throws {
    try work.rows("a")
    try work.write("first.ndjson", Rows.lines(120))
    try work.write("second.ndjson", (0..<120).map { Rows.line("u", $0, "text of \($0)") }.joined())
    for name in ["first", "second"] {
      try work.stemma("-C", "a", "import", "--batch", "10", "--segment-size", "3000", "\(name).ndjson")
    }
    let names = try FileManager.default.contentsOfDirectory(atPath: work.file("a/log")).sorted()
    let last = try #require(names.last { $0.hasSuffix(".segment") })
    #expect(last != "00000001.segment")
    let path = URL(fileURLWithPath: work.file("a/log/\(last)"))
    let whole = try Data(contentsOf: path)
    var bytes = whole
    bytes[300] ^= 1
    try bytes.write(to: path)
    #expect(try work.attempt("clone", "a", "b", "--name", "b").status == 74)
    try whole.write(to: path)
    try work.stemma("-C", "a", "verify")
  }

  /// A clone verifies the next batches before it stores the current one.
  @Test("what came before the corruption of its source stays in a clone")
  func whatCameStays() throws {
    let work = try Workplace()
    try work.rows("a")
    let text = String(repeating: "long text ", count: 120)
    try work.write("lines.ndjson", (0..<5000).map { Rows.line("t", $0, "\($0) \(text)") }.joined())
    try work.stemma("-C", "a", "import", "--batch", "50", "--segment-size", "1400000", "lines.ndjson")
    func segments(_ name: String) throws -> [String] {
      try FileManager.default.contentsOfDirectory(atPath: work.file("\(name)/log")).sorted()
        .filter { $0.hasSuffix(".segment") }
    }
    let all = try segments("a")
    #expect(all.count > 3)
    let path = URL(fileURLWithPath: work.file("a/log/\(all[3])"))
    let whole = try Data(contentsOf: path)
    var bytes = whole
    bytes[300] ^= 1
    try bytes.write(to: path)
    #expect(try work.attempt("clone", "a", "b", "--name", "b").status == 74)
    #expect(try segments("b") == Array(all[..<3]))
    try whole.write(to: path)
    try work.stemma("clone", "a", "b", "--name", "b")
    #expect(try work.export("b") == work.export("a"))
  }

  private func isUnfinished(_ work: Workplace) throws -> Bool {
    try work.stemma("-C", "b", "status").output.contains("unfinished")
  }

  @Test("whatever opens an unfinished clone says that it is one, and verify does not call it good")
  func isSaidWhereverItIsOpened() throws {
    let work = try Workplace()
    try interrupted(work)
    let sentence = "this node is an unfinished clone; `stemma pull` goes on with it"
    for command in ["export", "log", "stats"] {
      let result = try work.attempt("-C", "b", command)
      #expect(result.status == 0 && result.errors.contains(sentence), "\(command): \(result.errors)")
    }
    // Status lists it among its notices, and only there.
    let status = try work.attempt("-C", "b", "status")
    #expect(status.output.contains(sentence) && !status.errors.contains(sentence), "\(status)")
    let verified = try work.attempt("-C", "b", "verify")
    #expect(verified.status == 1 && verified.output.contains(sentence), "\(verified)")
    #expect(!verified.output.contains("all good"))
    let pulled = try work.attempt("-C", "b", "pull")
    #expect(pulled.status == 0 && !pulled.errors.contains(sentence), "\(pulled.errors)")
    #expect(try work.attempt("-C", "b", "verify").status == 0)
    #expect(try !work.attempt("-C", "b", "export").errors.contains("unfinished"))
  }

  @Test("an unfinished clone is not cloned, and an exchange or comparison with it reports its state")
  func isNoSource() throws {
    let work = try Workplace()
    try interrupted(work)
    try work.rows("other")
    let unfinished = "it is an unfinished clone, which may lack events; `stemma pull` there goes on with it"
    let cloned = try work.attempt("clone", "b", "c")
    #expect(cloned.status == 69 && cloned.errors.contains(unfinished), "\(cloned.errors)")
    #expect(!FileManager.default.fileExists(atPath: work.file("c")))
    for words in [["pull", "b"], ["push", "b"], ["diff", "b"]] {
      let result = try Tool.run(Tool.path, ["-C", "other"] + words, in: work.path)
      #expect(result.status == 0 && result.errors.contains(unfinished), "\(words): \(result.errors)")
    }
    // A partial pull and a push report it themselves.
    let own = "this node is an unfinished clone; `stemma pull` goes on with it"
    for words in [["push", "other"], ["pull", "--partition", "tenant=t0"]] {
      let result = try Tool.run(Tool.path, ["-C", "b"] + words, in: work.path)
      #expect(result.status == 0 && result.errors.contains(own), "\(words): \(result.errors)")
    }
    #expect(
      try work.attempt("-C", "b", "verify", "--json").object()["repair"] as? [String] == ["stemma pull"])
    try work.stemma("-C", "b", "remote", "remove", "source")
    #expect(
      try work.attempt("-C", "b", "verify", "--json").object()["repair"] as? [String] == ["stemma pull PEER"])
    try work.stemma("-C", "b", "pull", "a")
    try work.stemma("clone", "b", "c")
    #expect(try work.export("c") == work.export("a"))
  }

  @Test("a clone whose source is gone goes on from another node that has all of it")
  func sourceIsGone() throws {
    let work = try Workplace()
    try interrupted(work)
    for name in ["empty", "peer"] { try work.rows(name) }
    try work.stemma("-C", "peer", "pull", "a")
    try FileManager.default.moveItem(atPath: work.file("a"), toPath: work.file("gone"))
    let failed = try work.attempt("-C", "b", "pull")
    #expect(failed.status == 69 && failed.errors.contains("`stemma pull PEER`"), "\(failed.errors)")
    try work.stemma("-C", "b", "pull", "empty")
    #expect(try isUnfinished(work))
    try work.stemma("-C", "b", "pull", "peer", "--partition", "tenant=t0")
    #expect(try isUnfinished(work))
    let pulled = try work.attempt("-C", "b", "pull", "peer")
    #expect(pulled.status == 0 && pulled.errors.contains("counts as whole now"), "\(pulled.errors)")
    #expect(try !isUnfinished(work))
    #expect(try work.export("b") == work.export("peer"))
  }

  @Test("a clone goes on from where its source stands now, and remembers that")
  func sourceHasMoved() throws {
    let work = try Workplace()
    try interrupted(work)
    try FileManager.default.moveItem(atPath: work.file("a"), toPath: work.file("moved"))
    try work.stemma("clone", "moved", "b", "--name", "b")
    #expect(try work.stemma("-C", "b", "remote", "list").output.hasSuffix("/moved\n"))
    #expect(try !isUnfinished(work))
    try work.stemma("-C", "b", "pull")
    #expect(try work.export("b") == work.export("moved"))
  }

  @Test("a clone whose remote was taken away says so without a number of a log")
  func remoteIsRemoved() throws {
    let work = try Workplace()
    try interrupted(work)
    try work.rows("c")
    try work.stemma("-C", "b", "remote", "remove", "source")
    let refused = try work.attempt("clone", "c", "b", "--name", "b")
    #expect(refused.status == 73, "\(refused.errors)")
    #expect(
      refused.errors.contains(
        "b holds an unfinished clone; `stemma -C b pull PEER` goes on with it; or take"),
      "\(refused.errors)")
  }

  @Test("a clone of a node that has lost events says what is missing, and goes on when they are back")
  func sourceIsCorrupt() throws {
    let work = try Workplace()
    try work.rows("a")
    try work.write("lines.ndjson", Rows.lines(120))
    try work.stemma("-C", "a", "import", "--batch", "10", "--segment-size", "3000", "lines.ndjson")
    let path = URL(fileURLWithPath: work.file("a/log/00000001.segment"))
    let whole = try Data(contentsOf: path)
    var bytes = whole
    bytes[300] ^= 1
    try bytes.write(to: path)
    #expect(try work.attempt("-C", "a", "verify").status == 1)
    for _ in 0..<2 {
      let result = try work.attempt("clone", "a", "b", "--name", "b")
      #expect(result.status == 74 && result.output.contains("cloned"), "\(result.errors)")
      #expect(
        result.errors.contains(/has lost \d+ events? of .*; b holds an unfinished clone of a;/),
        "\(result.errors)")
      #expect(try isUnfinished(work))
      #expect(try work.attempt("-C", "b", "pull").status == 74)
      #expect(try isUnfinished(work))
    }
    try whole.write(to: path)
    try work.stemma("-C", "a", "verify")
    try work.stemma("-C", "b", "pull")
    #expect(try !isUnfinished(work))
    #expect(try work.export("b") == work.export("a"))
  }
}
