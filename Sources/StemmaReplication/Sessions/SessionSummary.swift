import StemmaEvents

/// The requested shipment.
package struct ShipmentOrder: Sendable {
  /// The partitions that are requested, held and permitted.
  package var scope: NarrowedScope
  /// The receiver's version vector in its requested scope.
  package var receiver: VersionVector
  /// Node names, for `ShipmentPlan`.
  package var names: (own: String, peer: String)
}

/// The result of one transfer.
package struct TransferSummary: Hashable, Sendable {
  package enum Direction: Hashable, Sendable { case received, sent }

  package var direction: Direction
  /// The partitions with transferred events, sorted.
  package var partitions: [Partition] = []
  package var events: UInt64 = 0
  /// Bytes that the sender read from its log files.
  package var bytesRead: UInt64 = 0
  /// The size of the batches.
  package var bytesShipped: UInt64 = 0

  package init(direction: Direction) { self.direction = direction }

  mutating func add(_ batch: VerifiedBatch) {
    partitions = Set(partitions).union(batch.streams.map(\.range.partition)).sorted()
    events += UInt64(batch.eventCount)
    bytesShipped += UInt64(batch.storedSize)
  }
}

/// The results of a session so far, on either side.
package struct SessionSummary: Hashable, Sendable {
  package var peer: Greeting?
  /// The last transfer in each direction, seen from this side.
  package var pulled: TransferSummary?
  package var pushed: TransferSummary?
  /// The peer's known events in the session's scope: acknowledged events are safe there.
  package var peerVector = VersionVector()
  /// The partitions of which `peerVector` is complete; nil before the peer has stated them.
  package var exchanged: NarrowedScope?
  /// Own origins of which the peer holds more events than this node. The node was restored from an
  /// older state and must write under a new origin.
  package var originsToRetire: [Origin] = []

  package init() {}
}
