import StemmaNode

extension StoreError {
  /// The description of a node's error. Its advice names calls of the library where they exist,
  /// where the node's own text only names the step.
  static func words(_ error: NodeError) -> String {
    switch error {
    case .noNode(let path): "there is no node in \(path); a store that is opened for writing makes one"
    case .noRemotes: "this store has no remotes; name a peer's directory, or add one with `addRemote(_:at:)`"
    case .unacknowledged(let partition, let events):
      "partition \(partition) has events (up to number \(events)) that no peer is known to hold; "
        + "sync first, or give them up with `discards: true`"
    case .mutation(.outsideScope(let partition)):
      "partition \(partition) is outside of what this store holds; add it with `changeScope(adding:)`"
    case .mutation(.noConflict(let model, let key, let field, _)):
      "\(field.map { "`\($0)` of " } ?? "")\(model) \(key) is not in that conflict any more; `conflicts()` gives those "
        + "that are open"
    case .log(.noLog(let path)):
      "there is no log in \(path): put it back from a backup, or open a store in another directory and sync it with a "
        + "peer; only the tables are left here"
    case .log(.inUse(let path, let process)):
      "\(path) is locked\(process.map { " by process \($0)" } ?? ""); try again, or wait longer with the option `wait`"
    case .log(let reason) where Explanations.isRefusalToLock(reason):
      "\(reason); this store can only be read here: open it with the option `isReadOnly`"
    case .tables(.busy(let path)):
      "\(path) is kept busy by another process; try again, or wait longer with the option `wait`"
    case .tables(.needsRebuild(let path, .corrupt(let what))):
      "\(path) cannot be used (\(what)); the next write that meets it rebuilds it from the log, or remove it and open "
        + "the store again"
    case .tables(.needsRebuild(let path, let reason)):
      "\(path) cannot be used (\(Explanations.text(of: reason))); open the store again, which rebuilds it from the log"
    case .replication(.sameLog):
      "both directories hold the same log: one is a copy of the other; open a store in a new directory instead, which "
        + "gets everything by a sync"
    case .replication(.refusedByPeer(let reason)): "the peer refused: \(words(.replication(reason)))"
    default: Explanations.text(of: error).description
    }
  }

}
