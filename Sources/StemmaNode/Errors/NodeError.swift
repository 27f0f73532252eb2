import Foundation
import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema
import StemmaTables

/// The errors of a node. `Explanations` converts them to text for people.
package enum NodeError: Error {
  /// No directory from here upwards is a node.
  case noNode(path: String)
  /// - Parameter source: the source of an attempted clone.
  case alreadyANode(path: String, source: String? = nil)
  /// An unfinished clone made this node. `source` is nil if its remote was removed. Without a
  /// reason, the clone began earlier and differs from the requested one.
  indirect case unfinishedClone(path: String, source: String?, NodeError?)
  /// A log with events, without node metadata: it was removed.
  case logWithoutMetadata(path: String)
  /// A directory has everything of a node except the metadata. `hasCopy`: whether its copy exists.
  case lostMetadata(path: String, hasCopy: Bool)
  /// The parent directory of the new node does not exist.
  case noParent(path: String)
  /// The path of a new file is in use and must not be replaced, because it `what`.
  case occupied(path: String, what: String)
  /// No temporary directory can be created there.
  case noTemporaryPlace(path: String, LogError)
  case cannotRead(path: String, errno: Int32)
  /// `stemma.json` is not in the form that this version writes.
  case badMetadata(path: String, what: String)
  /// The node's `schema.graphql` is missing or empty.
  case noSchema(path: String)
  /// The schema is invalid; `what` is the first error and its place.
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
  case malformedInput(source: String, what: Notice)
  /// An import refused a line. The line to continue with is `resume`; nil after a trial. If an
  /// earlier import of the source determines it, `earlier` is the last durable line of that import.
  indirect case importLine(source: String, line: Int, NodeError, resume: Int?, earlier: Int?)
  /// No line is at fault. All lines before `resume` are durable, and perhaps some after it.
  indirect case importEnded(source: String, NodeError, resume: Int)

  case unknownRemote(String, known: [String])
  case notAPeer(path: String, reason: Notice)
  case noRemotes
  /// A bundle continues events that this node lacks. Nothing of the bundle was adopted.
  case missingPrerequisites(bundle: String, MissingPrerequisites)
  /// The peer at this address requires a valid token.
  case unauthenticated(String)
  /// Another process changed the node's scope during an exchange. Adopted events stay.
  case scopeChanged(node: String)
  case unacknowledged(partition: String, events: UInt64)
  case corrupt(what: String)
  /// Everything readable was returned; these events are lost or hidden by corruption.
  case missing(MissingEvents)
  /// The partition lost events to corruption, so its records are read-only.
  case corruptPartition(String)
  /// The log has a duplicate event id. Until it is repaired, the node refuses writes and exchanges.
  case duplicateEvents(node: String, path: String, partition: String, event: String)
  /// The body of a write threw its own error.
  case abandoned
  /// An error of another library, in its words.
  case unforeseen(String)

  /// The corruption of the log that this error reports.
  var logCorruption: Corruption? {
    if case .log(let error) = self { error.corruption } else { nil }
  }

  /// Whether another process holds the writer lock.
  var isInUse: Bool { if case .log(.inUse) = self { true } else { false } }

  /// Whether the tables were corrupt and have been rebuilt.
  var isOfRebuiltTables: Bool { if case .tables(.rebuilt) = self { true } else { false } }

  /// Whether the disk was full.
  var isDiskFull: Bool {
    switch self {
    case .log(.system(_, _, let code)), .tables(.io(_, _, let code)): [ENOSPC, EDQUOT].contains(code)
    case .tables(let error): error.isDiskFull
    default: false
    }
  }

  /// Whether the operating system refused a write, for lack of permission or space.
  package var isRefusalToWrite: Bool {
    switch self {
    case .log(.system(_, _, let code)), .tables(.io(_, _, let code)):
      [EACCES, EPERM, EROFS, ENOSPC, EDQUOT, EFBIG].contains(code)
    case .tables(let error): error.isDiskFull
    default: false
    }
  }
}
