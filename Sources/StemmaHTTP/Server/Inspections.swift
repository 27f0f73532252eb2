import HTTPTypes
import Hummingbird
import NIOCore
import StemmaEvents
import StemmaNode
import StemmaReplication
import StemmaSchema

/// Resources for programs that are no peers.
struct Inspections: Sendable {
  let pool: NodePool

  func add(to router: RouterGroup<ServerContext>) {
    router.get("schema") { request, context in
      let sdl = try await reading(for: context.grant.name) { SDL.print($0.schema) }
      let tag = "\"\(Greeting.digest(ofSchema: sdl).hexadecimal)\""
      if request.headers[.ifNoneMatch] == tag {
        return Response(status: .notModified, headers: [.eTag: tag])
      }
      return Response(
        status: .ok, headers: [.contentType: "application/graphql", .eTag: tag],
        body: ResponseBody(byteBuffer: ByteBuffer(string: sdl)))
    }
    router.get("digests") { request, context in
      let readable = context.grant.rights.readable
      let wanted = request.uri.queryParameters.getAll("partition")
      let digests = try await reading(for: context.grant.name) { node in
        let scope = try Node.scope(wanted.isEmpty ? Scope.everything.patterns : wanted)
        return try node.digests(within: [scope, readable])
      }
      return try Response.json(digests)
    }
  }

  private func reading<Result: Sendable>(
    for token: String?, _ body: @escaping @Sendable (Node) throws -> Result
  ) async throws -> Result {
    let lease = try await pool.take(writes: false, for: token)
    do {
      let result = try await pool.run { try body(lease.node) }
      pool.giveBack(lease)
      return result
    } catch {
      pool.giveBack(lease, isReusable: false)
      if let error = error as? NodeError { throw Problem(error, isLimited: true) }
      throw error
    }
  }
}
