import Foundation
import Testing

/// Several processes on one node, and copies of one directory.
@Suite("Shared and copied nodes") struct SharedNodeFaultTests {
  private func start(_ arguments: [String], in work: Workplace, output: Any) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: Tool.path)
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: work.path)
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.begin()
    return process
  }

  @Test("two importers write in turn while a follower sees every event once", .timeLimit(.minutes(3)))
  func twoImportersAndAFollower() throws {
    let work = try Workplace()
    try work.rows("node")
    let count = 600
    for name in ["x", "y"] {
      try work.write(name, (0..<count).map { Rows.line(name, $0, "text of \($0)") }.joined())
    }
    try create(0, in: "node", work)
    let pipe = Pipe()
    let follower = try start(["-C", "node", "log", "--ndjson", "--follow"], in: work, output: pipe)
    defer { follower.terminate() }
    var text = Data()
    var lines = 0
    func readLines(upTo wanted: Int) {
      while lines < wanted {
        let batch = pipe.fileHandleForReading.availableData
        if batch.isEmpty { break }
        text += batch
        lines += batch.count { $0 == 10 }
      }
    }
    // It begins with the newest events, so it must start before the imports add events.
    readLines(upTo: 1)
    let importers = try ["x", "y"].map { name in
      try start(
        [
          "-C", "node", "import", "--format", "ndjson", "--wait", "60", "--batch", "7", "--segment-size",
          "20000", name,
        ],
        in: work, output: FileHandle.nullDevice)
    }
    readLines(upTo: 2 * count + 1)
    for importer in importers {
      importer.waitUntilExit()
      #expect(importer.terminationStatus == 0)
    }
    let seen = String(decoding: text, as: UTF8.self).split(separator: "\n").map(String.init)
    let all = try work.stemma("-C", "node", "log", "--ndjson", "--reverse").lines
    #expect(seen == all && Set(all).count == 2 * count + 1)
    #expect(try work.events("node") == 2 * count + 1)
    try work.stemma("-C", "node", "verify")
    let export = try work.export("node")
    try work.stemma("-C", "node", "rebuild")
    #expect(try work.export("node") == export)
  }

  @Test("an import whose reader has paused keeps no process out", .timeLimit(.minutes(3)))
  func pausedReader() throws {
    let work = try Workplace()
    try work.rows("node")
    let count = 5000
    try work.write("lines", (0..<count).map { Rows.line("x", $0, "text of \($0)") }.joined())
    // The output is several times larger than a pipe's buffer.
    let pipe = Pipe()
    let importer = try start(
      ["-C", "node", "import", "--format", "ndjson", "--batch", "1", "--json", "--wait", "60", "lines"],
      in: work, output: pipe)
    for number in 0..<6 {
      let result = try work.attempt(
        "-C", "node", "create", "--wait", "20", "Row", "tenant=y", "n=\(number)", "text=y")
      try #require(result.status == 0, "\(result)")
    }
    let lines = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
      .split(separator: "\n")
    importer.waitUntilExit()
    #expect(importer.terminationStatus == 0)
    #expect(lines.dropLast().last?.contains("\"durableThroughLine\":\(count)") ?? false)
    #expect(lines.last?.contains("\"events\":\(count)") ?? false)
    #expect(try work.events("node") == count + 6)
  }

  @Test(
    "beside an importer, readers show what is there, writers get their turn, and nothing is taken for corruption",
    .timeLimit(.minutes(3)))
  func readersBesideAnImporter() throws {
    let work = try Workplace()
    try work.rows("node")
    try work.write("lines", (0..<20_000).map { Rows.line("x", $0, "text of \($0)") }.joined())
    let importer = try start(
      ["-C", "node", "import", "--format", "ndjson", "--batch", "10", "--segment-size", "200000", "lines"],
      in: work, output: FileHandle.nullDevice)
    var rounds = 0
    while importer.isRunning {
      let create = ["create", "Row", "tenant=y", "n=\(rounds)", "text=between"]
      for arguments in [["status"], ["export"], ["verify"], ["log", "-n", "3"], create] {
        let result = try Tool.run(Tool.path, ["-C", "node"] + arguments, in: work.path)
        // Only a complete comparison may ask for a run without writers.
        let allowed: Set<Int32> = arguments == ["verify"] ? [0, 75] : [0]
        #expect(
          allowed.contains(result.status), "\(arguments): \(result.status) \(result.output) \(result.errors)")
      }
      rounds += 1
    }
    #expect(importer.terminationStatus == 0 && rounds > 0)
    #expect(
      try !String(contentsOfFile: work.file("node/stemma.json"), encoding: .utf8).contains("corruption"))
    try work.stemma("-C", "node", "verify")
    #expect(try work.events("node") == 20_000 + rounds)
  }

  @Test("readers are not disturbed by tables that are rebuilt beside them", .timeLimit(.minutes(3)))
  func readersBesideARebuild() throws {
    let work = try Workplace()
    try work.rows("node")
    try work.write("lines", Rows.lines(200))
    try work.stemma("-C", "node", "import", "--format", "ndjson", "lines")
    let commands = [
      ["export"], ["list", "Row"], ["query", "SELECT count(*) FROM \"rows\""], ["digest"], ["status"],
    ]
    let expected = try commands.map { try Tool.run(Tool.path, ["-C", "node"] + $0, in: work.path).output }
    let rebuilding = Process()
    rebuilding.executableURL = URL(fileURLWithPath: "/bin/sh")
    rebuilding.arguments = ["-c", "for i in $(seq 150); do \"$0\" -C node rebuild || exit; done", Tool.path]
    rebuilding.currentDirectoryURL = URL(fileURLWithPath: work.path)
    rebuilding.standardOutput = FileHandle.nullDevice
    try work.write("errors", "")
    rebuilding.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: work.file("errors")))
    try rebuilding.run()
    var rounds = 0
    while rebuilding.isRunning {
      for (arguments, expected) in zip(commands, expected) {
        let result = try Tool.run(Tool.path, ["-C", "node"] + arguments, in: work.path)
        #expect(result.status == 0, "\(arguments): \(result.status) \(result.errors)")
        if arguments != ["status"] { #expect(result.output == expected, "\(arguments)") }
      }
      rounds += 1
    }
    print("\(rounds) rounds of reading beside 150 rebuilds")
    let errors = try String(contentsOfFile: work.file("errors"), encoding: .utf8)
    #expect(rebuilding.terminationStatus == 0 && rounds > 0, "\(rebuilding.terminationStatus): \(errors)")
  }

  @Test("a node that another process writes to is in use: 75, and by whom; who waits goes on when it is free")
  func inUse() throws {
    let work = try Workplace()
    try work.rows("node")
    try create(0, in: "node", work)
    let (before, export) = (try work.events("node"), try work.export("node"))
    // This process holds the lock as a writer does.
    let lock = open(work.file("node/lock"), O_RDWR | O_CLOEXEC)
    try #require(lock >= 0 && flock(lock, LOCK_EX) == 0)
    let pid = Array("\(getpid())\n".utf8)
    try #require(pwrite(lock, pid, pid.count, 0) == pid.count && ftruncate(lock, off_t(pid.count)) == 0)
    try work.write("more", Rows.line("x", 1, "more"))
    for words in [["create", "Row", "tenant=t", "n=1", "text=late"], ["import", "more"], ["rebuild"]] {
      let result = try Tool.run(Tool.path, ["-C", "node"] + words + ["--wait", "0"], in: work.path)
      #expect(result.status == 75, "\(words): \(result.errors)")
      #expect(result.errors.contains("node in use by process \(getpid())"), "\(words): \(result.errors)")
      #expect(result.errors.split(separator: "\n").count == 1 && result.output.isEmpty, "\(result)")
    }
    // Readers do not take the lock.
    #expect(try work.events("node") == before)
    #expect(try work.export("node") == export)
    let waiting = try start(
      ["-C", "node", "create", "Row", "tenant=t", "n=2", "text=waits", "--wait", "60"], in: work,
      output: FileHandle.nullDevice)
    // Waits until the process has the lock file open and is blocked.
    while !isOpen(work.file("node/lock"), in: waiting.processIdentifier), waiting.isRunning { sched_yield() }
    #expect(waiting.isRunning)
    let late = try Tool.run(
      Tool.path, ["-C", "node", "create", "Row", "tenant=t", "n=3", "text=late", "--wait", "1"], in: work.path
    )
    #expect(late.status == 75, "\(late.errors)")
    #expect(waiting.isRunning)
    close(lock)
    waiting.waitUntilExit()
    #expect(waiting.terminationStatus == 0)
    try work.stemma("-C", "node", "verify")
    #expect(try work.events("node") == before + 1)
  }

  /// Whether a process has a file open; true if that is unknown.
  private func isOpen(_ path: String, in process: Int32) -> Bool {
    let files = "/proc/\(process)/fd"
    guard let numbers = FileManager.default.enumerator(atPath: files) else { return true }
    let real = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
    return numbers.contains { number in
      URL(fileURLWithPath: "\(files)/\(number)").resolvingSymlinksInPath().path == real
    }
  }

  private func create(_ number: Int, in name: String, _ work: Workplace) throws {
    try work.stemma("-C", name, "create", "Row", "tenant=t", "n=\(number)", "text=from \(name)")
  }

  private func numbers(_ name: String, in work: Workplace) throws -> [Int] {
    try work.stemma("-C", name, "list", "Row", "--json").array().compactMap { row in
      row.object("key").number("n") ?? row.object("fields").number("n")
    }.sorted()
  }

  private func expectEqual(_ names: [String], _ expected: [Int], in work: Workplace) throws {
    let digests = try names.map { name in
      #expect(try numbers(name, in: work) == expected, "\(name)")
      try work.stemma("-C", name, "verify")
      try work.stemma("-C", name, "conflicts", "--check")
      return try work.stemma("-C", name, "digest").output
    }
    #expect(Set(digests).count == 1)
  }

  @Test("a copied directory writes as a new origin, and both histories meet")
  func aCopyIsWrittenToTwice() throws {
    let work = try Workplace()
    for name in ["a", "peer"] { try work.rows(name) }
    try create(1, in: "a", work)
    try FileManager.default.copyItem(atPath: work.file("a"), toPath: work.file("copy"))
    for name in ["a", "copy"] {
      try create(name == "a" ? 2 : 3, in: name, work)
      try work.stemma("-C", name, "sync", work.file("peer"))
    }
    try work.stemma("-C", "a", "sync", work.file("copy"))
    try expectEqual(["a", "copy", "peer"], [1, 2, 3], in: work)
    #expect(try work.events("a") == 3)
  }

  @Test("a restored backup writes as a new origin, and what came after it comes back from a peer")
  func aBackupIsRestored() throws {
    let work = try Workplace()
    for name in ["a", "peer"] { try work.rows(name) }
    try create(1, in: "a", work)
    try FileManager.default.copyItem(atPath: work.file("a"), toPath: work.file("backup"))
    try create(2, in: "a", work)
    try work.stemma("-C", "a", "sync", work.file("peer"))
    try FileManager.default.removeItem(atPath: work.file("a"))
    try FileManager.default.copyItem(atPath: work.file("backup"), toPath: work.file("a"))
    try create(3, in: "a", work)
    try work.stemma("-C", "a", "sync", work.file("peer"))
    try expectEqual(["a", "peer"], [1, 2, 3], in: work)
  }

  @Test("a node that was set back and wrote again is refused as a fork, and repaired without loss")
  func aNodeIsSetBack() throws {
    let work = try Workplace()
    for name in ["a", "peer"] { try work.rows(name) }
    try create(1, in: "a", work)
    try FileManager.default.copyItem(atPath: work.file("a"), toPath: work.file("before"))
    try create(2, in: "a", work)
    try work.stemma("-C", "a", "sync", work.file("peer"))
    // Restores every file in place, like a snapshot of a virtual machine. The node cannot detect
    // it.
    let script = """
      cd before && find . -type f ! -name 'tables.sqlite*' | while read -r f; do cat "$f" > "../a/$f"; done
      rm -f ../a/tables.sqlite*
      """
    #expect(try Tool.run("/bin/sh", ["-c", script], in: work.path).status == 0)
    #expect(try numbers("a", in: work) == [1])
    try create(3, in: "a", work)
    let refused = try work.attempt("-C", "a", "sync", work.file("peer"))
    #expect(refused.status == 1, "\(refused.errors)")
    #expect(refused.errors.contains("repair --fork"), "\(refused.errors)")
    #expect(try numbers("peer", in: work) == [1, 2])
    try create(4, in: "a", work)
    try work.stemma("-C", "a", "repair", "--fork", "--from", work.file("peer"))
    try work.stemma("-C", "a", "sync", work.file("peer"))
    try expectEqual(["a", "peer"], [1, 2, 3, 4], in: work)
    #expect(try work.events("a") == 4)
  }
}
