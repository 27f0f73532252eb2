import StemmaEvents
import StemmaLog

/// Receiving events.
extension Session {
  mutating func ask(for scope: NarrowedScope) -> SessionMessage {
    let held = versionVector.restricted { scope.contains($0) }
    let request = TransferRequest(scope: scope, versionVector: held)
    let reader = ShipmentReader(
      sender: peer?.logID ?? node.greeting.logID, scope: scope, versionVector: held, schema: node.schema,
      names: names, trustsIndexes: node.trustsIndexes, isDigested: !node.sharesMemory,
      skipsForeignPartitions: node.skipsForeignPartitions)
    state = .receiving(
      Receiving(
        request: request, reader: reader, summary: TransferSummary(direction: .received), versionVector: held)
    )
    return .request(request)
  }

  /// Stores the version vector of the sender. The caller compares both histories.
  mutating func compare(_ holding: TransferRequest, _ old: Receiving) throws(ReplicationError) -> Outcome {
    var receiving = old
    let theirs = holding.versionVector
    if let foreign = theirs.sortedPartitions.first(where: { !receiving.request.scope.contains($0) }) {
      throw .foreignPartition(foreign)
    }
    try learn(theirs)
    summary.exchanged = receiving.request.scope
    receiving.announced = theirs
    state = .receiving(receiving)
    return .compare(theirs)
  }

  mutating func take(_ chunk: Chunk, _ old: Receiving) throws(ReplicationError) -> Outcome {
    var receiving = old
    // Releases the other reference, so that the parts grow in place.
    state = .over
    if let batch = try receiving.assemble(chunk) { return try read(batch, receiving) }
    state = .receiving(receiving)
    return .wait
  }

  /// Receives a chunk while the caller adopts the previous batch.
  mutating func takeAhead(_ chunk: Chunk, _ old: Receiving) throws(ReplicationError) -> Outcome {
    var receiving = old
    state = .over
    receiving.next = try receiving.assemble(chunk)
    state = .adopting(receiving)
    return .wait
  }

  private mutating func read(
    _ arrived: ReceivedBatch, _ old: Receiving
  ) throws(ReplicationError) -> Outcome {
    var receiving = old
    let batch = try receiving.reader.read(arrived)
    receiving.batches += 1
    receiving.summary.add(batch)
    let own = Set(node.greeting.ownOrigins)
    let lost = batch.streams.map(\.range).filter {
      own.contains($0.origin) && $0.to > versionVector[$0.partition, $0.origin].sequence
    }
    retire(lost.map(\.origin))
    state = .adopting(receiving)
    return .adopt(batch)
  }

  /// Records that the batch of the last outcome is durable. `versionVector`: all that the node
  /// holds. Returns the next batch if it has arrived.
  package mutating func adopted(versionVector: VersionVector) -> Outcome {
    guard case .adopting(var receiving) = state else { preconditionFailure("adopted comes after adopt") }
    state = .over
    self.versionVector = versionVector
    receiving.versionVector = versionVector.restricted { receiving.request.scope.contains($0) }
    guard let next = receiving.next else {
      state = .receiving(receiving)
      return .wait
    }
    receiving.next = nil
    do throws(ReplicationError) { return try read(next, receiving) } catch { return fail(error) }
  }

  /// Whether a complete batch waits for the adoption of the previous one. No other may arrive then.
  package var isBatchWaiting: Bool {
    guard case .adopting(let receiving) = state else { return false }
    return receiving.next != nil
  }

  /// Whether the caller has a batch to adopt.
  package var isAdopting: Bool {
    guard case .adopting = state else { return false }
    return true
  }

  mutating func finish(_ end: TransferEnd, _ receiving: Receiving) throws(ReplicationError) -> Outcome {
    guard let announced = receiving.announced, receiving.parts.isEmpty, end.batches == receiving.batches
    else {
      throw .incomplete("\(receiving.batches) of \(end.batches) batches came")
    }
    try receiving.reader.finish(announced)
    var transfer = receiving.summary
    transfer.bytesRead = end.bytesRead
    summary.pulled = transfer
    return concluded(sending: [.acknowledgement(receiving.versionVector)])
  }
}
