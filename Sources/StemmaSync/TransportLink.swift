import StemmaNode
import StemmaReplication

/// The bytes of a transport, for a thread that blocks.
struct TransportStream: ByteConnection {
  private let transport: any Transport
  private let interruption: Interruption

  init(_ transport: any Transport, _ interruption: Interruption) {
    self.transport = transport
    self.interruption = interruption
  }

  func send(_ bytes: [UInt8]) throws(NodeError) {
    try waiting { [transport] in try await transport.send(bytes) }
  }

  func receive() throws(NodeError) -> [UInt8] { try waiting { [transport] in try await transport.receive() } }

  func close() throws(NodeError) { try waiting { [transport] in try await transport.close() } }

  private func waiting<Result: Sendable>(
    _ body: @escaping @Sendable () async throws -> Result
  ) throws(NodeError) -> Result {
    do { return try interruption.wait(Double(ConnectionLimits.silence), body) } catch {
      let reason =
        switch error {
        case is Interruption.Silence: "no answer within \(ConnectionLimits.silence) seconds"
        case is CancellationError: "the session was cancelled"
        default: "\(error)"
        }
      throw .replication(.incomplete("the connection was lost (\(reason))"))
    }
  }
}

/// A peer that a transport of the app leads to.
final class TransportLink: PeerLink {
  private let connection: TransportStream
  private var stream: OpeningStream
  let greeting: Greeting
  var sharesMemory: Bool { false }
  var isOwn: Bool { false }

  /// - Throws: `.notAPeer` if the transport cannot be opened.
  init(
    _ name: String, _ interruption: Interruption, open: @escaping @Sendable () async throws -> any Transport
  ) throws(NodeError) {
    do {
      let transport = try interruption.wait(Double(ConnectionLimits.silence), open)
      connection = TransportStream(transport, interruption)
    } catch { throw .notAPeer(path: name, reason: "it cannot be reached: \("\(error)")") }
    stream = OpeningStream(to: name, connection)
    do throws(NodeError) { greeting = try stream.greet() } catch {
      Self.abandon(connection)
      throw error
    }
  }

  func send(_ message: SessionMessage) throws(NodeError) { try stream.send(message) }

  func receive() throws(NodeError) -> SessionMessage { try stream.receive() }

  func close(after error: NodeError?) throws(NodeError) -> [Notice] {
    if let error {
      stream.refuse(after: error)
      Self.abandon(connection)
      return []
    }
    try connection.close()
    do throws(NodeError) { try stream.waitForEnd() } catch .replication(.incomplete) {
      // The transport may have closed both directions. The peer has acknowledged the transfer.
    }
    return []
  }

  /// Closes the connection of a session that failed for another reason, which is the one to report.
  static func abandon(_ connection: TransportStream) {
    do throws(NodeError) { try connection.close() } catch _ {}
  }
}
