import StemmaEvents

/// Identifies what a log held up to a position: the tables keep it with their rows, and so notice a log that
/// was restored from a backup, or replaced.
package struct LogToken: Hashable, Sendable {
  /// Where the next event went when the token was taken.
  package var position: Position
  /// The chain value there: it depends on everything that the file before the position holds.
  package var chain: UInt32

  package init(position: Position, chain: UInt32) {
    self.position = position
    self.chain = chain
  }

  /// Before the first event of any log.
  package static let start = LogToken(position: Position(file: 0, index: 0), chain: 0)
}
