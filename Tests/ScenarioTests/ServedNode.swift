import Foundation
import Testing

/// A program that runs until it is ended. Its first line of output is awaited.
final class Background {
  private let process = Process()
  private let output = Pipe()
  private let errors: URL
  /// The first line of the output.
  let firstLine: String

  init(
    _ program: String, _ arguments: [String], in work: Workplace, environment: [String: String] = [:],
    readsLine: Bool = true
  ) throws {
    process.executableURL = URL(fileURLWithPath: program)
    process.arguments = arguments
    process.currentDirectoryURL = URL(fileURLWithPath: work.path)
    var variables = ProcessInfo.processInfo.environment
    variables["STEMMA_AUTHOR"] = ""
    process.environment = variables.merging(environment) { $1 }
    process.standardOutput = output
    errors = URL(fileURLWithPath: work.file("errors-\(UUID().uuidString)"))
    try Data().write(to: errors)
    process.standardError = try FileHandle(forWritingTo: errors)
    process.standardInput = FileHandle.nullDevice
    try process.begin()
    var text = Data()
    while readsLine, !text.contains(UInt8(ascii: "\n")) {
      let more = output.fileHandleForReading.availableData
      if more.isEmpty { break }
      text += more
    }
    firstLine = String(decoding: text.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
  }

  deinit { process.signal(SIGKILL) }

  var processIdentifier: Int32 { process.processIdentifier }
  var isRunning: Bool { process.isRunning }
  var errorText: String { (try? String(contentsOf: errors, encoding: .utf8)) ?? "" }

  /// The size of the memory in use; nil: unknown on this system.
  var residentKilobytes: Int? {
    let path = "/proc/\(process.processIdentifier)/status"
    guard let status = try? String(contentsOfFile: path, encoding: .utf8),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmRSS") })
    else { return nil }
    return line.split(separator: " ").compactMap { Int($0) }.first
  }

  /// Waits for the end of the program and returns its exit status.
  func wait() -> Int32 {
    process.waitUntilExit()
    return process.terminationStatus
  }

  /// Ends the program with a signal and returns its exit status.
  @discardableResult
  func end(_ signal: Int32 = SIGTERM) -> Int32 {
    process.signal(signal)
    process.waitUntilExit()
    return process.terminationStatus
  }
}

extension Tool {
  static var hasCurl: Bool {
    let isThere = ["/usr/bin/curl", "/usr/local/bin/curl"].contains(
      where: FileManager.default.isExecutableFile)
    if !isThere { print("skipped: there is no curl") }
    return isThere
  }
}

/// A node behind `stemma serve`.
final class ServedNode {
  let program: Background
  let url: String

  /// - Parameter port: 0: any free one.
  init(_ node: String, in work: Workplace, port: Int = 0, _ arguments: [String] = []) throws {
    program = try Background(
      Tool.path, ["-C", node, "serve", "--listen", "127.0.0.1:\(port)"] + arguments, in: work)
    url = String(program.firstLine.split(separator: " ").last ?? "")
    try #require(url.hasPrefix("http"), "\(program.errorText)")
  }

  var port: Int { Int(url.split(separator: ":").last ?? "") ?? 0 }

  struct Answer {
    var status: Int
    /// The media type without parameters.
    var type: String
    var body: String
  }

  /// The answer to a request of curl. It must be one that `openapi.json` describes.
  func answer(
    _ path: String, _ arguments: [String] = [], in work: Workplace,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws -> Answer {
    let result = try Tool.run(
      "/usr/bin/env",
      ["curl", "-sS", "--max-time", "20", "-w", "\n%{http_code} %{content_type}"] + arguments + [url + path],
      in: work.path)
    let lines = result.output.split(separator: "\n", omittingEmptySubsequences: false)
    let words = (lines.last ?? "").split(separator: " ")
    let answer = Answer(
      status: Int(words.first ?? "") ?? 0,
      type: words.count > 1 ? String(words[1].prefix { $0 != ";" }) : "",
      body: lines.dropLast().joined(separator: "\n"))
    let method = arguments.contains("--data-binary") ? "POST" : "GET"
    let contradiction = try APIDescription().contradiction(answer, to: method, path)
    #expect(contradiction == nil, "\(answer)", sourceLocation: sourceLocation)
    return answer
  }
}
