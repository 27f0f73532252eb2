import StemmaEvents

/// Why a place in history that somebody named is not to be found.
package enum InspectionError: Error {
  /// Neither a time, nor a position, nor an event.
  case notAMoment(String)
  /// Nor a node, where one may be named too.
  case notAMomentOrNode(String)
  /// Neither a position, nor an event's name or digest.
  case notAnEvent(String)
  /// Not in this node, or not in this partition of it.
  case noSuchEvent(String, partition: String? = nil)
  /// A position behind the last one; nil: there is no event.
  case beyondTheEnd(String, last: String?)
  /// A number of days, and the first digits of this event's digest.
  case daysOrEvent(String, [String])
  /// Several events are meant: their names with their partitions. Whether a partition can be named where the event was.
  case severalEvents(String, [String], takesPartition: Bool)
  case noSuchCommit(String)
  /// Several commits are meant: their names.
  case severalCommits(String, [String])
  /// An event was overwritten since; `later` names what did it.
  case overwritten(event: String, record: String, field: String, later: String)
  /// Nothing was there at the moment that was named, so going back to it deletes so many records.
  case emptyPast(records: Int)
  /// Undoing would delete records that refer to a deleted one, or end their links to it.
  case takesAlong(records: [String])
  /// Whether this record exists is an open conflict, which undoing would bury.
  case existenceInConflict(String)
  /// What going back would change is not any more what was shown.
  case changedMeanwhile
  case unknownPlaceholder(String, known: [String])
  /// The brace before this text is never closed.
  case unclosedPlaceholder(String, known: [String])
}
