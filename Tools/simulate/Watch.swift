import Foundation
import Synchronization

/// Ends the process when something takes longer than any case may, and says what: what hangs never comes to an end itself.
final class Watch: Sendable {
  /// How often it looks, and how often it may see the same case: two minutes, far more than the slowest one takes on a slow
  /// machine. It counts its own turns, as clocks run on while a process is stopped.
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

  /// Runs a case of one of the workers, which are numbered.
  func run<Result>(_ name: String, of worker: Int = 0, _ body: () throws -> Result) rethrows -> Result {
    running.withLock { $0[worker] = Case(name: name) }
    defer { running.withLock { $0[worker] = nil } }
    return try body()
  }
}
