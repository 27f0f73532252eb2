/// The effect of a deletion on the records that refer to the deleted one.
public enum DeleteRule: Sendable, Hashable {
  /// Records whose reference is required are deleted, others are unlinked, in the same commit.
  case standard
  /// The deletion is refused while there are any.
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
