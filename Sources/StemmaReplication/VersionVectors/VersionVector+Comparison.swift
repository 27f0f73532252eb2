import StemmaEvents

/// The difference between two nodes in one partition, in events.
package struct Lag: Hashable, Sendable {
  package var partition: Partition
  /// Events that this node holds and the peer lacks.
  package var ahead: UInt64 = 0
  /// Events that the peer holds and this node lacks.
  package var behind: UInt64 = 0
  /// Origins of which both hold equally many events, but different ones. Sorted.
  package var forked: [Origin] = []

  package var isInSync: Bool { ahead == 0 && behind == 0 && forked.isEmpty }
}

extension VersionVector {
  /// The streams of a partition with events, in origin order.
  package func streams(of partition: Partition) -> [(origin: Origin, head: StreamHead)] {
    (partitions[partition] ?? [:]).filter { $0.value.sequence > .zero }
      .sorted { $0.key < $1.key }.map { (origin: $0.key, head: $0.value) }
  }

  /// The number of events.
  package var eventCount: UInt64 {
    partitions.values.reduce(0) { $1.values.reduce($0) { $0 &+ $1.sequence.rawValue } }
  }

  package var isEmpty: Bool {
    partitions.values.allSatisfy { $0.values.allSatisfy { $0.sequence == .zero } }
  }

  /// Whether this vector includes all of `other`: at least as many events of each stream, and equal
  /// hashes where the numbers are equal.
  package func covers(_ other: VersionVector) -> Bool {
    other.partitions.allSatisfy { partition, streams in
      streams.allSatisfy { origin, head in
        let own = self[partition, origin]
        return own.sequence > head.sequence || own == head || head.sequence == .zero
      }
    }
  }

  /// This vector without the partitions for which `isWanted` is false.
  package func restricted(to isWanted: (Partition) -> Bool) -> VersionVector {
    VersionVector(partitions.filter { isWanted($0.key) })
  }

  /// Raises each stream to the longer of both.
  package mutating func formUnion(_ other: VersionVector) {
    for (partition, streams) in other.partitions {
      for (origin, head) in streams where head.sequence > self[partition, origin].sequence {
        self[partition, origin] = head
      }
    }
  }

  /// The difference to `peer`: one entry for each partition that either holds, in name order.
  package func lag(against peer: VersionVector) -> [Lag] {
    Set(partitions.keys).union(peer.partitions.keys).sorted().map { partition in
      var lag = Lag(partition: partition)
      let origins = Set((partitions[partition] ?? [:]).keys).union((peer.partitions[partition] ?? [:]).keys)
      for origin in origins.sorted() {
        let own = self[partition, origin]
        let other = peer[partition, origin]
        if own.sequence > other.sequence {
          lag.ahead += own.sequence.rawValue - other.sequence.rawValue
        } else if own.sequence < other.sequence {
          lag.behind += other.sequence.rawValue - own.sequence.rawValue
        } else if own.hash != other.hash {
          lag.forked.append(origin)
        }
      }
      return lag
    }
  }

  /// The first stream, by partition and origin, with equally many, but different events.
  func fork(against peer: VersionVector, names: (own: String, peer: String)) -> Fork? {
    for lag in lag(against: peer) {
      guard let origin = lag.forked.first else { continue }
      let own = self[lag.partition, origin]
      return Fork(
        partition: lag.partition, origin: origin, sequence: own.sequence,
        finder: Fork.Side(node: names.own, hash: own.hash),
        peer: Fork.Side(node: names.peer, hash: peer[lag.partition, origin].hash))
    }
    return nil
  }

  /// The `origins` of which the peer holds more events than this node. The node was restored from
  /// an older state and must not write under them again. Sorted.
  func origins(_ origins: [Origin], behind peer: VersionVector) -> [Origin] {
    Set(origins).filter { origin in
      peer.partitions.contains { partition, streams in
        (streams[origin] ?? .none).sequence > self[partition, origin].sequence
      }
    }.sorted()
  }
}
