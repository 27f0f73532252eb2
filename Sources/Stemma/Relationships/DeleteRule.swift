/// What deleting a record does to the records that refer to it.
public enum DeleteRule: Sendable, Hashable {
  /// Those that cannot be without it are deleted, others are unlinked, in the same commit.
  case standard
  /// As long as there are any, deleting it is refused.
  case restrict
  /// All of them are deleted, in the same commit.
  case cascade

  /// As the schema spells it.
  var word: String {
    switch self {
    case .standard: "STANDARD"
    case .restrict: "RESTRICT"
    case .cascade: "CASCADE"
    }
  }
}
