import StemmaEvents

extension Event {
  /// Whether the writer of this event had seen another event of the record: the context covers that one, and its
  /// version is lower.
  ///
  /// A version is one above the highest that the writer had seen. A context gives one number for each origin, and so
  /// covers too much where a writer knew a later event of an origin and not an earlier one, which only happens where
  /// tables lost a row and somebody wrote on: the version tells that the writer had not seen it.
  package func hasSeen(_ dot: Dot, _ version: Version) -> Bool {
    version < self.version && context.covers(dot)
  }

  /// As `hasSeen` of its dot and version.
  package func hasSeen(_ other: Event) -> Bool { hasSeen(other.dot, other.version) }
}
