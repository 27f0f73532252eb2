import StemmaEvents
import StemmaLog

/// Receiving events.
extension Session {
  mutating func ask(for scope: NarrowedScope) -> SessionMessage {
    let held = knowledge.restricted { scope.contains($0) }
    let request = TransferRequest(scope: scope, knowledge: held)
    let reader = ShipmentReader(
      sender: peer?.logID ?? node.greeting.logID, scope: scope, knowledge: held, schema: node.schema,
      names: names, trustsIndexes: node.trustsIndexes, isDigested: !node.sharesMemory)
    state = .receiving(
      Receiving(
        request: request, reader: reader, summary: TransferSummary(direction: .received), knowledge: held))
    return .request(request)
  }

  mutating func take(_ chunk: Chunk, _ old: Receiving) throws(ReplicationError) -> Outcome {
    var receiving = old
    // Releases the other reference, so that the parts grow in place.
    state = .over
    if let piece = try receiving.assemble(chunk) { return try read(piece, receiving) }
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
    _ arrived: ArrivedPiece, _ old: Receiving
  ) throws(ReplicationError) -> Outcome {
    var receiving = old
    let piece = try receiving.reader.read(arrived)
    receiving.pieces += 1
    receiving.summary.add(piece)
    let own = Set(node.greeting.ownOrigins)
    let lost = piece.streams.map(\.range).filter {
      own.contains($0.origin) && $0.to > knowledge[$0.partition, $0.origin].sequence
    }
    retire(lost.map(\.origin))
    state = .adopting(receiving)
    return .adopt(piece)
  }

  /// Records that the batch of the last outcome is durable. `knowledge`: all that the node holds.
  /// Returns the next batch if it has arrived.
  package mutating func adopted(knowledge: VersionVector) -> Outcome {
    guard case .adopting(var receiving) = state else { preconditionFailure("adopted comes after adopt") }
    state = .over
    self.knowledge = knowledge
    receiving.knowledge = knowledge.restricted { receiving.request.scope.contains($0) }
    guard let next = receiving.next else {
      state = .receiving(receiving)
      return .wait
    }
    receiving.next = nil
    do throws(ReplicationError) { return try read(next, receiving) } catch { return fail(error) }
  }

  /// Whether a complete batch waits for the adoption of the previous one. No other may arrive then.
  package var isPieceWaiting: Bool {
    guard case .adopting(let receiving) = state else { return false }
    return receiving.next != nil
  }

  /// Whether the caller has a batch to adopt.
  package var isAdopting: Bool {
    guard case .adopting = state else { return false }
    return true
  }

  mutating func finish(_ end: TransferEnd, _ receiving: Receiving) throws(ReplicationError) -> Outcome {
    guard receiving.parts.isEmpty, end.pieces == receiving.pieces else {
      throw .incomplete("\(receiving.pieces) of \(end.pieces) pieces came")
    }
    try receiving.reader.finish(end)
    try learn(end.knowledge)
    var transfer = receiving.summary
    transfer.bytesRead = end.bytesRead
    summary.pulled = transfer
    return concluded(sending: [.acknowledgement(receiving.knowledge)])
  }
}
