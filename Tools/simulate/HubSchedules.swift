import ArgumentParser
import Foundation
import StemmaSimulation

struct HubSchedules: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "hub", abstract: "Runs random schedules of nodes that share a hub in a faulty store.",
    discussion: """
      Answers are lost after success, writes arrive late or twice, the store is busy, lists lag behind, manifests are \
      absent for a time, processes end between two calls, directories are copied, nodes never return. Nothing \
      acknowledged may be lost, and all nodes must agree at the end. Then each planted bug must be found.
      """)

  @Option(help: "The first seed.") var from: UInt64 = 1
  @Option(help: "How many seeds.") var seeds = 1000
  @Option(help: "Seeds within which each planted bug must be found.") var bugSeeds = 1000
  @Option(help: "Parallel workers.") var workers = ProcessInfo.processInfo.activeProcessorCount

  func run() async throws {
    let watch = Watch()
    var failed = 0
    let last = from + UInt64(seeds)
    let found = await withTaskGroup(of: [(UInt64, String)].self) { group in
      for worker in 0..<workers {
        group.addTask {
          var found: [(UInt64, String)] = []
          for seed in stride(from: from + UInt64(worker), to: last, by: workers) {
            let violations = watch.run("hub, seed \(seed)", of: worker) {
              self.violations(HubTrial(seed: seed))
            }
            if let first = violations.first { found.append((seed, first)) }
          }
          return found
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    for (seed, violation) in found.sorted(by: { $0.0 < $1.0 }).prefix(5) {
      Report.say("seed \(seed): \(violation)")
    }
    Report.say("schedules: \(seeds) seeds from \(from), \(found.count) failed")
    failed += found.count
    for bug in PlantedHubBug.allCases {
      let seed: UInt64? = watch.run("planted \(bug)") {
        (1...UInt64(bugSeeds)).first { !violations(HubTrial(seed: $0, bug: bug)).isEmpty }
      }
      if let seed {
        Report.say("planted \(bug): found by seed \(seed)")
      } else {
        Report.say("planted \(bug): not found within \(bugSeeds) seeds")
        failed += 1
      }
    }
    Report.say("\(seeds + PlantedHubBug.allCases.count - failed) passed, \(failed) failed")
    if failed > 0 { throw ExitCode(1) }
  }

  private func violations(_ trial: HubTrial) -> [String] {
    do { return try trial.violations() } catch { return ["\(error)"] }
  }
}
