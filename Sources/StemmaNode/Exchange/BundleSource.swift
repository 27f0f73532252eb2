import StemmaEvents
import StemmaLog
import StemmaReplication
import StemmaSchema

/// The receiver of a bundle, as far as its creator knows it.
package struct BundleReceiver: Sendable {
  package var held: VersionVector
  package var scope: Scope

  /// - Parameter held: empty for a receiver that may have no events.
  package init(held: VersionVector = VersionVector(), scope: Scope = .everything) {
    self.held = held
    self.scope = scope
  }
}

/// The result of `BundleSource.write`.
package struct BundleReport: Sendable {
  package var partitions = 0
  package var events: UInt64 = 0
  package var notices: [Notice] = []
  /// The reason why partitions were left out.
  package var missing: NodeError?
}

/// Makes the messages of bundles from a node.
package struct BundleSource {
  private let node: Node

  package init(_ node: Node) { self.node = node }

  /// A remote as receiver: read in its directory, otherwise known from the last exchange.
  ///
  /// - Throws: `.notAPeer` if neither is possible.
  package func receiver(_ remote: RemotePeer) throws(NodeError) -> BundleReceiver {
    if PeerAddress(remote.address).isDirectory {
      let peer = try Node.open(at: remote.address, node.options.ofPeer(writes: false))
      return BundleReceiver(held: try peer.durableVector(), scope: peer.metadata.scope)
    }
    let address = PeerAddress.stored(remote.address)
    let known = try PeerVectors(directory: node.directory, ports: node.ports).holding(of: address)
    guard let held = known?.versionVector else {
      throw .notAPeer(
        path: remote.name,
        reason: "no exchange has recorded what it holds. Name a version vector with --since instead")
    }
    return BundleReceiver(held: held)
  }

  /// Writes the messages of a bundle: greeting, request, holding, chunks, end. The node answers an
  /// invented receiver as it answers a peer. It records nothing of it.
  ///
  /// The request has the scope of the bundle. Its version vector has the prerequisites: the events
  /// of this node that `receiver` holds, too.
  /// - Parameter partitions: patterns; empty: everything.
  /// - Throws: `.replication(.fork)` if the receiver holds other events of a stream.
  package func write(
    partitions: [String], for receiver: BundleReceiver,
    _ send: (SessionMessage) throws(NodeError) -> Void
  ) throws(NodeError) -> BundleReport {
    let answering = try Answering(node)
    var greeting = answering.greeting
    let run = try Run(partitions, within: [node.metadata.scope, receiver.scope], own: nil, peer: greeting)
    let scope = NarrowedScope(node.metadata.scope, receiver.scope, run.scope)
    // The losses of other partitions are of no interest to the receiver.
    let patterns = partitions.isEmpty ? Scope.everything : try Node.scope(partitions)
    greeting.losses.removeAll { !patterns.contains($0.partition) || !receiver.scope.contains($0.partition) }
    try answering.receive(
      .greeting(
        Greeting(
          logID: LogID(0), nodeName: "the receiver", origins: [], schema: greeting.schema, scope: .everything)
      ))
    guard case .greeting? = try answering.next() else {
      throw .replication(.incomplete("the node did not greet"))
    }
    try send(.greeting(greeting))
    try answering.receive(
      .request(
        TransferRequest(
          scope: scope, versionVector: receiver.held.restricted { scope.contains($0) })))
    guard case .holding(let holding)? = try answering.next() else {
      throw .replication(.incomplete("the node did not state what it holds"))
    }
    let prerequisites = holding.versionVector.limited(to: receiver.held)
    try send(.request(TransferRequest(scope: scope, versionVector: prerequisites)))
    try send(.holding(TransferRequest(scope: scope, versionVector: holding.versionVector)))
    while let message = try answering.next() { try send(message) }
    return BundleReport(
      partitions: answering.partitionCount, events: answering.eventCount,
      notices: run.leftOut.map(\.sentence), missing: run.leftOut.first?.error)
  }
}

extension VersionVector {
  /// The streams that both vectors have, each with the shorter of both heads.
  fileprivate func limited(to other: VersionVector) -> VersionVector {
    var limited = VersionVector()
    for partition in partitions.keys where other.partitions[partition] != nil {
      for (origin, head) in streams(of: partition) {
        let theirs = other[partition, origin]
        guard theirs.sequence > .zero else { continue }
        limited[partition, origin] = theirs.sequence < head.sequence ? theirs : head
      }
    }
    return limited
  }
}
