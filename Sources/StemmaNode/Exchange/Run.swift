import StemmaEvents
import StemmaReplication

/// The partitions of one exchange: the requested ones, without those in which one of the nodes lost
/// events.
struct Run {
  /// Partitions that are not exchanged, because a node lost events in them.
  struct LeftOut {
    let node: String
    let losses: [RecordedCorruption.Loss]
    let partitions: [String]

    var sentence: Notice {
      partitions.count == 1
        ? "partition \(partitions[0]) was left out: \(node) has lost events of it"
        : "partitions \(Explanations.list(partitions, "and")) were left out: \(node) has lost events of them"
    }

    var error: NodeError {
      let lost = RecordedCorruption.words(losses) ?? "events"
      return .corrupt(what: "\(node) has lost \(lost), so what it has of these was left out: repair it first")
    }
  }

  let scope: Scope
  private(set) var leftOut: [LeftOut] = []

  /// - Parameters:
  ///   - scopes: the scopes of the nodes.
  ///   - own: the node that opens the session; nil for a clone.
  /// - Throws: `.corrupt` if it is unknown which events the own node lost.
  init(_ patterns: [String], within scopes: [Scope], own: Node?, peer: Greeting) throws(NodeError) {
    var patterns = patterns.isEmpty ? Scope.everything.patterns : patterns
    let exchanged = NarrowedScope(scopes + [try Node.scope(patterns)])
    var losses: [(node: String, losses: [RecordedCorruption.Loss])] = []
    if let own, let corruption = own.metadata.corruption {
      if corruption.isVague { try own.checkLogIsWhole() }
      losses.append((own.metadata.name, corruption.losses))
    }
    losses.append((peer.nodeName, peer.losses.map(RecordedCorruption.Loss.init)))
    for (node, losses) in losses {
      let losses = losses.filter { exchanged.contains(Partition($0.partition)) }
      let partitions = Set(losses.map(\.partition)).sorted()
      guard !partitions.isEmpty else { continue }
      patterns += partitions.map { "!" + $0 }
      leftOut.append(LeftOut(node: node, losses: losses, partitions: partitions))
    }
    scope = try Node.scope(patterns)
  }

  var partitionsLeftOut: [String] { Set(leftOut.flatMap(\.partitions)).sorted() }
}

extension RecordedCorruption.Loss {
  init(_ loss: StreamLoss) {
    partition = loss.partition.description
    origin = loss.origin.description
    from = loss.from.rawValue
    to = loss.to.rawValue
  }
}
