import Foundation
import Measuring

/// Lines that are posted over loopback, by bare sockets. The server appends each line to a file,
/// syncs it and answers. Each connection has a thread.
final class BareLineServer: Sendable {
  let port: UInt16
  private let listener: Int32
  private let file: Int32
  private let appending = NSLock()

  init(file path: String) throws {
    let socket = try BareSocket.make()
    listener = socket
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
    var address = BareSocket.address(port: 0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(socket, address, length) | listen(socket, 64) | getsockname(socket, address, &length)
      }
    }
    guard file >= 0, status == 0 else { throw BenchError("cannot listen") }
    port = UInt16(bigEndian: address.sin_port)
    Thread { [self] in accept() }.start()
  }

  deinit { close(file) }

  /// Ends the thread that accepts connections.
  func stop() { shutdown(listener, Int32(SHUT_RDWR)) }

  private func accept() {
    while true {
      let connection = Foundation.accept(listener, nil, nil)
      guard connection >= 0 else { break }
      Thread { [self] in serve(BareSocket(connection)) }.start()
    }
    close(listener)
  }

  /// Ends when the client closes the connection.
  private func serve(_ connection: BareSocket) {
    while let request = connection.message() {
      let isStored = appending.withLock {
        request.body.withUnsafeBytes { write(file, $0.baseAddress, $0.count) } == request.body.count
          && fdatasync(file) == 0
      }
      guard isStored, connection.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n\n") else { return }
    }
  }
}

/// A client of `BareLineServer`, which appends each line to a file of its own before.
final class BareLineClient {
  private let connection: BareSocket
  private let file: Int32

  init(file path: String, port: UInt16) throws {
    file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644)
    guard file >= 0 else { throw BenchError("cannot write \(path)") }
    let descriptor = try BareSocket.make()
    connection = BareSocket(descriptor)
    var address = BareSocket.address(port: port)
    let status = withUnsafePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        connect(descriptor, address, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard status == 0 else { throw BenchError("cannot connect") }
  }

  deinit { close(file) }

  /// Returns when both files have the line.
  func post(_ line: [UInt8]) throws {
    let head = "POST /line HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: \(line.count)\r\n\r\n"
    guard line.withUnsafeBytes({ write(file, $0.baseAddress, $0.count) }) == line.count,
      fdatasync(file) == 0, connection.send(head + String(decoding: line, as: UTF8.self)),
      connection.message()?.head.hasPrefix("HTTP/1.1 200") == true
    else { throw BenchError("a line was not stored") }
  }
}
