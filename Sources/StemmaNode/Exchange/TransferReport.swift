import StemmaEvents
import StemmaReplication

/// The result of a transfer.
package struct TransferReport: Sendable {
  package var partitions: [String]
  package var events: UInt64
  package var bytesRead: UInt64
  package var bytesShipped: UInt64
  /// Partitions that were not exchanged, because one of the nodes lost events in them.
  package var leftOut: [String] = []
  /// Additional notices of a clone. Empty in an exchange, which has its own.
  package var notices: [Notice] = []
  /// The reason why a clone is unfinished.
  package var missing: NodeError?

  /// Counts the events that the receiver adopted, if it is known. It may have had others from
  /// another source.
  init(_ summary: TransferSummary, of receiver: Participant? = nil) {
    partitions = (receiver?.adoptedPartitions.sorted() ?? summary.partitions).map(\.description)
    events = receiver?.adoptedEvents ?? summary.events
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

/// The results of both directions of an exchange.
package struct ExchangeReport: Sendable {
  package var pulled: TransferReport?
  package var pushed: TransferReport?
  package var notices: [Notice] = []
  /// The version vector of the peer in the exchanged partitions.
  package var peerVector = VersionVector()
  /// These partitions; nil: none.
  package var exchanged: NarrowedScope?
  package var peerScope = Scope.nothing
  /// The reason why partitions were left out.
  package var missing: NodeError?
}

extension LastExchange {
  init(at time: UInt64, _ report: ExchangeReport) {
    self.time = time
    pulled = report.pulled?.events
    pushed = report.pushed?.events
    problem = report.missing.map { Explanations.text(of: $0).description }
    lastSuccess = time
  }

  /// - Parameter last: the exchange before.
  init(at time: UInt64, _ error: NodeError, after last: LastExchange?) {
    self.time = time
    lastSuccess = last?.lastSuccess
    problem = Explanations.text(of: error).description
  }
}
