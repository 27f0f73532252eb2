/// The sender's message after its last batch.
package struct TransferEnd: Hashable, Sendable {
  package var batches: UInt64
  package var events: UInt64
  /// Bytes that the sender read from its log files for this transfer.
  package var bytesRead: UInt64

  package init(batches: UInt64, events: UInt64, bytesRead: UInt64) {
    self.batches = batches
    self.events = events
    self.bytesRead = bytesRead
  }
}
