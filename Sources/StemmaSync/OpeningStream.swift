import StemmaNode
import StemmaReplication

/// The opening side of a session over a connection.
struct OpeningStream {
  /// The peer, as errors name it.
  let peer: String
  private var stream: MessageStream

  init(to peer: String, _ connection: some ByteConnection) {
    self.peer = peer
    stream = MessageStream(connection)
  }

  /// Asks for the greeting of the peer.
  mutating func greet() throws(NodeError) -> Greeting {
    try stream.send(.hello)
    switch try receive() {
    case .greeting(let greeting): return greeting
    case .refusal(let error): throw .replication(.refusedByPeer(error))
    case let other: throw .replication(.unexpectedMessage(other.name, expected: "greeting"))
    }
  }

  mutating func send(_ message: SessionMessage) throws(NodeError) {
    do throws(NodeError) { try stream.send(message) } catch {
      // The reason may have arrived before the connection was lost.
      var arrived: SessionMessage?
      do throws(NodeError) { arrived = try stream.receive() } catch _ {}
      if case .refusal(let reason)? = arrived { throw .replication(.refusedByPeer(reason)) }
      throw error
    }
  }

  mutating func receive() throws(NodeError) -> SessionMessage {
    guard let message = try stream.receive() else {
      throw .replication(.incomplete("\(peer) closed the connection"))
    }
    return message
  }

  /// Sends the reason for which this side ends the session.
  func refuse(after error: NodeError) {
    if case .replication(.refusedByPeer) = error { return }
    // The peer may be gone; the error of the session is the one to report.
    do throws(NodeError) { try stream.send(.refusal(error.refusal(isLimited: false))) } catch _ {}
  }

  /// Waits until the peer has ended the session. Nothing was sent after the last message.
  ///
  /// - Throws: `.replication(.refusedByPeer)` if the peer failed.
  mutating func waitForEnd() throws(NodeError) {
    if case .refusal(let reason)? = try stream.receive() { throw .replication(.refusedByPeer(reason)) }
  }
}
