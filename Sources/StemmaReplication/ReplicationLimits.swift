/// Every limit on data from a peer. Sizes in bytes.
package enum ReplicationLimits {
  /// Longest scope pattern, as written.
  package static let pattern = 4096
  /// Patterns in one scope.
  package static let patterns = 1 << 16
  /// Scopes that narrow one request: the requesting node's, the run's, and a relay's.
  package static let narrowings = 16
  /// Partitions of one version vector.
  package static let partitions = 1 << 22
  /// Streams of one partition in one version vector.
  package static let streamsOfPartition = 1 << 16
  /// Origins that a greeting names.
  package static let namedOrigins = 1 << 16
  /// Losses that a greeting lists.
  package static let losses = 1 << 16
  /// Longest node name.
  package static let nodeName = 255
  /// Longest schema, as SDL.
  package static let schema = 4 << 20
  /// Longest message, its type byte included.
  package static let message = 256 << 20
  /// Bytes of a shipment in one message.
  package static let chunk = 1 << 20
  /// The size limit of a batch. Batches are far smaller, except for an enormous commit.
  package static let batch = 1 << 30
  /// Events of one batch.
  package static let batchEvents = 1 << 21
  /// Raw bytes of one block's stream. Blocks have about 64 KiB, except for the longest values.
  package static let blockStream = 64 << 20
  /// Raw size of events at which a sender ends a batch, at the next commit boundary.
  package static let batchTarget = 8 << 20
  /// Raw size of a journal's events up to which they are kept between planning and shipping.
  package static let keptJournal = 1 << 20
  /// Longest text in a refusal.
  package static let refusalText = 4096
  /// Items that a refusal lists.
  package static let refusalItems = 256
}
