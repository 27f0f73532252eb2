import StemmaEvents
import StemmaLog
import StemmaSchema

/// Checks the batches of a shipment in order against this node's version vector. Pure: it writes
/// nothing, and a rejected batch leaves the reader unchanged.
///
/// A batch is rejected if it is corrupt (`Batch`), starts a stream beyond the held events (gap) or
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
  /// Whether partitions out of scope are skipped. Otherwise a batch with one is rejected.
  private let skipsForeignPartitions: Bool
  /// The log that must have sent the batches.
  private let sender: LogID
  /// This node's version vector in scope after all batches that were read are adopted.
  package private(set) var versionVector: VersionVector

  package init(
    sender: LogID, scope: NarrowedScope, versionVector: VersionVector, schema: Schema,
    names: (own: String, peer: String), trustsIndexes: Bool = false, isDigested: Bool = true,
    skipsForeignPartitions: Bool = false
  ) {
    self.scope = scope
    self.skipsForeignPartitions = skipsForeignPartitions
    self.isDigested = isDigested
    self.trustsIndexes = trustsIndexes
    self.sender = sender
    self.versionVector = versionVector.restricted { scope.contains($0) }
    self.names = names
    check = EventCheck(schema: schema)
  }

  package mutating func read(_ bytes: [UInt8]) throws(ReplicationError) -> VerifiedBatch {
    try read(arrived([bytes[...]]))
  }

  /// Traps if the version vector exceeds the scope. Debug builds call it after each batch.
  func checkInvariants() {
    precondition(
      versionVector.partitions.keys.allSatisfy(scope.contains), "only what was asked for is received")
    precondition(
      versionVector.partitions.values.allSatisfy { !$0.isEmpty }, "of each partition something is held")
  }

  /// A received batch, in parts, to be read after the earlier ones.
  func arrived(_ parts: [ArraySlice<UInt8>]) -> ReceivedBatch {
    ReceivedBatch(parts, trustsIndexes ? nil : check, isDigested: isDigested)
  }

  mutating func read(_ arrived: ReceivedBatch) throws(ReplicationError) -> VerifiedBatch {
    let (came, blocks) = try arrived.take()
    var batch = came
    guard batch.sender == sender else {
      throw .malformed("batch", "it comes from log \(batch.sender), not from \(sender)")
    }
    let isForeign = { [scope] (stream: ShippedStream) in !scope.contains(stream.range.partition) }
    if skipsForeignPartitions, batch.streams.contains(where: isForeign) {
      batch = try batch.restricted(to: scope)
    }
    for stream in batch.streams where isForeign(stream) {
      throw .foreignPartition(stream.range.partition)
    }
    if batch.sealed != nil, !batch.continues(versionVector) { batch = try batch.unpacked() }
    let verified = VerifiedBatch(batch: batch, storedSize: arrived.storedSize, names: names)
    if try verified.sealed(above: versionVector) != nil {
      if let blocks { try SealedCheck.run(blocks, held: versionVector, batch.streams) }
      for stream in batch.streams { versionVector[stream.range.partition, stream.range.origin] = stream.head }
      assert(holds(checkInvariants))
      return verified
    }
    var seen = versionVector
    try verified.forEachNew(of: batch, above: versionVector) { event, digest throws(ReplicationError) in
      try check.check(event, held: seen)
      let head = seen[event.partition, event.id.origin]
      seen[event.partition, event.id.origin] = StreamHead(
        sequence: event.id.sequence, hash: head.hash + digest)
    }
    versionVector = seen
    assert(holds(checkInvariants))
    return verified
  }

  /// Checks after the last batch that this node holds all events that the sender announced.
  package func finish(_ announced: VersionVector) throws(ReplicationError) {
    if let partition = announced.sortedPartitions.first(where: { !scope.contains($0) }) {
      throw .foreignPartition(partition)
    }
    if let fork = versionVector.fork(against: announced, names: names) { throw .fork(fork) }
    for lag in versionVector.lag(against: announced) where lag.behind > 0 {
      throw .incomplete("\(lag.behind) events of \(lag.partition) did not come")
    }
  }
}

/// A valid batch that fits its reader's version vector. At adoption the node may hold more:
/// `remaining(above:)` compares again, under the writer lock.
package struct VerifiedBatch: Sendable {
  private let batch: Batch
  /// The size as received.
  package let storedSize: Int
  private let names: (own: String, peer: String)

  init(batch: Batch, storedSize: Int, names: (own: String, peer: String)) {
    self.batch = batch
    self.storedSize = storedSize
    self.names = names
  }

  package var streams: [ShippedStream] { batch.streams }
  package var eventCount: Int { batch.eventCount }

  /// The digest of one event; nil if the batch does not hold it.
  package func digest(of name: QualifiedEventID) throws(ReplicationError) -> StreamHash? {
    let isHeld = streams.map(\.range).contains {
      $0.partition == name.partition && $0.origin == name.id.origin
        && $0.from <= name.id.sequence && name.id.sequence <= $0.to
    }
    guard isHeld else { return nil }
    let batch = try batch.unpacked()
    return zip(batch.events, batch.digests).first { $0.0.name == name }?.1
  }

  /// The batch's segment, if all of it is new and continues the held events, so that it can be
  /// adopted unchanged. Nil otherwise: then use `remaining(above:)`. Throws `fork`.
  package func sealed(above versionVector: VersionVector) throws(ReplicationError) -> SealedContents? {
    guard let sealed = batch.sealed, batch.continues(versionVector) else { return nil }
    try compare(with: versionVector, batch)
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

  /// The missing events, in the sender's position order, with the authors and messages of their
  /// commits. Nil if none are missing. Throws `gap` or `fork`.
  package func remaining(above versionVector: VersionVector) throws(ReplicationError) -> AdoptedEvents? {
    var events: [Event] = []
    var commits: Set<CommitID> = []
    let batch = try batch.unpacked()
    try forEachNew(of: batch, above: versionVector) { event, _ throws(ReplicationError) in
      events.append(event)
      commits.insert(event.commit)
    }
    guard !events.isEmpty else { return nil }
    return AdoptedEvents(events, messages: batch.messages.filter { commits.contains($0.key) })
  }

  /// Compares every stream with the held one, then passes the missing events to `body`.
  func forEachNew(
    of batch: Batch, above versionVector: VersionVector,
    _ body: (Event, StreamHash) throws(ReplicationError) -> Void
  ) throws(ReplicationError) {
    try compare(with: versionVector, batch)
    for (event, digest) in zip(batch.events, batch.digests)
    where event.id.sequence > versionVector[event.partition, event.id.origin].sequence {
      try body(event, digest)
    }
  }

  /// Compares each stream of the batch with ours, at our end. A stream of which we hold more than
  /// the batch cannot be compared, and none of it is adopted.
  private func compare(with versionVector: VersionVector, _ batch: Batch) throws(ReplicationError) {
    var stated = VersionVector()
    for stream in batch.streams {
      let range = stream.range
      let head = versionVector[range.partition, range.origin]
      guard range.from <= head.sequence.next else {
        throw .gap(range.partition, range.origin, expected: head.sequence.next, found: range.from)
      }
      stated[range.partition, range.origin] = StreamHead(
        sequence: SequenceNumber(range.from.rawValue - 1), hash: stream.hashBefore)
    }
    for (event, digest) in zip(batch.events, batch.digests) {
      let held = versionVector[event.partition, event.id.origin].sequence
      guard event.id.sequence <= held else { continue }
      let before = stated[event.partition, event.id.origin]
      stated[event.partition, event.id.origin] = StreamHead(
        sequence: event.id.sequence, hash: before.hash + digest)
    }
    for range in batch.streams.map(\.range) {
      let own = versionVector[range.partition, range.origin]
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

extension Batch {
  /// Whether every stream directly continues a version vector.
  func continues(_ versionVector: VersionVector) -> Bool {
    streams.allSatisfy { $0.range.from == versionVector[$0.range.partition, $0.range.origin].sequence.next }
  }
}

extension ShippedStream {
  /// The head of a node that holds the whole range.
  package var head: StreamHead { StreamHead(sequence: range.to, hash: hashBefore + range.hash) }
}
