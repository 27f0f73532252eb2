import StemmaEvents
import StemmaReplication

/// The events that a bundle's receiver must hold and lacks.
package struct MissingPrerequisites: Hashable, Sendable {
  package struct Range: Hashable, Sendable {
    package var partition: Partition
    package var origin: Origin
    package var from: SequenceNumber
    package var to: SequenceNumber
    /// The name of the origin's node, if the bundle has it.
    package var nodeName: String?
  }

  /// By partition and origin.
  package let ranges: [Range]

  /// Nil if `held` covers all that is required in `scope`.
  package init?(
    _ required: VersionVector, in scope: NarrowedScope, held: VersionVector, names: [NamedOrigin]
  ) {
    let names = Dictionary(names.map { ($0.origin, $0.nodeName) }) { first, _ in first }
    var ranges: [Range] = []
    for partition in required.sortedPartitions where scope.contains(partition) {
      for (origin, head) in required.streams(of: partition) {
        let next = held[partition, origin].sequence.next
        guard next <= head.sequence else { continue }
        ranges.append(
          Range(
            partition: partition, origin: origin, from: next, to: head.sequence, nodeName: names[origin]))
      }
    }
    guard !ranges.isEmpty else { return nil }
    self.ranges = ranges
  }

  /// `partition site=a, origin 0123456789abcdef (office), from 3 to 7`.
  var text: String {
    let words = ranges.map { range in
      "partition \(range.partition), origin \(range.origin)\(range.nodeName.map { " (\($0))" } ?? ""), "
        + "from \(range.from) to \(range.to)"
    }
    let more = words.count > Self.shown ? " and \(words.count - Self.shown) more" : ""
    return words.prefix(Self.shown).joined(separator: "; ") + more
  }

  /// How many ranges a message names.
  private static let shown = 4
}
