import StemmaEvents
import StemmaLog
import StemmaReplication

/// One node's side of a session: does what the session's state machine asks for.
///
/// Events are adopted into the log piece by piece, each durable before it is acknowledged, while other threads take
/// the next one apart; the tables follow when a transfer is over, in one go.
final class Participant {
  let node: Node
  var session: Session
  private(set) var summary: SessionSummary?
  var greeted: Greeting?
  /// Hands a message to the other side at once.
  var deliver: (SessionMessage) throws(NodeError) -> Void = { _ in }
  /// What the node holds, kept up to date while pieces are adopted.
  private var held: Knowledge
  /// The node's scope, and a decided change of it, when the session began. A batch that was chosen for another scope is refused.
  private let scope: Scope
  private let pendingScope: Scope?
  private let progress: (UInt64, UInt64) -> Void
  private(set) var adoptedEvents: UInt64 = 0
  /// Of which any event was adopted.
  private(set) var adoptedPartitions: Set<Partition> = []
  /// The session has handed it out. It is adopted when the next one is here, or anything else comes.
  private var accepted: VerifiedPiece?
  /// What was read of the log before the transfer; opening a peer for the exchange is a part of it.
  private var bytesReadBefore: UInt64

  init(
    _ node: Node, _ session: Session, held: Knowledge, bytesReadBefore: UInt64,
    progress: @escaping (UInt64, UInt64) -> Void
  ) {
    self.bytesReadBefore = bytesReadBefore
    self.node = node
    self.session = session
    self.held = held
    scope = node.mark.scope
    pendingScope = node.mark.pendingScope
    self.progress = progress
  }

  func receive(_ message: SessionMessage) throws(NodeError) -> [SessionMessage] {
    if case .chunk = message {
      if session.isPieceWaiting { try adoptAccepted() }
    } else {
      try adoptAll()
    }
    return try messages(after: session.receive(message))
  }

  /// Adopts all that came whole.
  func adoptAll() throws(NodeError) {
    while accepted != nil { try adoptAccepted() }
  }

  private func adoptAccepted() throws(NodeError) {
    guard let piece = accepted else { return }
    accepted = nil
    do throws(NodeError) { try adopt(piece) } catch {
      // The peer learns that the transfer ended; the reason is this side's own.
      _ = session.fail(.failed("the receiver could not store a piece"))
      throw error
    }
    // A session that has failed since does not ask.
    if session.isAdopting { _ = try messages(after: session.adopted(knowledge: held)) }
  }

  /// Does what an outcome asks for, and gives the messages for the other side.
  func messages(after outcome: Session.Outcome) throws(NodeError) -> [SessionMessage] {
    // In debug builds only: so every test of nodes that exchange checks both sides at each step.
    assert(holds(session.checkInvariants) && holds(checkInvariants))
    switch outcome {
    case .wait: return []
    case .send(let messages): return messages
    case .greeted(let greeting):
      greeted = greeting
      return []
    case .adopt(let piece):
      accepted = piece
      return []
    case .ship(let order): return try ship(order)
    case .transferred(let summary, let messages), .finished(let summary, let messages):
      self.summary = summary
      return messages
    // Both sides are here: the refusal that would be sent says the same as the error.
    case .failed(let error, _):
      throw .replication(error)
    }
  }

  /// Traps if something was adopted that no partition has.
  func checkInvariants() {
    precondition(adoptedEvents == 0 || !adoptedPartitions.isEmpty, "each event has a partition")
  }

  private func adopt(_ piece: VerifiedPiece) throws(NodeError) {
    try node.lockedForAdoption { isShared throws(NodeError) in
      if isShared { held = try node.reading { try $0.knowledge() } }
      guard node.mark.scope == scope, node.mark.pendingScope == pendingScope else {
        throw .scopeChanged(node: node.mark.name)
      }
      try Node.wrapping {
        try refuseRetired(in: piece)
        adoptedEvents += try piece.adopt(into: node.log, above: held)
        for stream in piece.streams
        where held[stream.range.partition, stream.range.origin].sequence < stream.range.to {
          held[stream.range.partition, stream.range.origin] = stream.head
          adoptedPartitions.insert(stream.range.partition)
        }
      }
    }
    progress(adoptedEvents, 0)
  }

  /// What was written again under new names to mend a fork would else come twice.
  private func refuseRetired(in piece: VerifiedPiece) throws(ReplicationError) {
    for branch in node.mark.retired {
      guard try piece.digest(of: branch.first) == branch.digest else { continue }
      let (partition, dot) = (branch.first.partition, branch.first.dot)
      throw .fork(
        Fork(
          partition: partition, origin: dot.origin, sequence: dot.sequence,
          finder: Fork.Side(node: node.mark.name, hash: held[partition, dot.origin].hash),
          peer: Fork.Side(node: session.peer?.nodeName ?? "the peer", hash: branch.digest)))
    }
  }

  private func ship(_ order: ShipmentOrder) throws(NodeError) -> [SessionMessage] {
    do throws(NodeError) { return try shipped(order) } catch {
      // Of a node that is only read, nothing is changed: it may be somebody else's.
      if case .replication(.damagedLog(let damage)) = error, node.options.mode == .write {
        try node.recordMetDamage([damage])
      }
      throw error
    }
  }

  private func shipped(_ order: ShipmentOrder) throws(NodeError) -> [SessionMessage] {
    try Node.wrapping {
      // What lost events to damage is left out of the run.
      let source = LogSource(node.log, around: node.mark.damage == nil ? nil : Omissions())
      let plan = try ShipmentPlan(
        source: source, scope: order.scope, above: order.receiver, names: order.names)
      var writer = ShipmentWriter(
        source: source, plan: plan, sender: node.mark.logID, bytesReadBefore: bytesReadBefore,
        isDigesting: !session.node.sharesMemory)
      while let piece = try writer.next() {
        // A few pieces are in memory at a time: the other side stores one while the next is taken apart. Each message
        // is let go when it has been delivered.
        var messages = Array(session.piece(piece).reversed())
        while let message = messages.popLast() { try deliver(message) }
      }
      let end = writer.end
      bytesReadBefore = node.log.bytesRead
      return [session.shipped(end, partitions: plan.partitions)]
    }
  }
}
