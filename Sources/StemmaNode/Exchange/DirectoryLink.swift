import Foundation
import StemmaLog
import StemmaReplication

/// A peer in a directory of this machine. Its side of the session runs in the same process.
final class DirectoryLink: PeerLink {
  private let peer: Node
  private let answering: Answering
  let isOwn: Bool

  /// - Parameter node: the connecting node; nil for a clone.
  init(
    _ address: String, _ node: Node?, options: Node.OpeningOptions, writes: Bool,
    progress: @escaping (UInt64, UInt64) -> Void
  ) throws(NodeError) {
    peer = try Node.open(at: address, options.ofPeer(writes: writes))
    if let node {
      let places = [node.directory, address].map { URL(fileURLWithPath: $0).resolvingSymlinksInPath().path }
      guard places[0] != places[1] else {
        throw .notAPeer(path: address, reason: "it is this node itself")
      }
    }
    do throws(LogError) { isOwn = try peer.ports.fileSystem.isOwn(peer.log.directory) } catch {
      throw .log(error)
    }
    answering = try Answering(
      peer, sharesMemory: true, trustsIndexes: try node?.isOwn ?? false, progress: progress)
  }

  var greeting: Greeting { answering.greeting }
  var sharesMemory: Bool { true }

  func send(_ message: SessionMessage) throws(NodeError) { try answering.receive(message) }

  func receive() throws(NodeError) -> SessionMessage {
    guard let message = try answering.next() else {
      throw .replication(.incomplete("the peer has no answer"))
    }
    return message
  }

  func digests(of patterns: [String]) throws(NodeError) -> [Node.PartitionDigest] {
    try peer.digests(within: [try Node.scope(patterns)])
  }

  func close(after error: NodeError?) throws(NodeError) -> [Notice] {
    try answering.finish(after: error)
    return peer.notices
  }
}
