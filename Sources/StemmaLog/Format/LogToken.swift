import StemmaEvents

/// Identifies the content of a log up to a position. The tables store it with their rows, and so
/// detect a log that was restored from a backup, or replaced.
package struct LogToken: Hashable, Sendable {
  /// The position of the next event when the token was taken.
  package var position: Position
  /// The chain value there, which depends on all content of the file before the position.
  package var chain: UInt32

  package init(position: Position, chain: UInt32) {
    self.position = position
    self.chain = chain
  }

  /// Before the first event of any log.
  package static let start = LogToken(position: .first, chain: 0)
}
