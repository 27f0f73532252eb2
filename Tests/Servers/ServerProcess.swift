import Foundation

/// A server that cannot be started.
package struct ServerError: Error, CustomStringConvertible {
  package let description: String
}

/// The programs of the servers. Without STEMMA_PEERS, tests that need those of `Tools/peers` are
/// skipped.
package enum Programs {
  private static let folder = ProcessInfo.processInfo.environment["STEMMA_PEERS"]
    .flatMap { $0.isEmpty ? nil : $0 }

  package static var areThere: Bool {
    if folder == nil { print("skipped: STEMMA_PEERS does not name the folder that Tools/peers prints") }
    return folder != nil
  }

  package static func ofPeers(_ name: String) throws -> String {
    guard let folder else { throw ServerError(description: "STEMMA_PEERS is not set") }
    return folder + "/bin/" + name
  }

  /// The first program of this name in the path, or in the folders of servers.
  package static func installed(_ name: String) -> String? {
    let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin"
    return (path.split(separator: ":").map(String.init) + ["/usr/sbin", "/usr/local/sbin"])
      .map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}

/// A folder that is removed with the object.
package final class Scratch: Sendable {
  package let path: String

  package init() throws {
    path = NSTemporaryDirectory() + "/stemma-hub-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  package func file(_ name: String) -> String { path + "/" + name }

  package func folder(_ name: String) throws -> String {
    try FileManager.default.createDirectory(atPath: file(name), withIntermediateDirectories: true)
    return file(name)
  }

  package func write(_ name: String, _ text: String) throws {
    try Data(text.utf8).write(to: URL(fileURLWithPath: file(name)))
  }
}

/// A server that is killed at the end of this object, or of this process.
package final class ServerProcess: @unchecked Sendable {
  // Unchecked, because Process is not Sendable. Tests of one server do not run in parallel.
  private let process = Process()
  private let input = Pipe()
  private let log: String
  /// The first line of the output, if it was awaited.
  package private(set) var firstLine = ""

  /// A shell kills the server when its input ends, which it does even if this process crashes.
  private static let guarding = #""$@" </dev/null & server=$!; read -r line; kill -9 $server"#

  package init(_ program: String, _ arguments: [String], in scratch: Scratch, readsLine: Bool = false) throws
  {
    log = scratch.file("log-\(UUID().uuidString)")
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", Self.guarding, "server", program] + arguments
    process.currentDirectoryURL = URL(fileURLWithPath: scratch.path)
    var variables = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("AWS_") }
    variables["HOME"] = scratch.path
    variables["TMPDIR"] = scratch.path
    process.environment = variables
    process.standardInput = input
    try Data().write(to: URL(fileURLWithPath: log))
    let errors = try FileHandle(forWritingTo: URL(fileURLWithPath: log))
    process.standardError = errors
    let output = Pipe()
    process.standardOutput = readsLine ? output : errors
    try process.run()
    guard readsLine else { return }
    var text = Data()
    while !text.contains(UInt8(ascii: "\n")) {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      text += more
    }
    firstLine = String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }

  deinit { kill() }

  /// Returns when the server has ended.
  package func kill() {
    guard process.isRunning else { return }
    try? input.fileHandleForWriting.close()
    process.waitUntilExit()
  }

  package var logText: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }
}

/// Ports of this machine that no program listens on.
package func freePorts(_ count: Int) throws -> [Int] {
  var descriptors: [Int32] = []
  defer { descriptors.forEach { close($0) } }
  return try (0..<count).map { _ in
    #if canImport(Darwin)
      let kind = SOCK_STREAM
    #else
      let kind = Int32(SOCK_STREAM.rawValue)
    #endif
    let descriptor = socket(AF_INET, kind, 0)
    descriptors.append(descriptor)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let port = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer -> UInt16? in
        guard bind(descriptor, pointer, length) == 0, getsockname(descriptor, pointer, &length) == 0
        else { return nil }
        return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { $0.pointee.sin_port }
      }
    }
    guard let port else { throw ServerError(description: "there is no free port") }
    return Int(UInt16(bigEndian: port))
  }
}

/// Repeats a check until it holds.
package func waitUntil(
  _ subject: String, within seconds: Double = 90, _ isReady: () throws -> Bool
) throws {
  let deadline = Date(timeIntervalSinceNow: seconds)
  while try !isReady() {
    guard Date() < deadline else {
      throw ServerError(description: "\(subject) is not ready after \(seconds) seconds")
    }
    usleep(100_000)
  }
}
