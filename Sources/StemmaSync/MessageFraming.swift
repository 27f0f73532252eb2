import StemmaReplication

/// Messages in a stream of bytes: each has its length in 4 bytes, big-endian, and then its encoding
/// (`SessionMessage`).
package enum MessageFraming {
  package static let prefix = 4

  package static func frame(_ message: SessionMessage) -> [UInt8] {
    let bytes = message.encoded
    var framed: [UInt8] = []
    framed.reserveCapacity(prefix + bytes.count)
    withUnsafeBytes(of: UInt32(bytes.count).bigEndian) { framed += $0 }
    framed += bytes
    return framed
  }
}

/// Splits a stream of bytes from an untrusted peer into messages. Memory grows with the bytes that
/// have arrived, not with an announced length.
package struct MessageDecoder: Sendable {
  private var pending: [UInt8] = []
  private var start = 0

  package init() {}

  package mutating func append(_ bytes: some Collection<UInt8>) {
    if start > 0 {
      pending.removeFirst(start)
      start = 0
    }
    pending += bytes
  }

  /// The next complete message; nil: more bytes are needed.
  package mutating func next() throws(ReplicationError) -> SessionMessage? {
    guard let length = try nextLength(), pending.count - start >= MessageFraming.prefix + length else {
      return nil
    }
    let first = start + MessageFraming.prefix
    let message = try SessionMessage(decoding: Array(pending[first..<first + length]))
    start = first + length
    if start == pending.count {
      pending = []
      start = 0
    }
    return message
  }

  /// Whether the bytes so far end between two messages.
  package var isBetweenMessages: Bool { start == pending.count }

  private func nextLength() throws(ReplicationError) -> Int? {
    guard pending.count - start >= MessageFraming.prefix else { return nil }
    let length = pending[start..<start + MessageFraming.prefix].reduce(0) { $0 << 8 | Int($1) }
    guard length <= ReplicationLimits.message else {
      throw .overLimit("message", found: UInt64(length), limit: UInt64(ReplicationLimits.message))
    }
    return length
  }
}
