import Foundation
import StemmaNode
import Testing

@Suite struct ErrorCodeTests {
  private func text(_ path: String) throws -> String {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    return try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
  }

  private func rows() throws -> [(code: String, exit: Int)] {
    try text("docs/ERRORS.md").matches(of: /(?m)^\| `(\w+)` \| (\d+) \| .+ \| .+ \|$/).map {
      (String($0.1), Int($0.2) ?? 0)
    }
  }

  @Test("docs/ERRORS.md has each code once")
  func codes() throws {
    #expect(try rows().map(\.code) == ErrorCode.allCases.map(\.rawValue))
    #expect(ErrorCode.allCases.count <= 60)
  }

  /// The tool is a program and cannot be imported, so its source is read.
  @Test("docs/ERRORS.md has the exit code of each")
  func exitCodes() throws {
    let numbers = Dictionary(
      uniqueKeysWithValues: try text("Tools/stemma/Main.swift")
        .matches(of: /static let (\w+) = ExitCode\((\d+)\)/).map { (String($0.1), Int($0.2) ?? 0) })
    var exits: [String: Int] = [:]
    for match in try text("Tools/stemma/Explanation.swift").matches(of: /case ([^:]+):\s*\.(\w+)/) {
      for code in match.1.matches(of: /\.(\w+)/) { exits[String(code.1)] = numbers[String(match.2)] }
    }
    for row in try rows() { #expect(exits[row.code] == row.exit, "\(row.code)") }
  }
}
