import Foundation
import Testing

/// What the README shows is what happens.
@Suite("README")
struct ReadmeTests {
  /// One `$ command` and what follows it.
  struct Step {
    var command: String
    var output: [String]
  }

  /// The `console` blocks of the page: `$ ` begins a command, `> ` goes on with it, the rest is output.
  static func steps() throws -> [Step] {
    let page = try String(contentsOf: Self.root.appendingPathComponent("README.md"), encoding: .utf8)
    var steps: [Step] = []
    var isInside = false
    for line in page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      if line.hasPrefix("```") {
        isInside = line == "```console"
      } else if isInside, line.hasPrefix("$ ") {
        steps.append(Step(command: String(line.dropFirst(2)), output: []))
      } else if isInside, !steps.isEmpty {
        let last = steps.count - 1
        if line.hasPrefix("> "), steps[last].output.isEmpty {
          steps[last].command += "\n" + line.dropFirst(2)
        } else {
          steps[last].output.append(line)
        }
      }
    }
    return steps
  }

  static let root: URL = {
    var directory = URL(fileURLWithPath: #filePath)
    while !FileManager.default.fileExists(atPath: directory.appendingPathComponent("README.md").path),
      directory.path != "/"
    {
      directory.deleteLastPathComponent()
    }
    return directory
  }()

  /// Times, ids, digests and sizes differ from run to run.
  private func normalized(_ text: String) -> String {
    text.replacing(#/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/#, with: "TIME")
      .replacing(#/\b\d+-[0-9a-f]{6}\b/#, with: "REVISION")
      .replacing(#/\b[0-9a-f]{32}\b/#, with: "DIGEST")
      .replacing(#/\b[0-9a-f]{16}\b/#, with: "ORIGIN")
      .replacing(#/\b[0-9a-f]{8}\b/#, with: "SHORT")
      .replacing(#/\b\d+(\.\d+)? (B|KiB|MiB)\b/#, with: "SIZE")
      .split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.replacing(#/ +$/#, with: "") }.joined(separator: "\n")
      .replacing(#/ {2,}/#, with: "  ")
  }

  @Test("the tour runs as printed")
  func tourRuns() throws {
    let work = try Workplace()
    let steps = try Self.steps()
    #expect(steps.count > 10)
    let directory = URL(fileURLWithPath: Tool.path).deletingLastPathComponent().path
    let path = directory + ":" + (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin")
    for step in steps {
      let result = try Tool.run(
        "/bin/bash", ["-c", step.command + "\n"], in: work.path, environment: ["PATH": path])
      let printed = (result.output + result.errors).split(separator: "\n", omittingEmptySubsequences: false)
        .joined(separator: "\n")
      let wanted = step.output.joined(separator: "\n")
      #expect(
        normalized(printed).trimmed == normalized(wanted).trimmed, "$ \(step.command)\nprinted:\n\(printed)")
    }
  }

  @Test("the two commands of the README are there and can be run")
  func commandsAreThere() throws {
    let page = try String(contentsOf: Self.root.appendingPathComponent("README.md"), encoding: .utf8)
    for command in ["Tools/demo", "Tools/test"] {
      #expect(page.contains(command))
      #expect(FileManager.default.isExecutableFile(atPath: Self.root.appendingPathComponent(command).path))
    }
  }
}

extension String {
  fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
