import Foundation
import StemmaNode

/// A connection that carries bytes in both directions. The calls block.
package protocol ByteConnection {
  /// - Throws: `.replication(.incomplete)` if the connection is lost.
  func send(_ bytes: [UInt8]) throws(NodeError)
  /// Some bytes; empty at the end of the stream.
  ///
  /// - Throws: `.replication(.incomplete)` if the connection is lost.
  func receive() throws(NodeError) -> [UInt8]
}

enum ConnectionLimits {
  /// Longest silence of a peer, in seconds.
  static let silence: Int32 = 600
}

extension ByteStream: ByteConnection {
  package func send(_ bytes: [UInt8]) throws(NodeError) {
    do throws(Failure) { try write(bytes) } catch { throw error.lostConnection }
  }

  package func receive() throws(NodeError) -> [UInt8] {
    do throws(Failure) { return try read() } catch { throw error.lostConnection }
  }
}

extension ByteStream.Failure {
  fileprivate var lostConnection: NodeError {
    .replication(.incomplete("the connection was lost (\(String(cString: strerror(errno))))"))
  }
}
