import Foundation
import StemmaNode
import StemmaSimulation
import Testing

/// The real tool, killed or failing at chosen system calls.
@Suite("Faults at system calls", .enabled(if: Machine.strace != nil))
struct SystemCallFaultTests {
  static let batch = 10
  static let count = 120

  /// A command of the workload.
  enum Command: Sendable {
    /// Also seals the journal.
    case `import`, sync, rebuild
    case clone

    static let workload: [Command] = [.import, .sync, .rebuild]

    var arguments: [String] {
      switch self {
      case .import: ["-C", "a", "import", "--batch", "\(batch)", "--segment-size", "3000", "lines.ndjson"]
      case .sync: ["-C", "a", "sync", "b"]
      case .rebuild: ["-C", "a", "rebuild"]
      case .clone: ["clone", "a", "b", "--name", "b"]
      }
    }
  }

  /// The `place`-th call of this name on the main thread, or on another one.
  struct Call: Sendable {
    var command: Command
    var name: String
    var place: Int
    var isOfMainThread: Bool
  }

  func strace(_ options: [String], _ arguments: [String], in work: Workplace) throws -> Tool.Result {
    try Tool.run(try #require(Machine.strace), options + [Tool.path] + arguments, in: work.path)
  }

  /// A directory in which `command` can run.
  func prepared(for command: Command) throws -> Workplace {
    let work = try Workplace()
    try work.write("lines.ndjson", Rows.lines(Self.count))
    try work.rows("a")
    if command == .sync { try work.rows("b") }
    if command != .import { try work.stemma("-C", "a", "import", "--batch", "\(Self.batch)", "lines.ndjson") }
    return work
  }

  /// All calls of the commands, in the order of their start.
  func calls(of commands: [Command] = Command.workload) throws -> [Call] {
    var calls: [Call] = []
    for command in commands {
      let work = try prepared(for: command)
      let trace = work.file("trace")
      let result = try strace(["-f", "-o", trace], command.arguments, in: work)
      #expect(result.status == 0, "\(result.errors)")
      var counts: [Substring: Int] = [:]
      var main: Substring?
      for line in try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n") {
        guard let found = line.prefixMatch(of: /(\d+) +(\w+)\(/) else { continue }
        main = main ?? found.1
        let counter = found.1 + " " + found.2
        counts[counter, default: 0] += 1
        calls.append(
          Call(
            command: command, name: String(found.2), place: counts[counter] ?? 0,
            isOfMainThread: found.1 == main))
      }
    }
    return calls
  }

  private static let shares = 4
  /// Thread schedules vary, so a call may not happen. Hence there are more attempts than kills.
  private static let attempts = 320
  private static let kills = 300

  @Test("killed at many system calls of import, seal, sync and rebuild", arguments: 0..<shares)
  func killedAtSystemCalls(share: Int) throws {
    let calls = try calls()
    var killed = 0
    let kills = Array(stride(from: share, to: Self.attempts, by: Self.shares * Trials.stride(5)))
    for kill in kills {
      let call = calls[kill * calls.count / Self.attempts]
      let work = try prepared(for: call.command)
      let result = try self.kill(at: call, in: work)
      if result.status == SIGKILL { killed += 1 }
      let place: Comment = "\(call)"
      switch call.command {
      case .import: try checkImport(result, in: work, place)
      case .sync: try checkSync(in: work, place)
      case .rebuild: try checkRebuild(in: work, place)
      case .clone: try checkClone(in: work, place)
      }
    }
    print("\(killed) of \(kills.count) commands were killed, of \(calls.count) calls")
    #expect(killed >= kills.count * Self.kills / Self.attempts)
  }

  /// Runs the command and kills it at the call. If the call does not happen, the command succeeds.
  func kill(at call: Call, in work: Workplace) throws -> Tool.Result {
    // strace counts calls by name and thread; without -f, only those of the main thread. The signal
    // ends all threads.
    let inject = "inject=\(call.name):signal=KILL:when=\(call.place)"
    let options = (call.isOfMainThread ? [] : ["-f"]) + ["-o", "/dev/null", "-e", inject]
    let result = try strace(options, call.command.arguments, in: work)
    if result.status != SIGKILL { #expect(result.status == 0, "\(call): \(result.errors)") }
    return result
  }

  /// Complete commits, all reported lines durable, no lock, the line to resume with, and the same
  /// result.
  private func checkImport(_ result: Tool.Result, in work: Workplace, _ place: Comment) throws {
    let found = try work.stemma("-C", "a", "verify").output
    let unconfirmed = found.contains("not yet confirmed") ? Int(found.prefix { $0.isNumber }) ?? 0 : 0
    let held = try work.events("a")
    #expect(held % Self.batch == 0 && held >= result.durableLine, place)
    let again = try work.attempt(
      "-C", "a", "import", "--wait", "0", "--batch", "\(Self.batch)", "lines.ndjson")
    if again.status == 0 {
      #expect(held == 0, place)
    } else {
      // The next writer also recovers commits that were written but possibly not synced before the
      // kill.
      #expect(again.status == 65, "\(place): \(again.errors)")
      let next = try #require(again.lineToGoOnWith, "\(place): \(again.errors)")
      #expect(next > held && next <= held + unconfirmed + 1 && next % Self.batch == 1, place)
      try work.stemma(
        "-C", "a", "import", "--wait", "0", "--batch", "\(Self.batch)", "--from-line", "\(next)",
        "lines.ndjson")
    }
    try checkEnd("a", in: work, place)
  }

  /// Nothing or all of the shipment, and the same result on both nodes.
  private func checkSync(in work: Workplace, _ place: Comment) throws {
    for name in ["a", "b"] { try work.stemma("-C", name, "verify") }
    #expect([0, Self.count].contains(try work.events("b")), place)
    try work.stemma("-C", "a", "sync", "b", "--wait", "0")
    for name in ["a", "b"] { try checkEnd(name, in: work, place) }
    let digests = try ["a", "b"].map { try work.stemma("-C", $0, "digest").output }
    #expect(digests[0] == digests[1], place)
  }

  /// The tables before or after it, equal to those of an uninterrupted rebuild.
  func checkRebuild(in work: Workplace, _ place: Comment) throws {
    try checkEnd("a", in: work, place)
    try work.stemma("-C", "a", "rebuild", "--wait", "0")
    try checkEnd("a", in: work, place)
    let files = try FileManager.default.contentsOfDirectory(atPath: work.file("a"))
    #expect(!files.contains { $0.contains("building") }, "\(place): \(files)")
  }

  func checkEnd(_ name: String, in work: Workplace, _ place: Comment) throws {
    #expect(try work.export(name) == Self.wholeExport(), place)
    #expect(try work.events(name) == Self.count, place)
    try work.stemma("-C", name, "verify")
    try Node.open(at: work.file(name), Node.OpeningOptions()).checkInvariants()
  }

  /// The result of an uninterrupted import.
  private static func wholeExport() throws -> String { try expected.get() }
  private static let expected = Result {
    let work = try Workplace()
    try work.write("lines.ndjson", Rows.lines(count))
    try work.rows("a")
    try work.stemma("-C", "a", "import", "lines.ndjson")
    return try work.export("a")
  }

  @Test(
    "a sync of the journal fails once: the import ends, nothing that was reported is gone", arguments: 1...6)
  func aSyncFailsOnce(place: Int) throws {
    let work = try prepared(for: .import)
    let result = try strace(
      ["-f", "-o", "/dev/null", "-e", "inject=fdatasync:error=EIO:when=\(place)"], Command.import.arguments,
      in: work)
    if result.status != 0 {
      #expect(result.status == 74, "\(result.errors)")
      // SQLite has its own message.
      #expect(result.errors.contains(/Input\/output error|disk I\/O error/), "\(result.errors)")
    }
    try checkImport(result, in: work, "fdatasync \(place) fails")
  }

  /// An interrupted sync says nothing about the disk, and neither does a second call that succeeds.
  @Test(
    "a sync that is interrupted is not called again: the import ends, nothing that was reported is gone",
    arguments: ["00000001.journal", "00000001.segment.partial", "00000002.journal.partial", ""])
  func anInterruptedSyncIsAFailedOne(file: String) throws {
    let call = file.isEmpty ? "fsync" : "fdatasync"
    // The number of commits per sync varies, so there may be no second sync.
    for place in 1...3 {
      let work = try prepared(for: .import)
      let path = file.isEmpty ? "a/log" : "a/log/" + file
      // The kernel's path: strace compares the text of paths that do not exist yet.
      let real = URL(fileURLWithPath: work.file("a/log")).resolvingSymlinksInPath().path
      let result = try strace(
        [
          "-f", "-y", "-o", "trace", "-P", file.isEmpty ? real : real + "/" + file, "-e", "trace=\(call)",
          "-e",
          "inject=\(call):error=EINTR:when=\(place)",
        ], Command.import.arguments, in: work)
      let trace = try String(contentsOfFile: work.file("trace"), encoding: .utf8)
      let calls = trace.split(separator: "\n").filter { $0.contains("sync(") }
      let isInterrupted = trace.contains("EINTR")
      let comment: Comment = "\(call) \(place) of \(path): \(result.errors)"
      #expect(isInterrupted || place > 1 && calls.count < place, comment)
      if isInterrupted {
        #expect(calls.count == place, "\(comment) \(trace)")
        #expect(result.status == 74, comment)
        #expect(result.errors.contains("\(call) \(path): Interrupted system call"), comment)
      }
      try checkImport(result, in: work, comment)
    }
  }

  @Test("calls that are interrupted again and again are repeated")
  func interruptedCallsAreRepeated() throws {
    for command in Command.workload {
      let work = try prepared(for: command)
      // The first reads are the loader's, and it does not retry.
      let options = [
        "-f", "-o", "/dev/null", "-e", "inject=pwrite64,ftruncate:error=EINTR:when=1+2", "-e",
        "inject=pread64:error=EINTR:when=20+2",
      ]
      let result = try strace(options, command.arguments, in: work)
      #expect(result.status == 0, "\(command): \(result.errors)")
      try checkEnd("a", in: work, "\(command)")
    }
  }

  /// Retries are limited, also for the lock.
  @Test(
    "a call that is interrupted each time is an error, and is not repeated for ever",
    arguments: [
      ("openat", "a/stemma.json"), ("openat", "a/lock"), ("flock", "a/lock"),
      ("pread64", "a/log/00000001.journal"),
      ("pwrite64", "a/log/00000001.journal"),
    ])
  func interruptionsEnd(call: String, path: String) throws {
    let work = try prepared(for: .import)
    let strace = try #require(Machine.strace)
    let result = try Tool.run(
      "/usr/bin/env",
      [
        "timeout", "-s", "KILL", "60", strace, "-f", "-o", "/dev/null", "-P", path, "-e",
        "inject=\(call):error=EINTR:when=1+", Tool.path,
      ] + Command.import.arguments, in: work.path)
    #expect([73, 74].contains(result.status), "\(result.status) \(result.errors)")
    try work.stemma("-C", "a", "verify")
  }

  @Test("a write that writes nothing, again and again, is an error, and is not repeated for ever")
  func writesOfNothingAreErrors() throws {
    for place in [1, 3, 9, 20] {
      let work = try prepared(for: .import)
      let options = ["-f", "-o", "/dev/null", "-e", "inject=pwrite64:retval=0:when=\(place)+"]
      let strace = try #require(Machine.strace)
      let result = try Tool.run(
        "/usr/bin/env",
        ["timeout", "-s", "KILL", "60", strace] + options + [Tool.path] + Command.import.arguments,
        in: work.path)
      #expect([73, 74].contains(result.status), "from pwrite \(place): \(result.status) \(result.errors)")
      try work.stemma("-C", "a", "verify")
      #expect(try work.events("a") % Self.batch == 0, "\(place)")
    }
    // The same applies to output.
    let work = try prepared(for: .import)
    let strace = try #require(Machine.strace)
    let result = try Tool.run(
      "/usr/bin/env",
      ["timeout", "-s", "KILL", "60", strace, "-f", "-o", "/dev/null", "-e", "inject=write:retval=0:when=1+"]
        + [Tool.path, "-C", "a", "status"], in: work.path)
    #expect(result.status == 74)
  }

  /// Otherwise a power failure could restore the rows. The node would then claim events that its
  /// log lacks and never fetch them again.
  @Test("what a change of scope takes out of the tables is on disk before the change is done")
  func aChangeOfScopeIsSynced() throws {
    let work = try prepared(for: .rebuild)
    let trace = work.file("trace")
    let result = try strace(
      ["-f", "-y", "-o", trace, "-e", "trace=pwrite64,fsync,fdatasync,rename"],
      ["-C", "a", "scope", "add", "!tenant=t1", "--discard"], in: work)
    #expect(result.status == 0, "\(result.errors)")
    let calls = try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n")
    let done = try #require(calls.lastIndex { $0.contains("rename(") && $0.contains("stemma.json") })
    let ofTables = calls[..<done].filter { $0.contains("tables.sqlite-wal>") }
    #expect(ofTables.contains { $0.contains("pwrite64(") })
    #expect(ofTables.last?.contains("sync(") == true, "\(ofTables.last ?? "")")
  }

  /// Reads and writes only half of the requested bytes, plus one. Creates the file `HALVED` when it
  /// is called.
  private static let halving = """
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <stdlib.h>
    #include <sys/syscall.h>
    #include <sys/types.h>
    #include <unistd.h>
    static size_t part(size_t n) {
      static int isNoted;
      if (!isNoted) { isNoted = 1; close(open(getenv("HALVED"), O_CREAT | O_WRONLY, 0600)); }
      return n > 1 ? n / 2 + 1 : n;
    }
    ssize_t pread(int f, void *b, size_t n, off_t o) { return syscall(SYS_pread64, f, b, part(n), o); }
    ssize_t pread64(int f, void *b, size_t n, off_t o) { return syscall(SYS_pread64, f, b, part(n), o); }
    ssize_t pwrite(int f, const void *b, size_t n, off_t o) { return syscall(SYS_pwrite64, f, b, part(n), o); }
    ssize_t pwrite64(int f, const void *b, size_t n, off_t o) { return syscall(SYS_pwrite64, f, b, part(n), o); }

    """

  @Test("short reads and writes are continued", .enabled(if: Machine.compiler != nil))
  func shortCallsAreContinued() throws {
    for command in Command.workload {
      let work = try prepared(for: command)
      try work.write("halving.c", Self.halving)
      let library = work.file("halving.so")
      let made = try Tool.run(
        try #require(Machine.compiler), ["-shared", "-fPIC", "-o", library, "halving.c"], in: work.path)
      #expect(made.status == 0, "\(made.errors)")
      let result = try Tool.run(
        Tool.path, command.arguments, in: work.path,
        environment: ["LD_PRELOAD": library, "HALVED": work.file("halved")])
      #expect(result.status == 0, "\(command): \(result.errors)")
      #expect(FileManager.default.fileExists(atPath: work.file("halved")), "\(command) called nothing of it")
      try checkEnd("a", in: work, "\(command)")
    }
  }

  @Test(
    "reads that fail, or give nothing, once or for ever, are errors, and never an empty log",
    arguments: [
      ("error=EIO", ["log", "--oneline"]), ("retval=0", ["log", "--oneline"]), ("error=EIO", ["export"]),
      ("error=EIO", ["list", "Row"]), ("retval=0", ["list", "Row"]), ("error=EIO", ["verify"]),
      ("error=EIO", ["rebuild"]), ("retval=0", ["rebuild"]),
    ], ["", "+"])
  func failingReadsAreErrors(reading: (fault: String, command: [String]), often: String) throws {
    let work = try prepared(for: .rebuild)
    let whole = try Tool.run(Tool.path, ["-C", "a"] + reading.command, in: work.path).output
    let isOfLines = ["log", "export", "list"].contains(reading.command[0])
    #expect(!isOfLines || whole.split(separator: "\n").count >= 50)
    let trace = work.file("trace")
    var (faults, failures) = (0, 0)
    let step = Trials.stride(3)
    for place in stride(from: 1, through: 30, by: step) {
      let result = try strace(
        [
          "-f", "-o", trace, "-e", "trace=pread64", "-e",
          "inject=pread64:\(reading.fault):when=\(place)\(often)",
        ], ["-C", "a"] + reading.command, in: work)
      if try String(contentsOfFile: trace, encoding: .utf8).contains("(INJECTED)") { faults += 1 }
      if result.status == 0 {
        #expect(!isOfLines || result.output == whole, "pread \(place)\(often)")
      } else {
        failures += 1
        #expect(
          !result.errors.isEmpty && [65, 66, 74, 127].contains(result.status), "\(place): \(result.errors)")
      }
    }
    #expect(faults * step > 3)
    // A single read of zero bytes is retried.
    #expect(failures * step > 3 || (reading.fault == "retval=0" && often.isEmpty))
    try checkEnd("a", in: work, "\(reading)")
  }
}
