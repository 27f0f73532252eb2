import StemmaNode
import StemmaReplication

/// Answers peers through streams.
package enum Serving {
  /// Answers one session of a peer, until the peer closes the connection.
  ///
  /// Adopted batches are durable even if the session fails. The peer receives a refusal with the
  /// reason.
  /// - Parameters:
  ///   - readable: the partitions that the peer may read.
  ///   - writable: the partitions that it may write.
  package static func answer(
    _ node: Node, _ stream: inout MessageStream, readable: Scope = .everything, writable: Scope = .everything
  ) throws(NodeError) {
    let isLimited = !(readable.isEverything && writable.isEverything)
    var answering: Answering?
    do throws(NodeError) {
      let session = try Answering(node, readable: readable, writable: writable)
      answering = session
      while let message = try stream.receive() {
        try session.receive(message)
        while let answer = try session.next() { try stream.send(answer) }
      }
      if let error = session.closed() { throw .replication(error) }
    } catch {
      // The connection may be lost; the error of the session is the one to report.
      do throws(NodeError) { try stream.send(.refusal(error.refusal(isLimited: isLimited))) } catch _ {}
      try answering?.finish(after: error)
      throw error
    }
    do throws(NodeError) { try answering?.finish() } catch {
      do throws(NodeError) { try stream.send(.refusal(error.refusal(isLimited: isLimited))) } catch _ {}
      throw error
    }
  }
}
