import HTTPTypes
import Hummingbird
import StemmaNode

/// Determines what the caller may do. Without tokens, everything.
struct Authentication: RouterMiddleware {
  let directory: String
  let ports: Ports
  let pool: NodePool

  private static let scheme = "Bearer "

  func handle(
    _ request: Request, context: ServerContext, next: (Request, ServerContext) async throws -> Response
  ) async throws -> Response {
    var context = context
    let header = request.headers[.authorization]
    // The file is read each time, so a revoked token is refused at once.
    let grant = try await pool.run { [directory, ports] () throws -> Grant? in
      let tokens = try AccessTokens(of: directory, ports)
      if !tokens.areRequired { return .everything }
      guard let header, header.hasPrefix(Self.scheme) else { return nil }
      return try tokens.grant(
        for: String(header.dropFirst(Self.scheme.count)), at: ports.clock.milliseconds())
    }
    guard let grant else { throw Problem.unauthenticated }
    context.grant = grant
    context.record.update { $0.token = grant.name }
    return try await next(request, context)
  }
}
