import Foundation
import StemmaEvents
import StemmaLog
import StemmaNode
import StemmaReplication
import StemmaSync

extension Hub.Options {
  /// The options of a node: jittered pauses, the clock and random numbers of its ports.
  package static func ordinary(_ ports: Ports = Ports()) -> Hub.Options {
    Hub.Options(
      pause: { failures in
        let longest = min(0.1 * pow(2, Double(failures - 1)), 5)
        Thread.sleep(forTimeInterval: longest * Double.random(in: 0.5...1))
      },
      now: { ports.clock.milliseconds() }, makeLogID: { LogID(ports.newID()) })
  }
}

extension HubLink {
  /// Connects to the hub at the remote's address (`Connector`).
  package static func connect(
    _ remote: RemotePeer, _ node: Node?, _ writes: Bool
  ) throws(NodeError) -> any PeerLink {
    let address = try HubAddress(remote.address)
    let name = remote.name == remote.address ? address.base : remote.name
    let opened = try address.open()
    return try HubLink(
      name, opened.store, key: opened.key, node, writes: writes,
      .ordinary(node?.ports ?? Ports()))
  }
}

extension SyncPeer {
  /// A hub: a bucket, a folder, or a web site.
  ///
  /// `Store.keepInSync(with:)` asks it at an interval, and pushes own changes at once. A hub that
  /// cannot be reached, is sealed with another key, or is none, is the error
  /// `failed(.unreachable, …)`.
  ///
  /// - Parameter address: `s3://BUCKET/PREFIX`, `file:///FOLDER` or `https://HOST/PATH` (read
  ///   only). Its query has the parameters that `stemma remote add` prints. Credentials come from
  ///   the environment and the files in `~/.aws`.
  public static func hub(_ address: String) -> SyncPeer {
    SyncPeer(address, address: PeerAddress.stored(address), watch: .none) { _, _ in
      HubLink.connect
    }
  }
}
