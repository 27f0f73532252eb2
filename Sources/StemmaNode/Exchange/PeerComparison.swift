import StemmaEvents
import StemmaReplication

/// The partitions that two nodes hold, compared by their digests.
package struct PeerComparison: Sendable {
  package struct Difference: Sendable {
    package var partition: String
    /// Nil: that node holds no event of the partition.
    package var here: Node.PartitionDigest?
    package var there: Node.PartitionDigest?

    package var text: String {
      guard let here, let there, here.log == there.log else {
        let events = [here, there].map { $0?.events ?? 0 }
        return "\(partition): \(counted(events[0], "event")) here, \(events[1]) there"
          + (events[0] == events[1] ? ", not the same" : "")
      }
      return "\(partition): the same \(counted(here.events, "event")), but other rows"
    }
  }

  /// The number of equal partitions.
  package var equal = 0
  package var differences: [Difference] = []

  package func json(_ peer: String) -> JSON {
    .object([
      ("peer", .string(peer)), ("equal", .int(Int64(equal))),
      (
        "differences",
        .array(
          differences.map { difference in
            .object([
              ("partition", .string(difference.partition)), ("here", Self.json(difference.here)),
              ("there", Self.json(difference.there)),
            ])
          })
      ),
    ])
  }
}

extension PeerComparison {
  /// Patterns beyond this number are compared here instead of by the peer.
  private static let askedPatterns = 64

  /// Compares the digests of the partitions that are in the scopes of both nodes.
  ///
  /// - Parameter partitions: patterns; empty: all.
  package init(
    _ node: Node, with remote: RemotePeer, partitions: [String], connect: Connector
  ) throws(NodeError) {
    let own = node.metadata.scope
    let link = try connect(remote, node, false)
    let there: [Node.PartitionDigest]
    let scopes: [Scope]
    do throws(NodeError) {
      scopes = [own, link.greeting.scope, try node.scope(partitions.isEmpty ? ["*"] : partitions)]
      let patterns = partitions.isEmpty ? own.patterns : partitions
      there = try link.digests(of: patterns.count > Self.askedPatterns ? ["*"] : patterns)
    } catch {
      _ = try link.close(after: error)
      throw error
    }
    _ = try link.close(after: nil)
    var others: [String: Node.PartitionDigest] = [:]
    for digest in there where scopes.allSatisfy({ $0.contains(Partition(digest.partition)) }) {
      others[digest.partition] = digest
    }
    for here in try node.digests(within: scopes) {
      let other = others.removeValue(forKey: here.partition)
      if let other, here.agrees(with: other) {
        equal += 1
      } else {
        differences.append(Difference(partition: here.partition, here: here, there: other))
      }
    }
    differences += others.values.map { Difference(partition: $0.partition, here: nil, there: $0) }
    differences.sort { $0.partition < $1.partition }
  }

  /// A digest without its partition.
  private static func json(_ digest: Node.PartitionDigest?) -> JSON {
    guard let digest else { return .null }
    return .object([
      ("events", .int(Int64(clamping: digest.events))), ("log", .string(digest.log)),
      ("tables", digest.tables.map { .string($0) } ?? .null),
    ])
  }
}
