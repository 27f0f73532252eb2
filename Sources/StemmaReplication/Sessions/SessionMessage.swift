import StemmaEvents

/// The messages between two nodes. A session is a greeting from each side, then transfers.
///
///     pull   → request                 push   → offer
///            ← holding, chunk …, end          ← request
///            → acknowledgement                → holding, chunk …, end
///                                             ← acknowledgement
///
/// The opening side sends `→`. Either side may send a refusal instead of its next message, which
/// ends the session. `hello` before the greeting asks for the other side's greeting alone. A
/// `holding` between transfers is an acknowledgement on another connection.
package enum SessionMessage: Hashable, Sendable {
  /// Asks for the greeting of the answering side, before the own one.
  case hello
  case greeting(Greeting)
  /// Events in this scope are available: asks the other side for a request.
  case offer(NarrowedScope)
  /// Requests the missing events of a scope, with the version vector of the requesting node.
  case request(TransferRequest)
  /// The version vector of the sender in a scope. It precedes the chunks of a transfer, so that the
  /// receiver can compare both histories before it adopts anything.
  case holding(TransferRequest)
  case chunk(Chunk)
  case end(TransferEnd)
  /// The durable events of the receiver, in the scope of its request.
  case acknowledgement(VersionVector)
  case refusal(ReplicationError)
}

package struct TransferRequest: Hashable, Sendable {
  package var scope: NarrowedScope
  /// The version vector of the requesting node in `scope`.
  package var versionVector: VersionVector

  package init(scope: NarrowedScope, versionVector: VersionVector) {
    self.scope = scope
    self.versionVector = versionVector
  }

  fileprivate func encode(into writer: inout [UInt8]) {
    scope.encode(into: &writer)
    versionVector.encode(into: &writer)
  }

  fileprivate init(from reader: inout WireReader) throws(ReplicationError) {
    scope = try NarrowedScope(from: &reader)
    versionVector = try VersionVector(from: &reader)
  }
}

/// A part of one batch of a shipment, in order.
package struct Chunk: Hashable, Sendable {
  /// The number of the batch in this transfer, from 0.
  package var batch: UInt64
  package var isLast: Bool
  /// Shares the memory of the batch, or of the received message.
  package var bytes: ArraySlice<UInt8>

  package init(batch: UInt64, isLast: Bool, bytes: ArraySlice<UInt8>) {
    self.batch = batch
    self.isLast = isLast
    self.bytes = bytes
  }
}

extension SessionMessage {
  package var name: String {
    switch self {
    case .hello: "hello"
    case .greeting: "greeting"
    case .offer: "offer"
    case .request: "request"
    case .holding: "holding"
    case .chunk: "chunk"
    case .end: "end"
    case .acknowledgement: "acknowledgement"
    case .refusal: "refusal"
    }
  }
}

/// The encoding of a message: its type, its fields, and the CRC32C of both in 4 bytes, big-endian.
/// Without it, a flipped bit could turn a version vector into a fork, or acknowledge too much. The
/// transport separates the messages of a stream.
///
///     1 greeting          see Greeting.swift
///     2 offer             scopes
///     3 request           scopes, version vector
///     4 chunk             batch, last (1 byte), bytes to the checksum
///     5 end               batches, events, bytes read
///     6 acknowledgement   version vector
///     7 refusal           see ReplicationError+Codec.swift
///     8 hello             nothing
///     9 holding           scopes, version vector
///
/// Scopes: their number, then each as the number of its patterns and their texts.
extension SessionMessage {
  package var encoded: [UInt8] { Self.seal(content) }

  /// Appends the checksum to a type and fields.
  static func seal(_ content: [UInt8]) -> [UInt8] {
    var bytes = content
    bytes.appendFixed(CRC32C.of(content))
    return bytes
  }

  private var content: [UInt8] {
    var writer: [UInt8] = []
    switch self {
    case .greeting(let greeting):
      writer.append(1)
      greeting.encode(into: &writer)
    case .offer(let scope):
      writer.append(2)
      scope.encode(into: &writer)
    case .request(let request):
      writer.append(3)
      request.encode(into: &writer)
    case .chunk(let chunk):
      writer.append(4)
      writer.appendVarint(chunk.batch)
      writer.append(chunk.isLast ? 1 : 0)
      writer += chunk.bytes
    case .end(let end):
      writer.append(5)
      writer.appendVarint(end.batches)
      writer.appendVarint(end.events)
      writer.appendVarint(end.bytesRead)
    case .acknowledgement(let versionVector):
      writer.append(6)
      versionVector.encode(into: &writer)
    case .refusal(let error):
      writer.append(7)
      error.encode(into: &writer)
    case .hello: writer.append(8)
    case .holding(let holding):
      writer.append(9)
      holding.encode(into: &writer)
    }
    return writer
  }

  /// Decodes a message from an untrusted sender.
  package init(decoding bytes: [UInt8]) throws(ReplicationError) {
    guard bytes.count <= ReplicationLimits.message else {
      throw .overLimit("message", found: UInt64(bytes.count), limit: UInt64(ReplicationLimits.message))
    }
    let end = bytes.count - 4
    guard end > 0 else { throw .malformed("message", "\(bytes.count) bytes") }
    let checksum = try bytes.read(from: end) { (reader) throws(ReplicationError) in
      try reader.fixed32("message")
    }
    guard checksum == CRC32C.of(bytes[..<end]) else {
      throw .corrupt("message", "its checksum does not hold")
    }
    self = try bytes[..<end].read { (reader) throws(ReplicationError) in
      let message = try Self.message(from: &reader, of: bytes)
      try reader.finish("message")
      return message
    }
  }

  /// `bytes`: the message, whose memory a chunk shares.
  private static func message(
    from reader: inout WireReader, of bytes: [UInt8]
  ) throws(ReplicationError) -> SessionMessage {
    switch try reader.byte("message") {
    case 1: return .greeting(try Greeting(from: &reader))
    case 2: return .offer(try NarrowedScope(from: &reader))
    case 3: return .request(try TransferRequest(from: &reader))
    case 4:
      let batch = try reader.number("batch", limit: Limits.highestNumber)
      let last = try reader.byte("message")
      guard last <= 1, (1...ReplicationLimits.chunk).contains(reader.remaining) else {
        throw .malformed("message", "a chunk of \(reader.remaining) bytes, last = \(last)")
      }
      let start = reader.offset
      let count = try reader.bytes(reader.remaining, "message").count
      return .chunk(Chunk(batch: batch, isLast: last == 1, bytes: bytes[start..<start + count]))
    case 5:
      let batches = try reader.number("batches", limit: Limits.highestNumber)
      let events = try reader.number("events", limit: Limits.highestNumber)
      let bytesRead = try reader.number("bytes read", limit: Limits.highestNumber)
      return .end(TransferEnd(batches: batches, events: events, bytesRead: bytesRead))
    case 6: return .acknowledgement(try VersionVector(from: &reader))
    case 7: return .refusal(try ReplicationError(from: &reader))
    case 8: return .hello
    case 9: return .holding(try TransferRequest(from: &reader))
    case let type: throw .malformed("message", "message type \(type)")
    }
  }
}
