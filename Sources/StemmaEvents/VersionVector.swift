/// The additive hash of a stream: the sum of its events' digests modulo 2^128.
///
/// Addition is commutative, so a prefix can be extended, and the hash of a range is the difference
/// of two prefixes. Two histories with different events of the same ids have different hashes.
package struct StreamHash: Hashable, Sendable, CustomStringConvertible {
  package var high: UInt64
  package var low: UInt64

  package static let zero = StreamHash(high: 0, low: 0)

  package init(high: UInt64, low: UInt64) {
    self.high = high
    self.low = low
  }

  package static func + (a: StreamHash, b: StreamHash) -> StreamHash {
    let (low, carry) = a.low.addingReportingOverflow(b.low)
    return StreamHash(high: a.high &+ b.high &+ (carry ? 1 : 0), low: low)
  }

  package static func - (a: StreamHash, b: StreamHash) -> StreamHash {
    let (low, borrow) = a.low.subtractingReportingOverflow(b.low)
    return StreamHash(high: a.high &- b.high &- (borrow ? 1 : 0), low: low)
  }

  package static func += (a: inout StreamHash, b: StreamHash) { a = a + b }

  /// Thirty-two lowercase hexadecimal digits.
  package var description: String { Origin(high).description + Origin(low).description }
}

/// How far a node has a stream without a gap.
package struct StreamHead: Hashable, Sendable {
  package var sequence: SequenceNumber
  /// Hash of the events 1 … `sequence`.
  package var hash: StreamHash

  package static let none = StreamHead(sequence: .zero, hash: .zero)

  package init(sequence: SequenceNumber, hash: StreamHash) {
    self.sequence = sequence
    self.hash = hash
  }
}

/// How far a node has each stream: partition → origin → head.
package struct VersionVector: Hashable, Sendable {
  package var partitions: [Partition: [Origin: StreamHead]]

  package init(_ partitions: [Partition: [Origin: StreamHead]] = [:]) { self.partitions = partitions }

  package subscript(partition: Partition, origin: Origin) -> StreamHead {
    get { partitions[partition]?[origin] ?? .none }
    set { partitions[partition, default: [:]][origin] = newValue }
  }

  /// Traps if an empty stream has a hash.
  package func checkInvariants() {
    for head in partitions.values.flatMap(\.values) where head.sequence == .zero {
      precondition(head.hash == .zero, "no events have no hash")
    }
  }

  /// Partitions in the order of their bytes.
  package var sortedPartitions: [Partition] { partitions.keys.sorted() }
}
