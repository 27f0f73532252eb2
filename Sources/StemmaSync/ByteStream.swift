import Foundation

/// Two file descriptors of a connection, with blocking calls. All system calls of this module are
/// here.
///
/// The descriptors are owned by the caller.
package struct ByteStream {
  /// Why a call failed, as `errno`.
  package struct Failure: Error { package let errno: Int32 }

  private let input: Int32
  private let output: Int32
  private static let readSize = 1 << 18

  package init(input: Int32, output: Int32) {
    self.input = input
    self.output = output
  }

  /// Some bytes; empty at the end of the stream.
  package func read() throws(Failure) -> [UInt8] {
    while true {
      var poll = pollfd(fd: input, events: Int16(POLLIN), revents: 0)
      let ready = Foundation.poll(&poll, 1, ConnectionLimits.silence * 1000)
      if ready == 0 { throw Failure(errno: ETIMEDOUT) }
      var count = -1
      let bytes =
        ready < 0
        ? []
        : [UInt8](unsafeUninitializedCapacity: Self.readSize) { buffer, filled in
          count = Foundation.read(input, buffer.baseAddress, buffer.count)
          filled = max(count, 0)
        }
      if count >= 0 { return bytes }
      guard errno == EINTR || errno == EAGAIN else { throw Failure(errno: errno) }
    }
  }

  package func write(_ bytes: [UInt8]) throws(Failure) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes { buffer in
        Foundation.write(output, buffer.baseAddress?.advanced(by: sent), buffer.count - sent)
      }
      if count >= 0 {
        sent += count
      } else if errno != EINTR {
        throw Failure(errno: errno)
      }
    }
  }
}
