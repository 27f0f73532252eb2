import StemmaEvents

/// What to make a shipment of.
package struct ShipmentOrder: Sendable {
  /// Asked for, held and permitted.
  package var scope: NarrowedScope
  /// What the receiver holds of what it asked for.
  package var receiver: Knowledge
  /// Node names, for `ShipmentPlan`.
  package var names: (own: String, peer: String)
}

/// What one transfer moved.
package struct TransferSummary: Hashable, Sendable {
  package enum Direction: Hashable, Sendable { case received, sent }

  package var direction: Direction
  /// Of which something was moved, sorted.
  package var partitions: [Partition] = []
  package var events: UInt64 = 0
  /// Bytes that the sender read from the files of its log.
  package var bytesRead: UInt64 = 0
  /// Bytes of the pieces.
  package var bytesShipped: UInt64 = 0

  package init(direction: Direction) { self.direction = direction }

  mutating func add(_ piece: VerifiedPiece) {
    partitions = Set(partitions).union(piece.streams.map(\.range.partition)).sorted()
    events += UInt64(piece.eventCount)
    bytesShipped += UInt64(piece.storedSize)
  }
}

/// What a session did and learned so far, on either side.
package struct SessionSummary: Hashable, Sendable {
  package var peer: Greeting?
  /// The last transfer in each direction, seen from this side.
  package var pulled: TransferSummary?
  package var pushed: TransferSummary?
  /// What the peer is known to hold, in the scope of the session: acknowledged events are safe there.
  package var peerKnowledge = Knowledge()
  /// Own origins of which the peer holds more than this node did: it was set back, and must write under a
  /// new origin from now on.
  package var originsToRetire: [Origin] = []

  package init() {}
}
