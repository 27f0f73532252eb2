import Foundation
import Testing

/// A page of text with `console` blocks. `$ ` begins a command, `> ` continues it, and the rest is
/// its output. README, the pages under docs and the golden files are such pages.
struct ConsolePage {
  /// One command, and its output.
  struct Step: Sendable, CustomTestStringConvertible {
    var command: String
    var output: [String]
    /// The lines of the page that hold the output.
    fileprivate(set) var place: Range<Int>

    var testDescription: String { command }
  }

  let url: URL
  private(set) var lines: [String]
  private(set) var steps: [Step] = []

  init(_ url: URL) throws {
    self.url = url
    lines = try String(contentsOf: url, encoding: .utf8).split(
      separator: "\n", omittingEmptySubsequences: false
    ).map(String.init)
    var isInside = false
    for (number, line) in lines.enumerated() {
      if line.hasPrefix("```") {
        isInside = line == "```console"
      } else if isInside, line.hasPrefix("$ ") {
        steps.append(Step(command: String(line.dropFirst(2)), output: [], place: number + 1..<number + 1))
      } else if isInside, !steps.isEmpty {
        let last = steps.count - 1
        if line.hasPrefix("> "), steps[last].output.isEmpty {
          steps[last].command += "\n" + line.dropFirst(2)
          steps[last].place = number + 1..<number + 1
        } else {
          steps[last].output.append(line)
          steps[last].place = steps[last].place.lowerBound..<number + 1
        }
      }
    }
  }

  /// The root of the repository.
  static let root: URL = {
    var directory = URL(fileURLWithPath: #filePath)
    while !FileManager.default.fileExists(atPath: directory.appendingPathComponent("README.md").path),
      directory.path != "/"
    {
      directory.deleteLastPathComponent()
    }
    return directory
  }()

  /// Runs a command in a shell, with the tool and this build's other programs in the path.
  static func shell(_ command: String, in directory: String) throws -> Tool.Result {
    let path =
      [Tool.directory, Tool.productsDirectory].joined(separator: ":") + ":"
      + (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")
    return try Tool.run(
      "/bin/bash", ["-c", command + "\n"], in: directory,
      // Pages show sizes and offsets of compressed bytes.
      environment: ["PATH": path, "STEMMA_DEFLATE": "zlib"])
  }

  /// The output of a command on both streams. A last line `[status]` follows unless that is 0 and
  /// `showsStatus` is false.
  static func run(
    _ command: String, in directory: String, showsStatus: Bool = false
  ) throws -> [String] {
    let result = try shell(command, in: directory)
    var lines = (result.output + result.errors).split(separator: "\n", omittingEmptySubsequences: false)
      .map(String.init)
    while lines.last?.isEmpty ?? false { lines.removeLast() }
    if showsStatus, result.status != 0 { lines.append("[\(result.status)]") }
    return lines
  }

  /// The outputs of commands that one shell runs, in which programs may go on in the background.
  /// Status and streams are shown as by `run` with a single command.
  static func run(_ commands: [String], in directory: String) throws -> [String] {
    let marker = "next-\(UUID().uuidString)"
    let errors = "'\(directory)/.errors'"
    let steps = commands.map {
      "{ \($0)\n} 2> \(errors); status=$?; cat \(errors); [ $status = 0 ] || echo \"[$status]\"; echo \(marker)\n"
    }
    let script = "trap 'kill $(jobs -p) 2>/dev/null' EXIT\n" + steps.joined()
    return try shell(script, in: directory).output.components(separatedBy: "\(marker)\n").dropLast()
  }

  /// The page with replaced outputs, one per step.
  func text(with outputs: [[String]]) -> String {
    var text = lines
    for (step, output) in zip(steps, outputs).reversed() { text.replaceSubrange(step.place, with: output) }
    return text.joined(separator: "\n")
  }
}
