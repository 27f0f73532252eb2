import StemmaEvents
import StemmaTables

extension Node {
  /// Throws if the state of the node is inconsistent, and traps if its log or metadata is. For
  /// tests.
  ///
  /// - Origins are unique, and the metadata names this log.
  /// - The tables are consistent, have no open transaction, and hold all streams of the log.
  /// - All events are in scope.
  ///
  /// Skips corrupt parts and unfinished operations. A writable node takes the lock and refreshes.
  package func checkInvariants() throws(NodeError) {
    guard options.mode == .write else { return try checkBeliefs() }
    try locked { () throws(NodeError) in try checkBeliefs() }
  }

  private func checkBeliefs() throws(NodeError) {
    log.checkInvariants()
    clock.checkInvariants()
    metadata.checkInvariants()
    func require(_ holds: Bool, _ what: String) throws(NodeError) {
      if !holds { throw .corrupt(what: what) }
    }
    try require(log.id == metadata.logID, "the node metadata names another log")
    do { try tables.checkInvariants() } catch { throw .tables(error) }
    guard metadata.corruption == nil, log.recovery.corruption.isEmpty, !metadata.isUnfinished else { return }
    try reading { try $0.checkInvariants() }
    let applied = try reading { try $0.applied() }
    let token = applied.token
    let held = try reading { try $0.versionVector() }
    try require(applied.synced == log.syncedToken, "log and tables are durable up to different positions")
    try require(token == log.token, "the tables are at \(token.position), the log at \(log.end)")
    try Self.wrapping {
      if try log.streams() != held { throw NodeError.corrupt(what: "log and tables hold other streams") }
    }
    for partition in held.partitions.keys {
      try require(metadata.scope.contains(partition), "\(partition) is held, outside of the scope")
    }
  }
}
