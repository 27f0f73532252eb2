import StemmaEvents
import StemmaReplication
import StemmaTables

/// The places where an event is durable, apart from this node.
package struct EventPlaces: Sendable {
  /// A remote that holds the event's partition.
  package struct Peer: Sendable {
    package var name: String
    package var hasEvent: Bool
  }

  /// The remotes that want the event.
  package var peers: [Peer] = []
  /// Remotes of which nothing is known, because no exchange succeeded or they cannot be read.
  package var unknown: [String] = []
  /// The log ids of all nodes that have acknowledged the event. Only own events are acknowledged.
  package var acknowledgments: [String] = []

  package var isEverywhere: Bool { !peers.isEmpty && unknown.isEmpty && peers.allSatisfy(\.hasEvent) }

  package var text: String {
    let (having, lacking) = (peers.filter(\.hasEvent).map(\.name), peers.filter { !$0.hasEvent }.map(\.name))
    let acknowledging = "\(counted(UInt64(acknowledgments.count), "node")) that acknowledged it"
    var parts: [String] = []
    if isEverywhere {
      parts.append("everywhere it is wanted: at \(Explanations.list(having, "and"))")
    } else if !having.isEmpty {
      parts.append("at \(Explanations.list(having, "and"))")
    } else {
      parts.append(acknowledgments.isEmpty ? "local" : "at \(acknowledging)")
    }
    if !lacking.isEmpty { parts.append("not yet at \(Explanations.list(lacking, "and"))") }
    if !unknown.isEmpty { parts.append("nothing is known of \(Explanations.list(unknown, "and"))") }
    if peers.isEmpty, unknown.isEmpty, acknowledgments.isEmpty {
      parts.append("no remote holds its partition")
    }
    return parts.joined(separator: "; ")
  }

  package var json: JSON {
    .object([
      ("isEverywhere", .bool(isEverywhere)),
      (
        "peers",
        .array(peers.map { .object([("name", .string($0.name)), ("hasEvent", .bool($0.hasEvent))]) })
      ),
      ("unknown", .array(unknown.map { .string($0) })),
      ("acknowledgedBy", .array(acknowledgments.map { .string($0) })),
    ])
  }
}

extension EventPlaces {
  /// Remotes in directories are read. Of others it is what the last successful exchange showed.
  package init(of event: EventID, in partition: Partition, _ node: Node) throws(NodeError) {
    for remote in node.metadata.remotes {
      var holding: TransferRequest?
      // `status` shows why a remote cannot be read.
      do throws(NodeError) { holding = try node.holding(of: remote) } catch _ {}
      guard let holding else {
        unknown.append(remote.name)
        continue
      }
      guard holding.scope.contains(partition) else { continue }
      let head = holding.versionVector[partition, event.origin].sequence
      peers.append(Peer(name: remote.name, hasEvent: head >= event.sequence))
    }
    acknowledgments = try node.reading { try $0.acknowledgements() }
      .filter { $0.partition == partition && $0.origin == event.origin && $0.sequence >= event.sequence }
      .map(\.peer)
  }
}
