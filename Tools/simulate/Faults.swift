import ArgumentParser
import CStemma
import Foundation
import StemmaSimulation

struct Faults: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Strikes a log with every fault at every place.",
    discussion: """
      A log of more than 64 KiB on a simulated disk: power fails at each file operation, and again at each one of \
      the recovery, also from a torn tail and from corruption; each operation fails with five errors, once and for ever, reading \
      too, and taking in what another writer did; each file is cut at each byte and \
      has a bit flipped in each byte, of sealed files some beside a bad watermark; bytes are missing or too many in each \
      sealed file; an unconfirmed tail is torn at each byte.
      """)

  @Option(help: "Seed of the events and of what a crash keeps.") var seed: UInt64 = 1
  @Flag(help: "Flip all eight bits of each byte.") var long = false
  @Option(help: "Only suites with this in their name.") var filter = ""
  @Option(help: "Only cases from this number on, as failures name it.") var from = 0
  @Option(help: "Only cases below this number.") var to = Int.max
  @Option(help: "Only every n-th case, in each suite another one first.") var every = 1
  @Option(help: "Parallel workers.") var workers = ProcessInfo.processInfo.activeProcessorCount

  func validate() throws {
    if every < 1 { throw ValidationError("--every takes 1 or more") }
  }

  func run() async throws {
    let watch = Watch()
    let (measures, suites) = try watch.run("preparing") {
      (
        try FaultSuite.measures(.large, seed: seed),
        try FaultSuite.all(.large, seed: seed, bits: long ? 8 : 1)
      )
    }
    Report.say(
      "seed \(seed): a log of \(measures.bytes) bytes, in segments of \(measures.blocks.map(\.description).joined(separator: " and ")) blocks"
    )
    guard measures.bytes >= Self.leastBytes, measures.blocks.allSatisfy({ $0 > 1 }) else {
      Report.say(
        "the log is to have \(Self.leastBytes) bytes at least, and more than one block in each segment")
      throw ExitCode(1)
    }
    Self.limitAddresses()
    // As the tool does. Otherwise the memory of log reads returns to the system each time, which
    // takes a tenth of some suites.
    stemma_keep_heap_small()
    var passed = 0
    var failed = 0
    for (number, suite) in suites.enumerated() where filter.isEmpty || suite.name.contains(filter) {
      let first = max(0, from) + number % every
      let cases = Array(stride(from: first, to: min(to, suite.cases), by: every))
      let violations = await violations(of: suite, cases, watch)
      for violation in violations.prefix(5) { Report.say(violation) }
      Report.say("\(suite.name): \(cases.count) cases, \(violations.count) failed")
      passed += cases.count - violations.count
      failed += violations.count
    }
    let memory = Self.peakMemory()
    Report.say("\(memory >> 20) MiB of memory at most")
    if memory > Self.memoryLimit {
      Report.say("corruption makes readers take more memory than the log is large")
      failed += 1
    }
    Report.say("\(passed) passed, \(failed) failed")
    if failed > 0 { throw ExitCode(1) }
  }

  private static let leastBytes = 64 << 10

  /// Far above the need of these suites, far below a request for a corrupt length.
  private static let memoryLimit = 256 << 20

  /// Limits address space, including untouched memory. A larger allocation ends this process.
  private static func limitAddresses() {
    var limit = rlimit()
    #if os(Linux)
      let resource = __rlimit_resource_t(RLIMIT_AS.rawValue)
    #else
      let resource = RLIMIT_AS
    #endif
    guard getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = min(limit.rlim_max, 1 << 30)
    setrlimit(resource, &limit)
  }

  /// The peak resident memory of this process, in bytes.
  private static func peakMemory() -> Int {
    var usage = rusage()
    // getrusage(2): Linux counts in KiB, macOS in bytes.
    #if os(Linux)
      getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
      return usage.ru_maxrss << 10
    #else
      getrusage(RUSAGE_SELF, &usage)
      return usage.ru_maxrss
    #endif
  }

  private func violations(of suite: FaultSuite, _ cases: [Int], _ watch: Watch) async -> [String] {
    await withTaskGroup(of: [String].self) { group in
      for worker in 0..<workers {
        group.addTask {
          stride(from: worker, to: cases.count, by: workers).compactMap { place in
            let index = cases[place]
            let name = "\(suite.name), case \(index)"
            let violations = watch.run(name, of: worker) { suite.violations(index) }
            return violations.isEmpty ? nil : "\(name): \(violations.joined(separator: "; "))"
          }
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
  }
}

/// The output of the suites.
enum Report {
  /// Writes immediately, also into a pipe, because a suite takes a minute.
  static func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
