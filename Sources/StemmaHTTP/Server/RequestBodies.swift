import HTTPTypes
import Hummingbird
import NIOCore
import NIOHTTPTypes

extension Request {
  /// The whole body, which is held in memory.
  func whole(limit: Int, _ context: ServerContext) async throws -> ByteBuffer {
    try await expectBody(context)
    if let length = headers[.contentLength].flatMap(Int.init), length > limit { throw Problem.tooLarge }
    var bytes = ByteBuffer()
    var pace = BodyPace()
    for try await part in body {
      try pace.add(part.readableBytes)
      guard bytes.readableBytes + part.readableBytes <= limit else { throw Problem.tooLarge }
      bytes.writeImmutableBuffer(part)
    }
    let count = UInt64(bytes.readableBytes)
    context.record.update { $0.received = count }
    return bytes
  }

  /// A client may wait for permission to send a long body.
  func expectBody(_ context: ServerContext) async throws {
    guard headers[.expect]?.lowercased() == "100-continue" else { return }
    try await context.channel.writeAndFlush(HTTPResponsePart.head(.init(status: .continue)))
  }
}

/// The blocks of a request body, so that each is worth a call on a node thread.
struct BodyBlocks {
  private var parts: RequestBody.AsyncIterator
  private let record: RequestRecord
  private var pace = BodyPace()

  init(_ body: RequestBody, _ record: RequestRecord) {
    parts = body.makeAsyncIterator()
    self.record = record
  }

  /// Nil at the end of the body.
  mutating func next() async throws -> ByteBuffer? {
    var block = ByteBuffer()
    while block.readableBytes < HTTPLimits.block, let part = try await parts.next() {
      let count = part.readableBytes
      record.update { $0.received += UInt64(count) }
      try pace.add(count)
      block.writeImmutableBuffer(part)
    }
    return block.readableBytes == 0 ? nil : block
  }
}

/// Refuses a body that arrives too slowly.
private struct BodyPace {
  private let begun = ContinuousClock.now
  private var bytes = 0

  mutating func add(_ count: Int) throws {
    bytes += count
    let allowed = HTTPLimits.bodyGrace + bytes / HTTPLimits.slowestBody
    if ContinuousClock.now - begun > .seconds(allowed) { throw Problem.slow }
  }
}
