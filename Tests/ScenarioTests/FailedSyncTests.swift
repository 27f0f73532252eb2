import Foundation
import StemmaNode
import StemmaSimulation
import Testing

/// Disks that fail a sync once, and then say that all is well.
///
/// Every command of the tool ends with the first sync that fails. A program goes on: here it is this process.
@Suite("Syncs that fail once")
struct FailedSyncTests {
  static let count = 600
  static let batch = 10

  /// How many bytes of a node's one journal a command has synced, by its system calls and nothing else.
  private struct SyncedBytes {
    /// Up to where it was written, and up to where a sync has returned without an error.
    private var written = 0
    private(set) var synced = 0
    /// Whether a sync of it has failed.
    private(set) var hasFailed = false

    /// `trace`: of `pwrite64` and `fdatasync`, with paths.
    init(trace: String) throws {
      // What a sync that is under way will have synced, by process.
      var begun: [Substring: Int] = [:]
      for line in trace.split(separator: "\n") {
        if let write = line.firstMatch(of: /pwrite64\(\d+<[^>]+\.journal>.*, (\d+), (\d+)(?:\)| <unfinished)/)
        {
          written = max(written, try #require(Int(write.1)) + (try #require(Int(write.2))))
        }
        let process = line.prefix { $0 != " " }
        if line.contains(/fdatasync\(\d+<[^>]+\.journal>/) { begun[process] = written }
        guard line.contains("fdatasync"), !line.contains("unfinished"), let end = begun[process] else {
          continue
        }
        begun[process] = nil
        if line.contains("= 0") { synced = max(synced, end) } else { hasFailed = true }
      }
    }
  }

  @Test(
    "who pulls where a sync has just failed gets what is synced, and nothing else",
    .enabled(if: Machine.strace != nil && Machine.canMount))
  func nothingUnsyncedIsShipped() throws {
    var failures = 0
    for place in 1...6 {
      let work = try Workplace()
      try work.write("lines.ndjson", Rows.lines(Self.count))
      try work.rows("a")
      let options = ["-f", "-y", "-s", "1", "-e", "trace=pwrite64,fdatasync"]
      let inject = ["-e", "inject=fdatasync:error=EIO:when=\(place)"]
      func trace(_ options: [String], _ arguments: [String]) throws -> (Tool.Result, SyncedBytes) {
        let result = try Tool.run(
          try #require(Machine.strace), ["-o", "trace"] + options + [Tool.path] + arguments, in: work.path)
        return (result, try SyncedBytes(trace: String(contentsOfFile: work.file("trace"), encoding: .utf8)))
      }
      let (result, before) = try trace(
        options + inject, ["-C", "a", "import", "--batch", "\(Self.batch)", "lines.ndjson"])
      guard before.hasFailed else { continue }
      failures += 1
      #expect(result.status == 74 && result.errors.contains("Input/output error"), "\(result.errors)")

      let frames = try work.stemma("inspect", "a/log/00000001.journal", "--ndjson").objects()
      func events(upTo end: Int) -> Int {
        frames.filter { $0.text("part") == "frame" }.reduce(0) { sum, frame in
          let isThere = (frame.number("offset") ?? 0) + (frame.number("bytes") ?? 0) <= end
          return sum + (isThere ? (frame["facts"] as? [String: Any])?.number("events") ?? 0 : 0)
        }
      }
      // What was written and not synced is there, for whoever reads the file.
      #expect(events(upTo: .max) > events(upTo: before.synced), "fdatasync \(place)")
      #expect(result.durableLine <= events(upTo: before.synced))

      // One who cannot sync it himself.
      let fixed = try Mount(at: work.file("fixed"), ["--bind", work.file("a")])
      try fixed.mount(["-o", "remount,ro,bind"])
      try work.stemma("clone", "fixed", "peer", "--name", "peer")
      #expect(try work.events("peer") == events(upTo: before.synced), "fdatasync \(place)")

      // One who can does so before.
      try work.rows("other")
      let (pull, after) = try trace(options, ["-C", "other", "pull", "a"])
      #expect(pull.status == 0, "\(pull.errors)")
      let synced = max(before.synced, after.synced)
      #expect(try work.events("other") <= events(upTo: synced), "fdatasync \(place)")
      #expect(try work.events("other") >= result.durableLine, "fdatasync \(place)")

      // And the next process writes.
      try work.stemma("-C", "a", "create", "Row", "tenant=x", "n=1", "text=x")
      try work.stemma("-C", "a", "verify")
      #expect(try work.events("a") == events(upTo: .max) + 1)
    }
    #expect(failures > 1)
  }

  /// A file system in an image whose own disk is full: what it has no blocks for is lost when the kernel writes it back. It
  /// says so to one sync, and to none after that. What was written again over such blocks, and confirmed, was lost, too.
  @Test(
    "a program whose disk lost a write may not write until it opens the node anew, and then keeps what it writes",
    .enabled(if: Machine.canMakeDisks))
  func aDiskThatFailsOnceAndThenLies() throws {
    var attempts = 0
    // Now and then such a disk says to no sync at all that it has lost something: nobody can be safe from that.
    while try !failsOnce(seed: UInt64(attempts)) {
      attempts += 1
      if attempts == 10 { return print("skipped: the disk has lied ten times before it said anything") }
    }
  }

  /// False if the disk had lied before it said anything.
  private func failsOnce(seed: UInt64) throws -> Bool {
    let work = try Workplace()
    let outer = try Mount(at: work.file("outer"), ["-t", "tmpfs", "-o", "size=6m", "tmpfs"])
    defer { withExtendedLifetime(outer) {} }
    let image = work.file("outer/image")
    try Machine.makeDisk(at: image, size: 64 << 20)
    var disk: Mount? = try Mount(at: work.file("disk"), ["-o", "loop", image])
    let directory = work.file("disk/node")
    var random = SplitMix64(seed: seed)
    var acknowledged = 0
    func commit(_ tenant: String, _ node: Node) throws {
      // What does not get much shorter by being packed.
      let text = (0..<180).map { _ in String(random.next(), radix: 36) }.joined()
      let line = Array(Rows.line(tenant, acknowledged, text).utf8)
      let mutation = try line.dropLast().withUnsafeBytes { try Mutation(line: $0) }
      try node.write { transaction throws(NodeError) in _ = try transaction.perform(mutation) }
      acknowledged += 1
    }

    var node: Node? = try Node.create(at: directory, schema: Rows.schema, name: "node")
    for _ in 0..<3 { try commit("t", try #require(node)) }
    let ballast = work.file("outer/ballast")
    _ = try Tool.run("/bin/sh", ["-c", "cat /dev/zero > '\(ballast)' 2> /dev/null"], in: work.path)
    let failure = #expect(throws: NodeError.self) {
      while acknowledged < 1000 { try commit("t", try #require(node)) }
    }
    guard case .log(.system(let path, "fdatasync", _)) = failure else {
      Issue.record("\(String(describing: failure))")
      return true
    }
    try FileManager.default.removeItem(atPath: ballast)

    // The next sync of the same file says that all is well. It is not believed.
    let journal = try FileHandle(forUpdating: URL(fileURLWithPath: path))
    #expect(fdatasync(journal.fileDescriptor) == 0)
    try journal.close()
    for _ in 0..<3 {
      let refusal = #expect(throws: NodeError.self) { try commit("t", try #require(node)) }
      guard case .log(.poisoned) = refusal else {
        Issue.record("\(String(describing: refusal))")
        return true
      }
    }

    // Who pulls meanwhile gets what was acknowledged, and nothing else.
    var fixed: Mount? = try Mount(at: work.file("fixed"), ["--bind", directory])
    try fixed?.mount(["-o", "remount,ro,bind"])
    guard try work.attempt("-C", "fixed", "verify").status == 0 else { return false }
    try work.stemma("clone", "fixed", "peer", "--name", "peer")
    #expect(try work.events("peer") == acknowledged)
    let export = try work.export("peer").split(separator: "\n")
    fixed = nil

    // Opened anew, the node may have the commit that was not acknowledged: then it has synced it.
    node = nil
    node = try Node.open(at: directory, Node.OpeningOptions(mode: .write))
    try commit("x", try #require(node))
    node = nil
    let held = try work.events("disk/node")
    #expect((acknowledged...acknowledged + 1).contains(held))

    // What the kernel has in memory only is gone.
    disk = nil
    disk = try Mount(at: work.file("disk"), ["-o", "loop", image])
    defer { withExtendedLifetime(disk) {} }
    try work.stemma("-C", "disk/node", "verify")
    #expect(try work.events("disk/node") == held)
    #expect(Set(try work.export("disk/node").split(separator: "\n")).isSuperset(of: export))
    return true
  }
}
