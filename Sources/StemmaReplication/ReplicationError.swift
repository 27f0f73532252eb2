import StemmaEvents
import StemmaLog

/// Why a session or a shipment was rejected. The error of one side is sent to the other as a
/// refusal, so each case has an encoding (`ReplicationError+Codec.swift`). The error itself wrote
/// nothing; batches that were adopted before it stay.
package enum ReplicationError: Error, Hashable, Sendable {
  /// The bytes violate the format: where, and what was found.
  case malformed(_ subject: String, _ found: String)
  case overLimit(_ subject: String, found: UInt64, limit: UInt64)
  /// A format version that this program does not support.
  case newerFormat(_ subject: String, found: UInt64, supported: UInt64)
  /// A digest does not match.
  case corrupt(_ subject: String, _ found: String)
  /// Both sides have the same log id: one is a copy of the other's directory.
  case sameLog(LogID)
  /// The key, partition rule or conflict policy of a model differs.
  case schemaConflict([String])
  case schemaUnreadable(String)
  /// The peer may not read or write these partitions.
  case notPermitted([Partition])
  case unexpectedMessage(_ found: String, expected: String)
  case fork(Fork)
  /// Events between the held ones and the received ones are missing.
  case gap(Partition, Origin, expected: SequenceNumber, found: SequenceNumber)
  /// A partition that was not requested.
  case foreignPartition(Partition)
  /// An event that no correct writer creates.
  case hostileEvent(QualifiedEventID, String)
  /// The other side closed before sending everything that it announced.
  case incomplete(String)
  /// A failure of the node itself, in its log or on its disk, and not of the peer's data.
  case failed(String)
  /// The log contradicts itself or its tables. The peer receives `failed`.
  case inconsistentLog(String)
  /// Corruption of the node's log, found while reading it for the peer, which receives `failed`.
  case corruptLog(Corruption)
  /// Patterns that form no scope.
  case scope(ScopeError)
  /// The peer sent a refusal.
  indirect case refusedByPeer(ReplicationError)
}

/// Two histories of one origin: a copied directory, or a machine that was restored, wrote again.
package struct Fork: Hashable, Sendable {
  package struct Side: Hashable, Sendable {
    package var node: String
    /// The hash of the events 1 … `sequence`.
    package var hash: StreamHash

    package init(node: String, hash: StreamHash) {
      self.node = node
      self.hash = hash
    }
  }

  package var partition: Partition
  package var origin: Origin
  /// The sequence at which the sides were compared; they diverged at or before it.
  package var sequence: SequenceNumber
  /// The side that found the fork.
  package var finder: Side
  package var peer: Side

  package init(partition: Partition, origin: Origin, sequence: SequenceNumber, finder: Side, peer: Side) {
    self.partition = partition
    self.origin = origin
    self.sequence = sequence
    self.finder = finder
    self.peer = peer
  }
}

extension ReplicationError {
  /// The fork that either side found.
  package var fork: Fork? {
    switch self {
    case .fork(let fork): fork
    case .refusedByPeer(let error): error.fork
    default: nil
    }
  }
}

extension ReplicationError: CustomStringConvertible {
  /// The defect and its place.
  package var description: String {
    switch self {
    case .malformed(let subject, let found): "\(subject) is malformed: \(found)"
    case .overLimit(let subject, let found, let limit): "\(subject): \(found) is over the limit of \(limit)"
    case .newerFormat(let subject, let found, let supported):
      "\(subject) has version \(found), this program knows up to \(supported); update it"
    case .corrupt(let subject, let found): "\(subject) is corrupt: \(found); nothing of it was taken"
    case .sameLog(let id):
      "both nodes have the log id \(id): one directory is a copy of the other"
    case .schemaConflict(let conflicts): "the schemas do not fit: \(conflicts.joined(separator: "; "))"
    case .schemaUnreadable(let why): "the peer's schema cannot be read: \(why)"
    case .notPermitted(let partitions):
      "not permitted for \(partitions.map(\.description).joined(separator: ", "))"
    case .unexpectedMessage(let found, let expected): "message \(found) came where \(expected) was expected"
    case .fork(let fork): fork.description
    case .gap(let partition, let origin, let expected, let found):
      "\(partition): events of \(origin) from \(expected) are missing, \(found) came"
    case .foreignPartition(let partition): "\(partition) was not asked for"
    case .hostileEvent(let name, let why): "event \(name.id) of \(name.partition): \(why)"
    case .incomplete(let what): "the transfer ended early: \(what); run it again, it goes on from here"
    case .failed(let what), .inconsistentLog(let what): what
    case .corruptLog(let corruption):
      "\(corruption.path) is corrupt at byte \(corruption.offset)"
    case .scope(let error): error.description
    case .refusedByPeer(let error): "the peer refused: \(error)"
    }
  }
}

extension Fork: CustomStringConvertible {
  package var description: String {
    "\(partition): \(finder.node) and \(peer.node) hold different events of origin \(origin) at or before "
      + "\(sequence) (\(finder.hash) and \(peer.hash))"
  }
}
