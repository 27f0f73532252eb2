import StemmaEvents

/// Sending events.
extension Session {
  mutating func ship(
    _ request: TransferRequest, within offered: NarrowedScope? = nil
  ) throws(ReplicationError) -> Outcome {
    var scope = NarrowedScope(request.scope.scopes + [node.scope, node.readable])
    if let offered { scope = NarrowedScope(scope.scopes + offered.scopes) }
    if let foreign = request.versionVector.sortedPartitions.first(where: { !request.scope.contains($0) }) {
      throw .foreignPartition(foreign)
    }
    try require(for: request.scope, node.readable.contains)
    try learn(request.versionVector)
    summary.exchanged = request.scope
    let order = ShipmentOrder(scope: scope, receiver: request.versionVector, names: names)
    state = .shipping(Shipping(request: request, summary: TransferSummary(direction: .sent)))
    return .ship(order)
  }

  /// The first message of a shipment. `versionVector`: what this node holds in the ordered scope.
  package func holding(_ versionVector: VersionVector) -> SessionMessage {
    guard case .shipping(let shipping) = state else { preconditionFailure("holding comes after ship") }
    return .holding(TransferRequest(scope: shipping.request.scope, versionVector: versionVector))
  }

  /// A batch of the requested shipment, as messages to send.
  package mutating func batch(_ bytes: [UInt8]) -> [SessionMessage] {
    guard case .shipping(var shipping) = state else { preconditionFailure("batch comes after ship") }
    var messages: [SessionMessage] = []
    let longest = node.sharesMemory ? bytes.count : ReplicationLimits.chunk
    for start in stride(from: 0, to: bytes.count, by: longest) {
      let end = min(start + longest, bytes.count)
      messages.append(
        .chunk(Chunk(batch: shipping.batches, isLast: end == bytes.count, bytes: bytes[start..<end])))
    }
    shipping.batches += 1
    shipping.summary.bytesShipped += UInt64(bytes.count)
    state = .shipping(shipping)
    return messages
  }

  /// Ends the shipment and returns the final message. `partitions`: those of the shipped events.
  /// The receiver must acknowledge `held`, the version vector that was sent before the batches.
  package mutating func shipped(
    _ end: TransferEnd, partitions: [Partition], held: VersionVector
  ) -> SessionMessage {
    guard case .shipping(var shipping) = state else { preconditionFailure("shipped comes after ship") }
    precondition(end.batches == shipping.batches, "the end must count the batches that were sent")
    shipping.summary.partitions = partitions
    shipping.summary.events = end.events
    shipping.summary.bytesRead = end.bytesRead
    shipping.end = end
    shipping.held = held
    state = .waitingForAcknowledgement(shipping)
    return .end(end)
  }

  mutating func acknowledged(
    _ theirs: VersionVector, _ shipping: Shipping
  ) throws(ReplicationError) -> Outcome {
    if let foreign = theirs.sortedPartitions.first(where: { !shipping.request.scope.contains($0) }) {
      throw .foreignPartition(foreign)
    }
    if !theirs.covers(shipping.held) {
      throw .incomplete("the peer did not acknowledge all that was sent")
    }
    summary.peerVector.formUnion(permitted(theirs))
    summary.pushed = shipping.summary
    return concluded(sending: [])
  }

  /// Answering side: the peer states what it holds after a transfer on another connection.
  mutating func noted(_ holding: TransferRequest) throws(ReplicationError) -> Outcome {
    let theirs = holding.versionVector
    if let foreign = theirs.sortedPartitions.first(where: { !holding.scope.contains($0) }) {
      throw .foreignPartition(foreign)
    }
    try learn(theirs)
    summary.exchanged = holding.scope
    return .transferred(summary, send: [])
  }
}
