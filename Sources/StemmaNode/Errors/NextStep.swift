/// Something that a person can do about an error.
///
/// `directory` is the node's; nil: the node of the error.
package enum NextStep: Sendable, Hashable {
  case initialize
  /// Makes a node from a peer's; nil: the person knows which.
  case clone(_ peer: String?)
  case pull(_ peer: String?, directory: String? = nil)
  case addRemote
  case addToScope(_ partition: String)
  case verify
  case rebuild(directory: String?)
  /// Adopts lost events from peers.
  case repair(from: [String])
  case repairManifest
  /// Accepts the loss of events.
  case acceptLoss
  /// Renames the events of one branch; the other one is a peer's, or in the same log.
  case repairFork(directory: String? = nil, hasPeer: Bool)
  case repairMetadata(directory: String)
  case copyMetadata(from: String, to: String)
  case listEvents, listFirstEvents, listCommits, listModels, listTables
  case listConflicts(kind: String? = nil)
  case decideExistence(_ record: String)
  case inferSchema
  /// Writes the schema of another node of the same data to a file.
  case restoreSchema(_ path: String)
  case query
  /// Shows what is in the file that this program writes to standard output.
  case inspect(after: String)

  /// The placeholder for a peer that the person knows.
  package static let peer = "PEER"
}

extension NextStep: CustomStringConvertible {
  package var description: String {
    func there(_ directory: String?) -> String { directory.map { " of \($0)" } ?? "" }
    func name(_ peer: String?, else other: String = "a peer") -> String {
      peer.map { $0 == Self.peer ? "a peer" : $0 } ?? other
    }
    switch self {
    case .initialize: return "an initialization"
    case .clone(let peer): return "a clone of \(name(peer))"
    case .pull(let peer, let directory):
      return "a pull\(there(directory)) from \(name(peer, else: "its source"))"
    case .addRemote: return "the name of a remote"
    case .addToScope(let partition): return "an addition of \(partition) to the scope"
    case .verify: return "a verification of the directory"
    case .rebuild(let directory): return "a rebuild of the tables\(there(directory))"
    case .repair(let peers):
      return peers.isEmpty ? "a repair" : "a repair from \(peers.map { name($0) }.joined(separator: ", "))"
    case .repairManifest: return "a repair of the manifest"
    case .acceptLoss: return "a repair that accepts the loss"
    case .repairFork(let directory, let hasPeer):
      return "a repair of the fork\(there(directory))\(hasPeer ? " from the peer" : "")"
    case .repairMetadata(let directory): return "a repair of the metadata\(there(directory))"
    case .copyMetadata(let copy, let path): return "a copy of \(copy) to \(path)"
    case .listEvents: return "the log"
    case .listFirstEvents: return "the log, from its beginning,"
    case .listCommits: return "the list of commits"
    case .listModels: return "the schema"
    case .listTables: return "the schema of the tables"
    case .listConflicts: return "the list of conflicts"
    case .decideExistence(let record): return "a decision on whether \(record) exists"
    case .inferSchema: return "an inference of the schema"
    case .restoreSchema(let path): return "a copy of its schema to \(path)"
    case .query: return "a query"
    case .inspect(let program): return "`\(program)`, and an inspection of what it prints,"
    }
  }
}
