import StemmaEvents
import StemmaLog
import StemmaReplication

extension Node {
  /// Throws `fork` if a stream that both nodes hold to different lengths differs in the common
  /// part.
  ///
  /// A shipment detects a fork only in a stream that it continues. Events that depend on one branch
  /// could be adopted beside the other, where their contexts name other events. Reads the longer
  /// streams beyond the common part.
  static func refuseForks(_ own: Node, _ peer: Node, in run: Scope) throws(NodeError) {
    let held = try own.reading { try $0.versionVector() }
    let theirs = try peer.reading { try $0.versionVector() }
    var ahead: [QualifiedEventID] = []
    var behind: [QualifiedEventID] = []
    for (partition, streams) in held.partitions where run.contains(partition) {
      for (origin, head) in streams {
        let other = theirs[partition, origin].sequence
        guard other > .zero, other != head.sequence else { continue }
        let end = QualifiedEventID(partition: partition, id: EventID(origin, min(other, head.sequence)))
        if head.sequence > other { ahead.append(end) } else { behind.append(end) }
      }
    }
    let (ours, others) = try wrapping {
      // Corrupt parts are skipped.
      (
        try own.log.streamHashes(ahead, of: held, around: Omissions()),
        try peer.log.streamHashes(behind, of: theirs, around: Omissions())
      )
    }
    for end in (ahead + behind).sorted(by: { ($0.partition, $0.id) < ($1.partition, $1.id) }) {
      let (partition, origin) = (end.partition, end.id.origin)
      let mine = ours[end] ?? held[partition, origin].hash
      let other = others[end] ?? theirs[partition, origin].hash
      guard ours[end] != nil || others[end] != nil, mine != other else { continue }
      throw .replication(
        .fork(
          Fork(
            partition: partition, origin: origin, sequence: end.id.sequence,
            finder: Fork.Side(node: own.metadata.name, hash: mine),
            peer: Fork.Side(node: peer.metadata.name, hash: other))))
    }
  }
}
