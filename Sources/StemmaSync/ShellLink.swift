import Foundation
import StemmaNode
import StemmaReplication

/// A peer that a remote shell starts: `ssh HOST stemma -C PATH serve --stdio`.
///
/// The messages go through a socket pair, because writing to a closed pipe would raise a signal.
package final class ShellLink: PeerLink {
  private let process = Process()
  private let address: String
  /// Runs a command of the tool at the peer.
  private let arguments: (String) -> [String]
  private let socket: FileHandle
  private var stream: OpeningStream
  package private(set) var greeting: Greeting
  package var sharesMemory: Bool { false }
  package var isOwn: Bool { false }

  /// How long the program may take to end after a session, in seconds.
  private static let grace = 10.0

  /// - Parameter command: the words of the remote shell, split by `sh`; `HOST` and the remote
  ///   command follow.
  /// - Throws: `.notAPeer` if the program cannot be started or ends at once; its own message is on
  ///   standard error.
  package init(host: String, path: String, command: String) throws(NodeError) {
    address = "\(host):\(path)"
    var ends: [Int32] = [-1, -1]
    #if canImport(Darwin)
      let type = SOCK_STREAM
    #else
      let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    #endif
    guard socketpair(AF_UNIX, type, 0, &ends) == 0 else {
      throw .notAPeer(path: address, reason: "\(String(cString: strerror(errno)))")
    }
    let theirs = FileHandle(fileDescriptor: ends[1], closeOnDealloc: true)
    socket = FileHandle(fileDescriptor: ends[0], closeOnDealloc: true)
    stream = OpeningStream(to: address, ByteStream(input: ends[0], output: ends[0]))
    arguments = { ["-c", "exec \(command) \"$@\"", "sh", host, "stemma -C \(Self.quoted(path)) \($0)"] }
    process.executableURL = Self.interpreter
    process.arguments = arguments("serve --stdio")
    process.standardInput = theirs
    process.standardOutput = theirs
    // A placeholder until the peer has answered.
    greeting = Greeting(logID: .init(0), nodeName: "", origins: [], schema: "", scope: .nothing)
    do { try process.run() } catch {
      throw .notAPeer(path: address, reason: "\(command) cannot be started: \(error.localizedDescription)")
    }
    do { try theirs.close() } catch {
      throw .notAPeer(path: address, reason: "\(error.localizedDescription)")
    }
    do throws(NodeError) { greeting = try stream.greet() } catch {
      end()
      if case .replication(.incomplete) = error {
        throw .notAPeer(
          path: address, reason: "\(command) ended with status \(process.terminationStatus) before an answer")
      }
      throw error
    }
  }

  package func send(_ message: SessionMessage) throws(NodeError) { try stream.send(message) }

  package func receive() throws(NodeError) -> SessionMessage { try stream.receive() }

  package func digests(of patterns: [String]) throws(NodeError) -> [Node.PartitionDigest] {
    let asking = Process()
    let output = Pipe()
    asking.executableURL = Self.interpreter
    asking.arguments = arguments(
      "digest --json" + patterns.map { " --partition \(Self.quoted($0))" }.joined())
    asking.standardInput = FileHandle.nullDevice
    asking.standardOutput = output
    do {
      try asking.run()
      let text = try output.fileHandleForReading.readToEnd() ?? Data()
      asking.waitUntilExit()
      guard asking.terminationStatus == 0 else {
        throw NodeError.notAPeer(
          path: address, reason: "it gave no digests (status \(asking.terminationStatus))")
      }
      // A key that permits only `serve` gives no text.
      return try JSONDecoder().decode([Node.PartitionDigest].self, from: text)
    } catch let error as NodeError {
      throw error
    } catch is DecodingError {
      throw .notAPeer(path: address, reason: "it gave no digests")
    } catch {
      throw .notAPeer(path: address, reason: "it cannot be asked: \(error.localizedDescription)")
    }
  }

  private static let interpreter = URL(fileURLWithPath: "/bin/sh")

  private static func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "'\\''") + "'" }

  package func close(after error: NodeError?) throws(NodeError) -> [Notice] {
    defer { end() }
    if let error {
      stream.refuse(after: error)
    } else {
      shutdown(socket.fileDescriptor, Self.sending)
      try stream.waitForEnd()
    }
    return []
  }

  #if canImport(Darwin)
    private static let sending = SHUT_WR
    private static let both = SHUT_RDWR
  #else
    private static let sending = Int32(SHUT_WR)
    private static let both = Int32(SHUT_RDWR)
  #endif

  /// Waits for the program, and ends it if it does not end by itself.
  private func end() {
    shutdown(socket.fileDescriptor, Self.both)
    let deadline = Date().addingTimeInterval(Self.grace)
    while process.isRunning, Date() < deadline { usleep(5000) }
    if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    process.waitUntilExit()
  }
}
