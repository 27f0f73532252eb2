import HTTPTypes
import Hummingbird

/// Refuses requests that the page of another site makes in a browser.
///
/// A browser names that site in `Origin`, or says so in `Sec-Fetch-Site`.
struct SameOrigin: RouterMiddleware {
  func handle(
    _ request: Request, context: ServerContext, next: (Request, ServerContext) async throws -> Response
  ) async throws -> Response {
    let authority = request.head.authority ?? ""
    if let name = HTTPField.Name("Origin"), let origin = request.headers[name] {
      guard origin.hasSuffix("://" + authority), !authority.isEmpty else { throw Problem.foreignOrigin }
    }
    if let name = HTTPField.Name("Sec-Fetch-Site"), request.headers[name] == "cross-site" {
      throw Problem.foreignOrigin
    }
    return try await next(request, context)
  }
}

/// The names by which this machine reaches itself.
enum Loopback {
  static let hosts: Set = ["localhost", "127.0.0.1", "::1"]

  /// Whether the `Host` of a request names this machine. A page of another site can have its own
  /// name resolved to this machine, and is then of the same origin for the browser.
  static func isNamed(by request: Request) -> Bool {
    guard var host = request.head.authority?[...], !host.isEmpty else { return true }
    if let colon = host.lastIndex(of: ":"), !host.hasSuffix("]") { host = host[..<colon] }
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    return hosts.contains(String(host))
  }
}
