import StemmaEvents

// Where a machine was set back and wrote again, a stream has two branches: other events from some number on. One of
// them keeps its name, the other is written again under a new origin. Several nodes may hold the second one, and each
// of them writes it again by itself, in any order. So the new names depend on nothing but the events:
//
//   - the new origin is the first half of the digest of the branch's first event; the numbers go on from 1;
//   - what builds on such an event, of whatever origin, is a branch of its stream from there on, and is renamed by the
//     same rule.
//
// Nodes that have done it hold the same events under the same names, and take each other's for their own. They
// remember the branch (`NodeMark.retired`): whoever still holds it under its old name is refused with it, and learns
// from them, by `repair --fork`, what it is called now. If two nodes wrote again one branch each, both are retired.

/// The events of one stream from one that differs from what another node holds under its name.
package struct ForkedBranch: Sendable, Hashable, Encodable {
  var partition: String
  /// As they were called.
  var origin: UInt64
  var from: UInt64
  /// The digest of the first of them.
  var high: UInt64
  var low: UInt64

  init(_ first: EventName, _ digest: StreamHash) {
    partition = first.partition.description
    origin = first.dot.origin.rawValue
    from = first.dot.sequence.rawValue
    (high, low) = (digest.high, digest.low)
  }

  /// The first event's old name.
  var first: EventName {
    EventName(partition: Partition(partition), dot: Dot(Origin(origin), Sequence(from)))
  }
  var stream: EventName { EventName(stream: Partition(partition), Origin(origin)) }
  var digest: StreamHash { StreamHash(high: high, low: low) }

  /// What its events are written under.
  var newOrigin: Origin { Origin(high) }

  func newName(of event: Event) -> EventName {
    EventName(
      partition: event.partition, dot: Dot(newOrigin, Sequence(event.dot.sequence.rawValue - from + 1)))
  }
}

extension [ForkedBranch] {
  /// Sorted, so that a mark is the same whatever the order.
  init(merging branches: some Swift.Sequence<ForkedBranch>) {
    self = Array(Set(branches)).sorted {
      ($0.partition, $0.origin, $0.from, $0.high) < ($1.partition, $1.origin, $1.from, $1.high)
    }
  }

  /// The first sequence of each stream.
  var starts: [EventName: Sequence] {
    Dictionary(map { ($0.stream, $0.first.dot.sequence) }, uniquingKeysWith: { Swift.min($0, $1) })
  }
}

extension MarkReader {
  func branches(_ name: String) throws(NodeError) -> [ForkedBranch] {
    try members(name).map { branch throws(NodeError) in
      let stream = EventName(
        partition: Partition(try branch.text("partition")),
        dot: Dot(Origin(try branch.number("origin")), Sequence(try branch.number("from"))))
      return ForkedBranch(
        stream, StreamHash(high: try branch.number("high"), low: try branch.number("low")))
    }
  }
}
