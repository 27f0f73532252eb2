import Foundation
import StemmaNode
import StemmaSync

extension SyncPeer {
  /// A node behind `stemma serve`.
  ///
  /// Its change hints reach `Store.keepInSync(with:)` as they come. A wrong or expired token is the
  /// error `failed(.notPermitted, …)`. An unusable file of authorities or URL, and a server that
  /// does not answer, is `failed(.unreachable, …)`. Errors and descriptions contain no token.
  ///
  /// - Parameters:
  ///   - url: `http://` or `https://`, the host and the port. A user name, a password, a query and
  ///     a fragment are ignored.
  ///   - token: the secret that `stemma token create` has printed; nil: none. It is sent with each
  ///     request, so use `https://` between machines.
  ///   - authorities: a file of certificates, as PEM, that are trusted instead of the system's.
  public static func http(_ url: URL, token: String? = nil, authorities: URL? = nil) -> SyncPeer {
    let address = address(of: url)
    let options = HTTPOptions(token: token, authorities: authorities?.path)
    let watch = Watch.hints { wake in HTTPPeer.watch(wake) { try HTTPPeer.at(address, options) } }
    return SyncPeer(address, address: address, watch: watch) { _, interruption in
      { (_, _, _) throws(NodeError) in
        guard case .http = PeerAddress(address) else {
          throw .notAPeer(path: address, reason: "it is no URL of a server (http:// or https://)")
        }
        return try HTTPLink(try HTTPPeer.at(address, options), interruption)
      }
    }
  }

  /// The URL without its secrets.
  private static func address(of url: URL) -> String {
    guard var parts = URLComponents(url: url, resolvingAgainstBaseURL: true) else { return "an invalid URL" }
    parts.scheme = parts.scheme?.lowercased()
    parts.user = nil
    parts.password = nil
    parts.query = nil
    parts.fragment = nil
    return PeerAddress.stored(parts.string ?? "an invalid URL")
  }
}
