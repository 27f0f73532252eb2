/// The merge policy for concurrent writes of a record: `@Table(policy: .latest)`. All nodes that
/// exchange a model agree on it, and it cannot change once there are events.
public enum ConflictPolicy: String, Sendable {
  /// Merges field by field. The concurrent value with the longer history is shown, and all are
  /// listed as a conflict.
  case automerge = "AUTOMERGE"
  /// Merges field by field. The value that was written last by the clock is shown.
  case latest = "LATEST"
  /// Merges the record as a whole. Concurrent writers conflict, whichever fields they changed.
  case optimistic = "OPTIMISTIC"
}

/// Decides between a deletion and a concurrent change: `@Table(deletes: .deleteWins)`.
public enum DeletePolicy: String, Sendable {
  /// The one with the longer history is shown.
  case byVersion = "BY_VERSION"
  /// The deletion is shown, whatever was changed concurrently.
  case deleteWins = "DELETE_WINS"
  /// The record is shown if a change of it is concurrent with the deletion.
  case updateWins = "UPDATE_WINS"
}
