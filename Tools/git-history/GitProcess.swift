import Foundation

/// Failures of the tool. The texts address its user.
enum GitHistoryError: Error, CustomStringConvertible {
  case notARepository(String)
  case unreadable(path: String, errno: Int32)
  case gitFailed(arguments: [String], status: Int32)
  case unexpectedOutput(String)
  case invalidLine(Int, String)

  var description: String {
    switch self {
    case .notARepository(let path): "\(path) is not in a git repository"
    case .unreadable(let path, let errno): "\(path): \(String(cString: strerror(errno)))"
    case .gitFailed(let arguments, let status):
      "git \(arguments.first ?? "") ended with \(status); its own message is above"
    case .unexpectedOutput(let what): "git printed what this tool does not understand: \(what)"
    case .invalidLine(let number, let why): "line \(number): \(why)"
    }
  }

  /// After sysexits.h.
  var exitCode: Int32 {
    switch self {
    case .notARepository: 66
    case .unreadable: 66
    case .invalidLine: 65
    case .gitFailed, .unexpectedOutput: 74
    }
  }
}

/// A running git whose output is read as a stream.
final class GitProcess {
  private let process = Process()
  private let output = Pipe()
  private let input = Pipe()
  private let arguments: [String]
  private var buffer: [UInt8] = []
  private var next = 0

  /// `quiet` discards git's own messages.
  init(in directory: String, _ arguments: [String], takesInput: Bool = false, quiet: Bool = false) throws {
    self.arguments = arguments
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = ["git", "-C", directory] + arguments
    // A partial clone must not fetch missing objects for this tool.
    process.environment = ProcessInfo.processInfo.environment.merging(
      ["LC_ALL": "C", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"]) { _, ours in ours }
    process.standardOutput = output
    process.standardInput = takesInput ? input : FileHandle.nullDevice
    if quiet { process.standardError = FileHandle.nullDevice }
    try process.run()
  }

  func write(_ bytes: [UInt8]) throws {
    try input.fileHandleForWriting.write(contentsOf: Data(bytes))
  }

  /// Returns the bytes up to the next `delimiter`, without it; nil at the end. Bytes after the last
  /// delimiter form one more item.
  func item(endingWith delimiter: UInt8) throws -> [UInt8]? {
    var searched = next
    while true {
      if let end = buffer[searched...].firstIndex(of: delimiter) {
        defer { next = end + 1 }
        return Array(buffer[next..<end])
      }
      searched = buffer.count
      let consumed = next
      guard try fill() else {
        defer { next = buffer.count }
        return next < buffer.count ? Array(buffer[next...]) : nil
      }
      // `fill` drops what was consumed.
      searched -= consumed
    }
  }

  /// All remaining output.
  func rest() throws -> String {
    while try fill() {}
    defer { next = buffer.count }
    return String(decoding: buffer[next...], as: UTF8.self)
  }

  /// Returns false at the end. A read returns the available bytes; FileHandle would wait for the
  /// requested count.
  private func fill() throws -> Bool {
    buffer.removeFirst(next)
    next = 0
    let size = 1 << 16
    let descriptor = output.fileHandleForReading.fileDescriptor
    var count = 0
    let chunk = [UInt8](unsafeUninitializedCapacity: size) { target, initialized in
      repeat { count = read(descriptor, target.baseAddress, size) } while count < 0 && errno == EINTR
      initialized = max(0, count)
    }
    guard count >= 0 else { throw GitHistoryError.unreadable(path: "the output of git", errno: errno) }
    buffer += chunk
    return count > 0
  }

  /// Waits for the end. Throws unless `accepting` accepts the exit status (default: 0).
  @discardableResult
  func finish(accepting: (Int32) -> Bool = { $0 == 0 }) throws -> Int32 {
    try input.fileHandleForWriting.close()
    process.waitUntilExit()
    let status = process.terminationStatus
    guard accepting(status) else { throw GitHistoryError.gitFailed(arguments: arguments, status: status) }
    return status
  }
}
