import StemmaEvents
import StemmaSchema

/// Histories on which the laws are checked of `RecordState` itself, in shares that may run at once.
///
/// It stands here and not where it is run, as the walk is compiled for `RealMerge` only in its own module.
package enum LawSuite: Sendable {
  /// Every history of so many events.
  case all(Int, [Content])
  /// Random ones, of up to so many events.
  case sample(Int, upTo: Int, seed: UInt64, lowersVersions: Bool = false)

  private static let pieceSize = 250

  /// Checks the histories of one share, the first of which is 0. Models: as `RealMerge`.
  package func check(_ policies: [Model], share: Int, of shares: Int) -> LawReport {
    switch self {
    case .all(let events, let contents):
      var laws = MergeLaws(RealMerge(policies), contents: contents, limit: events, checksParts: false)
      laws.checkAll(events: events, share: share, of: shares)
      return LawReport(laws)
    case .sample(let count, let limit, let seed, let lowersVersions):
      // Pieces with seeds of their own: the histories are the same however many shares there are.
      var laws = MergeLaws(
        RealMerge(policies), contents: Content.varied, limit: limit, lowersVersions: lowersVersions)
      let pieces = max(1, count / Self.pieceSize)
      for piece in stride(from: share, to: pieces, by: shares) {
        var seeds = SplitMix64(seed: seed &+ UInt64(piece))
        laws.checkSample(of: count / pieces, upTo: limit, seed: seeds.next())
      }
      return LawReport(laws)
    }
  }
}

/// What came of a suite, or of a share of it.
package struct LawReport: Sendable {
  package private(set) var counts = LawCounts()
  /// Those that are kept whole.
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
