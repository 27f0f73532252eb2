import StemmaEvents

/// The sender's message after its last batch.
package struct TransferEnd: Hashable, Sendable {
  package var batches: UInt64
  package var events: UInt64
  /// Bytes that the sender read from its log files for this transfer.
  package var bytesRead: UInt64
  /// The sender's version vector in the scope of the request; the receiver must now cover it.
  package var versionVector: VersionVector

  package init(batches: UInt64, events: UInt64, bytesRead: UInt64, versionVector: VersionVector) {
    self.batches = batches
    self.events = events
    self.bytesRead = bytesRead
    self.versionVector = versionVector
  }
}
