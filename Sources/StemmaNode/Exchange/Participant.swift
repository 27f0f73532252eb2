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
  /// Whether the opening side has received the greeting of the peer and must begin.
  private(set) var isGreeted = false
  /// The sender's version vector in the scope of the last request.
  private(set) var announced: VersionVector?
  /// The finished shipments of this side.
  private(set) var shipped = (events: UInt64(0), bytesRead: UInt64(0), partitions: 0)
  /// Messages for the other side, the next one last.
  private var outbox: [SessionMessage] = []
  private var shipment: (writer: ShipmentWriter<LogSource>, plan: ShipmentPlan)?
  /// The version vector of the node, updated as batches are adopted.
  private var held: VersionVector
  /// The scopes of the node when the session began. A batch for another scope is refused.
  private let scope: Scope
  private let pendingScope: Scope?
  private let progress: (UInt64, UInt64) -> Void
  private(set) var adoptedEvents: UInt64 = 0
  /// The events of the sender's announcement that the node lacked.
  private var expectedEvents: UInt64 = 0
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

  func receive(_ message: SessionMessage) throws(NodeError) {
    if case .chunk = message {
      if session.isBatchWaiting { try adoptAccepted() }
    } else {
      try adoptAll()
    }
    try follow(session.receive(message))
  }

  /// Opening side: begins after the greeting.
  func begin(_ outcome: (inout Session) throws(NodeError) -> Session.Outcome) throws(NodeError) {
    isGreeted = false
    try follow(try outcome(&session))
  }

  /// The next message for the other side; nil: the other side sends the next one. Memory holds
  /// only a few batches of a shipment: the receiver stores one while the next is decoded.
  func next() throws(NodeError) -> SessionMessage? {
    if outbox.isEmpty, shipment != nil { try shipNext() }
    return outbox.popLast()
  }

  func closed() -> ReplicationError? { session.closed() }

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
    if session.isAdopting { try follow(session.adopted(versionVector: held)) }
  }

  /// Executes an outcome.
  private func follow(_ outcome: Session.Outcome) throws(NodeError) {
    // In debug builds, every test of an exchange checks both sides at each step.
    assert(holds(session.checkInvariants) && holds(checkInvariants))
    switch outcome {
    case .wait: break
    case .send(let messages): queue(messages)
    case .greeted: isGreeted = true
    case .compare(let theirs):
      announced = theirs
      expectedEvents = held.lag(against: theirs).reduce(0) { $0 + $1.behind }
      progress(adoptedEvents, expectedEvents)
      try node.refuseForks(against: theirs, of: session.peer?.nodeName ?? "the peer")
    case .adopt(let batch): accepted = batch
    case .ship(let order): try ship(order)
    case .transferred(let summary, let messages), .finished(let summary, let messages):
      self.summary = summary
      queue(messages)
    // The transport sends the refusal.
    case .failed(let error, _): throw .replication(error)
    }
  }

  private func queue(_ messages: [SessionMessage]) {
    outbox.insert(contentsOf: messages.reversed(), at: 0)
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
    progress(adoptedEvents, expectedEvents)
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

  private func ship(_ order: ShipmentOrder) throws(NodeError) {
    try recordingCorruption { () throws(NodeError) in
      try Node.wrapping {
        // The run excludes partitions that lost events.
        let source = LogSource(
          node.log, versionVector: held, around: node.metadata.corruption == nil ? nil : Omissions())
        let plan = try ShipmentPlan(
          source: source, scope: order.scope, above: order.receiver, names: order.names)
        let writer = ShipmentWriter(
          source: source, plan: plan, sender: node.metadata.logID, bytesReadBefore: bytesReadBefore,
          isDigesting: !session.node.sharesMemory)
        queue([session.holding(plan.versionVector)])
        shipment = (writer, plan)
      }
    }
  }

  private func shipNext() throws(NodeError) {
    try recordingCorruption { () throws(NodeError) in
      try Node.wrapping {
        if let batch = try shipment?.writer.next() { return queue(session.batch(batch)) }
        guard let (writer, plan) = shipment else { return }
        shipment = nil
        let end = writer.end
        bytesReadBefore = node.log.bytesRead
        shipped.events += end.events
        shipped.bytesRead += end.bytesRead
        shipped.partitions += plan.partitions.count
        queue([session.shipped(end, partitions: plan.partitions, held: plan.versionVector)])
      }
    }
  }

  /// A node opened for reading is not changed, because it may belong to another user.
  private func recordingCorruption(_ body: () throws(NodeError) -> Void) throws(NodeError) {
    do throws(NodeError) { try body() } catch {
      if case .replication(.corruptLog(let corruption)) = error, node.options.mode == .write {
        try node.recordMetCorruption([corruption])
      }
      throw error
    }
  }
}
