import StemmaEvents
import StemmaLog
import StemmaTables

// The changing state of a node, by subject. It is about one instance and is not stored.

/// The relation of the tables to the log.
struct TablesState {
  /// The end of the log to which the tables are known to be refreshed.
  var applied: LogToken?
  /// Whether all writes of this instance are synced, and the tables show that.
  var isSynced = true
  /// Whether the tables hold what this node held before the log was corrupted.
  var rememberAll = true
  /// The directory of the tables, if it is not the node's.
  var temporary: TemporaryFolder?
}

/// The sources of the names and times of new events.
struct WriterState {
  var clock = HybridClock()
  var identifiers = UUIDv7()
  /// The origin for the next event of this node. It begins with that event, so that a refused write
  /// leaves the node unchanged.
  var dueOrigin: Origin?
}

/// Series of commits that follow each other.
struct SeriesState {
  /// The start of consecutive series, in milliseconds since 1970.
  var since: UInt64?
  /// The size of the last series if it is incomplete.
  var open: CommitSeries.Size?
  /// The memory in bytes for the records of series before the tables follow.
  var memory = TablesTransaction.ordinaryMemory
  /// Not nil while the tables are behind the log because a series held changes back.
  var heldBack: HeldBack?
}

/// The segment that is being built, if any.
struct SealingState {
  var unfinished: UnfinishedSealing?
  /// Called on another thread when the segment is built.
  var isMade: @Sendable () -> Void = {}
}

/// The results of checks of the log.
struct LogChecks {
  /// Whether a reader met corruption that the notices of opening do not include.
  var hasUntoldCorruption = false
  /// Whether the log was checked for duplicate event ids.
  var hasUniqueIDs = false
}

/// The node's own files when they were last read.
struct OwnFiles {
  var metadata: [UInt8]?
  var schema: [UInt8]?
  /// Whether metadata and schema are current: no other process has held the lock since.
  var areCurrent = false
  /// The number of changes of the schema by other processes.
  var schemaChanges = 0
}

/// The writer lock of one instance.
struct LockState {
  let holder = WriterLock.Holder(random: SystemRandomSource())
  /// Whether a `locked` is active. The lock is not reentrant.
  var isHeld = false
}
