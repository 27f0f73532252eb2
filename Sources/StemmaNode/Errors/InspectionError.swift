import StemmaEvents

/// The reason why a named point in history cannot be found or used.
package enum InspectionError: Error {
  /// The text is neither a time, a log position nor an event.
  case notAPointInTime(String)
  /// The text is neither that nor a node, where a node is permitted.
  case notAPointInTimeOrNode(String)
  /// The text is neither a log position nor the id or digest of an event.
  case notAnEvent(String)
  /// The event is not in this node, or not in the named partition.
  case noSuchEvent(String, partition: String? = nil)
  /// The log position is beyond the last one; nil: the log has no events.
  case beyondTheEnd(String, last: String?)
  /// The text is a number of days and also the prefix of these events' digests.
  case daysOrEvent(String, [String])
  /// Several events match, listed with their partitions. The flag: whether to suggest a partition.
  case severalEvents(String, [String], takesPartition: Bool)
  case noSuchCommit(String)
  /// The text matches several commits.
  case severalCommits(String, [String])
  /// A later event overwrote the field.
  case overwritten(event: String, record: String, field: String, later: String)
  /// The named point in time has no records, so that going back to it deletes this many.
  case emptyPast(records: Int)
  /// An undo would delete records that refer to a deleted one, or end their links to it.
  case takesAlong(records: [String])
  /// The record's existence is in conflict, and an undo would resolve it.
  case existenceInConflict(String)
  /// The changes of a restore differ from those that were shown before.
  case changedMeanwhile
  case unknownPlaceholder(String, known: [String])
  /// The brace before this text is never closed.
  case unclosedPlaceholder(String, known: [String])
}
