import Foundation
import StemmaNode

/// A peer of a store: a name, and the way to reach its node.
///
/// A value holds no connection. Each exchange opens one, and closes it.
public struct SyncPeer: Sendable, CustomStringConvertible {
  /// The source of hints that a peer has new events.
  package enum Watch: Sendable {
    /// The log in a directory.
    case log(String)
    /// Calls `signal` of the object at each hint. The closure returns at once.
    case hints(@Sendable (Wake) -> Void)
    /// The peer is asked at an interval.
    case none
  }

  /// Connects with the options for nodes in directories. The interruption ends its calls.
  package typealias Connect = @Sendable (Node.OpeningOptions, Interruption) -> Connector

  /// The path of the directory, the URL, or the name of the transport. Errors and status values
  /// show it. It contains no secret.
  public let name: String
  package let address: String
  package let watch: Watch
  package let connect: Connect

  /// - Parameter address: in the form that `stemma.json` keeps.
  package init(_ name: String, address: String, watch: Watch, connect: @escaping Connect) {
    self.name = name
    self.address = address
    self.watch = watch
    self.connect = connect
  }

  /// The name.
  public var description: String { name }

  package var remote: RemotePeer { RemotePeer(name: name, address: address) }

  /// The node in a directory. Another process may use it at the same time.
  public static func directory(_ url: URL) -> SyncPeer {
    let path = PeerAddress.absolute(url.path)
    return SyncPeer(path, address: path, watch: .log(path)) { options, _ in
      { (remote, node, writes) throws(NodeError) in
        try Node.directoryLink(remote.address, node, options, writes: writes) { _, _ in }
      }
    }
  }

  /// A store that answers at the other end of a transport.
  ///
  /// - Parameters:
  ///   - name: names the peer in errors and status values.
  ///   - open: connects to the peer, for one exchange. An error of it is a failure of the exchange.
  ///     The text of the error is shown.
  public static func transport(
    _ name: String, open: @escaping @Sendable () async throws -> any Transport
  ) -> SyncPeer {
    // Not an address of a directory, so it fits no remote in one.
    SyncPeer(name, address: "transport:\(name)", watch: .none) { _, interruption in
      { (_, _, _) throws(NodeError) in try TransportLink(name, interruption, open: open) }
    }
  }
}
