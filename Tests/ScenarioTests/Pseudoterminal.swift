import Foundation
import Testing

/// Runs the tool on a terminal, by script(1) of util-linux.
enum Pseudoterminal {
  private static let script = "/usr/bin/script"

  static var isThere: Bool {
    #if os(Linux)
      if FileManager.default.isExecutableFile(atPath: script) { return true }
    #endif
    print("skipped: script(1) of util-linux is not there")
    return false
  }

  /// The content of the terminal, including the typed input.
  static func run(
    _ arguments: [String], in directory: String, typing: String = "", environment: [String: String] = [:]
  ) throws -> String {
    let words = ([Tool.path] + arguments).map { "'" + $0.replacingOccurrences(of: "'", with: "'\\''") + "'" }
    let result = try Tool.run(
      "/usr/bin/env",
      ["timeout", "-s", "KILL", "120", script, "-qec", words.joined(separator: " "), "/dev/null"],
      in: directory, input: Data(typing.utf8), environment: environment)
    return result.output.replacingOccurrences(of: "\r\n", with: "\n")
  }
}
