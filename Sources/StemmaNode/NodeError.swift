import Foundation
import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema
import StemmaTables

/// What can go wrong with a node. Rendered for people in one place, the tool's `Explanation`.
package enum NodeError: Error {
  /// No directory from here upwards holds a node.
  case noNode(path: String)
  /// `source`: that a clone was to be made of.
  case alreadyANode(path: String, source: String? = nil)
  /// A clone that did not come to its end has made this node. `source`: nil if its remote was removed. No reason: it was
  /// begun earlier, and another one is asked for.
  indirect case unfinishedClone(path: String, source: String?, NodeError?)
  /// There is a log that was written to, and no mark beside it: somebody took the mark away.
  case logWithoutMark(path: String)
  /// A directory has all of a node but its mark. `hasCopy`: that is there.
  case lostMark(path: String, hasCopy: Bool)
  /// The directory is not there that a node is to be made in.
  case noParent(path: String)
  /// What has the name of a file that is to be made, and is not to be replaced by it. `what`: why not.
  case occupied(path: String, what: String)
  /// No folder for temporary files can be made there.
  case noTemporaryPlace(path: String, LogError)
  case cannotRead(path: String, errno: Int32)
  /// `stemma.json` is not what this version writes.
  case badMark(path: String, what: String)
  /// The node's `schema.graphql` is not there, or empty.
  case noSchema(path: String)
  /// It is there, and is none: what is wrong with it first, and where.
  case badSchema(path: String, what: String)
  case newerFormat(path: String, found: Int, supported: Int)

  case schema(SchemaError)
  case refusedSchema([String])
  case mutation(MutationError)
  case log(LogError)
  case tables(TablesError)
  case replication(ReplicationError)
  case inspection(InspectionError)

  case lineTooLong(source: String, line: Int, limit: Int)
  case malformedInput(source: String, what: String)
  /// A line of an import that could not be taken. `resume` is the line to go on with, nil where it was only tried;
  /// `earlier`: through which line an earlier import of the same source is durable, if that is where to go on.
  indirect case importLine(source: String, line: Int, NodeError, resume: Int?, earlier: Int?)
  /// No line is at fault. All before the line `resume` is durable, and perhaps some of what comes from there.
  indirect case importEnded(source: String, NodeError, resume: Int)

  case unknownRemote(String, known: [String])
  case notAPeer(path: String, reason: String)
  case noRemotes
  /// Another process changed the node's scope during an exchange. What was adopted before stays.
  case scopeChanged(node: String)
  case unacknowledged(partition: String, events: UInt64)
  case damaged(what: String)
  /// All that can be read was given; this is what damage of the log took of it.
  case missing(MissingEvents)
  /// The partition lost events to damage of the log, so that nothing can be added to its records.
  case damagedPartition(String)
  /// Two events of the node's log have one name: nothing is written to it, or exchanged with it, before that is mended.
  case doubledNames(node: String, path: String, partition: String, event: String)
  /// The body of a write threw an error of its own.
  case abandoned

  /// The damage of the log that this error is about.
  var logDamage: Damage? {
    if case .log(let error) = self { error.damage } else { nil }
  }

  /// Whether another process holds the writer lock.
  var isInUse: Bool { if case .log(.inUse) = self { true } else { false } }

  /// Whether the tables were damaged, and have been made anew.
  var isOfRebuiltTables: Bool { if case .tables(.rebuilt) = self { true } else { false } }

  /// Whether there was no room for what was to be written.
  var isDiskFull: Bool {
    switch self {
    case .log(.system(_, _, let code)), .tables(.io(_, _, let code)): [ENOSPC, EDQUOT].contains(code)
    case .tables(let error): error.isDiskFull
    default: false
    }
  }

  /// Whether the operating system did not let something be written: it is not permitted, or there is no room.
  var isRefusalToWrite: Bool {
    switch self {
    case .log(.system(_, _, let code)), .tables(.io(_, _, let code)):
      [EACCES, EPERM, EROFS, ENOSPC, EDQUOT, EFBIG].contains(code)
    case .tables(let error): error.isDiskFull
    default: false
    }
  }
}
