import Foundation
import Synchronization

/// Ends the process when a case takes longer than any may, and says which: one that hangs never comes to an end itself.
final class Watch: Sendable {
  /// Far more than the slowest case takes on a slow machine, in seconds.
  private static let limit = 120

  private struct Case { let name: String, start: ContinuousClock.Instant }

  private let running = Mutex<[Int: Case]>([:])

  init() {
    Thread.detachNewThread { [self] in
      while true {
        Thread.sleep(forTimeInterval: 5)
        for late in running.withLock({
          $0.values.filter { $0.start.duration(to: .now) > .seconds(Self.limit) }
        }) {
          Report.say("\(late.name) is not done after \(Self.limit) seconds")
          exit(1)
        }
      }
    }
  }

  /// Runs a case of one of the workers, which are numbered.
  func run<Result>(_ name: String, of worker: Int, _ body: () -> Result) -> Result {
    running.withLock { $0[worker] = Case(name: name, start: .now) }
    defer { running.withLock { $0[worker] = nil } }
    return body()
  }
}
