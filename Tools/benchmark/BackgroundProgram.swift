import Foundation
import Measuring

/// A program that runs beside the benchmark. It ends with this object.
///
/// It also ends if the benchmark is killed: a shell then reads the end of its input.
final class BackgroundProgram {
  private let process = Process()
  private let input = Pipe()
  /// The first line of the output, without its end.
  private(set) var firstLine = ""

  /// - Parameter readsLine: whether to wait for the first line. Other output is discarded.
  init(_ program: String, _ arguments: [String], readsLine: Bool = true) throws {
    let script = #"exec 3<&0; (read end <&3; kill $$) >/dev/null & exec "$0" "$@" </dev/null 3<&-"#
    process.executableURL = URL(fileURLWithPath: "/bin/sh")
    process.arguments = ["-c", script, program] + arguments
    process.standardInput = input
    process.standardError = FileHandle.nullDevice
    let output = Pipe()
    process.standardOutput = readsLine ? output : FileHandle.nullDevice
    // A later program must not hold the ends of these pipes.
    for pipe in [input, output] {
      for end in [pipe.fileHandleForReading, pipe.fileHandleForWriting] {
        _ = fcntl(end.fileDescriptor, F_SETFD, FD_CLOEXEC)
      }
    }
    // Threads of tasks block signals, and children inherit that.
    var (ending, before) = (sigset_t(), sigset_t())
    sigemptyset(&ending)
    sigaddset(&ending, SIGTERM)
    pthread_sigmask(SIG_UNBLOCK, &ending, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try process.run()
    var text = Data()
    while readsLine, !text.contains(UInt8(ascii: "\n")) {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      text += more
    }
    firstLine = String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    if readsLine, firstLine.isEmpty {
      throw BenchError("\(program) \(arguments.joined(separator: " ")) printed nothing")
    }
  }

  deinit {
    input.fileHandleForWriting.closeFile()
    kill(process.processIdentifier, SIGTERM)
    process.waitUntilExit()
  }

  /// Seconds of processor time so far; 0 on systems that do not show it.
  func cpuSeconds() throws -> Double {
    #if os(Linux)
      let text = try String(contentsOfFile: "/proc/\(process.processIdentifier)/stat", encoding: .utf8)
      // The name of the program, in parentheses, can contain spaces.
      let fields = text.split(separator: ")").last?.split(separator: " ") ?? []
      guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else {
        throw BenchError("/proc has no times of a process")
      }
      return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    #else
      return 0
    #endif
  }
}

/// A node behind `stemma serve`, at a free port of this machine.
final class ServedNode {
  let program: BackgroundProgram
  let url: String

  init(_ node: String, tool: String, _ arguments: [String] = []) throws {
    program = try BackgroundProgram(tool, ["-C", node, "serve", "--listen", "127.0.0.1:0"] + arguments)
    url = String(program.firstLine.split(separator: " ").last ?? "")
    guard url.hasPrefix("http") else { throw BenchError("a server printed \(program.firstLine)") }
  }
}

/// The files of a folder behind Python's HTTP server.
final class ServedFolder {
  let program: BackgroundProgram
  let url: String

  init(_ folder: String, python: String) throws {
    program = try BackgroundProgram(
      python, ["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", folder])
    // Serving HTTP on 127.0.0.1 port 8000 (http://127.0.0.1:8000/) ...
    let line = program.firstLine
    guard let begin = line.firstIndex(of: "("), let end = line.lastIndex(of: ")") else {
      throw BenchError("a server printed \(line)")
    }
    url = String(line[begin..<end].dropFirst())
  }
}

extension Bench {
  /// The path of a program; nil if it is not installed.
  func program(_ name: String) -> String? {
    (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":").map { "\($0)/\(name)" }
      .first { FileManager.default.isExecutableFile(atPath: $0) }
  }
}
