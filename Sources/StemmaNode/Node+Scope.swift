import StemmaEvents
import StemmaReplication
import StemmaTables

extension Node {
  /// Changes which partitions this node holds. What no pattern covers any more is purged from log and tables.
  ///
  /// The change is decided durably first (`pendingScope`), then carried out; interrupted, it is finished when the
  /// node is opened next. The node goes on under a new origin if it wrote to a purged partition: its numbers
  /// there would be used twice.
  ///
  /// - Returns: the purged partitions.
  /// - Throws: `unacknowledged` if a partition to purge has own events that no peer has confirmed, unless
  ///   `discards`; nothing was changed then.
  package func changeScope(
    adding: [String], removing: [String], discards: Bool
  ) throws(NodeError) -> [String] {
    try locked { () throws(NodeError) in
      try checkLogIsWhole()
      let next: Scope
      do throws(ReplicationError) {
        let added = try adding.map { (text) throws(ReplicationError) in try ScopePattern(text) }
        let removed = try removing.map { (text) throws(ReplicationError) in try ScopePattern(text) }
        next = try mark.scope.adding(added).removing(removed)
      } catch { throw .replication(error) }
      let lost = try reading { try $0.knowledge() }.partitions.filter { !next.contains($0.key) }
      if !discards { try checkAcknowledged(lost) }
      mark.pendingScope = next
      try saveMark()
      try finishScopeChange()
      return lost.keys.sorted().map(\.description)
    }
  }

  private func checkAcknowledged(_ partitions: [Partition: [Origin: StreamHead]]) throws(NodeError) {
    var confirmed: [EventName: Bool] = [:]
    for acknowledgement in try reading({ try $0.acknowledgements() }) {
      let head = partitions[acknowledgement.partition]?[acknowledgement.origin]
      if let head, acknowledgement.sequence >= head.sequence {
        confirmed[EventName(stream: acknowledgement.partition, acknowledgement.origin)] = true
      }
    }
    for (partition, streams) in partitions.sorted(by: { $0.key < $1.key }) {
      for (origin, head) in streams.sorted(by: { $0.key < $1.key })
      where mark.mayOwn(origin) && confirmed[EventName(stream: partition, origin)] == nil {
        throw .unacknowledged(partition: partition.description, events: head.sequence.rawValue)
      }
    }
  }

  /// Carries out a scope change that was decided. The writer lock must be held.
  func finishScopeChange() throws(NodeError) {
    guard let next = mark.pendingScope else { return }
    // A damaged file cannot be rewritten without what is purged: the change waits for the repair.
    guard mark.damage == nil else { return }
    let isPurged: (Partition) -> Bool = { !next.contains($0) }
    let knowledge = try reading { try $0.knowledge() }
    let wroteThere = knowledge.partitions.contains { partition, streams in
      isPurged(partition) && mark.origins.contains { streams[$0] != nil }
    }
    if wroteThere { try beginOrigin(because: "a partition that this node wrote to is purged") }
    try Self.wrapping {
      // The tables first: a purge of the log that was interrupted would leave them rows without events.
      try tables.write { transaction throws(TablesError) in _ = try transaction.purge(isPurged) }
      try log.purge(isPurged)
      try tables.write { transaction throws(TablesError) in transaction.advance(to: log.token) }
      // From when the change is not pending any more, nobody looks for rows of what was purged.
      try tables.sync()
    }
    mark.scope = next
    mark.pendingScope = nil
    try saveMark()
  }
}
