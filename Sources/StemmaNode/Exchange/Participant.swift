import StemmaEvents
import StemmaLog
import StemmaReplication

/// One node's side of a session. Executes the outcomes of the session's state machine.
///
/// Batches are adopted into the log one by one. Each is durable before it is acknowledged, while
/// other threads decode the next one. The tables are refreshed once, after the transfer.
final class Participant {
  let node: Node
  var session: Session
  private(set) var summary: SessionSummary?
  var greeted: Greeting?
  /// Delivers a message to the other side at once.
  var deliver: (SessionMessage) throws(NodeError) -> Void = { _ in }
  /// The version vector of the node, updated as batches are adopted.
  private var held: VersionVector
  /// The scopes of the node when the session began. A batch for another scope is refused.
  private let scope: Scope
  private let pendingScope: Scope?
  private let progress: (UInt64, UInt64) -> Void
  private(set) var adoptedEvents: UInt64 = 0
  /// Partitions with an adopted event.
  private(set) var adoptedPartitions: Set<Partition> = []
  /// A batch to adopt when the next one has arrived, or before any other message.
  private var accepted: VerifiedBatch?
  /// Bytes read from the log before the transfer, including the opening of a peer for it.
  private var bytesReadBefore: UInt64

  init(
    _ node: Node, _ session: Session, held: VersionVector, bytesReadBefore: UInt64,
    progress: @escaping (UInt64, UInt64) -> Void
  ) {
    self.bytesReadBefore = bytesReadBefore
    self.node = node
    self.session = session
    self.held = held
    scope = node.metadata.scope
    pendingScope = node.metadata.pendingScope
    self.progress = progress
  }

  func receive(_ message: SessionMessage) throws(NodeError) -> [SessionMessage] {
    if case .chunk = message {
      if session.isBatchWaiting { try adoptAccepted() }
    } else {
      try adoptAll()
    }
    return try messages(after: session.receive(message))
  }

  /// Adopts all complete batches.
  func adoptAll() throws(NodeError) {
    while accepted != nil { try adoptAccepted() }
  }

  private func adoptAccepted() throws(NodeError) {
    guard let batch = accepted else { return }
    accepted = nil
    do throws(NodeError) { try adopt(batch) } catch {
      // The peer learns only that the transfer ended; the reason stays on this side.
      _ = session.fail(.failed("the receiver could not store a batch"))
      throw error
    }
    // A session that has failed expects no answer.
    if session.isAdopting { _ = try messages(after: session.adopted(versionVector: held)) }
  }

  /// Executes an outcome and returns the messages for the other side.
  func messages(after outcome: Session.Outcome) throws(NodeError) -> [SessionMessage] {
    // In debug builds, every test of an exchange checks both sides at each step.
    assert(holds(session.checkInvariants) && holds(checkInvariants))
    switch outcome {
    case .wait: return []
    case .send(let messages): return messages
    case .greeted(let greeting):
      greeted = greeting
      return []
    case .adopt(let batch):
      accepted = batch
      return []
    case .ship(let order): return try ship(order)
    case .transferred(let summary, let messages), .finished(let summary, let messages):
      self.summary = summary
      return messages
    // Both sides are in this process: the refusal message would repeat the error.
    case .failed(let error, _):
      throw .replication(error)
    }
  }

  /// Traps if adopted events have no partition.
  func checkInvariants() {
    precondition(adoptedEvents == 0 || !adoptedPartitions.isEmpty, "each event has a partition")
  }

  private func adopt(_ batch: VerifiedBatch) throws(NodeError) {
    try node.lockedForAdoption { isShared throws(NodeError) in
      if isShared { held = try node.reading { try $0.versionVector() } }
      guard node.metadata.scope == scope, node.metadata.pendingScope == pendingScope else {
        throw .scopeChanged(node: node.metadata.name)
      }
      try Node.wrapping {
        try refuseRetired(in: batch)
        adoptedEvents += try batch.adopt(into: node.log, above: held)
        for stream in batch.streams
        where held[stream.range.partition, stream.range.origin].sequence < stream.range.to {
          held[stream.range.partition, stream.range.origin] = stream.head
          adoptedPartitions.insert(stream.range.partition)
        }
      }
    }
    progress(adoptedEvents, 0)
  }

  /// Events that a fork repair renamed would otherwise be stored twice.
  private func refuseRetired(in batch: VerifiedBatch) throws(ReplicationError) {
    for branch in node.metadata.retired {
      guard try batch.digest(of: branch.first) == branch.digest else { continue }
      let (partition, id) = (branch.first.partition, branch.first.id)
      throw .fork(
        Fork(
          partition: partition, origin: id.origin, sequence: id.sequence,
          finder: Fork.Side(node: node.metadata.name, hash: held[partition, id.origin].hash),
          peer: Fork.Side(node: session.peer?.nodeName ?? "the peer", hash: branch.digest)))
    }
  }

  private func ship(_ order: ShipmentOrder) throws(NodeError) -> [SessionMessage] {
    do throws(NodeError) { return try shipped(order) } catch {
      // A node opened for reading is not changed, because it may belong to another user.
      if case .replication(.corruptLog(let corruption)) = error, node.options.mode == .write {
        try node.recordMetCorruption([corruption])
      }
      throw error
    }
  }

  private func shipped(_ order: ShipmentOrder) throws(NodeError) -> [SessionMessage] {
    try Node.wrapping {
      // The run excludes partitions that lost events.
      let source = LogSource(
        node.log, versionVector: held, around: node.metadata.corruption == nil ? nil : Omissions())
      let plan = try ShipmentPlan(
        source: source, scope: order.scope, above: order.receiver, names: order.names)
      var writer = ShipmentWriter(
        source: source, plan: plan, sender: node.metadata.logID, bytesReadBefore: bytesReadBefore,
        isDigesting: !session.node.sharesMemory)
      while let batch = try writer.next() {
        // Only a few batches are in memory: the other side stores one while the next is decoded.
        // Each message is released after delivery.
        var messages = Array(session.batch(batch).reversed())
        while let message = messages.popLast() { try deliver(message) }
      }
      let end = writer.end
      bytesReadBefore = node.log.bytesRead
      return [session.shipped(end, partitions: plan.partitions)]
    }
  }
}
