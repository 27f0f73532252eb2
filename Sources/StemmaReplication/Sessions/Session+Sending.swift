import StemmaEvents

/// Sending events.
extension Session {
  mutating func ship(
    _ request: TransferRequest, within offered: NarrowedScope? = nil
  ) throws(ReplicationError) -> Outcome {
    var scope = NarrowedScope(request.scope.scopes + [node.greeting.scope, node.readable])
    if let offered { scope = NarrowedScope(scope.scopes + offered.scopes) }
    if let foreign = request.versionVector.sortedPartitions.first(where: { !request.scope.contains($0) }) {
      throw .foreignPartition(foreign)
    }
    try require(node.readable, for: request.scope)
    try learn(request.versionVector)
    let order = ShipmentOrder(scope: scope, receiver: request.versionVector, names: names)
    state = .shipping(Shipping(request: request, summary: TransferSummary(direction: .sent)))
    return .ship(order)
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
  package mutating func shipped(_ end: TransferEnd, partitions: [Partition]) -> SessionMessage {
    guard case .shipping(var shipping) = state else { preconditionFailure("shipped comes after ship") }
    precondition(end.batches == shipping.batches, "the end must count the batches that were sent")
    shipping.summary.partitions = partitions
    shipping.summary.events = end.events
    shipping.summary.bytesRead = end.bytesRead
    shipping.end = end
    state = .waitingForAcknowledgement(shipping)
    return .end(end)
  }

  mutating func acknowledged(
    _ theirs: VersionVector, _ shipping: Shipping
  ) throws(ReplicationError) -> Outcome {
    if let foreign = theirs.sortedPartitions.first(where: { !shipping.request.scope.contains($0) }) {
      throw .foreignPartition(foreign)
    }
    if let end = shipping.end, !theirs.covers(end.versionVector) {
      throw .incomplete("the peer did not acknowledge all that was sent")
    }
    summary.peerVector.formUnion(theirs)
    summary.pushed = shipping.summary
    return concluded(sending: [])
  }
}
