import StemmaReplication

/// A connection to a peer, for one session that this node opens.
///
/// The calls block. An implementation may keep messages until the peer needs them: `receive` is
/// called only where the peer has a message to send.
package protocol PeerLink: AnyObject {
  /// The peer's greeting, known before this node has sent its own.
  var greeting: Greeting { get }
  /// Whether both sides are in one process.
  var sharesMemory: Bool { get }
  /// Whether the peer's log belongs to the local user, so that its indexes are trusted.
  var isOwn: Bool { get }
  /// Whether the peer's messages were recorded earlier, for any receiver. They may be old and can
  /// hold partitions that this node did not request.
  var isRecorded: Bool { get }

  func send(_ message: SessionMessage) throws(NodeError)
  /// - Throws: `.replication(.incomplete)` if the peer has closed the connection.
  func receive() throws(NodeError) -> SessionMessage
  /// The digests of the peer's partitions that fit these patterns. Not within a session.
  func digests(of patterns: [String]) throws(NodeError) -> [Node.PartitionDigest]
  /// Ends the session; the peer refreshes its tables. No other call follows.
  ///
  /// - Parameter error: the reason, if the session failed.
  /// - Returns: notices of the peer.
  func close(after error: NodeError?) throws(NodeError) -> [Notice]
}

extension PeerLink {
  package var isRecorded: Bool { false }

  package func digests(of patterns: [String]) throws(NodeError) -> [Node.PartitionDigest] {
    throw .notAPeer(path: greeting.nodeName, reason: "digests cannot be asked for in this way")
  }
}

/// Connects to a peer. The closure receives the connecting node, which is nil for a clone, and
/// whether the session will write to the peer.
package typealias Connector = (RemotePeer, Node?, _ writes: Bool) throws(NodeError) -> any PeerLink
