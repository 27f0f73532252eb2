import Crypto
import Foundation
import StemmaNode
import StemmaReplication

/// The address of a hub: that of its store, and what is needed to reach it.
///
/// The text is a URL such as `s3://bucket/prefix?endpoint=http://localhost:8333&region=eu-1`. The
/// query has `endpoint`, `region`, `profile`, `path-style` (`yes` or `no`) and `key-file`, the path
/// of the key of a sealed hub. It contains no secret.
package struct HubAddress: Hashable, Sendable {
  /// Without the query.
  package var base: String
  package var options = StoreAddress.Options()
  package var keyFile: String?

  /// Throws `.notAPeer` for other parameters.
  package init(_ text: String) throws(NodeError) {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    base = String(parts[0])
    while base.hasSuffix("/"), !base.hasSuffix("//") { base.removeLast() }
    guard parts.count == 2 else { return }
    for parameter in parts[1].split(separator: "&") {
      let pair = parameter.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2, let value = String(pair[1]).removingPercentEncoding, !value.isEmpty else {
        throw .notAPeer(path: base, reason: "`\(parameter)` is no parameter of a hub's address")
      }
      switch pair[0] {
      case "endpoint": options.endpoint = value
      case "region": options.region = value
      case "profile": options.profile = value
      case "path-style": options.isPathStyle = value != "no"
      case "key-file": keyFile = value
      case let name:
        throw .notAPeer(
          path: base,
          reason:
            "`\(name)` is no parameter of a hub's address; those are endpoint, region, profile, path-style and key-file"
        )
      }
    }
  }

  package var text: String {
    var query: [(String, String)] = []
    if let endpoint = options.endpoint { query.append(("endpoint", endpoint)) }
    if let region = options.region { query.append(("region", region)) }
    if let profile = options.profile { query.append(("profile", profile)) }
    if let isPathStyle = options.isPathStyle { query.append(("path-style", isPathStyle ? "yes" : "no")) }
    if let keyFile { query.append(("key-file", keyFile)) }
    guard !query.isEmpty else { return base }
    return base + "?" + query.map { "\($0)=\(Self.percentEncoded($1))" }.joined(separator: "&")
  }

  /// A value of the query, or a path.
  static func percentEncoded(_ text: String) -> String {
    var allowed = CharacterSet.urlPathAllowed
    allowed.insert(charactersIn: ":")
    allowed.remove(charactersIn: "&+?=;")
    return text.addingPercentEncoding(withAllowedCharacters: allowed) ?? text
  }

  /// The store. Nothing is read from it yet, but the key is read from its file.
  package func open() throws(NodeError) -> OpenedStore {
    let counted: any CountedStore
    do throws(ObjectError) { counted = try StoreAddress(base).open(options) } catch {
      let bucket = base.split(separator: "/").prefix(2).joined(separator: "//")
      throw .notAPeer(path: base, reason: "\(error.reason.withoutName(bucket))")
    }
    guard let keyFile else { return OpenedStore(store: counted, counted: counted) }
    let key = try HubKey.read(keyFile)
    return OpenedStore(store: SealedStore(counted, key: key), counted: counted, key: key)
  }
}

/// The store of a hub.
package struct OpenedStore {
  package var store: any ObjectStore
  /// The same, or the one below a sealed one.
  package var counted: any CountedStore
  /// Nil: the hub is not sealed.
  package var key: SymmetricKey?
}
