import StemmaNode
import StemmaReplication

/// Answers peers through streams.
package enum Serving {
  /// Answers one session of a peer, until the peer closes the connection.
  ///
  /// Adopted batches are durable even if the session fails. The peer receives a refusal with the
  /// reason.
  package static func answer(
    _ node: Node, _ stream: inout MessageStream, for rights: Rights
  ) throws(NodeError) {
    var answering: Answering?
    do throws(NodeError) {
      let session = try Answering(node, for: rights)
      answering = session
      while let message = try stream.receive() {
        try session.receive(message)
        while let answer = try session.next() { try stream.send(answer) }
      }
      if let error = session.closed() { throw .replication(error) }
    } catch {
      // The connection may be lost; the error of the session is the one to report.
      do throws(NodeError) { try stream.send(.refusal(error.refusal(isLimited: rights.isLimited))) } catch _ {
      }
      try answering?.finish(after: error)
      throw error
    }
    do throws(NodeError) { try answering?.finish() } catch {
      do throws(NodeError) { try stream.send(.refusal(error.refusal(isLimited: rights.isLimited))) } catch _ {
      }
      throw error
    }
  }

  /// Answers one session through a transport, and closes it. The peer may read and write every
  /// partition.
  package static func answer(
    _ node: Node, _ transport: any Transport, _ interruption: Interruption
  ) throws(NodeError) {
    let connection = TransportStream(transport, interruption)
    var stream = MessageStream(connection)
    do throws(NodeError) { try answer(node, &stream, for: .everything) } catch {
      TransportLink.abandon(connection)
      throw error
    }
    try connection.close()
  }
}
