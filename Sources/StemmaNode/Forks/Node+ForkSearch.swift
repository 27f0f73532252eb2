import StemmaEvents
import StemmaLog
import StemmaReplication

extension Node {
  /// Throws `fork` if of some stream that both hold, and not equally far, one holds other events than the other.
  ///
  /// A shipment shows it only when a stream of which both hold something is shipped on. Before that, events that build
  /// on one branch could be adopted beside the other, where the numbers that they name are other events'. Reads what
  /// the one who is ahead holds more, so about what is shipped.
  static func refuseForks(_ own: Node, _ peer: Node, in run: Scope) throws(NodeError) {
    let held = try own.reading { try $0.knowledge() }
    let theirs = try peer.reading { try $0.knowledge() }
    var ahead: [EventName] = []
    var behind: [EventName] = []
    for (partition, streams) in held.partitions where run.contains(partition) {
      for (origin, head) in streams {
        let other = theirs[partition, origin].sequence
        guard other > .zero, other != head.sequence else { continue }
        let end = EventName(partition: partition, dot: Dot(origin, min(other, head.sequence)))
        if head.sequence > other { ahead.append(end) } else { behind.append(end) }
      }
    }
    let (ours, others) = try wrapping {
      (try own.log.streamHashes(ahead, of: held), try peer.log.streamHashes(behind, of: theirs))
    }
    for end in (ahead + behind).sorted(by: { ($0.partition, $0.dot) < ($1.partition, $1.dot) }) {
      let (partition, origin) = (end.partition, end.dot.origin)
      let mine = ours[end] ?? held[partition, origin].hash
      let other = others[end] ?? theirs[partition, origin].hash
      guard ours[end] != nil || others[end] != nil, mine != other else { continue }
      throw .replication(
        .fork(
          Fork(
            partition: partition, origin: origin, sequence: end.dot.sequence,
            finder: Fork.Side(node: own.mark.name, hash: mine),
            peer: Fork.Side(node: peer.mark.name, hash: other))))
    }
  }
}
