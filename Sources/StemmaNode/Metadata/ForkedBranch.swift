import StemmaEvents

// A node that was restored from an older copy and wrote again forks a stream: from one sequence on,
// it has two branches. One keeps its ids; the other is rewritten under a new origin. Several nodes
// may rewrite a branch independently, so the new ids depend only on the events:
//
//   - The origin is the first half of the digest of the branch's first event; sequences start at 1.
//   - An event that depends on a renamed event starts a branch of its own stream by the same rule.
//
// Nodes that renamed a branch therefore hold equal events under equal ids. They remember the branch
// in `NodeMetadata.retired` and refuse peers that hold it under its old ids; `repair --fork`
// renames it there. If two nodes renamed one branch each, both are retired.

/// The events of one stream from the first one that differs from another node's event of that id.
package struct ForkedBranch: Sendable, Hashable, Encodable {
  var partition: String
  /// The old origin and first sequence.
  var origin: UInt64
  var from: UInt64
  /// The digest of the first event.
  var high: UInt64
  var low: UInt64

  init(_ first: QualifiedEventID, _ digest: StreamHash) {
    partition = first.partition.description
    origin = first.id.origin.rawValue
    from = first.id.sequence.rawValue
    (high, low) = (digest.high, digest.low)
  }

  /// The old id of the first event.
  var first: QualifiedEventID {
    QualifiedEventID(partition: Partition(partition), id: EventID(Origin(origin), SequenceNumber(from)))
  }
  var stream: QualifiedEventID { QualifiedEventID(stream: Partition(partition), Origin(origin)) }
  var digest: StreamHash { StreamHash(high: high, low: low) }

  /// The origin under which the events are rewritten.
  var newOrigin: Origin { Origin(high) }

  func newName(of event: Event) -> QualifiedEventID {
    QualifiedEventID(
      partition: event.partition,
      id: EventID(newOrigin, SequenceNumber(event.id.sequence.rawValue - from + 1)))
  }
}

/// A decided fork repair that may be incomplete. The node metadata keeps it, so that the next
/// process that takes the writer lock completes it.
package struct PendingFork: Sendable, Equatable, Encodable {
  /// The branches to rewrite.
  var branches: [ForkedBranch]
  /// Whether all events are rewritten durably, so that the old ones can be removed.
  var isWritten = false

  init(_ branches: [ForkedBranch]) { self.branches = branches }

  init(_ stored: MetadataReader) throws(NodeError) {
    branches = try stored.branches("branches")
    isWritten = try stored.flag("isWritten")
  }
}

extension [ForkedBranch] {
  /// Sorted, so that equal branches give equal metadata.
  init(merging branches: some Sequence<ForkedBranch>) {
    self = Array(Set(branches)).sorted {
      ($0.partition, $0.origin, $0.from, $0.high) < ($1.partition, $1.origin, $1.from, $1.high)
    }
  }

  /// The first sequence of each stream.
  var starts: [QualifiedEventID: SequenceNumber] {
    Dictionary(map { ($0.stream, $0.first.id.sequence) }, uniquingKeysWith: { Swift.min($0, $1) })
  }
}

extension QualifiedEventID {
  /// The name of a stream.
  init(stream partition: Partition, _ origin: Origin) {
    self.init(partition: partition, id: EventID(origin, .zero))
  }

  /// The stream of an event.
  init(streamOf event: Event) { self.init(stream: event.partition, event.id.origin) }
}

extension [QualifiedEventID: SequenceNumber] {
  /// Whether an event belongs to one of these suffixes of streams.
  func contains(_ event: Event) -> Bool {
    self[QualifiedEventID(streamOf: event)].map { $0 <= event.id.sequence } ?? false
  }
}

extension MetadataReader {
  func branches(_ name: String) throws(NodeError) -> [ForkedBranch] {
    try members(name).map { branch throws(NodeError) in
      let stream = QualifiedEventID(
        partition: Partition(try branch.text("partition")),
        id: EventID(Origin(try branch.number("origin")), SequenceNumber(try branch.number("from"))))
      return ForkedBranch(
        stream, StreamHash(high: try branch.number("high"), low: try branch.number("low")))
    }
  }
}
