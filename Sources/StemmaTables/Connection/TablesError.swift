import GRDBSQLite
import StemmaEvents
import StemmaMerge

/// Errors of tables. They do not affect the log.
package enum TablesError: Error, Equatable, Sendable {
  /// The file is unusable; a rebuild from the log repairs every case.
  case needsRebuild(path: String, RebuildReason)
  /// The file proved unusable during an operation and has been rebuilt. The operation had no
  /// effect.
  case rebuilt(path: String, RebuildReason)
  /// Another process has replaced this file with rebuilt tables: open them again.
  case replaced(path: String)
  /// Another connection held the file for longer than the busy limit.
  case busy(path: String)
  /// Any other refusal by SQLite. `code` is its extended result code.
  case sqlite(path: String, code: Int32, message: String)
  /// A system call outside of SQLite failed.
  case io(path: String, operation: String, errno: Int32)
  /// The path, with links resolved, exceeds the `limit` of SQLite in bytes.
  case pathTooLong(path: String, limit: Int)
  /// The event does not directly follow `held`, the last applied event of its stream.
  case gap(Partition, EventID, held: SequenceNumber)
  /// The event cannot be merged into its record.
  case merge(model: String, Key, MergeError)
  /// The parts of the event's key do not match its model in the schema.
  case unfitKey(model: String, Key)
  /// The event's partition differs from that of its key.
  case foreignPartition(Partition, model: String, Key)
  case unknownModel(String)
  case unknownField(model: String, field: String)
  case unknownRelationship(model: String, relationship: String)
  /// `query` accepts exactly one statement, which must write nothing.
  case notAQuery(String)
  /// `checkInvariants` found the tables inconsistent.
  case inconsistent(String)
}

extension TablesError {
  /// Whether SQLite ran out of disk space, even if only for the index of its write-ahead log. Space
  /// may become available again.
  package var isDiskFull: Bool {
    // SQLITE_IOERR_SHMSIZE is a macro expression, which is not imported.
    let noRoomForIndex = SQLITE_IOERR | 19 << 8
    guard case .sqlite(_, let code, _) = self else { return false }
    return code & 0xff == SQLITE_FULL || code == noRoomForIndex
  }

  /// Whether a query ran for longer than it may.
  package var isInterruption: Bool {
    if case .sqlite(_, let code, _) = self { code & 0xff == SQLITE_INTERRUPT } else { false }
  }

  /// Whether the index of the write-ahead log lists more than the log has.
  var isOfAnotherLog: Bool {
    // SQLITE_IOERR_SHORT_READ is a macro expression, which is not imported. SQLite reports it only
    // for that log.
    if case .sqlite(_, SQLITE_IOERR | 2 << 8, _) = self { true } else { false }
  }

  /// This error for a statement of this module: SQLite rejects one only if the file was changed.
  var ofOwnStatement: TablesError {
    guard case .sqlite(let path, let code, let what) = self, code & 0xff == SQLITE_ERROR else { return self }
    return .needsRebuild(path: path, .corrupt(what))
  }

  /// Whether an event of an intact log did not fit the tables: then the tables do not match the
  /// log.
  package var isDisagreement: Bool {
    switch self {
    case .gap, .merge, .inconsistent: true
    default: false
    }
  }

  /// Whether SQLite could not open the file or one of its sidecars, or not create a sidecar.
  package var isRefusalToOpen: Bool {
    guard case .sqlite(_, let code, _) = self else { return false }
    return [SQLITE_CANTOPEN, SQLITE_READONLY].contains(code & 0xff)
  }

  /// Whether SQLite could not open or write the file because this user lacks permission.
  package var isNotPermitted: Bool {
    guard isRefusalToOpen, case .sqlite(let path, _, _) = self else { return false }
    return FileIdentity.isForbidden(FileIdentity.isTaken(path) ? path : FileReplacement.directory(of: path))
  }

  /// Whether SQLite could not parse the query, or found no such table or column.
  package var isOfTheQuery: Bool {
    guard case .sqlite(_, let code, _) = self else { return false }
    return code & 0xff == SQLITE_ERROR
  }

  /// Whether the file system, and not the query, made SQLite fail.
  package var isOfTheFiles: Bool {
    guard case .sqlite(_, let code, _) = self else { return false }
    // Failed locks end as SQLITE_PROTOCOL, statements after an earlier failure as SQLITE_ABORT.
    return [SQLITE_FULL, SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_PROTOCOL, SQLITE_READONLY, SQLITE_ABORT]
      .contains(code & 0xff)
  }
}

package enum RebuildReason: Equatable, Sendable {
  case missing
  /// The defect of the bytes that SQLite or a decoder found.
  case corrupt(String)
  /// Another version wrote another layout of the tables; nil: the file has no Stemma tables.
  case format(found: Int64?)
  /// The tables were made for another schema.
  case schema
  /// The tables show a past state (`Tables.rebuild` with a filter): no event can be applied.
  case asOf
}
