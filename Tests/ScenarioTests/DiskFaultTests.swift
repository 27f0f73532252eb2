import Foundation
import Testing

/// Real disks that are full or read-only.
@Suite("Full and read-only disks", .enabled(if: Machine.canMount))
struct DiskFaultTests {
  static let count = 6000
  /// The number of records that fit on the empty disk together with a rebuild.
  static let fittingCount = 3000
  static let batch = 100

  /// A disk of 1 MiB with an empty node, and another node with more data than fits there by
  /// default.
  private func smallDisk(_ work: Workplace, _ count: Int = Self.count) throws -> Mount {
    let disk = try Mount(at: work.file("disk"), ["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
    try work.write("lines.ndjson", Rows.lines(count))
    try work.rows("source")
    try work.stemma("-C", "source", "import", "lines.ndjson")
    try work.rows("disk/node")
    return disk
  }

  @Test("a full disk of 1 MiB: reads go on, and writing goes on when there is room again")
  func aFullDiskGetsSpaceAgain() throws {
    let work = try Workplace()
    let disk = try smallDisk(work, Self.fittingCount)
    defer { withExtendedLifetime(disk) {} }
    let ballast = "disk/ballast"
    try Data(count: 910 << 10).write(to: URL(fileURLWithPath: work.file(ballast)))

    let full = try work.attempt(
      "-C", "disk/node", "import", "--batch", "\(Self.batch)", "--segment-size", "20000", "lines.ndjson")
    #expect(full.status == 74, "\(full.errors)")
    #expect(full.errors.contains("full") || full.errors.contains("No space"), "\(full.errors)")
    #expect(full.durableLine > 0 && full.durableLine < Self.fittingCount)
    #expect(full.lineToGoOnWith == full.durableLine + 1, "\(full.errors)")

    // Fills the disk to the last byte.
    let rest = work.file("disk/rest")
    _ = try Tool.run("/bin/sh", ["-c", "cat /dev/zero > '\(rest)' 2> /dev/null"], in: work.path)
    let held = try work.events("disk/node")
    #expect(held >= full.durableLine && held % Self.batch == 0)
    try work.stemma("-C", "disk/node", "verify")
    #expect(try work.export("disk/node").split(separator: "\n").count == held)
    #expect(try work.stemma("-C", "disk/node", "log", "--oneline").lines.count == held)
    for arguments in [
      ["create", "Row", "tenant=x", "n=1", "text=x"], ["rebuild"], ["pull", work.file("source")],
    ] {
      let refused = try Tool.run(Tool.path, ["-C", "disk/node"] + arguments, in: work.path)
      #expect(refused.status == 74, "\(arguments): \(refused.status) \(refused.errors)")
      #expect(try work.events("disk/node") == held, "\(arguments)")
    }
    try work.stemma("-C", "disk/node", "verify")

    for name in [ballast, "disk/rest"] { try FileManager.default.removeItem(atPath: work.file(name)) }
    let again = try work.attempt("-C", "disk/node", "import", "--batch", "\(Self.batch)", "lines.ndjson")
    let next = try #require(again.lineToGoOnWith, "\(again.errors)")
    #expect(next == held + 1)
    try work.stemma(
      "-C", "disk/node", "import", "--batch", "\(Self.batch)", "--from-line", "\(next)", "lines.ndjson")
    try work.stemma("-C", "disk/node", "rebuild")
    try work.stemma("-C", "disk/node", "verify")
    #expect(try work.export("disk/node") == (try work.export("source")))
    #expect(try work.events("disk/node") == Self.fittingCount)
  }

  @Test("a disk that fills up while a shipment is received keeps nothing of it, and all of it later")
  func aFullDiskReceives() throws {
    let work = try Workplace()
    let disk = try smallDisk(work)
    let free = try #require(
      try FileManager.default.attributesOfFileSystem(forPath: disk.path)[.systemFreeSize] as? Int)
    // With and without room for the log, with and without room for the tables.
    var failures = 0
    for room in [4, 16, 40, 80, 160, 300] {
      try Data(count: max(0, free - room << 10)).write(to: URL(fileURLWithPath: work.file("disk/ballast")))
      let result = try work.attempt("-C", "disk/node", "pull", work.file("source"))
      #expect([0, 74].contains(result.status), "\(room) KiB: \(result.errors)")
      if result.status == 74 { failures += 1 }
      try work.stemma("-C", "disk/node", "verify")
      #expect([0, Self.count].contains(try work.events("disk/node")), "\(room) KiB")
      #expect(try work.export("disk/node").isEmpty == (try work.events("disk/node") == 0), "\(room) KiB")
    }
    #expect(failures >= 2)
    try FileManager.default.removeItem(atPath: work.file("disk/ballast"))
    try disk.mount(["-o", "remount,size=8m"])
    try work.stemma("-C", "disk/node", "pull", work.file("source"))
    #expect(try work.export("disk/node") == (try work.export("source")))
  }

  @Test("a clone that found no room leaves nothing behind in the one that does")
  func aFullDiskIsClonedTo() throws {
    let work = try Workplace()
    try work.rows("node")
    try work.stemma("-C", "node", "import", "-", input: Rows.lines(30))
    var failures = 0
    for room in [8, 16, 24, 32, 40, 56] {
      let disk = try Mount(at: work.file("disk\(room)"), ["-t", "tmpfs", "-o", "size=\(room)k", "tmpfs"])
      let clone = "disk\(room)/clone"
      let first = try work.attempt("clone", "node", clone)
      if first.status == 74 { failures += 1 }
      #expect(
        [74, 0].contains(first.status) && (first.status == 0 || first.errors.contains("room")), "\(first)")
      try disk.mount(["-o", "remount,size=4m"])
      let second = try work.attempt("clone", "node", clone)
      #expect(second.status == 0 || second.errors.contains("holds a node already"), "\(second)")
      let found = try work.stemma("-C", clone, "verify")
      #expect(!found.output.contains("aside") && !found.errors.contains("aside"), "\(room): \(found)")
      let names = try FileManager.default.contentsOfDirectory(atPath: work.file(clone + "/log"))
      #expect(!names.contains { $0.contains("aside") }, "\(room): \(names)")
    }
    print("\(failures) clones found no room")
    #expect(failures > 2)
  }

  /// Temporary tables omit lost records and lost parts of records, so the exit status must say so.
  @Test("what is read of temporary tables that were made around corruption ends with that")
  func aCorruptLogOnAReadOnlyDisk() throws {
    let work = try Workplace()
    try work.write("lines.ndjson", Rows.lines(300))
    try work.rows("node")
    try work.stemma("-C", "node", "import", "--segment-size", "5000", "--batch", "50", "lines.ndjson")
    let path = "node/log/00000002.segment"
    let block = try #require(
      try work.stemma("inspect", path, "--block", "1", "--json").object().array("parts").first)
    var bytes = try work.bytes(path)
    bytes[try #require(block.number("offset")) + 50] ^= 1
    try bytes.write(to: URL(fileURLWithPath: work.file(path)))
    for name in try FileManager.default.contentsOfDirectory(atPath: work.file("node"))
    where name.hasPrefix("tables.") {
      try FileManager.default.removeItem(atPath: work.file("node/" + name))
    }
    let mount = try Mount(at: work.file("fixed"), ["--bind", work.file("node")])
    try mount.mount(["-o", "remount,ro,bind"])
    let record = ["Row", "tenant=t0", "n=3"]
    for arguments in [
      ["get"] + record, ["blame"] + record, ["get", "Row", "tenant=t0", "n=999"], ["list", "Row"],
    ] {
      let result = try Tool.run(Tool.path, ["-C", "fixed"] + arguments, in: work.path)
      #expect(result.status == 74, "\(arguments): \(result.output)\(result.errors)")
      #expect(result.errors.contains("what cannot be read is left out"), "\(result.errors)")
    }
  }

  @Test("a read-only mount can be read and pulled from; writing says why not")
  func aReadOnlyDiskIsRead() throws {
    let work = try Workplace()
    try work.write("lines.ndjson", Rows.lines(300))
    for name in ["node", "other"] { try work.rows(name) }
    try work.stemma("-C", "node", "import", "--segment-size", "5000", "--batch", "50", "lines.ndjson")
    let reading = [
      ["status"], ["verify"], ["export"], ["list", "Row", "--limit", "3"],
      ["get", "Row", "tenant=t0", "n=3"],
      ["query", "SELECT count(*) AS n FROM rows"], ["log", "--oneline"], ["segments"], ["digest"],
      ["conflicts"],
      ["history", "Row", "tenant=t0", "n=3"],
    ]
    func outputs(_ name: String) throws -> [String] {
      try reading.map { arguments in
        let result = try Tool.run(Tool.path, ["-C", name] + arguments, in: work.path)
        #expect(result.status == 0, "\(arguments): \(result.errors)")
        return result.output.replacingOccurrences(of: name + "/", with: "").replacingOccurrences(
          of: " in \(name)", with: "")
      }
    }
    let expected = try outputs("node")
    let mount = try Mount(at: work.file("fixed"), ["--bind", work.file("node")])
    try mount.mount(["-o", "remount,ro,bind"])
    #expect(try outputs("fixed") == expected)
    // The last writer removes SQLite's own files, and an ordinary reader would recreate them.
    for file in ["tables.sqlite-wal", "tables.sqlite-shm"] {
      let path = work.file("node/" + file)
      guard FileManager.default.fileExists(atPath: path) else { continue }
      if file.hasSuffix("wal") {
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int == 0)
      }
      try FileManager.default.removeItem(atPath: path)
    }
    #expect(try outputs("fixed") == expected)
    // SQLite cannot read its write-ahead log without the index either. `status` reports the other
    // tables.
    let transactions = URL(fileURLWithPath: work.file("node/tables.sqlite-wal"))
    try Data(repeating: 0, count: 4096).write(to: transactions)
    #expect(try outputs("fixed").dropFirst() == expected.dropFirst())
    try FileManager.default.removeItem(at: transactions)
    for (arguments, shown) in [
      (["undo", "@1", "-n"], "0 records added, 1 removed, 0 changed"),
      (["import", "--dry-run", "--upsert", "lines.ndjson"], "would import 300 lines"),
    ] {
      let result = try Tool.run(Tool.path, ["-C", "fixed"] + arguments, in: work.path)
      #expect(result.status == 0 && result.output.contains(shown), "\(arguments): \(result.errors)")
    }
    for arguments in [
      ["create", "Row", "tenant=x", "n=1", "text=x"], ["import", "lines.ndjson"], ["rebuild"],
      ["sync", "other"],
      ["repair", "--from", "other"], ["scope", "add", "tenant=x"],
    ] {
      let refused = try Tool.run(Tool.path, ["-C", "fixed"] + arguments, in: work.path)
      #expect(refused.status == 77, "\(arguments): \(refused.status) \(refused.errors)")
      #expect(refused.errors.contains("Read-only file system"), "\(arguments): \(refused.errors)")
    }
    try work.stemma("-C", "other", "pull", "fixed")
    #expect(try work.export("other") == (try work.export("node")))
    // Missing tables are built in another directory.
    for file in ["tables.sqlite", "tables.sqlite-wal", "tables.sqlite-shm"] {
      let path = work.file("node/" + file)
      if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
    }
    #expect(try work.export("fixed") == (try work.export("other")))
    #expect(!FileManager.default.fileExists(atPath: work.file("node/tables.sqlite")))
  }

  @Test("a limit on the size of files is an error in words, and nothing is lost by it")
  func filesMayNotGrow() throws {
    let work = try Workplace()
    try work.write("lines.ndjson", Rows.lines(Self.fittingCount))
    try work.rows("node")
    try work.stemma("-C", "node", "import", "lines.ndjson")
    let events = try work.events("node")
    /// Limits files to 20 KiB, which log and tables exceed.
    func limited(_ arguments: [String]) throws -> Tool.Result {
      try Tool.run(
        "/bin/sh", ["-c", "ulimit -f 40; exec \"$@\"", "sh", Tool.path, "-C", "node"] + arguments,
        in: work.path)
    }
    for arguments in [
      ["create", "Row", "tenant=x", "n=1", "text=x"], ["rebuild"], ["import", "lines.ndjson"],
      ["list", "Row", "--limit", "2"],
    ] {
      let refused = try limited(arguments)
      #expect(refused.status == 74, "\(arguments): \(refused.status) \(refused.errors)")
      #expect(refused.errors.contains("try again"), "\(arguments): \(refused.errors)")
      #expect(try work.events("node") == events, "\(arguments)")
    }
    try work.stemma("-C", "node", "create", "Row", "tenant=x", "n=1", "text=x")
    #expect(try work.events("node") == events + 1)
  }

  @Test("a limit on open files is an error in words, and nothing is lost by it")
  func fewFilesMayBeOpen() throws {
    let work = try Workplace()
    try work.rows("node")
    try work.write("lines.ndjson", Rows.lines(3000))
    try work.stemma("-C", "node", "import", "--segment-size", "20000", "lines.ndjson")
    let export = try work.export("node")
    var refused = 0
    for limit in [5, 8, 9, 11, 16, 24, 34, 36, 40] {
      for arguments in [["rebuild"], ["verify"], ["export"], ["clone", "node", "twin\(limit)"]] {
        let node = arguments[0] == "clone" ? [] : ["-C", "node"]
        let result = try Tool.run(
          "/bin/sh", ["-c", "ulimit -n \(limit); exec \"$@\"", "sh", Tool.path] + node + arguments,
          in: work.path)
        // libdispatch ends a process (SIGILL) in which it finds no descriptor for its own events.
        let isKilled = limit < 24 && result.status == SIGILL
        #expect(
          isKilled || [0, 74].contains(result.status),
          "\(limit) \(arguments): \(result.status) \(result.errors)")
        #expect(isKilled || result.status == 0 || !result.errors.isEmpty, "\(limit) \(arguments)")
        if result.status != 0 { refused += 1 }
      }
    }
    print("\(refused) of 36 commands had too few descriptors")
    #expect(refused > 0)
    try work.stemma("-C", "node", "verify")
    #expect(try work.export("node") == export)
  }

  @Test(
    "a directory that vanishes under a reader and a writer is an error, and nothing is made in its place",
    arguments: ["node/log", "node"])
  func aDirectoryVanishes(directory: String) throws {
    let work = try Workplace()
    try work.rows("node")
    try work.stemma("-C", "node", "create", "Row", "tenant=u", "n=1", "text=x")
    let (before, export) = (try work.events("node"), try work.export("node"))
    let reader = try Following(["-C", "node", "log", "--follow", "--oneline"], in: work)
    #expect(reader.lines(1).count == 1)
    try #require(mkfifo(work.file("lines"), 0o600) == 0)
    let writer = try Following(["-C", "node", "import", "lines"], in: work)
    // Returns when the command has opened the other end.
    let lines = try FileHandle(forWritingTo: URL(fileURLWithPath: work.file("lines")))
    try FileManager.default.moveItem(atPath: work.file(directory), toPath: work.file("away"))
    try lines.write(contentsOf: Data((Rows.lines(1) + "\n").utf8))
    try lines.close()
    #expect([66, 74].contains(writer.end()))
    #expect([66, 74].contains(reader.end()))
    for arguments in [["log"], ["verify"], ["create", "Row", "tenant=x", "n=1", "text=x"]] {
      let result = try Tool.run(Tool.path, ["-C", "node"] + arguments, in: work.path)
      #expect(result.status == 66, "\(arguments): \(result.status) \(result.errors)")
    }
    #expect(!FileManager.default.fileExists(atPath: work.file(directory)))
    try FileManager.default.moveItem(atPath: work.file("away"), toPath: work.file(directory))
    try work.stemma("-C", "node", "verify")
    #expect(try work.events("node") == before)
    #expect(try work.export("node") == export)
  }
}
