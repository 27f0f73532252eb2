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
    /// How often it was synced after that.
    private(set) var laterSyncs = 0

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
        if line.contains(/fdatasync\(\d+<[^>]+\.journal>/) {
          begun[process] = written
          if hasFailed { laterSyncs += 1 }
        }
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
    .enabled(if: Machine.strace != nil && Machine.canMount),
    arguments: [("EIO", "Input/output error"), ("EINTR", "Interrupted system call")])
  func nothingUnsyncedIsShipped(error: String, words: String) throws {
    var failures = 0
    for place in 1...6 {
      let work = try Workplace()
      try work.write("lines.ndjson", Rows.lines(Self.count))
      try work.rows("a")
      let options = ["-f", "-y", "-s", "1", "-e", "trace=pwrite64,fdatasync"]
      let inject = ["-e", "inject=fdatasync:error=\(error):when=\(place)"]
      func trace(_ options: [String], _ arguments: [String]) throws -> (Tool.Result, SyncedBytes) {
        let result = try Tool.run(
          try #require(Machine.strace), ["-o", "trace"] + options + [Tool.path] + arguments, in: work.path)
        return (result, try SyncedBytes(trace: String(contentsOfFile: work.file("trace"), encoding: .utf8)))
      }
      let (result, before) = try trace(
        options + inject, ["-C", "a", "import", "--batch", "\(Self.batch)", "lines.ndjson"])
      guard before.hasFailed else { continue }
      failures += 1
      #expect(result.status == 74 && result.errors.contains(words), "\(result.errors)")
      #expect(before.laterSyncs == 0, "fdatasync \(place)")

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
    for seed: UInt64 in 0..<5 {
      #expect(try FailingDisk(seed: seed, losesAloud: true).failsOnce(), "disk \(seed)")
    }
  }

  @Test(
    "of a disk that loses writes without a word nothing is told that was not written, and what is missing is named",
    .enabled(if: Machine.canMakeDisks))
  func disksThatLieAtOnce() throws {
    let disks: Range<UInt64> = 0..<5
    let silent = try disks.filter { try !FailingDisk(seed: $0, losesAloud: false).failsOnce() }
    print("\(silent.count) of \(disks.count) disks lied before they said anything")
  }

  /// A node with events of one stream on a disk that fails.
  private final class FailingDisk {
    private let outer: Mount
    private let work: Workplace
    private let image: String
    private var random: SplitMix64
    /// Of each record that was to be made; the last may not have been.
    private var texts: [String] = []
    private var acknowledged = 0

    /// `losesAloud`: whether it always tells the next sync what it has lost; others do so now and then.
    init(seed: UInt64, losesAloud: Bool) throws {
      work = try Workplace()
      outer = try Mount(at: work.file("outer"), ["-t", "tmpfs", "-o", "size=6m", "tmpfs"])
      image = work.file("outer/image")
      try Machine.makeDisk(at: image, size: 64 << 20, losesAloud: losesAloud)
      random = SplitMix64(seed: seed)
    }

    private func mounted() throws -> Mount { try Mount(at: work.file("disk"), ["-o", "loop", image]) }

    private func commit(_ tenant: String, _ node: Node) throws {
      // What does not get much shorter by being packed.
      let text = (0..<180).map { _ in String(random.next(), radix: 36) }.joined()
      texts.append(text)
      let line = Array(Rows.line(tenant, texts.count - 1, text).utf8)
      let mutation = try line.dropLast().withUnsafeBytes { try Mutation(line: $0) }
      try node.write { transaction throws(NodeError) in _ = try transaction.perform(mutation) }
      acknowledged = texts.count
    }

    /// The records of which a node tells events, each one that was written, and no other.
    private func records(of node: String) throws -> Set<Int> {
      let log = try work.attempt("-C", node, "log", "--ndjson")
      #expect([0, 74].contains(log.status), "\(log.errors)")
      let numbers = try log.objects().map { event in
        let number = try #require(event.object("key").number("n"))
        #expect(texts.indices.contains(number) && event.object("fields").text("text") == texts[number])
        return number
      }
      #expect(Set(numbers).count == numbers.count)
      return Set(numbers)
    }

    /// False if the disk had lied before it said anything.
    func failsOnce() throws -> Bool {
      var disk: Mount? = try mounted()
      let directory = work.file("disk/node")
      var node: Node? = try Node.create(at: directory, schema: Rows.schema, name: "node")
      for _ in 0..<3 { try commit("t", try #require(node)) }
      let ballast = work.file("outer/ballast")
      _ = try Tool.run("/bin/sh", ["-c", "cat /dev/zero > '\(ballast)' 2> /dev/null"], in: work.path)
      var failure: NodeError?
      while failure == nil, acknowledged < 1000 {
        do { try commit("t", try #require(node)) } catch let error as NodeError { failure = error }
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
        texts.removeLast()
        guard case .log(.poisoned) = refusal else {
          Issue.record("\(String(describing: refusal))")
          return true
        }
      }

      // Who pulls meanwhile gets what was acknowledged, and nothing else.
      var fixed: Mount? = try Mount(at: work.file("fixed"), ["--bind", directory])
      try fixed?.mount(["-o", "remount,ro,bind"])
      guard try work.attempt("-C", "fixed", "verify").status == 0 else {
        try checkLoss()
        fixed = nil
        node = nil
        disk = nil
        disk = try mounted()
        defer { withExtendedLifetime(disk) {} }
        // What else it has lost may have been all that told of it.
        #expect(try records(of: "disk/node").isSubset(of: 0...acknowledged))
        return false
      }
      try work.stemma("clone", "fixed", "peer", "--name", "peer")
      #expect(try records(of: "peer") == Set(0..<acknowledged))
      fixed = nil

      // Opened anew, the node may have the commit that was not acknowledged: then it has synced it.
      node = nil
      node = try Node.open(at: directory, Node.OpeningOptions(mode: .write))
      let before = Set(0..<acknowledged)
      try commit("x", try #require(node))
      node = nil
      let held = try records(of: "disk/node")
      #expect(held.isSuperset(of: before) && held.contains(texts.count - 1))

      // What the kernel has in memory only is gone.
      disk = nil
      disk = try mounted()
      defer { withExtendedLifetime(disk) {} }
      try work.stemma("-C", "disk/node", "verify")
      #expect(try records(of: "disk/node") == held)
      #expect(try work.export("disk/node").split(separator: "\n").count == held.count)
      return true
    }

    /// Of a node on a disk that has lost what it had confirmed: nothing is told that was not written, and of what was acknowledged
    /// exactly that is named which is not told.
    private func checkLoss() throws {
      let verify = try work.attempt("-C", "fixed", "verify", "--json")
      #expect(verify.status == 1, "\(verify.errors)")
      let report = try verify.object()
      let told = try records(of: "fixed")
      var missing: Set<Int> = []
      for loss in try #require(report["missing"] as? [[String: Any]]) {
        // One record for each event of the stream, which begins with 1.
        let from = try #require(loss.number("from"))
        missing.formUnion(from - 1...(try #require(loss.number("to"))) - 1)
      }
      let isVague = report["isVague"] as? Bool == true
      print("\(missing.count) of \(acknowledged) records named missing\(isVague ? ", and perhaps more" : "")")
      #expect(missing.isDisjoint(with: told), "\(verify.output)")
      #expect(isVague || missing.union(told).isSuperset(of: 0..<acknowledged), "\(verify.output)")
      // A peer gets no others either, or is refused.
      let clone = try work.attempt("clone", "fixed", "peer", "--name", "peer")
      #expect([0, 69, 74].contains(clone.status), "\(clone.errors)")
      if clone.status == 0 { #expect(try records(of: "peer").isSubset(of: told)) }
    }
  }
}
