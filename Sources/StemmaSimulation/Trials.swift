import Foundation

/// The number of cases in tests with random cases, and in those with exhaustive ones.
package enum Trials {
  /// `ordinary`, or `long` if `STEMMA_LONG` is set, as by `Tools/test --long`; by default ten times
  /// as many.
  package static func count(_ ordinary: Int, long: Int? = nil) -> Int {
    isLong ? long ?? 10 * ordinary : ordinary
  }

  /// The distance between the cases that an exhaustive test runs: `ordinary`, or 1 if `STEMMA_LONG`
  /// is set.
  package static func stride(_ ordinary: Int) -> Int { isLong ? 1 : ordinary }

  private static let isLong = ProcessInfo.processInfo.environment["STEMMA_LONG"] != nil
}
