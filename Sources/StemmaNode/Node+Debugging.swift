import StemmaEvents
import StemmaTables

extension Node {
  /// Throws if what the node believes contradicts itself, and traps if its log or its mark does. For tests; reads everything.
  ///
  /// - No origin was begun twice, and the log is the one that the mark names.
  /// - Nothing was left open on the tables, and they agree with themselves; they follow the log to its end, and hold of each stream what the log holds.
  /// - Nothing outside of the scope is held.
  ///
  /// What is damaged, or waits to be finished by the next writer, is not compared. A node that may write takes the
  /// lock meanwhile, and takes in what others did, as before any write.
  package func checkInvariants() throws(NodeError) {
    guard options.mode == .write else { return try checkBeliefs() }
    try locked { () throws(NodeError) in try checkBeliefs() }
  }

  private func checkBeliefs() throws(NodeError) {
    log.checkInvariants()
    clock.checkInvariants()
    mark.checkInvariants()
    func require(_ holds: Bool, _ what: String) throws(NodeError) {
      if !holds { throw .damaged(what: what) }
    }
    try require(log.id == mark.logID, "the mark names another log")
    do { try tables.checkInvariants() } catch { throw .tables(error) }
    guard mark.damage == nil, log.recovery.damage.isEmpty, !mark.isUnfinished else { return }
    try reading { try $0.checkInvariants() }
    let token = try reading { try $0.token() }
    let held = try reading { try $0.knowledge() }
    try require(token == log.token, "the tables stand at \(token.position), the log at \(log.end)")
    try Self.wrapping {
      if try log.streams() != held { throw NodeError.damaged(what: "log and tables hold other streams") }
    }
    for partition in held.partitions.keys {
      try require(mark.scope.contains(partition), "\(partition) is held, outside of the scope")
    }
  }
}
