import Foundation

/// The number of cases in tests with random cases.
package enum Trials {
  /// `ordinary`, or ten times as many if `STEMMA_LONG` is set, as by `Tools/test --long`.
  package static func count(_ ordinary: Int) -> Int {
    ProcessInfo.processInfo.environment["STEMMA_LONG"] == nil ? ordinary : 10 * ordinary
  }
}
