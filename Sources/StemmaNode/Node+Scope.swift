import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaTables

extension Node {
  /// Changes which partitions this node holds. Partitions that no pattern covers are purged from log and tables.
  ///
  /// The change is decided durably first (`pendingScope`), then carried out; interrupted, it is finished when the
  /// node is opened next. The node goes on under a new origin if it wrote to a purged partition: its numbers
  /// there would be used twice.
  ///
  /// Purged events must be held elsewhere: by a remote that can be reached, which is asked. The node's own may also be
  /// held by a peer that cannot be asked and has confirmed them. Events of others are purged unasked only if no remote can be
  /// reached. The remotes stay locked until the change is decided, and forget what this node has confirmed of the purged
  /// partitions: two nodes cannot purge the last two copies.
  ///
  /// - Returns: the purged partitions.
  /// - Throws: `unacknowledged` if a partition to purge has events that no peer holds, unless `discards`. Nothing was
  ///   changed then. `.log(.inUse)` if another process writes to a remote for longer than this node waits.
  package func changeScope(
    adding: [String], removing: [String], discards: Bool
  ) throws(NodeError) -> [String] {
    let change = try Scope.Change(adding, removing)
    if !discards {
      let purgesNothing = try locked { () throws(NodeError) in try lost(by: change).isEmpty }
      if !purgesNothing {
        let nodes = [self] + (try reachablePeers())
        let inOrder = nodes.sorted { $0.mark.logID.description < $1.mark.logID.description }
        return try Self.locked(inOrder[...]) { () throws(NodeError) in
          try decide(change, asking: Array(nodes.dropFirst()))
        }
      }
    }
    return try locked { () throws(NodeError) in try decide(change, asking: discards ? nil : []) }
  }

  /// This node's contents of the partitions that a change of scope would purge. Changes nothing, and asks no peer.
  package func contentsPurged(
    adding: [String], removing: [String]
  ) throws(NodeError) -> [PartitionContents] {
    let lost = try lost(by: try Scope.Change(adding, removing))
    if lost.isEmpty { return [] }
    return try partitions().filter { lost[$0.partition] != nil }
  }

  /// This node's contents of each partition, in the order of their names.
  package func partitions() throws(NodeError) -> [PartitionContents] { try reading { try $0.partitions() } }

  /// The writer locks of these nodes must be held. `peers`: nil if none is to be asked.
  private func decide(_ change: Scope.Change, asking peers: [Node]?) throws(NodeError) -> [String] {
    try checkLogIsWhole()
    let lost = try lost(by: change)
    if let peers {
      try check(lost, isHeldBy: peers)
      let name = mark.logID.description
      for peer in peers where peer.options.mode == .write {
        try Self.wrapping {
          try peer.tables.write { transaction throws(TablesError) in
            try transaction.confirm([], by: name, in: { lost[$0] != nil })
          }
        }
      }
    }
    mark.pendingScope = try next(change)
    try saveMark()
    try finishScopeChange()
    return lost.keys.sorted().map(\.description)
  }

  private func next(_ change: Scope.Change) throws(NodeError) -> Scope {
    do throws(ReplicationError) { return try mark.scope.adding(change.added).removing(change.removed) } catch
    {
      throw .replication(error)
    }
  }

  /// The streams that the node holds outside of the scope that it is to have.
  private func lost(by change: Scope.Change) throws(NodeError) -> [Partition: [Origin: StreamHead]] {
    let next = try next(change)
    return try reading { try $0.knowledge() }.partitions.filter { !next.contains($0.key) }
  }

  /// Those of some patterns that fit no partition of this node or of a remote that can be read.
  package func idlePatternsAnywhere(_ patterns: [String]) throws(NodeError) -> [String] {
    var idle = try idlePatterns(patterns)
    for remote in mark.remotes where !idle.isEmpty {
      do throws(NodeError) {
        idle = try Self.open(at: remote.address, options.ofPeer(writes: false)).idlePatterns(idle)
      } catch { continue }
    }
    return idle
  }

  /// The remotes that are there, each node once. One that cannot be locked is only read.
  private func reachablePeers() throws(NodeError) -> [Node] {
    var peers: [Node] = []
    for remote in mark.remotes {
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
    // Two names of one directory would wait for each other's lock.
    var logs: Set<LogID> = [mark.logID]
    return peers.filter { logs.insert($0.mark.logID).inserted }
  }

  /// Locks these nodes, in an order in which no two processes wait for each other. A node that is only read is not locked.
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
    var held: Set<EventName> = []
    for peer in peers {
      let knowledge = try peer.reading { try $0.knowledge() }
      let damaged = Set(peer.mark.damage?.partitions ?? [])
      for (partition, streams) in lost
      where peer.mark.scope.contains(partition) && !damaged.contains(partition) {
        if let pending = peer.mark.pendingScope, !pending.contains(partition) { continue }
        for (origin, head) in streams {
          let theirs = knowledge[partition, origin]
          guard theirs.sequence > head.sequence || theirs == head else { continue }
          held.insert(EventName(stream: partition, origin))
        }
      }
    }
    let asked = Set(peers.map { $0.mark.logID.description })
    for row in try reading({ try $0.acknowledgements() }) where !asked.contains(row.peer) {
      guard let head = lost[row.partition]?[row.origin], row.sequence >= head.sequence else { continue }
      held.insert(EventName(stream: row.partition, row.origin))
    }
    for (partition, streams) in lost.sorted(by: { $0.key < $1.key }) {
      for (origin, head) in streams.sorted(by: { $0.key < $1.key })
      where (mark.mayOwn(origin) || !peers.isEmpty)
        && !held.contains(EventName(stream: partition, origin))
      {
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

extension Scope {
  /// Patterns to add to a scope, and to remove from it.
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
