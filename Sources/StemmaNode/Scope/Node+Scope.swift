import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaTables

extension Node {
  /// Changes the scope of this node. Partitions outside of it are purged from log and tables.
  ///
  /// The decision is durable first (`pendingScope`); the next writer finishes an interrupted
  /// change. The node begins a new origin if it wrote to a purged partition: its sequences there
  /// would be reused.
  ///
  /// Purged events must exist elsewhere, at a reachable remote. For the node's own events, the
  /// acknowledgement of an unreachable peer also counts. Events of others are purged unchecked only
  /// if no remote is reachable. The remotes stay locked until the decision, and remove this node's
  /// acknowledgements for the purged partitions: two nodes cannot purge the last two copies.
  ///
  /// - Returns: the purged partitions.
  /// - Throws: `unacknowledged`, before any change, if no peer holds an event to purge, unless
  ///   `discards`. `.log(.inUse)` if a remote stays locked for longer than this node waits.
  package func changeScope(
    adding: [String], removing: [String], discards: Bool
  ) throws(NodeError) -> [String] {
    let change = try Scope.Change(adding, removing)
    if !discards {
      let purgesNothing = try locked { () throws(NodeError) in try lost(by: change).isEmpty }
      if !purgesNothing {
        let nodes = [self] + (try reachablePeers())
        let inOrder = nodes.sorted { $0.metadata.logID.description < $1.metadata.logID.description }
        return try Self.locked(inOrder[...]) { () throws(NodeError) in
          try decide(change, asking: Array(nodes.dropFirst()))
        }
      }
    }
    return try locked { () throws(NodeError) in try decide(change, asking: discards ? nil : []) }
  }

  /// The contents of the partitions that a change of scope would purge. Reads only this node.
  package func contentsPurged(
    adding: [String], removing: [String]
  ) throws(NodeError) -> [PartitionContents] {
    let lost = try lost(by: try Scope.Change(adding, removing))
    if lost.isEmpty { return [] }
    return try partitions().filter { lost[$0.partition] != nil }
  }

  /// This node's contents of each partition, in order of their names.
  package func partitions() throws(NodeError) -> [PartitionContents] { try reading { try $0.partitions() } }

  /// The caller holds the writer locks of these nodes. `peers`: nil if none are asked.
  private func decide(_ change: Scope.Change, asking peers: [Node]?) throws(NodeError) -> [String] {
    try checkLogIsWhole()
    let lost = try lost(by: change)
    if let peers {
      try check(lost, isHeldBy: peers)
      let name = metadata.logID.description
      for peer in peers where peer.options.mode == .write {
        try Self.wrapping {
          try peer.tables.write { transaction throws(TablesError) in
            try transaction.confirm([], by: name, in: { lost[$0] != nil })
          }
        }
      }
    }
    metadata.pendingScope = try next(change)
    try saveMetadata()
    try finishScopeChange()
    return lost.keys.sorted().map(\.description)
  }

  private func next(_ change: Scope.Change) throws(NodeError) -> Scope {
    do throws(ReplicationError) {
      return try metadata.scope.adding(change.added).removing(change.removed)
    } catch {
      throw .replication(error)
    }
  }

  /// The streams that this node holds outside of the new scope.
  private func lost(by change: Scope.Change) throws(NodeError) -> [Partition: [Origin: StreamHead]] {
    let next = try next(change)
    return try reading { try $0.versionVector() }.partitions.filter { !next.contains($0.key) }
  }

  /// The patterns that match no partition of this node or of a readable remote.
  package func idlePatternsAnywhere(_ patterns: [String]) throws(NodeError) -> [String] {
    var idle = try idlePatterns(patterns)
    for remote in metadata.remotes where !idle.isEmpty {
      do throws(NodeError) {
        idle = try Self.open(at: remote.address, options.ofPeer(writes: false)).idlePatterns(idle)
      } catch { continue }
    }
    return idle
  }

  /// The reachable remotes, each node once. One that cannot be locked is opened for reading.
  private func reachablePeers() throws(NodeError) -> [Node] {
    var peers: [Node] = []
    for remote in metadata.remotes {
      do throws(NodeError) {
        do throws(NodeError) {
          peers.append(try Self.open(at: remote.address, options.ofPeer(writes: true)))
        } catch {
          guard error.isRefusalToWrite else { throw error }
          peers.append(try Self.open(at: remote.address, options.ofPeer(writes: false)))
        }
      } catch {
        if error.isInUse { throw error }
      }
    }
    // Two names of one directory would deadlock on its lock.
    var logs: Set<LogID> = [metadata.logID]
    return peers.filter { logs.insert($0.metadata.logID).inserted }
  }

  /// Locks these nodes in an order that prevents deadlocks. Skips nodes opened for reading.
  private static func locked<Result>(
    _ nodes: ArraySlice<Node>, _ body: () throws(NodeError) -> Result
  ) throws(NodeError) -> Result {
    guard let first = nodes.first else { return try body() }
    guard first.options.mode == .write else { return try locked(nodes.dropFirst(), body) }
    return try first.locked { () throws(NodeError) in try locked(nodes.dropFirst(), body) }
  }

  private func check(
    _ lost: [Partition: [Origin: StreamHead]], isHeldBy peers: [Node]
  ) throws(NodeError) {
    var held: Set<QualifiedEventID> = []
    for peer in peers {
      let versionVector = try peer.reading { try $0.versionVector() }
      let corrupt = Set(peer.metadata.corruption?.partitions ?? [])
      for (partition, streams) in lost
      where peer.metadata.scope.contains(partition) && !corrupt.contains(partition) {
        if let pending = peer.metadata.pendingScope, !pending.contains(partition) { continue }
        for (origin, head) in streams {
          let theirs = versionVector[partition, origin]
          guard theirs.sequence > head.sequence || theirs == head else { continue }
          held.insert(QualifiedEventID(stream: partition, origin))
        }
      }
    }
    let asked = Set(peers.map { $0.metadata.logID.description })
    for row in try reading({ try $0.acknowledgements() }) where !asked.contains(row.peer) {
      guard let head = lost[row.partition]?[row.origin], row.sequence >= head.sequence else { continue }
      held.insert(QualifiedEventID(stream: row.partition, row.origin))
    }
    for (partition, streams) in lost.sorted(by: { $0.key < $1.key }) {
      for (origin, head) in streams.sorted(by: { $0.key < $1.key })
      where (metadata.mayOwn(origin) || !peers.isEmpty)
        && !held.contains(QualifiedEventID(stream: partition, origin))
      {
        throw .unacknowledged(partition: partition.description, events: head.sequence.rawValue)
      }
    }
  }

  /// Executes a decided scope change. The caller holds the writer lock.
  func finishScopeChange() throws(NodeError) {
    guard let next = metadata.pendingScope else { return }
    // A corrupt file cannot be rewritten without some events. The change waits for the repair.
    guard metadata.corruption == nil else { return }
    let isPurged: (Partition) -> Bool = { !next.contains($0) }
    let versionVector = try reading { try $0.versionVector() }
    let wroteThere = versionVector.partitions.contains { partition, streams in
      isPurged(partition) && metadata.origins.contains { streams[$0] != nil }
    }
    if wroteThere { try beginOrigin(because: "a partition that this node wrote to is purged") }
    try Self.wrapping {
      // Tables first: after an interrupted purge of the log, they would have rows without events.
      try tables.write { transaction throws(TablesError) in _ = try transaction.purge(isPurged) }
      try log.purge(isPurged)
      try tables.write { transaction throws(TablesError) in transaction.advance(to: log.token) }
      // Once the change is no longer pending, no process looks for leftover rows.
      try tables.sync()
    }
    metadata.scope = next
    metadata.pendingScope = nil
    try saveMetadata()
  }
}

extension Scope {
  /// The patterns to add to a scope and to remove from it.
  fileprivate struct Change {
    var added: [ScopePattern]
    var removed: [ScopePattern]

    init(_ adding: [String], _ removing: [String]) throws(NodeError) {
      do throws(ReplicationError) {
        added = try adding.map { (text) throws(ReplicationError) in try ScopePattern(text) }
        removed = try removing.map { (text) throws(ReplicationError) in try ScopePattern(text) }
      } catch { throw .replication(error) }
    }
  }
}
