import GRDBSQLite
import StemmaEvents
import StemmaMerge

/// Errors of tables. They do not touch the log.
package enum TablesError: Error, Equatable, Sendable {
  /// The file cannot be used as it is; a rebuild from the log repairs every case.
  case needsRebuild(path: String, RebuildReason)
  /// The file could not be used, which was found while it was in use: it has been rebuilt. The operation that was under
  /// way has done nothing.
  case rebuilt(path: String, RebuildReason)
  /// Another process has put rebuilt tables in this file's place: open them again.
  case replaced(path: String)
  /// Another connection held the file for longer than the busy limit.
  case busy(path: String)
  /// Any other refusal by SQLite. `code` is its extended result code.
  case sqlite(path: String, code: Int32, message: String)
  /// A system call outside of SQLite failed.
  case io(path: String, operation: String, errno: Int32)
  /// SQLite takes no path of more than `limit` bytes, of those that this one leads to.
  case pathTooLong(path: String, limit: Int)
  /// The event is not the next one of its stream: `held` is the last one that was applied.
  case gap(Partition, Dot, held: Sequence)
  /// The event cannot be merged into its record.
  case merge(model: String, Key, MergeError)
  /// The key of an event has not the parts that the schema demands of its model.
  case unfitKey(model: String, Key)
  /// The event stands in another partition than its key demands.
  case foreignPartition(Partition, model: String, Key)
  case unknownModel(String)
  case unknownField(model: String, field: String)
  case unknownRelationship(model: String, relationship: String)
  /// `query` takes exactly one statement, and only one that changes nothing.
  case notAQuery(String)
  /// `checkInvariants` found the tables to disagree with themselves.
  case inconsistent(String)
}

extension TablesError {
  /// Whether SQLite found no room for what it was to write, if only the index of its write-ahead log. Space may
  /// come back.
  package var isDiskFull: Bool {
    // SQLITE_IOERR_SHMSIZE is a macro with an expression, which is not imported.
    let noRoomForIndex = SQLITE_IOERR | 19 << 8
    guard case .sqlite(_, let code, _) = self else { return false }
    return code & 0xff == SQLITE_FULL || code == noRoomForIndex
  }

  /// As the error of a statement that this module wrote: SQLite refuses it only where the file is not as it was made.
  var ofOwnStatement: TablesError {
    guard case .sqlite(let path, let code, let what) = self, code & 0xff == SQLITE_ERROR else { return self }
    return .needsRebuild(path: path, .damaged(what))
  }

  /// Whether an event of a log that is whole did not fit what the tables hold: then these are not what the log made
  /// of them.
  package var isDisagreement: Bool {
    switch self {
    case .gap, .merge, .inconsistent: true
    default: false
    }
  }

  /// Whether SQLite could not open the file, or one of those that it needs beside it, or not make these.
  package var isRefusalToOpen: Bool {
    guard case .sqlite(_, let code, _) = self else { return false }
    return [SQLITE_CANTOPEN, SQLITE_READONLY].contains(code & 0xff)
  }

  /// Whether SQLite could not open the file, or write it, because this user may not.
  package var isNotPermitted: Bool {
    guard isRefusalToOpen, case .sqlite(let path, _, _) = self else { return false }
    return FileIdentity.isForbidden(FileIdentity.isTaken(path) ? path : FileReplacement.directory(of: path))
  }

  /// Whether SQLite did not understand what it was asked, or knows no such table or column.
  package var isOfTheQuery: Bool {
    guard case .sqlite(_, let code, _) = self else { return false }
    return code & 0xff == SQLITE_ERROR
  }

  /// Whether SQLite was let down by the file system, and not by what it was asked.
  package var isOfTheFiles: Bool {
    guard case .sqlite(_, let code, _) = self else { return false }
    // Locks that fail end as the fourth, and what a failure has ended before as the last.
    return [SQLITE_FULL, SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_PROTOCOL, SQLITE_READONLY, SQLITE_ABORT]
      .contains(code & 0xff)
  }
}

package enum RebuildReason: Equatable, Sendable {
  case missing
  /// What SQLite or a decoder found wrong with the bytes.
  case damaged(String)
  /// Written by a version of this software with another layout of the tables; nil: no Stemma tables at all.
  case format(found: Int64?)
  /// The tables were made for another schema.
  case schema
  /// The tables show a state of the past (`Tables.rebuild` with a filter), so nothing can be applied to them.
  case asOf
}
