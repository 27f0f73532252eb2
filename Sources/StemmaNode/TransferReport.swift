import StemmaEvents
import StemmaReplication

extension Node {
  /// What a transfer moved.
  package struct TransferReport: Sendable {
    package var partitions: [String]
    package var events: UInt64
    package var bytesRead: UInt64
    package var bytesShipped: UInt64
    /// Partitions that were not exchanged, as one of the nodes has lost events of them.
    package var leftOut: [String] = []
    /// Of a clone: what is to be said besides. Of a part of an exchange: empty, as the exchange says it.
    package var notices: [String] = []
    /// Of a clone: why it did not come to its end.
    package var missing: NodeError?

    /// Of what was sent, that counts which the receiver lacked still when it came: another one may have brought the rest.
    init(_ summary: TransferSummary, of receiver: Participant) {
      partitions = receiver.adoptedPartitions.sorted().map(\.description)
      events = receiver.adoptedEvents
      bytesRead = summary.bytesRead
      bytesShipped = summary.bytesShipped
    }

    package var json: JSON {
      .object(
        [
          ("partitions", .array(partitions.map { .string($0) })), ("events", .int(Int64(clamping: events))),
          ("bytesRead", .int(Int64(clamping: bytesRead))),
          ("bytesShipped", .int(Int64(clamping: bytesShipped))),
        ] + (leftOut.isEmpty ? [] : [("leftOut", .array(leftOut.map { .string($0) }))]))
    }
  }

  package struct ExchangeReport: Sendable {
    package var pulled: TransferReport?
    package var pushed: TransferReport?
    package var notices: [String] = []
    /// Why partitions were left out.
    package var missing: NodeError?
  }
}
