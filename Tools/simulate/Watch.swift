import Foundation
import Synchronization

/// Ends the process and names the case if a case exceeds the time limit: a hanging case never ends
/// by itself.
final class Watch: Sendable {
  /// The interval of the checks, and the number of checks before a case is late. That is two
  /// minutes, far more than the slowest case takes on a slow machine. Counting checks is safe
  /// against a stopped process, while clocks run on.
  private static let seconds = 5
  private static let turns = 24

  private struct Case {
    let name: String
    var turns = 0
  }

  private let running = Mutex<[Int: Case]>([:])

  init() {
    Thread.detachNewThread { [self] in
      while true {
        Thread.sleep(forTimeInterval: Double(Self.seconds))
        let late = running.withLock { running in
          for worker in running.keys { running[worker]?.turns += 1 }
          return running.values.first { $0.turns > Self.turns }
        }
        guard let late else { continue }
        Report.say("\(late.name) is not done after \(Self.turns * Self.seconds) seconds")
        _exit(1)
      }
    }
  }

  /// Runs a case of a worker, identified by number.
  func run<Result>(_ name: String, of worker: Int = 0, _ body: () throws -> Result) rethrows -> Result {
    running.withLock { $0[worker] = Case(name: name) }
    defer { running.withLock { $0[worker] = nil } }
    return try body()
  }
}
