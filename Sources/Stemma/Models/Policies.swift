/// How concurrent writes of a record's fields are merged: `@Table(policy: .latest)`. All nodes that exchange a model
/// agree on it, and it cannot change once there are events.
public enum ConflictPolicy: String, Sendable {
  /// Each field by itself; of two values that did not know of each other the one with the longer history is shown, and both
  /// are listed as a conflict.
  case automerge = "AUTOMERGE"
  /// Each field by itself; the value that was written last by the clock is shown.
  case latest = "LATEST"
  /// The record as a whole: two writers who did not know of each other conflict, whatever they changed.
  case optimistic = "OPTIMISTIC"
}

/// What is shown when a record was deleted here and changed there: `@Table(deletes: .deleteWins)`.
public enum DeletePolicy: String, Sendable {
  /// What has the longer history.
  case byVersion = "BY_VERSION"
  /// The deletion, whatever was changed without knowing of it.
  case deleteWins = "DELETE_WINS"
  /// The record, as long as somebody changed it without knowing of the deletion.
  case updateWins = "UPDATE_WINS"
}
