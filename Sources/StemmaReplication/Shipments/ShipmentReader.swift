import StemmaEvents
import StemmaLog
import StemmaSchema

/// Checks the pieces of a shipment against what this node knows, one after the other. Pure: nothing is
/// written, and a piece that is refused leaves the reader where it was.
///
/// A piece is refused if its bytes are damaged (`Piece`), if a stream starts beyond what is held (gap), if it
/// builds on other events than are held (fork), if a partition was not asked for, or if an event could not
/// have been made by an honest writer: see `EventCheck`. Events that are held already are compared and
/// skipped. A piece only ever adds: what it does not mention stays as it is.
///
/// Of a sender that is believed (`trustsIndexes`), a sealed file that is adopted as it is is not read: what its index
/// says of the events was counted when the sender sealed it, or took it in, and its digest holds; or it was counted when the
/// events were gathered for this shipment.
package struct ShipmentReader: Sendable {
  private let scope: NarrowedScope
  private let check: EventCheck
  private let names: (own: String, peer: String)
  private let trustsIndexes: Bool
  /// Whether pieces have digests: those that come from outside of this process.
  private let isDigested: Bool
  /// The log that the pieces must come from.
  private let sender: LogID
  /// What this node holds of the scope once it has adopted all pieces that were read.
  package private(set) var knowledge: Knowledge

  package init(
    sender: LogID, scope: NarrowedScope, knowledge: Knowledge, schema: Schema,
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

  /// Traps if it knows of what it was not asked for. In debug builds behind each piece.
  func checkInvariants() {
    precondition(knowledge.partitions.keys.allSatisfy(scope.contains), "only what was asked for is received")
    precondition(
      knowledge.partitions.values.allSatisfy { !$0.isEmpty }, "of each partition something is held")
  }

  /// A piece that is to be read when those before it are, in the parts in which it came.
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
      if let blocks { try SealedCheck.run(blocks, held: knowledge) }
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

  /// What the sender said after its last piece must be true: all that it holds in scope is held here now.
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

/// A piece that is sound, and fits the knowledge that its reader had. By the time it is adopted the node may
/// hold more: `remaining(above:)` compares again, under the writer lock.
package struct VerifiedPiece: Sendable {
  private let piece: Piece
  /// As it came.
  package let storedSize: Int
  private let names: (own: String, peer: String)

  init(piece: Piece, storedSize: Int, names: (own: String, peer: String)) {
    self.piece = piece
    self.storedSize = storedSize
    self.names = names
  }

  package var streams: [ShippedStream] { piece.streams }
  package var eventCount: Int { piece.eventCount }

  /// The digest of one event; nil if the piece does not hold it.
  package func digest(of name: EventName) throws(ReplicationError) -> StreamHash? {
    let isHeld = streams.map(\.range).contains {
      $0.partition == name.partition && $0.origin == name.dot.origin
        && $0.from <= name.dot.sequence && name.dot.sequence <= $0.to
    }
    guard isHeld else { return nil }
    let piece = try piece.unpacked()
    return zip(piece.events, piece.digests).first { $0.0.name == name }?.1
  }

  /// The sealed file that the piece is, if all of it is new and follows what is held, so that it can be adopted as
  /// it is. Nil otherwise: then there is `remaining(above:)`. Throws `fork`.
  package func sealed(above knowledge: Knowledge) throws(ReplicationError) -> SealedContents? {
    guard let sealed = piece.sealed, piece.continues(knowledge) else { return nil }
    try compare(with: knowledge, piece)
    return sealed
  }

  /// Stores what is new in a log, durable on return: a sealed file as it is if nothing of it is held, otherwise
  /// the events that are not. Returns how many events. The caller holds the writer lock, and says what is held.
  /// Throws `gap`, `fork`, and what `Log.adopt` does (`LogError`).
  package func adopt(into log: Log, above held: Knowledge) throws -> UInt64 {
    if let sealed = try sealed(above: held), log.adoptsAsSegment(rawBytes: sealed.sizes.rawBytes) {
      _ = try log.adopt(sealed)
      return sealed.events
    }
    guard let adopted = try remaining(above: held) else { return 0 }
    _ = try log.adopt(adopted)
    return UInt64(adopted.events.count)
  }

  /// The events that are not held yet, in the sender's arrival order, with the notes of their commits. Nil if
  /// all are. Throws `gap` or `fork`.
  package func remaining(above knowledge: Knowledge) throws(ReplicationError) -> AdoptedEvents? {
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

  /// Compares every stream with what is held, then gives the events above it.
  func forEachNew(
    of piece: Piece, above knowledge: Knowledge, _ body: (Event, StreamHash) throws(ReplicationError) -> Void
  ) throws(ReplicationError) {
    try compare(with: knowledge, piece)
    for (event, digest) in zip(piece.events, piece.digests)
    where event.dot.sequence > knowledge[event.partition, event.dot.origin].sequence {
      try body(event, digest)
    }
  }

  /// What a stream had, by the piece, at the point up to which we hold it, must be what we hold. A stream of
  /// which we hold more than the whole piece cannot be compared, and nothing of it is taken.
  private func compare(with knowledge: Knowledge, _ piece: Piece) throws(ReplicationError) {
    var stated = Knowledge()
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
  /// Whether every stream of it goes on right where a knowledge ends.
  func continues(_ knowledge: Knowledge) -> Bool {
    streams.allSatisfy { $0.range.from == knowledge[$0.range.partition, $0.range.origin].sequence.next }
  }
}

extension ShippedStream {
  /// Of whoever holds it all.
  package var head: StreamHead { StreamHead(sequence: range.to, hash: hashBefore + range.hash) }
}
