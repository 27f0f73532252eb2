import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTPTypes
import StemmaNode
import StemmaReplication
import StemmaSync

/// The resources through which peers exchange events.
struct Exchanges: Sendable {
  let pool: NodePool
  /// Called after events were adopted.
  let changed: @Sendable () -> Void

  func add(to router: RouterGroup<ServerContext>) {
    router.get("node") { try await node($0, $1) }
    router.post("pull") { try await pull($0, $1) }
    router.post("have") { try await have($0, $1) }
    router.post("push") { try await push($0, $1) }
  }

  /// The greeting.
  private func node(_ request: Request, _ context: ServerContext) async throws -> Response {
    let (grant, record) = (context.grant, context.record)
    let greeting = try await session(context, writes: false) { lease in
      try await pool.run { try ServedSession(lease, grant, record).greeting }
    }
    if request.headers[.accept] == messagesType { return Self.response([greeting]) }
    guard case .greeting(let shown) = greeting else { return Self.response([greeting]) }
    return try NodeDocument(shown, grant).response
  }

  /// Ships the events that the caller lacks.
  private func pull(_ request: Request, _ context: ServerContext) async throws -> Response {
    let body = try await request.whole(limit: HTTPLimits.statement, context)
    let (grant, record) = (context.grant, context.record)
    let lease = try await pool.take(writes: false, for: grant.name)
    let served: ServedSession
    do {
      served = try await pool.run {
        let served = try ServedSession(lease, grant, record)
        try served.receive(body)
        if try served.answered().isEmpty {
          throw NodeError.replication(.incomplete("the body has no request"))
        }
        return served
      }
    } catch {
      pool.giveBack(lease, isReusable: false)
      throw Self.problem(error, grant)
    }
    let channel = context.channel
    return Response(
      status: .ok, headers: [.contentType: messagesType],
      body: ResponseBody { writer in
        var isWhole = false
        defer { pool.giveBack(lease, isReusable: isWhole) }
        var since = 0
        while let block = try await pool.run({ served.nextBlock() }) {
          since += block.readableBytes
          try await writer.write(block)
          if since >= HTTPLimits.pace {
            since = 0
            try await channel.eventLoop.submit {}.get()
          }
        }
        isWhole = true
        try await writer.finish(nil)
      })
  }

  /// Answers an offer with a request, or records what the caller holds.
  private func have(_ request: Request, _ context: ServerContext) async throws -> Response {
    let body = try await request.whole(limit: HTTPLimits.statement, context)
    let (grant, record) = (context.grant, context.record)
    return try await session(context, writes: true) { lease in
      let answers = try await pool.run {
        let served = try ServedSession(lease, grant, record)
        try served.receive(body)
        let answers = try served.stated()
        try served.finish()
        return answers
      }
      return Self.response(answers)
    }
  }

  /// Adopts the batches of the caller, each as soon as it is complete. A node is taken when the
  /// first block has arrived, so silent clients hold none.
  private func push(_ request: Request, _ context: ServerContext) async throws -> Response {
    let (grant, record) = (context.grant, context.record)
    try await request.expectBody(context)
    var blocks = BodyBlocks(request.body, record)
    guard let first = try await blocks.next() else { throw Problem.malformed("the body is empty") }
    return try await session(context, writes: true) { lease in
      let served = try await pool.run { try ServedSession(lease, grant, record, isShipment: true) }
      do {
        try await pool.run { try served.receive(first) }
        while let block = try await blocks.next() { try await pool.run { try served.receive(block) } }
        let answers = try await pool.run {
          let answers = try served.acknowledged()
          try served.finish()
          return answers
        }
        changed()
        return Self.response(answers)
      } catch {
        // Batches that were adopted stay.
        let reason = error as? NodeError ?? .replication(.incomplete("the body ended early"))
        try await pool.run { try served.finish(after: reason) }
        changed()
        throw error
      }
    }
  }

  // MARK: Requests

  /// Runs a session on a node, which is given back afterwards.
  private func session<Result>(
    _ context: ServerContext, writes: Bool, _ body: (NodePool.Lease) async throws -> Result
  ) async throws -> Result {
    let lease: NodePool.Lease
    do { lease = try await pool.take(writes: writes, for: context.grant.name) } catch {
      throw Self.problem(error, context.grant)
    }
    do {
      let result = try await body(lease)
      pool.giveBack(lease)
      return result
    } catch {
      pool.giveBack(lease, isReusable: false)
      throw Self.problem(error, context.grant)
    }
  }

  private static func problem(_ error: any Error, _ grant: Grant) -> any Error {
    guard let error = error as? NodeError else { return error }
    return Problem(error, isLimited: grant.rights.isLimited)
  }

  private static func response(_ messages: [SessionMessage]) -> Response {
    let bytes = messages.flatMap(MessageFraming.frame)
    return Response(
      status: .ok, headers: [.contentType: messagesType],
      body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
  }
}
