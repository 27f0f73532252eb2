import Foundation

/// The number of cases in tests of random cases.
package enum Trials {
  /// `ordinary`, or ten times as many where `STEMMA_LONG` is set, as `Tools/test --long` sets it.
  package static func count(_ ordinary: Int) -> Int {
    ProcessInfo.processInfo.environment["STEMMA_LONG"] == nil ? ordinary : 10 * ordinary
  }
}
