import StemmaEvents

/// The files of a source with events that a receiver lacks. The plan uses the source's version
/// vector and the file indexes, from the newest file back to the oldest with such an event. It
/// reads events only to compare streams of which the receiver holds a part.
package struct ShipmentPlan: Sendable {
  package struct PlannedFile: Sendable {
    package var file: SourceFile
    /// The partitions of which it holds events that the receiver lacks.
    package var partitions: Set<Partition> = []
    /// Whether the receiver wants all of it and will hold exactly the events before it.
    var isWhole = false
    /// The last sequence in the file of each stream that it ships.
    var ends: [StreamID: SequenceNumber] = [:]
  }

  /// Oldest first, without files that ship nothing.
  package let files: [PlannedFile]
  /// The sender's version vector in scope, which the receiver covers after the shipment.
  package let versionVector: VersionVector
  /// The receiver's version vector, as the receiver sent it.
  package let receiver: VersionVector
  /// How many events the shipment has.
  package let eventCount: UInt64

  /// Throws `fork` if the receiver's events of a stream differ, unless it holds more of it than we
  /// do. Throws `failed` if the files lack events of the source's version vector, or have a gap.
  package init(
    source: some ShipmentSource, scope: NarrowedScope, above receiver: VersionVector,
    names: (own: String, peer: String)
  ) throws(ReplicationError) {
    self.receiver = receiver
    versionVector = source.versionVector.restricted { scope.contains($0) }
    var missing: [StreamID: SequenceNumber] = [:]
    var shared: [QualifiedEventID: StreamHash] = [:]
    var count: UInt64 = 0
    for partition in versionVector.sortedPartitions {
      for (origin, head) in versionVector.streams(of: partition) {
        let known = receiver[partition, origin].sequence
        guard known <= head.sequence else { continue }
        let end = QualifiedEventID(partition: partition, id: EventID(origin, known))
        if known == head.sequence {
          shared[end] = head.hash
        } else {
          missing[StreamID(end)] = head.sequence
          count &+= head.sequence.rawValue - known.rawValue
        }
      }
    }
    eventCount = count
    let ends = missing.keys.compactMap { stream -> QualifiedEventID? in
      let known = receiver[stream.partition, stream.origin].sequence
      return known > .zero
        ? QualifiedEventID(partition: stream.partition, id: EventID(stream.origin, known)) : nil
    }
    if !ends.isEmpty { shared.merge(try source.streamHashes(ends)) { own, _ in own } }
    try Self.compare(shared, ends, receiver, names)

    var planned: [PlannedFile] = []
    for file in try source.shipmentFiles().reversed() where !missing.isEmpty {
      var entry = PlannedFile(file: file)
      var whole: UInt64 = 0
      for range in try source.streams(of: file, in: Set(missing.keys.map(\.partition))) {
        // Events may have been appended since the version vector was read.
        guard let end = missing[range.stream], range.from <= end else { continue }
        guard
          range.to == end || range.to > end && end == versionVector[range.partition, range.origin].sequence
        else { throw Self.contradiction(range.stream) }
        let known = receiver[range.partition, range.origin].sequence
        entry.partitions.insert(range.partition)
        entry.ends[range.stream] = end
        missing[range.stream] = range.from > known.next ? SequenceNumber(range.from.rawValue - 1) : nil
        if range.from > known, range.to == end { whole += range.to.rawValue - range.from.rawValue + 1 }
      }
      entry.isWhole = whole == file.events
      if !entry.partitions.isEmpty { planned.append(entry) }
    }
    if let stream = missing.keys.min() { throw Self.contradiction(stream) }
    files = planned.reversed()
  }

  private static func contradiction(_ stream: StreamID) -> ReplicationError {
    .inconsistentLog(
      "the files of the log do not hold \(stream.partition), \(stream.origin) without a gap")
  }

  /// Compares the hashes of streams at the receiver's end. `ends`: those that must be present.
  private static func compare(
    _ shared: [QualifiedEventID: StreamHash], _ ends: [QualifiedEventID], _ receiver: VersionVector,
    _ names: (own: String, peer: String)
  ) throws(ReplicationError) {
    for end in ends where shared[end] == nil { throw contradiction(StreamID(end)) }
    for (end, hash) in shared.sorted(by: { StreamID($0.key) < StreamID($1.key) }) {
      let (partition, origin) = (end.partition, end.id.origin)
      let theirs = receiver[partition, origin]
      guard hash != theirs.hash else { continue }
      throw .fork(
        Fork(
          partition: partition, origin: origin, sequence: theirs.sequence,
          finder: Fork.Side(node: names.own, hash: hash),
          peer: Fork.Side(node: names.peer, hash: theirs.hash)))
    }
  }

  /// The partitions with shipped events, sorted.
  package var partitions: [Partition] {
    files.reduce(into: Set<Partition>()) { $0.formUnion($1.partitions) }.sorted()
  }
}
