/// Every limit on what this module takes from a peer. Sizes in bytes.
package enum ReplicationLimits {
  /// Longest scope pattern, as written.
  package static let pattern = 4096
  /// Patterns in one scope.
  package static let patterns = 1 << 16
  /// Scopes that one request may narrow by: the asker's own, the run's, and what a relay adds.
  package static let narrowings = 16
  /// Partitions in one knowledge.
  package static let partitions = 1 << 22
  /// Streams of one partition in one knowledge.
  package static let streamsOfPartition = 1 << 16
  /// Origins that a greeting names.
  package static let namedOrigins = 1 << 16
  /// Longest node name.
  package static let nodeName = 255
  /// Longest schema, as SDL.
  package static let schema = 4 << 20
  /// Longest message, its type byte included.
  package static let message = 256 << 20
  /// Bytes of a shipment in one message.
  package static let chunk = 1 << 20
  /// Longest piece of a shipment. A sender cuts pieces far below; only one enormous commit comes near.
  package static let piece = 1 << 30
  /// Events of one piece.
  package static let pieceEvents = 1 << 21
  /// Raw bytes of one block's stream. Blocks are cut near 64 KiB; only the longest values come near.
  package static let blockStream = 64 << 20
  /// Raw size of events at which a sender ends a piece, at the next border of a commit.
  package static let pieceTarget = 8 << 20
  /// Raw size of a journal's events up to which whoever has read them to plan a shipment keeps them for it.
  package static let keptJournal = 1 << 20
  /// Longest text in a refusal.
  package static let refusalText = 4096
  /// Items that a refusal lists.
  package static let refusalItems = 256
}
