import Foundation
import StemmaNode
import StemmaSimulation
import Testing

/// Disks that fail one sync and then report success.
///
/// Every command of the tool ends with the first failed sync. A long-lived program continues; here
/// it is this process.
@Suite("Syncs that fail once")
struct FailedSyncTests {
  static let count = 600
  static let batch = 10

  /// The number of synced bytes of a node's single journal, derived from a command's system calls.
  private struct SyncedBytes {
    /// The end of the written bytes, and the end of the bytes that a successful sync covers.
    private var written = 0
    private(set) var synced = 0
    /// Whether a sync of the journal has failed.
    private(set) var hasFailed = false
    /// The number of later syncs.
    private(set) var laterSyncs = 0

    /// `trace`: the calls of `pwrite64` and `fdatasync`, with paths.
    init(trace: String) throws {
      // The end of the bytes that a running sync covers, by process.
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
      // Readers of the file also see written bytes that are not synced.
      #expect(events(upTo: .max) > events(upTo: before.synced), "fdatasync \(place)")
      #expect(result.durableLine <= events(upTo: before.synced))

      // A reader that cannot sync the journal.
      let fixed = try Mount(at: work.file("fixed"), ["--bind", work.file("a")])
      try fixed.mount(["-o", "remount,ro,bind"])
      try work.stemma("clone", "fixed", "peer", "--name", "peer")
      #expect(try work.events("peer") == events(upTo: before.synced), "fdatasync \(place)")

      // A reader that can sync it does so first.
      try work.rows("other")
      let (pull, after) = try trace(options, ["-C", "other", "pull", "a"])
      #expect(pull.status == 0, "\(pull.errors)")
      let synced = max(before.synced, after.synced)
      #expect(try work.events("other") <= events(upTo: synced), "fdatasync \(place)")
      #expect(try work.events("other") >= result.durableLine, "fdatasync \(place)")

      // The next process can write.
      try work.stemma("-C", "a", "create", "Row", "tenant=x", "n=1", "text=x")
      try work.stemma("-C", "a", "verify")
      #expect(try work.events("a") == events(upTo: .max) + 1)
    }
    #expect(failures > 1)
  }

  /// A file system in an image on a full disk: writeback loses blocks for which the image has no
  /// room. Kernels differ in which sync reports that, if any. The test therefore asserts nothing
  /// about the disk. A failure that the node saw must have its consequences, and after an
  /// unreported loss the remaining promises hold.
  @Test(
    "after a reported loss the node refuses to write until it is opened again, and no loss invents an event",
    .enabled(if: Machine.canMakeDisks), arguments: 0..<8 as Range<UInt64>)
  func aDiskThatLosesWrites(seed: UInt64) throws {
    print("disk \(seed) \(try FailingDisk(seed: seed).loseWrites())")
  }

  /// A node with events of one stream on a disk that loses writes.
  private final class FailingDisk {
    /// The behavior of the disk, for the output of the test.
    enum Outcome: String { case reportedItsLoss, lostNothing, lied }

    private let outer: Mount
    private let work: Workplace
    private let image: String
    private var random: SplitMix64
    /// Texts of the records, by number. The node may lack the last one, whose commit failed.
    private var texts: [String] = []
    private var acknowledged = 0

    init(seed: UInt64) throws {
      work = try Workplace()
      outer = try Mount(at: work.file("outer"), ["-t", "tmpfs", "-o", "size=6m", "tmpfs"])
      image = work.file("outer/image")
      try Machine.makeDisk(at: image, size: 64 << 20)
      random = SplitMix64(seed: seed)
    }

    private func mounted() throws -> Mount { try Mount(at: work.file("disk"), ["-o", "loop", image]) }

    private func commit(_ tenant: String, _ node: Node) throws {
      // A text that hardly compresses.
      let text = (0..<180).map { _ in String(random.next(), radix: 36) }.joined()
      texts.append(text)
      let line = Array(Rows.line(tenant, texts.count - 1, text).utf8)
      let mutation = try line.dropLast().withUnsafeBytes { try Mutation(line: $0) }
      try node.write { transaction throws(NodeError) in _ = try transaction.perform(mutation) }
      acknowledged = texts.count
    }

    /// Numbers of the records in a node's log. Each was written, and each appears once.
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

    func loseWrites() throws -> Outcome {
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
      try FileManager.default.removeItem(atPath: ballast)
      var mayHoldMore = false
      switch failure {
      case .log(.system(_, "fdatasync", _)):
        // A later sync may succeed without the lost pages, so the node must not write again.
        for _ in 0..<3 {
          let refusal = #expect(throws: NodeError.self) { try commit("t", try #require(node)) }
          texts.removeLast()
          guard case .log(.poisoned) = refusal else {
            Issue.record("\(String(describing: refusal))")
            return .reportedItsLoss
          }
        }
      case .log(.system), .tables: mayHoldMore = true
      case nil: break
      case let other?: Issue.record("\(other)")
      }

      // A concurrent pull receives exactly the acknowledged events.
      var fixed: Mount? = try Mount(at: work.file("fixed"), ["--bind", directory])
      try fixed?.mount(["-o", "remount,ro,bind"])
      let before = Set(0..<acknowledged)
      guard try work.attempt("-C", "fixed", "verify").status == 0 else {
        try checkLoss()
        fixed = nil
        node = nil
        disk = nil
        return try remounted()
      }
      try work.stemma("clone", "fixed", "peer", "--name", "peer")
      let cloned = try records(of: "peer")
      #expect(cloned == before || (mayHoldMore && cloned == before.union([acknowledged])))
      fixed = nil

      // After opening, the node may hold the failed commit. It has then synced it.
      node = nil
      do {
        node = try Node.open(at: directory, Node.OpeningOptions(mode: .write))
        try commit("x", try #require(node))
      } catch is NodeError {
        node = nil
        disk = nil
        return try remounted()
      }
      node = nil
      let held = try records(of: "disk/node")
      #expect(held.isSuperset(of: before) && held.contains(texts.count - 1))

      // Unmounting drops data that only the kernel's memory holds.
      disk = nil
      do { disk = try mounted() } catch is Mount.MountError { return .lied }
      defer { withExtendedLifetime(disk) {} }
      guard try work.attempt("-C", "disk/node", "verify").status == 0 else {
        #expect(try records(of: "disk/node").isSubset(of: held))
        return .lied
      }
      #expect(try records(of: "disk/node") == held)
      #expect(try work.export("disk/node").split(separator: "\n").count == held.count)
      return failure == nil ? .lostNothing : .reportedItsLoss
    }

    /// Remounts a disk that reported false success. It may also have lost the records of the loss.
    private func remounted() throws -> Outcome {
      do {
        let disk = try mounted()
        defer { withExtendedLifetime(disk) {} }
        let status = try work.attempt("-C", "disk/node", "status").status
        if status == 0 { #expect(try records(of: "disk/node").isSubset(of: 0..<texts.count)) }
      } catch is Mount.MountError {}
      return .lied
    }

    /// A node whose disk lost confirmed writes reports no event that was not written. It lists
    /// exactly the unreadable acknowledged events as missing.
    private func checkLoss() throws {
      let verify = try work.attempt("-C", "fixed", "verify", "--json")
      #expect(verify.status == 1, "\(verify.errors)")
      let report = try verify.object()
      let told = try records(of: "fixed")
      var missing: Set<Int> = []
      for loss in try #require(report["missing"] as? [[String: Any]]) {
        // Each event of the stream has one record; sequence numbers begin with 1.
        let from = try #require(loss.number("from"))
        missing.formUnion(from - 1...(try #require(loss.number("to"))) - 1)
      }
      let isVague = report["isVague"] as? Bool == true
      print("\(missing.count) of \(acknowledged) records named missing\(isVague ? ", and perhaps more" : "")")
      #expect(missing.isDisjoint(with: told), "\(verify.output)")
      #expect(isVague || missing.union(told).isSuperset(of: 0..<acknowledged), "\(verify.output)")
      // A peer gets no other events, or is refused.
      let clone = try work.attempt("clone", "fixed", "peer", "--name", "peer")
      #expect([0, 69, 74].contains(clone.status), "\(clone.errors)")
      if clone.status == 0 { #expect(try records(of: "peer").isSubset(of: told)) }
    }
  }
}
