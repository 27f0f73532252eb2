import StemmaNode
import StemmaReplication

/// Session messages over a connection.
package struct MessageStream {
  private let connection: any ByteConnection
  private var decoder = MessageDecoder()

  package init(_ connection: some ByteConnection) { self.connection = connection }

  package func send(_ message: SessionMessage) throws(NodeError) {
    try connection.send(MessageFraming.frame(message))
  }

  /// The next message; nil at the end of the stream.
  package mutating func receive() throws(NodeError) -> SessionMessage? {
    while true {
      do throws(ReplicationError) {
        if let message = try decoder.next() { return message }
      } catch { throw .replication(error) }
      let arrived = try connection.receive()
      if arrived.isEmpty {
        if decoder.isBetweenMessages { return nil }
        throw .replication(.incomplete("the connection was lost within a message"))
      }
      decoder.append(arrived)
    }
  }
}
