import StemmaReplication

/// The side of a session that a peer has opened: its node answers the messages of the peer.
///
/// Call `receive` for each message, and `next` until it returns nil. `next` prepares a shipment
/// batch by batch, so a slow connection keeps few of them in memory. End with `finish`.
package final class Answering {
  private let participant: Participant

  /// - Throws: `.duplicateEvents`, or `.corrupt` if the losses of the node are unknown.
  package init(
    _ node: Node, for rights: Rights = .everything, sharesMemory: Bool = false, trustsIndexes: Bool = false,
    progress: @escaping (UInt64, UInt64) -> Void = { _, _ in }
  ) throws(NodeError) {
    try node.checkNames()
    if let corruption = node.metadata.corruption, corruption.isVague { try node.checkLogIsWhole() }
    let held = try node.durableVector()
    let own = Session.Node(
      greeting: try node.greeting(for: rights, held), schema: node.schema,
      scope: node.metadata.scope, readable: rights.readable, writable: rights.writable,
      trustsIndexes: trustsIndexes,
      takesCopies: true, sharesMemory: sharesMemory)
    participant = Participant(
      node, .answering(own, versionVector: held), held: held, bytesReadBefore: 0,
      progress: progress)
  }

  package var greeting: Greeting { participant.session.node.greeting }

  package func receive(_ message: SessionMessage) throws(NodeError) { try participant.receive(message) }

  /// The next message for the peer; nil: the peer sends the next one.
  package func next() throws(NodeError) -> SessionMessage? {
    let message = try participant.next()
    if case .end? = message { try participant.node.checkEndOfLog() }
    return message
  }

  /// Whether the peer has sent its greeting.
  package var isGreeted: Bool { participant.session.peer != nil }

  /// The peer has closed the connection. Nil if that is expected.
  package func closed() -> ReplicationError? { participant.closed() }

  /// The number of events that were adopted or shipped.
  package var eventCount: UInt64 {
    participant.adoptedEvents + participant.shipped.events
  }

  /// The number of partitions with such events.
  package var partitionCount: Int {
    participant.adoptedPartitions.count + participant.shipped.partitions
  }

  /// The bytes that were read from the log for finished shipments.
  package var bytesRead: UInt64 { participant.shipped.bytesRead }

  /// Ends the session: complete batches are adopted, the tables are refreshed, and what the peer
  /// holds is recorded.
  ///
  /// - Parameter error: the reason, if the session failed.
  package func finish(after error: NodeError? = nil) throws(NodeError) {
    let node = participant.node
    if let error {
      var failure: NodeError?
      do throws(NodeError) { try participant.adoptAll() } catch { failure = error }
      try node.conclude(participant)
      try node.leaveFork(error)
      if let failure { throw failure }
      return
    }
    try participant.adoptAll()
    try node.conclude(participant)
    try node.checkEndOfLog()
    if let peer = participant.session.peer {
      try node.acknowledge(participant.session.summary, by: peer)
      try node.learn(peer)
    }
  }
}

extension NodeError {
  /// The error as the peer receives it. A peer with limited rights learns no details of this node.
  package func refusal(isLimited: Bool) -> ReplicationError {
    if case .replication(let error) = self {
      switch error {
      case .failed, .corruptLog, .inconsistentLog: break
      default: return error
      }
    }
    return .failed(isLimited ? "the node failed" : Explanations.text(of: self).description)
  }
}
