import Foundation
import Measuring

/// A connection over loopback that carries HTTP messages with a length.
final class BareSocket {
  private let descriptor: Int32
  private var bytes: [UInt8] = []

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    var isOn: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<Int32>.size))
  }

  deinit { close(descriptor) }

  static func make() throws -> Int32 {
    #if os(Linux)
      let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    #else
      let descriptor = socket(AF_INET, SOCK_STREAM, 0)
    #endif
    guard descriptor >= 0 else { throw BenchError("cannot make a socket") }
    return descriptor
  }

  static func address(port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
    return address
  }

  func send(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    #if os(Linux)
      let flags = Int32(MSG_NOSIGNAL)
    #else
      let flags: Int32 = 0
    #endif
    return Foundation.send(descriptor, bytes, bytes.count, flags) == bytes.count
  }

  /// The next message; nil at the end of the connection.
  func message() -> (head: String, body: [UInt8])? {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      if let message = takeMessage() { return message }
      let count = recv(descriptor, &buffer, buffer.count, 0)
      guard count > 0 else { return nil }
      bytes += buffer[..<count]
    }
  }

  private func takeMessage() -> (head: String, body: [UInt8])? {
    let end = Array("\r\n\r\n".utf8)
    guard let place = bytes.indices.first(where: { bytes[$0...].starts(with: end) }) else { return nil }
    let head = String(decoding: bytes[..<place], as: UTF8.self)
    let field = head.components(separatedBy: "\r\n").first { $0.hasPrefix("Content-Length: ") }
    guard let field, let length = Int(field.dropFirst(16)), bytes.count >= place + 4 + length else {
      return nil
    }
    let body = Array(bytes[(place + 4)..<(place + 4 + length)])
    bytes.removeFirst(place + 4 + length)
    return (head, body)
  }
}
