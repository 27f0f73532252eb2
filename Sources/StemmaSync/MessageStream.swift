import Foundation
import StemmaNode
import StemmaReplication

/// Session messages over a connection.
package struct MessageStream {
  private let bytes: ByteStream
  private var decoder = MessageDecoder()

  package init(_ bytes: ByteStream) { self.bytes = bytes }

  package func send(_ message: SessionMessage) throws(NodeError) {
    do throws(ByteStream.Failure) { try bytes.write(MessageFraming.frame(message)) } catch {
      throw .replication(.incomplete("the connection was lost (\(Self.reason(error)))"))
    }
  }

  /// The next message; nil at the end of the stream.
  package mutating func receive() throws(NodeError) -> SessionMessage? {
    while true {
      do throws(ReplicationError) {
        if let message = try decoder.next() { return message }
      } catch { throw .replication(error) }
      let arrived: [UInt8]
      do throws(ByteStream.Failure) { arrived = try bytes.read() } catch {
        throw .replication(.incomplete("the connection was lost (\(Self.reason(error)))"))
      }
      if arrived.isEmpty {
        if decoder.isBetweenMessages { return nil }
        throw .replication(.incomplete("the connection was lost within a message"))
      }
      decoder.append(arrived)
    }
  }

  private static func reason(_ failure: ByteStream.Failure) -> String {
    String(cString: strerror(failure.errno))
  }
}
