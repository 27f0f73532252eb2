import StemmaEvents
import StemmaLog
import StemmaSchema

/// Checks the batches of a shipment in order against this node's version vector. Pure: it writes
/// nothing, and a rejected batch leaves the reader unchanged.
///
/// A batch is rejected if it is corrupt (`Piece`), starts a stream beyond the held events (gap) or
/// on other events (fork). It is also rejected for a partition that was not requested, or an event
/// that no correct writer creates (`EventCheck`). Held events are compared and skipped. A batch
/// only adds events.
///
/// From a trusted sender (`trustsIndexes`), a segment that is adopted unchanged is not read: its
/// digest matches. The index was computed when the sender sealed or adopted the segment, or
/// gathered the events for this shipment.
package struct ShipmentReader: Sendable {
  private let scope: NarrowedScope
  private let check: EventCheck
  private let names: (own: String, peer: String)
  private let trustsIndexes: Bool
  /// Whether batches have digests, as all from outside of this process do.
  private let isDigested: Bool
  /// The log that must have sent the batches.
  private let sender: LogID
  /// This node's version vector in scope after all batches that were read are adopted.
  package private(set) var knowledge: VersionVector

  package init(
    sender: LogID, scope: NarrowedScope, knowledge: VersionVector, schema: Schema,
    names: (own: String, peer: String), trustsIndexes: Bool = false, isDigested: Bool = true
  ) {
    self.scope = scope
    self.isDigested = isDigested
    self.trustsIndexes = trustsIndexes
    self.sender = sender
    self.knowledge = knowledge.restricted { scope.contains($0) }
    self.names = names
    check = EventCheck(schema: schema)
  }

  package mutating func read(_ bytes: [UInt8]) throws(ReplicationError) -> VerifiedPiece {
    try read(arrived([bytes[...]]))
  }

  /// Traps if the version vector exceeds the scope. Debug builds call it after each batch.
  func checkInvariants() {
    precondition(knowledge.partitions.keys.allSatisfy(scope.contains), "only what was asked for is received")
    precondition(
      knowledge.partitions.values.allSatisfy { !$0.isEmpty }, "of each partition something is held")
  }

  /// A received batch, in parts, to be read after the earlier ones.
  func arrived(_ parts: [ArraySlice<UInt8>]) -> ArrivedPiece {
    ArrivedPiece(parts, trustsIndexes ? nil : check, isDigested: isDigested)
  }

  mutating func read(_ arrived: ArrivedPiece) throws(ReplicationError) -> VerifiedPiece {
    let (came, blocks) = try arrived.take()
    var piece = came
    guard piece.sender == sender else {
      throw .malformed("piece", "it comes from log \(piece.sender), not from \(sender)")
    }
    for stream in piece.streams where !scope.contains(stream.range.partition) {
      throw .foreignPartition(stream.range.partition)
    }
    if piece.sealed != nil, !piece.continues(knowledge) { piece = try piece.unpacked() }
    let verified = VerifiedPiece(piece: piece, storedSize: arrived.storedSize, names: names)
    if try verified.sealed(above: knowledge) != nil {
      if let blocks { try SealedCheck.run(blocks, held: knowledge, piece.streams) }
      for stream in piece.streams { knowledge[stream.range.partition, stream.range.origin] = stream.head }
      assert(holds(checkInvariants))
      return verified
    }
    var seen = knowledge
    try verified.forEachNew(of: piece, above: knowledge) { event, digest throws(ReplicationError) in
      try check.check(event, held: seen)
      let head = seen[event.partition, event.dot.origin]
      seen[event.partition, event.dot.origin] = StreamHead(
        sequence: event.dot.sequence, hash: head.hash + digest)
    }
    knowledge = seen
    assert(holds(checkInvariants))
    return verified
  }

  /// Checks that this node holds all events that the sender announced after its last batch.
  package func finish(_ end: TransferEnd) throws(ReplicationError) {
    if let partition = end.knowledge.sortedPartitions.first(where: { !scope.contains($0) }) {
      throw .foreignPartition(partition)
    }
    if let fork = knowledge.fork(against: end.knowledge, names: names) { throw .fork(fork) }
    for lag in knowledge.lag(against: end.knowledge) where lag.behind > 0 {
      throw .incomplete("\(lag.behind) events of \(lag.partition) did not come")
    }
  }
}

/// A valid batch that fits its reader's version vector. At adoption the node may hold more:
/// `remaining(above:)` compares again, under the writer lock.
package struct VerifiedPiece: Sendable {
  private let piece: Piece
  /// The size as received.
  package let storedSize: Int
  private let names: (own: String, peer: String)

  init(piece: Piece, storedSize: Int, names: (own: String, peer: String)) {
    self.piece = piece
    self.storedSize = storedSize
    self.names = names
  }

  package var streams: [ShippedStream] { piece.streams }
  package var eventCount: Int { piece.eventCount }

  /// The digest of one event; nil if the batch does not hold it.
  package func digest(of name: EventName) throws(ReplicationError) -> StreamHash? {
    let isHeld = streams.map(\.range).contains {
      $0.partition == name.partition && $0.origin == name.dot.origin
        && $0.from <= name.dot.sequence && name.dot.sequence <= $0.to
    }
    guard isHeld else { return nil }
    let piece = try piece.unpacked()
    return zip(piece.events, piece.digests).first { $0.0.name == name }?.1
  }

  /// The batch's segment, if all of it is new and continues the held events, so that it can be
  /// adopted unchanged. Nil otherwise: then use `remaining(above:)`. Throws `fork`.
  package func sealed(above knowledge: VersionVector) throws(ReplicationError) -> SealedContents? {
    guard let sealed = piece.sealed, piece.continues(knowledge) else { return nil }
    try compare(with: knowledge, piece)
    return sealed
  }

  /// Stores the new events in a log, durable on return: a segment unchanged if all of it is new,
  /// otherwise the missing events. Returns their number. The caller holds the writer lock and
  /// passes the version vector. Throws `gap`, `fork`, and what `Log.adopt` does (`LogError`).
  package func adopt(into log: Log, above held: VersionVector) throws -> UInt64 {
    if let sealed = try sealed(above: held), log.adoptsAsSegment(rawBytes: sealed.sizes.rawBytes) {
      _ = try log.adopt(sealed)
      return sealed.events
    }
    guard let adopted = try remaining(above: held) else { return 0 }
    _ = try log.adopt(adopted)
    return UInt64(adopted.events.count)
  }

  /// The missing events, in the sender's arrival order, with the authors and messages of their
  /// commits. Nil if none are missing. Throws `gap` or `fork`.
  package func remaining(above knowledge: VersionVector) throws(ReplicationError) -> AdoptedEvents? {
    var events: [Event] = []
    var commits: Set<CommitID> = []
    let piece = try piece.unpacked()
    try forEachNew(of: piece, above: knowledge) { event, _ throws(ReplicationError) in
      events.append(event)
      commits.insert(event.commit)
    }
    guard !events.isEmpty else { return nil }
    return AdoptedEvents(events, notes: piece.notes.filter { commits.contains($0.key) })
  }

  /// Compares every stream with the held one, then passes the missing events to `body`.
  func forEachNew(
    of piece: Piece, above knowledge: VersionVector,
    _ body: (Event, StreamHash) throws(ReplicationError) -> Void
  ) throws(ReplicationError) {
    try compare(with: knowledge, piece)
    for (event, digest) in zip(piece.events, piece.digests)
    where event.dot.sequence > knowledge[event.partition, event.dot.origin].sequence {
      try body(event, digest)
    }
  }

  /// Compares each stream of the batch with ours, at our end. A stream of which we hold more than
  /// the batch cannot be compared, and none of it is adopted.
  private func compare(with knowledge: VersionVector, _ piece: Piece) throws(ReplicationError) {
    var stated = VersionVector()
    for stream in piece.streams {
      let range = stream.range
      let head = knowledge[range.partition, range.origin]
      guard range.from <= head.sequence.next else {
        throw .gap(range.partition, range.origin, expected: head.sequence.next, found: range.from)
      }
      stated[range.partition, range.origin] = StreamHead(
        sequence: Sequence(range.from.rawValue - 1), hash: stream.hashBefore)
    }
    for (event, digest) in zip(piece.events, piece.digests) {
      let held = knowledge[event.partition, event.dot.origin].sequence
      guard event.dot.sequence <= held else { continue }
      let before = stated[event.partition, event.dot.origin]
      stated[event.partition, event.dot.origin] = StreamHead(
        sequence: event.dot.sequence, hash: before.hash + digest)
    }
    for range in piece.streams.map(\.range) {
      let own = knowledge[range.partition, range.origin]
      let theirs = stated[range.partition, range.origin]
      guard own.sequence == theirs.sequence, own.hash != theirs.hash else { continue }
      throw .fork(
        Fork(
          partition: range.partition, origin: range.origin, sequence: own.sequence,
          finder: Fork.Side(node: names.own, hash: own.hash),
          peer: Fork.Side(node: names.peer, hash: theirs.hash)))
    }
  }
}

extension Piece {
  /// Whether every stream directly continues a version vector.
  func continues(_ knowledge: VersionVector) -> Bool {
    streams.allSatisfy { $0.range.from == knowledge[$0.range.partition, $0.range.origin].sequence.next }
  }
}

extension ShippedStream {
  /// The head of a node that holds the whole range.
  package var head: StreamHead { StreamHead(sequence: range.to, hash: hashBefore + range.hash) }
}
