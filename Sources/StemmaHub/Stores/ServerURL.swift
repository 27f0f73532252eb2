import Foundation
import StemmaReplication

/// The parts of an `http` or `https` URL.
struct ServerURL: Hashable, Sendable {
  var scheme: String
  /// Without brackets.
  var host: String
  var port: Int?
  /// Without percent encoding, and without a slash at the end.
  var path: String

  init(_ text: String) throws(ObjectError) {
    guard let parts = URLComponents(string: text), let scheme = parts.scheme?.lowercased(),
      ["http", "https"].contains(scheme), let host = parts.host, !host.isEmpty
    else {
      throw .refused("\"\(Self.withoutUser(text))\" is no URL of a server, such as https://HOST")
    }
    guard parts.user == nil, parts.password == nil else {
      throw .refused("\"\(Self.withoutUser(text))\": names and passwords in URLs are not supported")
    }
    guard parts.query == nil, parts.fragment == nil else {
      throw .refused("\"\(Self.withoutUser(text))\": the URL of a server has no query and no fragment")
    }
    // The HTTP client traps at a port beyond 16 bits.
    guard parts.port.map({ (1...65535).contains($0) }) ?? true else {
      throw .refused("\"\(Self.withoutUser(text))\": a port is a number between 1 and 65535")
    }
    self.scheme = scheme
    self.host = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    port = parts.port == (scheme == "https" ? 443 : 80) ? nil : parts.port
    var path = parts.path
    while path.hasSuffix("/") { path.removeLast() }
    self.path = path
  }

  /// The value of the header `host`.
  var authority: String {
    (host.contains(":") ? "[\(host)]" : host) + (port.map { ":\($0)" } ?? "")
  }

  /// - Parameter path: without percent encoding.
  func url(_ path: String, query: String = "") -> String {
    "\(scheme)://\(authority)\(SigV4.encoded(path, keepsSlashes: true))\(query.isEmpty ? "" : "?" + query)"
  }

  private static func withoutUser(_ text: String) -> String {
    ObjectKey.printable(text.replacing(#/\/\/[^\/]*@/#, with: "//…@"))
  }
}
