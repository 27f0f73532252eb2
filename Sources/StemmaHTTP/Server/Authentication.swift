import HTTPTypes
import Hummingbird
import StemmaNode

/// Determines what the caller may do. Without tokens and a secret, everything.
struct Authentication: RouterMiddleware {
  let directory: String
  let ports: Ports
  let pool: NodePool
  /// A token of this server alone, with all rights.
  let secret: String?
  /// Whether the server listens for this machine only.
  let isOnLoopback: Bool

  private static let scheme = "Bearer "

  func handle(
    _ request: Request, context: ServerContext, next: (Request, ServerContext) async throws -> Response
  ) async throws -> Response {
    var context = context
    let header = request.headers[.authorization]
    let isForeign = isOnLoopback && !Loopback.isNamed(by: request)
    // The file is read each time, so a revoked token is refused at once.
    let current: @Sendable () async throws -> Grant? = { [directory, ports, pool, secret] in
      try await pool.run { () throws -> Grant? in
        let tokens = try AccessTokens(of: directory, ports)
        if !tokens.areRequired, secret == nil {
          if isForeign { throw Problem.foreignOrigin }
          return .everything
        }
        guard let header, header.hasPrefix(Self.scheme) else { return nil }
        let given = String(header.dropFirst(Self.scheme.count))
        if let secret, AccessTokens.isEqual(given, secret) { return .everything }
        return try tokens.grant(for: given, at: ports.clock.milliseconds())
      }
    }
    let grant = try await current()
    guard let grant else { throw Problem.unauthenticated }
    context.grant = grant
    context.isGranted = { try await current() == grant }
    context.record.update { $0.token = grant.name }
    return try await next(request, context)
  }
}
