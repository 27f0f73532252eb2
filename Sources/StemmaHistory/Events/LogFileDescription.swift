import StemmaEvents
import StemmaLog
import StemmaNode

/// A file of the log in the list of `segments`.
package struct LogFileDescription: Sendable {
  package struct PartitionShare: Sendable {
    package var partition: String
    package var events: UInt64
    /// From 1; nil in a journal. Other partitions may share the first and the last block.
    package var blocks: ClosedRange<Int>?
    /// The name and the range of sequences of each origin.
    package var streams: [(origin: String, from: UInt64, to: UInt64)]
  }

  package var number: UInt64
  package var kind: String
  package var file: String
  package var events: UInt64
  /// The first and last position, and the lowest and highest time; nil without events.
  package var positions: (first: String, last: String)?
  package var times: (first: String, last: String)?
  package var rawBytes: UInt64
  package var storedBytes: UInt64
  /// Nil if corruption hides them.
  package var partitions: [PartitionShare]?
  package var blocks: Int?
  package var digest: String?
  /// The corruption: if no content could be read, its cause; otherwise the recorded corruption.
  package var corruption: String?

  package func json(withPartitions: Bool) -> JSON {
    func pair(_ range: (first: String, last: String)?) -> JSON {
      range.map { .array([.string($0.first), .string($0.last)]) } ?? .null
    }
    func number(_ value: UInt64) -> JSON { Value.int(Int64(clamping: value)).json }
    var members: [(name: String, value: JSON)] = [
      ("number", number(self.number)), ("kind", .string(kind)),
      ("file", .string(file)), ("events", number(events)), ("positions", pair(positions)),
      ("times", pair(times)), ("rawBytes", number(rawBytes)), ("storedBytes", number(storedBytes)),
      ("partitions", partitions.map { .int(Int64($0.count)) } ?? .null),
      ("blocks", blocks.map { .int(Int64($0)) } ?? .null),
      ("digest", digest.map { .string($0) } ?? .null),
      ("corruption", corruption.map { .string($0) } ?? .null),
    ]
    guard withPartitions else { return .object(members) }
    let shares = (partitions ?? []).map { share in
      JSON.object([
        ("partition", .string(share.partition)), ("events", number(share.events)),
        (
          "blocks",
          share.blocks.map { .array([.int(Int64($0.lowerBound)), .int(Int64($0.upperBound))]) } ?? .null
        ),
        (
          "streams",
          .array(
            share.streams.map { stream in
              .object([
                ("origin", .string(stream.origin)), ("from", number(stream.from)), ("to", number(stream.to)),
              ])
            })
        ),
      ])
    }
    members.append(("partitionList", .array(shares)))
    return .object(members)
  }
}
