import NIOConcurrencyHelpers
import StemmaHistory
import StemmaNode
import StemmaReplication

/// The counts of the scopes that callers read. Each is made once, and then follows the log.
final class ScopeCounts: Sendable {
  /// The number of scopes that are kept: those of the last callers.
  private static let kept = 8

  private let activities = NIOLockedValueBox<[LogActivity]>([])
  private let conflicts = NIOLockedValueBox<[ConflictCounts]>([])
  /// One caller counts at a time; others wait for the result.
  private let turn = NIOLock()

  func activity(_ node: Node, within readable: Scope) throws(NodeError) -> LogActivity {
    let scope = NarrowedScope(readable)
    return try updated(activities, where: { $0.scope == scope }, LogActivity(within: scope)) {
      activity throws(NodeError) in try activity.update(node)
    }
  }

  func conflicts(_ node: Node, within readable: Scope) throws(NodeError) -> ConflictTally {
    let scope = NarrowedScope(readable)
    return try updated(conflicts, where: { $0.scope == scope }, ConflictCounts(within: scope)) {
      counts throws(NodeError) in try counts.update(node)
    }.tally(node.description)
  }

  /// Counts everything in the background.
  func prepare(_ pool: NodePool) {
    Task {
      do {
        let lease = try await pool.take(writes: false, for: nil)
        defer { pool.giveBack(lease) }
        try await pool.run { [self] in
          _ = try conflicts(lease.node, within: .everything)
          _ = try activity(lease.node, within: .everything)
        }
      } catch {
        // The request for the counts reports the reason.
      }
    }
  }

  private func updated<Counts: Sendable>(
    _ all: NIOLockedValueBox<[Counts]>, where isOfScope: (Counts) -> Bool, _ new: Counts,
    _ update: (inout Counts) throws(NodeError) -> Void
  ) throws(NodeError) -> Counts {
    turn.lock()
    defer { turn.unlock() }
    var counts = all.withLockedValue { $0.first(where: isOfScope) } ?? new
    try update(&counts)
    all.withLockedValue { all in
      all.removeAll(where: isOfScope)
      all.insert(counts, at: 0)
      all.removeLast(max(0, all.count - Self.kept))
    }
    return counts
  }
}
