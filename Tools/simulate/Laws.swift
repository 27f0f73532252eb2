import ArgumentParser
import Foundation
import StemmaSchema
import StemmaSimulation

struct Laws: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Checks the merge laws on every small history, and on a sample of larger ones.",
    discussion: """
      Every history of four events with all operations and of five events with updates only, up to renaming,
      under every conflict and delete policy; then random histories of up to eight events, also with versions that are
      lower than what their contexts cover.
      """)

  @Option(help: "Events of the histories with all operations.") var events = 4
  @Option(help: "Events of the histories with updates only.") var updates = 5
  @Option(help: "Random histories, for each way to number registers.") var sample = 20_000
  @Option(help: "Most events of a random history.") var sampleEvents = 8
  @Option(help: "Seed of the sample.") var seed: UInt64 = 1
  @Option(help: "Parallel workers.") var workers = ProcessInfo.processInfo.activeProcessorCount

  func run() async throws {
    Report.say("seed \(seed)")
    let watch = Watch()
    var passed: UInt64 = 0
    var failed: UInt64 = 0
    for (name, policies) in [
      ("AUTOMERGE and LATEST", LawModel.perField), ("OPTIMISTIC", LawModel.perRecord),
    ] {
      let suites: [(String, LawSuite)] = [
        ("\(events) events, all operations", .all(events, Content.everyOperation)),
        ("\(updates) events, updates only", .all(updates, Content.updates)),
        ("random, up to \(sampleEvents) events", .sample(sample, upTo: sampleEvents, seed: seed)),
        (
          "random, up to \(sampleEvents) events, with versions that are too low",
          .sample(sample / 4, upTo: sampleEvents, seed: seed, lowersVersions: true)
        ),
      ]
      for (title, suite) in suites {
        let report = await report(of: suite, "\(name), \(title)", policies, watch)
        let counts = report.counts
        Report.say(
          "\(name), \(title): \(counts.histories) histories, \(counts.orders) delivery orders, "
            + "\(counts.closedSets) sets of events, \(counts.deliveries) deliveries")
        for failure in report.failures.prefix(5) { Report.say(failure.description) }
        passed += counts.histories
        failed += report.failed
      }
    }
    Report.say("\(passed) passed, \(failed) failed")
    if failed > 0 { throw ExitCode(1) }
  }

  /// More shares than workers, so that no share reaches the time limit of the watch.
  private static let shares = 64

  private func report(of suite: LawSuite, _ title: String, _ policies: [Model], _ watch: Watch) async
    -> LawReport
  {
    await withTaskGroup(of: LawReport.self) { group in
      for worker in 0..<workers {
        group.addTask {
          stride(from: worker, to: Self.shares, by: workers).reduce(into: LawReport()) { sum, share in
            sum += watch.run("\(title), share \(share)", of: worker) {
              suite.check(policies, share: share, of: Self.shares)
            }
          }
        }
      }
      return await group.reduce(into: LawReport()) { $0 += $1 }
    }
  }
}
