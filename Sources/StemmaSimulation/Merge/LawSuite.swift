import StemmaEvents
import StemmaSchema

/// Histories on which the laws are checked for `RecordState`, in shares that may run in parallel.
///
/// It is in this module because the walk is specialized for `RealMerge` only here.
package enum LawSuite: Sendable {
  /// Every history of this number of events.
  case all(Int, [Content])
  /// Random histories, up to this number of events.
  case sample(Int, upTo: Int, seed: UInt64, lowersVersions: Bool = false)

  private static let batchSize = 250

  /// Checks the histories of one share, numbered from 0. Models: see `RealMerge`.
  package func check(_ policies: [Model], share: Int, of shares: Int) -> LawReport {
    switch self {
    case .all(let events, let contents):
      var laws = MergeLaws(RealMerge(policies), contents: contents, limit: events, checksParts: false)
      laws.checkAll(events: events, share: share, of: shares)
      return LawReport(laws)
    case .sample(let count, let limit, let seed, let lowersVersions):
      // Each group has its own seed: the number of shares does not change the histories.
      var laws = MergeLaws(
        RealMerge(policies), contents: Content.varied, limit: limit, lowersVersions: lowersVersions)
      let batches = max(1, count / Self.batchSize)
      for batch in stride(from: share, to: batches, by: shares) {
        var seeds = SplitMix64(seed: seed &+ UInt64(batch))
        laws.checkSample(of: count / batches, upTo: limit, seed: seeds.next())
      }
      return LawReport(laws)
    }
  }
}

/// The results of a suite, or of a share of it.
package struct LawReport: Sendable {
  package private(set) var counts = LawCounts()
  /// The failures that are kept completely.
  package private(set) var failures: [LawFailure] = []
  package private(set) var failed: UInt64 = 0

  package init() {}

  fileprivate init(_ laws: MergeLaws<RealMerge>) {
    (counts, failures, failed) = (laws.counts, laws.failures, laws.failed)
  }

  package static func += (a: inout LawReport, b: LawReport) {
    a.counts += b.counts
    a.failures += b.failures
    a.failed += b.failed
  }
}
