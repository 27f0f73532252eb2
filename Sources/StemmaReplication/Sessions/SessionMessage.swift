import StemmaEvents

/// What two nodes say to each other. A session is a greeting from each side, then transfers.
///
///     pull   → request                 push   → offer
///            ← chunk …, end                   ← request
///            → acknowledgement                → chunk …, end
///                                             ← acknowledgement
///
/// `→` is sent by the side that opened the session. Either side may send a refusal instead of its next
/// message; the session is over then.
package enum SessionMessage: Hashable, Sendable {
  case greeting(Greeting)
  /// "I have something for you in this scope": asks the other side for a request.
  case offer(NarrowedScope)
  /// "Send me what I lack in this scope", with what the asker holds of it.
  case request(TransferRequest)
  case chunk(Chunk)
  case end(TransferEnd)
  /// What the receiver durably holds now, in the scope of its request.
  case acknowledgement(Knowledge)
  case refusal(ReplicationError)
}

package struct TransferRequest: Hashable, Sendable {
  package var scope: NarrowedScope
  /// What the asker holds in `scope`.
  package var knowledge: Knowledge

  package init(scope: NarrowedScope, knowledge: Knowledge) {
    self.scope = scope
    self.knowledge = knowledge
  }
}

/// A part of one piece of a shipment, in order.
package struct Chunk: Hashable, Sendable {
  /// The number of the piece in this transfer, from 0.
  package var piece: UInt64
  package var isLast: Bool
  /// Shares the memory of the piece, or of the message that it came in.
  package var bytes: ArraySlice<UInt8>

  package init(piece: UInt64, isLast: Bool, bytes: ArraySlice<UInt8>) {
    self.piece = piece
    self.isLast = isLast
    self.bytes = bytes
  }
}

/// What the sender says after its last piece.
package struct TransferEnd: Hashable, Sendable {
  package var pieces: UInt64
  package var events: UInt64
  /// Bytes that the sender read from the files of its log for this transfer.
  package var bytesRead: UInt64
  /// What the sender holds in the scope of the request; the receiver must hold at least that now.
  package var knowledge: Knowledge

  package init(pieces: UInt64, events: UInt64, bytesRead: UInt64, knowledge: Knowledge) {
    self.pieces = pieces
    self.events = events
    self.bytesRead = bytesRead
    self.knowledge = knowledge
  }
}

extension SessionMessage {
  package var name: String {
    switch self {
    case .greeting: "greeting"
    case .offer: "offer"
    case .request: "request"
    case .chunk: "chunk"
    case .end: "end"
    case .acknowledgement: "acknowledgement"
    case .refusal: "refusal"
    }
  }
}

/// The bytes of a message: its type, its fields, and the CRC32C of both in 4 bytes, big-endian. A bit that
/// changes on the way would else make knowledge look like a fork, or an acknowledgement say too much. How
/// messages are told apart in a stream is the transport's matter.
///
///     1 greeting          see Greeting.swift
///     2 offer             scopes
///     3 request           scopes, knowledge
///     4 chunk             piece, last (1 byte), bytes to the checksum
///     5 end               pieces, events, bytes read, knowledge
///     6 acknowledgement   knowledge
///     7 refusal           see ReplicationError+Codec.swift
///
/// Scopes: their number, then each as the number of its patterns and their texts.
extension SessionMessage {
  package var encoded: [UInt8] { Self.seal(content) }

  /// Puts the checksum behind a type and fields.
  static func seal(_ content: [UInt8]) -> [UInt8] {
    var bytes = content
    bytes.appendFixed(CRC32C.of(content))
    return bytes
  }

  private var content: [UInt8] {
    var writer = WireWriter()
    switch self {
    case .greeting(let greeting):
      writer.append(byte: 1)
      greeting.encode(into: &writer)
    case .offer(let scope):
      writer.append(byte: 2)
      scope.encode(into: &writer)
    case .request(let request):
      writer.append(byte: 3)
      request.scope.encode(into: &writer)
      request.knowledge.encode(into: &writer)
    case .chunk(let chunk):
      writer.append(byte: 4)
      writer.append(chunk.piece)
      writer.append(byte: chunk.isLast ? 1 : 0)
      writer.append(raw: chunk.bytes)
    case .end(let end):
      writer.append(byte: 5)
      writer.append(end.pieces)
      writer.append(end.events)
      writer.append(end.bytesRead)
      end.knowledge.encode(into: &writer)
    case .acknowledgement(let knowledge):
      writer.append(byte: 6)
      knowledge.encode(into: &writer)
    case .refusal(let error):
      writer.append(byte: 7)
      error.encode(into: &writer)
    }
    return writer.bytes
  }

  /// Reads a message from anybody.
  package init(decoding bytes: [UInt8]) throws(ReplicationError) {
    guard bytes.count <= ReplicationLimits.message else {
      throw .overLimit("message", found: UInt64(bytes.count), limit: UInt64(ReplicationLimits.message))
    }
    let end = bytes.count - 4
    guard end > 0 else { throw .malformed("message", "\(bytes.count) bytes") }
    var checksum = WireReader(bytes[end...], subject: "message")
    guard try checksum.fixed32() == CRC32C.of(bytes[..<end]) else {
      throw .damaged("message", "its checksum does not hold")
    }
    var reader = WireReader(bytes[..<end], subject: "message")
    switch try reader.byte() {
    case 1: self = .greeting(try Greeting(from: &reader))
    case 2: self = .offer(try NarrowedScope(from: &reader))
    case 3:
      let scope = try NarrowedScope(from: &reader)
      self = .request(TransferRequest(scope: scope, knowledge: try Knowledge(from: &reader)))
    case 4:
      let piece = try reader.number("piece", limit: Limits.highestNumber)
      let last = try reader.byte()
      guard last <= 1, (1...ReplicationLimits.chunk).contains(reader.left) else {
        throw reader.malformed("a chunk of \(reader.left) bytes, last = \(last)")
      }
      self = .chunk(Chunk(piece: piece, isLast: last == 1, bytes: try reader.slice(reader.left)))
    case 5:
      let pieces = try reader.number("pieces", limit: Limits.highestNumber)
      let events = try reader.number("events", limit: Limits.highestNumber)
      let bytesRead = try reader.number("bytes read", limit: Limits.highestNumber)
      self = .end(
        TransferEnd(
          pieces: pieces, events: events, bytesRead: bytesRead, knowledge: try Knowledge(from: &reader)))
    case 6: self = .acknowledgement(try Knowledge(from: &reader))
    case 7: self = .refusal(try ReplicationError(from: &reader))
    case let type: throw reader.malformed("message type \(type)")
    }
    try reader.end()
  }
}
