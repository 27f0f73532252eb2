/// What deleting a record does to the records that refer to it.
public enum DeleteRule: Sendable, Hashable {
  /// Those that cannot be without it are deleted, others are unlinked, in the same commit.
  case standard
  /// As long as there are any, deleting it is refused.
  case restrict
}
